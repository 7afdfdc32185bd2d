//! Runs the same command lines on GNU cp and on ours, in the same trees, as root and as an ordinary
//! user, and compares all that came of it: tree, standard output and error, exit status.
//!
//! GNU's is `/bin/cp`, or what HAULAGE_GNU_CP names.

use std::cell::Cell;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use known::{KNOWN, Version};
use newer::Expected;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
pub(crate) use run::spawn_as_nobody;
use run::{Case, Ground, Outcome, Persona, Program};
use testfs::Aspects;

use crate::OPEN_HAULAGE;

mod generated;
mod known;
mod newer;
mod run;
mod scenarios;

/// GNU's cp and its release, or `None`, aloud, where there is none.
pub(crate) fn gnu() -> Option<(Program, Version)> {
    let path: PathBuf = std::env::var_os("HAULAGE_GNU_CP").unwrap_or("/bin/cp".into()).into();
    let output = Command::new(&path).arg0("cp").arg("--version").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let first = text.lines().next().unwrap_or_default();
    let Some(number) = first.strip_prefix("cp (GNU coreutils) ") else {
        eprintln!("skipped: {} is not GNU cp", path.display());
        return None;
    };
    let (major, minor) = number.split_once('.').expect("a release has two numbers");
    let version = Version(
        major.parse().expect("a release has two numbers"),
        minor.split('.').next().and_then(|n| n.parse().ok()).expect("a release has two numbers"),
    );
    Some((Program { path, before: Vec::new() }, version))
}

/// Ours, which is cp when that is its name. HAULAGE_CP_UNDER_TEST names another program, to try the
/// tests themselves, with words that come before those of a case.
fn ours() -> Program {
    let named = std::env::var("HAULAGE_CP_UNDER_TEST");
    let named = named.unwrap_or_else(|_| OPEN_HAULAGE.1.clone());
    let mut words = named.split(' ');
    let path = words.next().unwrap_or_default().into();
    Program { path, before: words.map(Into::into).collect() }
}

/// What differs between GNU's outcome, amended by what is known, and ours; nothing when all is well.
fn differences(case: &Case, version: Version, mut gnu: Outcome, mut ours: Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    for known in KNOWN.iter().filter(|known| known.until.is_none_or(|until| version < until)) {
        if (known.concerns)(case, &gnu, &ours) {
            (known.amend)(&mut gnu, &mut ours);
            lines.push(format!("known: {}", known.reason));
        }
    }
    let explained = lines.len();
    for (gnu, ours) in gnu.said.iter_mut().zip(&mut ours.said) {
        let mut compare = |what: &str, gnu: &[u8], ours: &[u8]| {
            if sorted(gnu) != sorted(ours) {
                let (gnu, ours) = (gnu.escape_ascii(), ours.escape_ascii());
                lines.push(format!("{what}\n  gnu  {gnu}\n  ours {ours}"));
            }
        };
        compare("stdout", &gnu.stdout, &ours.stdout);
        compare("stderr", &gnu.stderr, &ours.stderr);
        if gnu.status != ours.status {
            lines.push(format!("status {:?} / {:?}", gnu.status, ours.status));
        }
    }
    let aspects = Aspects { usage: true, ..Aspects::ALL };
    lines.extend(gnu.tree.differences(&ours.tree, aspects));
    if lines.len() == explained { Vec::new() } else { lines }
}

/// Lines and questions in an order that does not depend on that of a directory.
fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> =
        text.split(|&byte| byte == b'\n' || byte == b'?').map(<[u8]>::trim_ascii).collect();
    lines.sort_unstable();
    lines
}

/// Runs `case` on both programs and tells what differs.
fn compare(
    ground: &Ground,
    case: &Case,
    (gnu, version): (&Program, Version),
    ours: &Program,
    persona: Persona,
) -> Option<String> {
    let theirs = ground.run(case, gnu, persona);
    let lines = differences(case, version, theirs, ground.run(case, ours, persona));
    (!lines.is_empty())
        .then(|| format!("{persona:?}: {}\n  in {}\n{}\n", case.line, case.tree, lines.join("\n")))
}

/// Whether we can run programs as `persona`; says so if we cannot.
fn can_be(persona: Persona) -> bool {
    let can = persona == Persona::Oneself || testfs::is_root();
    if !can {
        eprintln!("skipped: only root can run a program as nobody");
    }
    can
}

/// Runs the cases that were written by hand as `persona`.
fn check_scenarios(persona: Persona) {
    let Some((gnu, version)) = gnu().filter(|_| can_be(persona)) else { return };
    let (ours, ground) = (ours(), Ground::new());
    let cases = scenarios::of(persona);
    let compare = |case| compare(&ground, case, (&gnu, version), &ours, persona);
    let reports: Vec<String> = cases.iter().filter_map(compare).collect();
    let found = reports.len();
    assert!(found == 0, "{found} of {} differ:\n{}", cases.len(), reports.join("\n"));
}

#[test]
fn every_line_does_what_it_does_in_gnu_cp() {
    check_scenarios(Persona::Oneself);
}

#[test]
fn every_line_does_the_same_for_an_ordinary_user() {
    check_scenarios(Persona::Nobody);
}

/// The release whose outcomes [`newer::SEEN`] holds.
const NEWER: Version = Version(9, 10);

#[test]
fn what_newer_releases_do_is_done() {
    let (ours, ground) = (ours(), Ground::new());
    let (seen, documented) = (newer::parse(newer::SEEN), newer::parse(newer::DOCUMENTED));
    let faults = |expected: &Expected, program| {
        let faults = expected.faults(&ground.run(&expected.case, program, Persona::Oneself));
        let Case { tree, line } = &expected.case;
        let what = format!("{line} in {tree}");
        (!faults.is_empty()).then(|| format!("{what}\n{}\n", faults.join("\n")))
    };
    let mut reports: Vec<String> =
        seen.iter().chain(&documented).filter_map(|expected| faults(expected, &ours)).collect();
    if let Some((gnu, version)) = gnu()
        && version >= NEWER
    {
        let seen = seen.iter().filter_map(|expected| faults(expected, &gnu));
        reports.extend(seen.map(|report| format!("the table is wrong: {report}")));
    }
    assert!(reports.is_empty(), "{} differ:\n{}", reports.len(), reports.join("\n"));
}

/// Cases made and tried unless HAULAGE_CASES is set. The seed is fixed, so that what is tried in passing
/// is the same everywhere and a failure is one everywhere.
const CASES: u32 = 200;

/// Seed of the generated cases unless HAULAGE_SEED is set.
const SEED: u64 = 1;

/// Makes cases; a failing one is made as small as can be and told.
fn check_generated(persona: Persona) {
    let Some((gnu, version)) = gnu().filter(|_| can_be(persona)) else { return };
    let (ours, ground) = (ours(), Ground::new());
    let seed = number_from("HAULAGE_SEED").unwrap_or(SEED);
    eprintln!("HAULAGE_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let cases = number_from("HAULAGE_CASES").unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let tried = Cell::new(0);
    let outcome = TestRunner::new_with_rng(config, rng).run(&generated::case(version), |case| {
        tried.set(tried.get() + 1);
        let report = compare(&ground, &case, (&gnu, version), &ours, persona);
        report.map_or(Ok(()), |report| Err(TestCaseError::fail(report)))
    });
    eprintln!("{} cases", tried.get());
    if let Err(TestError::Fail(report, _)) = outcome {
        panic!("HAULAGE_SEED={seed}, after {} cases: {report}", tried.get());
    }
}

/// The number in an environment variable.
pub(crate) fn number_from<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not '{text}'")))
}

#[test]
fn generated_lines_do_what_they_do_in_gnu_cp() {
    check_generated(Persona::Oneself);
}

#[test]
fn generated_lines_do_the_same_for_an_ordinary_user() {
    check_generated(Persona::Nobody);
}

/// Copies as GNU does and then errs in one way.
const MUTANTS: &[&str] = &[
    "/bin/cp \"$@\"; exit $(( $? ^ 1 ))",
    "/bin/cp \"$@\"; status=$?; echo said; exit $status",
    "/bin/cp \"$@\"; status=$?; echo said >&2; exit $status",
    "/bin/cp \"$@\"; status=$?; echo more >>b; exit $status",
    "/bin/cp \"$@\"; status=$?; chmod 601 b; exit $status",
    "/bin/cp \"$@\"; status=$?; touch -d @1500000000 b; exit $status",
    "/bin/cp \"$@\"; status=$?; touch -ad @1500000000 b; exit $status",
    "/bin/cp \"$@\"; status=$?; ln b b2; exit $status",
    "/bin/cp \"$@\"; status=$?; ln -s b b2; exit $status",
    "/bin/cp \"$@\"; status=$?; mv b b2; exit $status",
    "/bin/cp \"$@\"; status=$?; fallocate -pl 4K b; exit $status",
];

#[test]
fn the_comparison_finds_what_a_wrong_cp_does() {
    let Some((gnu, version)) = gnu() else { return };
    let ground = Ground::new();
    // Enough zeros for a hole to be punched where there was data.
    let case = Case { tree: "a~64K@4K".to_owned(), line: "--sparse=never a b".to_owned() };
    let compare =
        |program: &Program| compare(&ground, &case, (&gnu, version), program, Persona::Oneself);
    assert_eq!(compare(&gnu), None);
    for mutant in MUTANTS {
        let program = Program {
            path: "/bin/bash".into(),
            before: ["-c", mutant, "cp"].map(Into::into).to_vec(),
        };
        assert!(compare(&program).is_some(), "not found: {mutant}");
    }
}
