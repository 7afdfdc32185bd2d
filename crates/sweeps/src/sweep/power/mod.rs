//! A loss of power at every moment of a copy.
//!
//! The copy is made on a disk whose writes and flushes are logged. What the disk has after a loss of
//! power is all that was written before a flush, and any part of what was written after it. Such
//! states are made, mounted and looked at:
//!
//! | option | promise |
//! |---|---|
//! | `--durable` | after the exit all is there that was there at the exit |
//! | `--atomic` | a file's name stands for the old file or the whole new one, at every moment |
//! | `--resume` | the same command completes the copy and leaves nothing of its own |

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, ensure};
use fastrand::Rng;
use testfs::Content;

use super::counts::{Group, Verdict};
use super::run::{Run, Sweep};
use case::{Case, KINDS};
use check::Checked;
use recorded::Recorded;
use state::State;

mod case;
mod check;
mod disk;
mod recorded;
mod source;
mod state;

pub(super) const SWEEP: Sweep = Sweep {
    name: "power",
    about: "a loss of power at every moment of a copy: --durable, --atomic, --resume",
    try_cases,
    repeat,
};

/// The options of a copy.
const OPTIONS: &[&str] = &[
    "-a --durable",
    "-a --durable --jobs=1",
    "-a --durable --jobs=4",
    "-a --durable --verify",
    "-a --durable --remove-destination",
    "-a --durable --backup=numbered",
    "-a --durable --sparse=always",
    "-a --durable --reflink=never",
    "-a --durable --no-cache",
    "-a --atomic",
    "-r --atomic --jobs=4",
    "-a --atomic --reflink=never",
    "-a --durable --atomic",
    "-a --durable --atomic --jobs=1",
    "-a --durable --atomic --verify",
    "-r --durable --atomic --jobs=4",
    "-a --durable --resume",
    "-a --resume",
    "-r --resume --jobs=1",
];

fn try_cases(run: &mut Run<'_>) -> anyhow::Result<()> {
    let kinds: Vec<&'static str> =
        KINDS.into_iter().filter(|kind| run.kinds().contains(kind)).collect();
    ensure!(!kinds.is_empty(), "there is no file system with a disk: {}", KINDS.join(", "));
    let mut fresh = HashMap::new();
    let mut cases: Vec<(&'static str, &str)> = Vec::new();
    while run.goes_on() {
        // Every combination once, then again with other seeds.
        if cases.is_empty() {
            cases =
                kinds.iter().flat_map(|&kind| OPTIONS.iter().map(move |&o| (kind, o))).collect();
            run.order(&mut cases);
        }
        let (kind, options) = cases.pop().expect("there are file systems and options");
        let case = Case { kind, seed: run.rng.u64(..1 << 32), options: options.to_owned() };
        try_one(run, &case, &mut fresh)?;
    }
    Ok(())
}

fn repeat(run: &mut Run<'_>, text: &str) -> anyhow::Result<()> {
    try_one(run, &Case::parse(text)?, &mut HashMap::new())
}

/// Makes the copy of `case`, and tries its states.
fn try_one(
    run: &mut Run<'_>,
    case: &Case,
    fresh: &mut HashMap<&'static str, Content>,
) -> anyhow::Result<()> {
    let place = if run.kinds().contains(&"tmpfs") { "tmpfs" } else { case.kind };
    let dir = tempfile::tempdir_in(run.place(place)?.path()).context("a directory")?;
    if !fresh.contains_key(case.kind) {
        fresh.insert(case.kind, disk::make(case.kind, dir.path())?);
    }
    let mut rng = Rng::with_seed(case.seed);
    let recorded = Recorded::new(run, case, &fresh[case.kind], dir.path(), &mut rng)?;
    let group = |kind: &str| Group::new(case.kind, &case.options, kind);
    if let Some(what) = &recorded.wrong {
        run.record(&case.text(), group("the copy itself"), Verdict::Wrong(what.clone()));
        return Ok(());
    }
    for state in state::some(&recorded, &mut rng) {
        if !run.goes_on() {
            break;
        }
        let Checked { faults, had_journal } = try_state(run, case, &recorded, &state, dir.path())?;
        let verdict = match faults.as_slice() {
            [] => Verdict::Right,
            faults => {
                let shown: Vec<&str> = faults.iter().take(5).map(String::as_str).collect();
                let count = faults.len();
                Verdict::Wrong(format!("{state}: {count} faults:\n  {}", shown.join("\n  ")))
            }
        };
        let kind = match (state.is_after_exit, had_journal) {
            (true, _) => "after the exit",
            (false, true) => "during the copy, with a journal",
            (false, false) => "during the copy",
        };
        let is_wrong = matches!(verdict, Verdict::Wrong(_));
        run.record(&case.text(), group(kind), verdict);
        // The other states of this copy would show the same.
        if is_wrong {
            break;
        }
    }
    Ok(())
}

fn try_state(
    run: &Run<'_>,
    case: &Case,
    recorded: &Recorded,
    state: &State,
    dir: &Path,
) -> anyhow::Result<Checked> {
    let image = dir.join("state");
    state.content(recorded).save(&image).context("an image of the state")?;
    let mounted = match disk::Mounted::image(case.kind, &image, &dir.join("mounted")) {
        Ok(mounted) => mounted,
        Err(error) => {
            let faults = vec![format!("it cannot be mounted: {error:#}")];
            return Ok(Checked { faults, had_journal: false });
        }
    };
    check::check(run, case, recorded, state, mounted.path())
}
