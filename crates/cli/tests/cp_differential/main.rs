//! Runs the same command lines on GNU cp and on ours, in the same trees, as root and as an ordinary
//! user, and compares all that came of it: tree, standard output and error, exit status.
//!
//! GNU's is `/bin/cp`, or what HAULAGE_GNU_CP names.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use known::{KNOWN, Version};
use run::{Case, Ground, Outcome, Persona, Program};

mod fixture;
mod known;
mod run;
mod scenarios;
mod snapshot;

/// GNU's cp and its release, or `None`, aloud, where there is none.
fn gnu() -> Option<(Program, Version)> {
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

/// Ours, or what HAULAGE_CP_UNDER_TEST names, to try the tests themselves.
fn ours() -> Program {
    match std::env::var_os("HAULAGE_CP_UNDER_TEST") {
        Some(path) => Program { path: path.into(), before: Vec::new() },
        None => Program {
            path: env!("CARGO_BIN_EXE_haulage").into(),
            before: vec!["cp".into()],
        },
    }
}

/// What differs between GNU's outcome, amended by what is known, and ours; nothing when all is well.
fn differences(case: &Case, version: Version, mut gnu: Outcome, mut ours: Outcome) -> Vec<String> {
    for known in KNOWN.iter().filter(|known| known.until.is_none_or(|until| version < until)) {
        if (known.concerns)(case, &gnu) {
            (known.amend)(&mut gnu, &mut ours);
        }
    }
    let mut lines = Vec::new();
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
    lines.extend(gnu.tree.differences(&ours.tree));
    lines
}

/// The lines in an order that does not depend on that of a directory.
fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
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
    (!lines.is_empty()).then(|| {
        format!("{persona:?}: {}\n  in {}\n{}\n", case.line, case.tree, lines.join("\n"))
    })
}

/// Runs every case that was written by hand as `persona`.
fn check_scenarios(persona: Persona) {
    let Some((gnu, version)) = gnu() else { return };
    let (ours, ground) = (ours(), Ground::new());
    let cases = scenarios::all();
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
    if rustix::process::geteuid().is_root() {
        check_scenarios(Persona::Nobody);
    } else {
        eprintln!("skipped: only root can become nobody, and whoever runs this is ordinary");
    }
}
