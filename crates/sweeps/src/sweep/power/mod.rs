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

use anyhow::Context;
use fastrand::Rng;

use super::copies::OptionSet;
use super::counts::Verdict;
use super::run::{Cell, Points, Sweep, seed, texts};
use check::check;
use recorded::Recorded;

mod check;
mod disk;
mod recorded;
mod source;
mod state;

pub(super) const SWEEP: Sweep = Sweep {
    name: "power",
    about: "a loss of power at every moment of a copy: --durable, --atomic, --resume",
    // What is on a tmpfs is lost with the power.
    settings: |kind| if kind == "tmpfs" { Vec::new() } else { texts(OPTIONS) },
    points: Points::Seeds,
    attempt,
    repeats: 1,
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

/// Makes a copy, and tries some of the states that its disk may have.
fn attempt(cell: &mut Cell<'_>, point: &str) -> anyhow::Result<()> {
    let mut rng = Rng::with_seed(seed(point)?);
    let set = OptionSet::new(cell.setting);
    // In memory, if there is a tmpfs.
    let place = cell.run.file_systems.dir("tmpfs").unwrap_or(cell.place.path());
    let dir = tempfile::tempdir_in(place).context("a directory")?;
    let recorded = Recorded::new(cell.run, cell.place.kind, &set, dir.path(), &mut rng)?;
    if let Some(what) = &recorded.wrong {
        cell.record(point, "the copy itself", Verdict::Wrong(what.clone()));
        return Ok(());
    }
    for state in state::some(&recorded, &mut rng) {
        if !cell.run.goes_on() {
            break;
        }
        // A file of its own: a mount namespace that was made meanwhile may keep the state before this one mounted,
        // and its file system goes on writing.
        let image = tempfile::NamedTempFile::new_in(dir.path()).context("an image of the state")?;
        state.content(&recorded).save(image.path()).context("an image of the state")?;
        let (mut faults, mut had_journal) = (Vec::new(), false);
        match disk::Mounted::new(cell.place.kind, image.path(), &dir.path().join("mounted")) {
            Ok(at) => {
                had_journal = check(cell.run, &set, &recorded, &state, at.path(), &mut faults)?;
            }
            Err(error) => faults.push(format!("it cannot be mounted: {error:#}")),
        }
        let subject = match (state.is_after_exit, had_journal) {
            (true, _) => "after the exit",
            (false, true) => "during the copy, with a journal",
            (false, false) => "during the copy",
        };
        cell.record(point, subject, Verdict::unless(&faults, Verdict::Right).after(&state));
        // The other states of this copy would show the same.
        if !faults.is_empty() {
            break;
        }
    }
    Ok(())
}
