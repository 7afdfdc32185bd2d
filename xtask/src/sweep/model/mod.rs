//! Random trees and command lines, and what has to come of them: haulage is compared with a model of what cp
//! means, and so is GNU cp, which shows whether the model is right. proptest makes a finding small.
//!
//! | file | content |
//! |---|---|
//! | `tree` | a tree of files as a value |
//! | `options` | what each option says |
//! | `meaning` | the model: from a tree and a command line to the tree, exit status and messages |
//! | `item`, `case` | the text forms of a tree and of a case |
//! | `draw` | random cases |
//! | `disk`, `outcome` | a case on a file system |
//! | `known` | where a program is known to differ |

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, bail};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use self::case::Case;
use self::outcome::Program;
use super::counts::{Group, Verdict};
use super::run::{Run, Sweep};

mod case;
mod disk;
mod draw;
mod item;
mod known;
mod meaning;
mod options;
mod outcome;
mod tree;

pub(super) const SWEEP: Sweep = Sweep {
    name: "model",
    about: "random trees and command lines beside a model of what cp means, and beside GNU cp",
    try_cases,
    repeat,
};

/// Options of haulage alone, which must not change the outcome.
const OWN_OPTIONS: &[&str] =
    &["--jobs=1", "--jobs=4", "--durable", "--no-cache", "--verify", "--jobs=4 --durable"];

/// How often a smaller case is tried in the place of a finding.
const SHRINKS_MAX: u32 = 2000;

/// Where a case is tried, and with which options of haulage alone.
#[derive(Clone)]
struct Setting {
    kind: String,
    own_options: String,
}

impl Setting {
    fn text(&self, case: &Case) -> String {
        format!("{} | {} | {}", self.kind, self.own_options, case.text())
    }
}

/// The programs, and how often they were known to differ.
struct Judge {
    gnu: Option<Program>,
    /// Holds haulage where everybody may run it.
    _dir: tempfile::TempDir,
    haulage: Program,
    set_aside: BTreeMap<&'static str, u64>,
}

impl Judge {
    fn new(run: &Run<'_>) -> anyhow::Result<Judge> {
        let gnu = Program::gnu();
        if gnu.is_none() {
            eprintln!("xtask: SKIPPED: there is no GNU cp, which shows whether the model is right");
        }
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("haulage");
        fs::copy(run.program(), &path).with_context(|| path.display().to_string())?;
        for (path, mode) in [(dir.path(), 0o755), (&*path, 0o755)] {
            fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        for kind in run.kinds() {
            fs::set_permissions(run.place(kind)?.path(), Permissions::from_mode(0o755))?;
        }
        let haulage = Program { name: "haulage", path, before: Vec::new(), release: None };
        Ok(Judge { gnu, _dir: dir, haulage, set_aside: BTreeMap::new() })
    }

    /// What of `case` is not as the model says. `None` if the model says nothing.
    fn verdict(
        &mut self,
        run: &Run<'_>,
        setting: &Setting,
        case: &Case,
    ) -> anyhow::Result<Option<Verdict>> {
        let before = case.tree()?;
        let Ok(due) = case.meaning(&before) else { return Ok(None) };
        // What may not be read cannot be read back.
        if setting.own_options.contains("--verify") && case.has_unreadable_file() {
            return Ok(None);
        }
        let dir = run.place(&setting.kind)?.path();
        let own = setting.own_options.split_whitespace();
        self.haulage.before = ["cp"].into_iter().chain(own).map(OsString::from).collect();
        let mut found = Vec::new();
        for program in [Some(&self.haulage), self.gnu.as_ref()].into_iter().flatten() {
            let Some(outcome) = outcome::run(program, case, &before, dir)? else { continue };
            let faults = outcome.faults(&due);
            if faults.is_empty() {
                continue;
            }
            match known::known(program, case, &due, &outcome) {
                Some(reason) => *self.set_aside.entry(reason).or_default() += 1,
                None => found.push(format!("{}: {}", program.name, faults.join("; "))),
            }
        }
        Ok(Some(match found.is_empty() {
            true => Verdict::Right,
            false => Verdict::Wrong(found.join("\n    ")),
        }))
    }
}

fn try_cases(run: &mut Run<'_>) -> anyhow::Result<()> {
    let mut judge = Judge::new(run)?;
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&run.rng.u64(..).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut settings = Vec::new();
    for kind in run.kinds() {
        let own = OWN_OPTIONS.iter().map(|own| (*own).to_owned());
        settings.extend(own.map(|own_options| Setting { kind: kind.to_owned(), own_options }));
    }
    while run.goes_on() {
        let setting = settings[run.rng.usize(..settings.len())].clone();
        let drawn = draw::case().new_tree(&mut runner);
        let mut drawn = drawn.map_err(|reason| anyhow::anyhow!("no case: {reason}"))?;
        let case = drawn.current();
        let Some(verdict) = judge.verdict(run, &setting, &case)? else { continue };
        let (case, verdict) = match verdict {
            Verdict::Wrong(_) => smallest(&mut judge, run, &setting, &mut drawn, (case, verdict))?,
            right => (case, right),
        };
        record(run, &setting, &case, verdict);
    }
    for (reason, count) in &judge.set_aside {
        println!("{count:>6} set aside: {reason}");
    }
    Ok(())
}

/// The smallest case that is wrong, too.
fn smallest(
    judge: &mut Judge,
    run: &Run<'_>,
    setting: &Setting,
    drawn: &mut impl ValueTree<Value = Case>,
    mut smallest: (Case, Verdict),
) -> anyhow::Result<(Case, Verdict)> {
    let mut goes_on = drawn.simplify();
    for _ in 0..SHRINKS_MAX {
        if !goes_on {
            break;
        }
        let case = drawn.current();
        goes_on = match judge.verdict(run, setting, &case)? {
            Some(verdict @ Verdict::Wrong(_)) => {
                smallest = (case, verdict);
                drawn.simplify()
            }
            _ => drawn.complicate(),
        };
    }
    Ok(smallest)
}

fn repeat(run: &mut Run<'_>, text: &str) -> anyhow::Result<()> {
    let parts: Vec<&str> = text.splitn(3, " | ").collect();
    let [kind, own_options, case] = parts[..] else {
        bail!("'{text}' is not of the form FILE-SYSTEM | OPTIONS | USER UMASK | TREE | WORDS");
    };
    let setting = Setting { kind: kind.to_owned(), own_options: own_options.to_owned() };
    let case = Case::parse(case)?;
    let verdict = Judge::new(run)?.verdict(run, &setting, &case)?;
    record(run, &setting, &case, verdict.context("the model says nothing of it")?);
    Ok(())
}

fn record(run: &mut Run<'_>, setting: &Setting, case: &Case, verdict: Verdict) {
    let group = Group::new(&setting.kind, &setting.own_options, case.subject());
    run.record(&setting.text(case), group, verdict);
}
