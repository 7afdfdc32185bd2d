//! Sweeps whose cases are those of test programs of `crates/cli`, with other seeds. Their short samples, and the
//! planted faults that they find, are tests there.

use anyhow::{Context, ensure};

use super::counts::{Group, Verdict};
use super::run::{Run, Sweep};
use xtask::command::cargo;

pub(super) const ATTACK: Sweep = Sweep {
    name: "attack",
    about: "symbolic links take the place of entries while a copy runs, at its source and destination",
    try_cases: |run| try_cases(run, &CP_ATTACK),
    repeat: |run, case| repeat(run, &CP_ATTACK, case),
};

pub(super) const DIFFERENTIAL: Sweep = Sweep {
    name: "differential",
    about: "random trees and command lines beside GNU cp, made as small as can be where they differ",
    try_cases: |run| try_cases(run, &CP_DIFFERENTIAL),
    repeat: |run, case| repeat(run, &CP_DIFFERENTIAL, case),
};

/// Tests of the program `cp`, and how they are told what to try.
struct TestProgram {
    /// The module of the tests.
    test: &'static str,
    /// The tests with this text in their names are run.
    filter: &'static str,
    count_variable: &'static str,
    seed_variable: &'static str,
    /// The cases of one run.
    count: u64,
    /// What follows the number of cases in a line that it prints.
    unit: &'static str,
    program_variable: &'static str,
    /// Options of haulage alone, which must not change the outcome.
    options: &'static [&'static str],
}

const CP_ATTACK: TestProgram = TestProgram {
    test: "cp_attack",
    filter: "nothing_outside",
    count_variable: "HAULAGE_ATTACK_COPIES",
    seed_variable: "HAULAGE_ATTACK_SEED",
    // Several for each row of its table.
    count: 200,
    unit: " copies in ",
    program_variable: "HAULAGE_ATTACKED_PROGRAM",
    options: &[
        "--jobs=1",
        "--jobs=4",
        "--jobs=4 --durable",
        "--jobs=4 --no-cache",
        "--atomic",
        "--atomic --jobs=4",
        "--resume --jobs=4",
        "--verify",
        "--backup=numbered",
    ],
};

const CP_DIFFERENTIAL: TestProgram = TestProgram {
    test: "cp_differential",
    filter: "generated_lines",
    count_variable: "HAULAGE_CASES",
    seed_variable: "HAULAGE_SEED",
    count: 200,
    unit: " cases",
    program_variable: "HAULAGE_CP_UNDER_TEST",
    options: &["--jobs=1", "--jobs=4", "--durable", "--no-cache", "--jobs=4 --durable"],
};

/// One run of a test program. Its text is these, separated by `; `.
struct Case {
    kind: String,
    options: String,
    seed: u64,
}

impl Case {
    fn text(&self) -> String {
        let Case { kind, options, seed } = self;
        format!("{kind}; {options}; seed={seed}")
    }

    fn parse(text: &str) -> anyhow::Result<Case> {
        let parts: Vec<&str> = text.split("; ").collect();
        let parsed = match parts[..] {
            [kind, options, seed] => seed.strip_prefix("seed=").and_then(|seed| {
                let (kind, options) = (kind.to_owned(), options.to_owned());
                Some(Case { kind, options, seed: seed.parse().ok()? })
            }),
            _ => None,
        };
        parsed.with_context(|| format!("'{text}' is not of the form FILE-SYSTEM; OPTIONS; seed=N"))
    }
}

fn try_cases(run: &mut Run<'_>, program: &TestProgram) -> anyhow::Result<()> {
    let mut choices: Vec<(String, &str)> = Vec::new();
    for kind in run.kinds() {
        choices.extend(program.options.iter().map(|options| (kind.to_owned(), *options)));
    }
    while run.goes_on() {
        run.order(&mut choices);
        for (kind, options) in &choices {
            if !run.goes_on() {
                break;
            }
            let (kind, options) = (kind.clone(), (*options).to_owned());
            let seed = run.rng.u64(..1 << 40);
            try_one(run, program, &Case { kind, options, seed })?;
        }
    }
    Ok(())
}

fn repeat(run: &mut Run<'_>, program: &TestProgram, text: &str) -> anyhow::Result<()> {
    try_one(run, program, &Case::parse(text)?)
}

/// Runs the program once. It tries many cases, of which the first that is wrong ends it.
fn try_one(run: &mut Run<'_>, program: &TestProgram, case: &Case) -> anyhow::Result<()> {
    let place = run.place(&case.kind)?;
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "haulage-cli", "--test", "cp"]);
    command.args(["--", "--nocapture", program.filter]);
    command.env("HAULAGE_TEST_FS", format!("{}={}", case.kind, place.path().display()));
    command.env("TMPDIR", place.path());
    command.env(program.count_variable, program.count.to_string());
    command.env(program.seed_variable, case.seed.to_string());
    let tried = format!("{} cp {}", run.program().display(), case.options);
    command.env(program.program_variable, tried);
    let output = command.output().context("cargo")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let group = Group::new(&case.kind, &case.options, program.test);
    let counts = said.lines().filter_map(|line| counted(line, program.unit));
    let mut right: u64 = counts.sum();
    if !output.status.success() {
        let shown: Vec<&str> =
            said.lines().skip_while(|line| !line.contains("panicked")).take(40).collect();
        ensure!(!shown.is_empty(), "cargo test --test cp {}: {said}", program.test);
        right = right.saturating_sub(1);
        run.record(&case.text(), group.clone(), Verdict::Wrong(shown.join("\n")));
    } else {
        // A test that is skipped tries nothing.
        ensure!(right > 0, "{} tried nothing: {said}", program.test);
    }
    for _ in 0..right {
        run.record(&case.text(), group.clone(), Verdict::Right);
    }
    Ok(())
}

/// The number of cases in a line such as `ext4: 400 copies in 42 modes`.
fn counted(line: &str, unit: &str) -> Option<u64> {
    let (before, _) = line.split_once(unit)?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_from_what_a_test_prints() {
        for (line, unit, due) in [
            ("ext4: 400 copies in 42 modes, 7 swaps", CP_ATTACK.unit, Some(400)),
            ("250 cases", CP_DIFFERENTIAL.unit, Some(250)),
            ("HAULAGE_SEED=1", CP_DIFFERENTIAL.unit, None),
            ("running 2 tests", CP_DIFFERENTIAL.unit, None),
        ] {
            assert_eq!(counted(line, unit), due, "{line}");
        }
    }

    #[test]
    fn a_case_is_read_as_it_is_written() {
        let text = "xfs; --jobs=4 --durable; seed=7";
        let case = Case::parse(text).expect("a case");
        assert_eq!((case.text().as_str(), case.seed), (text, 7));
        assert!(Case::parse("xfs; seed=7").is_err());
    }
}
