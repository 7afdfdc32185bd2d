//! A copy slot: a source and a destination directory of its own, so that several copies can be in
//! flight.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use engines::profile::Residency;

use super::case::Case;
use crate::definition::cell::Destination;
use crate::error::Error;
use crate::page_cache::prover::{Prover, read_anew};
use crate::scratch::files::write_random;
use crate::scratch::{Scratch, WorkDir};
use crate::source::{Load, Source};
use crate::trial::Bench;

/// The files of one copier.
#[derive(Debug)]
pub(super) struct CopySlot {
    pub(super) source: Source,
    /// Where its copies go, to one after another.
    dsts: Vec<WorkDir>,
    /// The directories of its source and of its copies.
    paths: [PathBuf; 2],
}

impl CopySlot {
    /// Makes the files of copy slot `nth` for a class of lengths: random bytes, which no file
    /// system can shorten or find twice, written to the medium.
    ///
    /// # Errors
    /// When they cannot be made.
    pub(super) fn make(
        case: &Case,
        nth: usize,
        (src, dst): (&Scratch, &Scratch),
        seed: u64,
    ) -> Result<CopySlot, Error> {
        let name = format!("{}-{}-{nth}", case.file_bytes, case.files);
        let path = src.path().join(&name);
        make_dir(&path)?;

        let mut rng = fastrand::Rng::with_seed(seed ^ case.file_bytes ^ (nth as u64) << 48);
        for file in 0..case.files {
            write_random(&path.join(format!("{file:04}")), case.file_bytes, &mut rng)?;
        }
        rustix::fs::syncfs(src.dir()).map_err(Error::path("cannot sync", &path))?;
        let source = Source::open(&path)?;
        if case.situation.residency == Residency::Resident {
            read_half_anew(&source, &source.whole())?;
        }
        let copies = dst.path().join(format!("copies-{name}"));
        make_dir(&copies)?;
        let dsts = (0..case.copies_kept()).map(|nth| {
            let dir = copies.join(nth.to_string());
            make_dir(&dir)?;
            WorkDir::open(&dir)
        });
        let dsts = dsts.collect::<Result<_, _>>()?;
        let paths = [path, copies];
        Ok(CopySlot { source, dsts, paths })
    }

    /// Removes its files.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub(super) fn remove(self) -> Result<(), Error> {
        let CopySlot { source, dsts, paths, .. } = self;
        drop((source, dsts));
        for dir in paths {
            std::fs::remove_dir_all(&dir).map_err(Error::path("cannot remove", dir))?;
        }
        Ok(())
    }

    /// A bench for each directory that its copies go to.
    pub(super) fn benches<'s>(&'s self, case: &Case, prover: &'s Prover) -> Vec<Bench<'s>> {
        let bench = |dst| Bench {
            source: &self.source,
            dst,
            prover,
            state: case.state(),
            destination: Destination::Fresh,
            stays: self.dsts.len() > 1,
            // Pages leave the cache once they are written out, and not before.
            durable: case.situation.no_cache,
        };
        self.dsts.iter().map(bench).collect()
    }
}

/// Has the first half of a source in the page cache because it was read, the second because it was
/// written. The kernel makes larger pages of what is written than of what it reads ahead, if there
/// are any in memory, and which variant is fastest depends on that: by 20 % between reading and
/// splicing 256 KiB from ext4. Which of both the files of a user are is unknown.
fn read_half_anew(source: &Source, load: &Load) -> Result<(), Error> {
    let mut left = load.bytes / 2;
    for part in &load.parts {
        let bytes = part.bytes.min(left);
        left -= bytes;
        let fd = source.open_file(part.file)?;
        let reading = Error::path("cannot read", source.path_of(part.file));
        read_anew(fd.as_fd(), bytes).map_err(reading)?;
        if left == 0 {
            break;
        }
    }
    Ok(())
}

fn make_dir(path: &Path) -> Result<(), Error> {
    std::fs::create_dir(path).map_err(Error::path("cannot create", path))
}

#[cfg(test)]
mod tests {
    use engines::Variant;
    use engines::profile::{InFlight, Situation, SizeClass};

    use super::*;
    use crate::clock::Clock;
    use crate::trial::digest::Digests;
    use crate::trial::{Runner, Task};

    #[test]
    fn a_copy_stays_until_others_lie_behind_it() {
        let home = tempfile::tempdir().expect("created");
        let scratch = || Scratch::create(home.path(), "tune").expect("created");
        let (src, dst) = (scratch(), scratch());
        let situation = Situation {
            size: SizeClass::ALL[0],
            residency: Residency::Resident,
            in_flight: InFlight::One,
            no_cache: false,
        };
        let case = Case::of(situation);
        let slot = CopySlot::make(&case, 0, (&src, &dst), 1).expect("a copy slot");
        let prover = Prover::try_on(&slot.source, case.state()).expect("a prover");
        let benches = slot.benches(&case, &prover);
        let variant: Variant = "read_write:256K".parse().expect("parsed");
        let load = slot.source.whole();
        let task = Task { digests: Digests::of(&slot.source, &load).expect("read"), load };
        let files = || -> usize {
            let dirs = std::fs::read_dir(&slot.paths[1]).expect("listed");
            let files = dirs.flatten().map(|dir| std::fs::read_dir(dir.path()).expect("listed"));
            files.map(Iterator::count).sum()
        };
        for run in 1..=10 {
            let mut runner = Runner::start(&variant).expect("it starts");
            benches[run % benches.len()]
                .run(&mut runner, &task, Clock::default())
                .expect("it copies");
            assert_eq!(files(), run.min(8) * case.files as usize);
        }
        slot.remove().expect("removed");
        for scratch in [src, dst] {
            assert_eq!(std::fs::read_dir(scratch.path()).expect("listed").count(), 0);
        }
    }
}
