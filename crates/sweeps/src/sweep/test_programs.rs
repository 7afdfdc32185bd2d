//! Sweeps whose cases are those of test programs of `crates/cli`, with other seeds. Their short samples, and the
//! planted faults that they find, are tests there.

use anyhow::{Context, ensure};

use super::counts::Verdict;
use super::run::{Cell, Points, Sweep, seed, texts};
use xtask::command::cargo;

pub(super) const ATTACK: Sweep = Sweep {
    name: "attack",
    about: "symbolic links take the place of entries while a copy runs, at its source and destination",
    settings: |_| texts(CP_ATTACK.options),
    points: Points::Seeds,
    attempt: |cell, point| attempt(cell, &CP_ATTACK, point),
    repeats: 1,
};

pub(super) const DIFFERENTIAL: Sweep = Sweep {
    name: "differential",
    about: "random trees and command lines beside GNU cp, made as small as can be where they differ",
    settings: |_| texts(CP_DIFFERENTIAL.options),
    points: Points::Seeds,
    attempt: |cell, point| attempt(cell, &CP_DIFFERENTIAL, point),
    repeats: 1,
};

/// The cases of one run of a test program: several for each row of the table of `attack`.
const COUNT: u64 = 200;

/// Tests of the program `cp`, and how they are told what to try.
struct TestProgram {
    /// The module of the tests.
    test: &'static str,
    /// The tests with this text in their names are run.
    filter: &'static str,
    count_variable: &'static str,
    seed_variable: &'static str,
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
    unit: " cases",
    program_variable: "HAULAGE_CP_UNDER_TEST",
    options: &["--jobs=1", "--jobs=4", "--durable", "--no-cache", "--jobs=4 --durable"],
};

/// Runs the program once. It tries many cases, of which the first that is wrong ends it.
fn attempt(cell: &mut Cell<'_>, program: &TestProgram, point: &str) -> anyhow::Result<()> {
    let (kind, dir) = (cell.place.kind, cell.place.path());
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "haulage-cli", "--test", "cp"]);
    command.args(["--", "--nocapture", program.filter]);
    command.env("HAULAGE_TEST_FS", format!("{kind}={}", dir.display()));
    command.env("TMPDIR", dir);
    command.env(program.count_variable, COUNT.to_string());
    command.env(program.seed_variable, seed(point)?.to_string());
    let tried = format!("{} cp {}", cell.run.program.display(), cell.setting);
    command.env(program.program_variable, tried);
    let output = command.output().context("cargo")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let mut right: u64 = said.lines().filter_map(|line| counted(line, program.unit)).sum();
    if !output.status.success() {
        let shown: Vec<&str> =
            said.lines().skip_while(|line| !line.contains("panicked")).take(40).collect();
        ensure!(!shown.is_empty(), "cargo test --test cp {}: {said}", program.test);
        right = right.saturating_sub(1);
        cell.record(point, program.test, Verdict::Wrong(shown.join("\n")));
    } else {
        // A test that is skipped tries nothing.
        ensure!(right > 0, "{} tried nothing: {said}", program.test);
    }
    for _ in 0..right {
        cell.record(point, program.test, Verdict::Right);
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
}
