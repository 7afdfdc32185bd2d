//! Checks the prover of the page cache against other sources.
//!
//! The prover counts pages with cachestat(2) and takes device reads from /proc/self/io. This check
//! uses mincore(2) and the counter of the block device under the file system. It reads the file
//! with plain read(2) and not with the code that runs variants.

use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::environment::block_device::BlockDevice;
use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::page_cache::state::{Proof, State};
use crate::scratch::WorkDir;
use crate::source::Source;
use crate::words;

/// Bytes of the file that it is tried on.
const BYTES: usize = 8 << 20;

/// Bytes that a device may read beyond the file: metadata, and reads of other programs.
const SLACK_BYTES: u64 = 256 << 10;

/// Attempts: another program may read from the device at the same time.
const TRIES: u32 = 4;

/// The result for one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProverCheck {
    /// The state.
    pub state: State,
    /// What was found.
    pub finding: Finding,
    /// The finding in words.
    pub words: String,
}

/// Whether the other sources agree with the prover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The other sources agree with the prover.
    Agrees,
    /// The other sources disagree with the prover.
    Differs,
    /// The prover cannot prove this state here.
    NotProved,
}

/// Lets the prover make a file in `dir` cold and warm, and checks both. Returns the prover too, for
/// the environment.
///
/// # Errors
/// When the file cannot be made or read.
pub fn check(dir: &WorkDir, seed: u64) -> Result<(Prover, Vec<ProverCheck>), Error> {
    const NAME: &str = "prover";
    let path = dir.path().join(NAME);
    let failed = |action| Error::path(action, path.clone());
    let fd = dir.create_file(NAME)?;
    let mut bytes = vec![0; BYTES];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    engines::pwrite_all(fd.as_fd(), &bytes, 0).1.map_err(failed("cannot write"))?;
    rustix::fs::fdatasync(&fd).map_err(failed("cannot sync"))?;
    let source = Source::open(&path)?;
    let prover = Prover::try_on(&source, State::Cold)?;
    let checks = [State::Cold, State::Warm].map(|state| check_state(&prover, &source, state));
    dir.remove_file(NAME)?;
    let checks = checks.into_iter().collect::<Result<_, _>>()?;
    Ok((prover, checks))
}

fn check_state(prover: &Prover, source: &Source, state: State) -> Result<ProverCheck, Error> {
    let mut found = check_once(prover, source, state)?;
    for _ in 1..TRIES {
        if found.finding != Finding::Differs {
            break;
        }
        found = check_once(prover, source, state)?;
    }
    Ok(found)
}

fn check_once(prover: &Prover, source: &Source, state: State) -> Result<ProverCheck, Error> {
    let reached = prover.reach(state, source, &source.whole())?;
    if !matches!(reached.proof, Proof::Cold | Proof::Warm) {
        let words = format!("{}: {}", state.name(), reached.note);
        return Ok(ProverCheck { state, finding: Finding::NotProved, words });
    }
    let failed = |action| Error::path(action, source.path());
    let fd = source.open_file(0)?;
    let page_bytes = rustix::param::page_size() as u64;
    let pages = sys::mincore(fd.as_fd(), 0, BYTES).map_err(failed("cannot map"))?;
    let device = BlockDevice::under(source.path());
    let read_so_far = || device.as_ref().and_then(BlockDevice::read_bytes);
    let before = read_so_far();
    let got = engines::pread_full(fd.as_fd(), &mut vec![0; BYTES], 0);
    if got.map_err(failed("cannot read"))? != BYTES {
        return Err(Error::SourceChanged(source.path().to_owned()));
    }
    let read = read_so_far().zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(judge(state, pages * page_bytes, read))
}

/// What mincore and the device say of a state that was proved.
fn judge(state: State, resident_bytes: u64, device_read_bytes: Option<u64>) -> ProverCheck {
    let all = BYTES as u64;
    let (resident_right, read_right) = match state {
        State::Cold => (resident_bytes == 0, device_read_bytes.is_none_or(|read| read >= all)),
        _ => (resident_bytes == all, device_read_bytes.is_none_or(|read| read <= SLACK_BYTES)),
    };
    let device = match device_read_bytes {
        Some(read) => format!("its device read {}", words::bytes(read)),
        None => "the device's read counter is not available".to_owned(),
    };
    let words = format!(
        "{}: of {} mincore finds {} in memory, and reading them {device}",
        state.name(),
        words::bytes(all),
        words::bytes(resident_bytes)
    );
    let agrees = resident_right && read_right;
    let finding = if agrees { Finding::Agrees } else { Finding::Differs };
    ProverCheck { state, finding, words }
}

#[cfg(test)]
mod tests {
    use testfs::FsKind;

    use super::*;

    #[test]
    fn others_agree_with_the_prover_on_every_file_system() {
        for kind in FsKind::ALL {
            // No other test reads from the device of a small one.
            let Some(small) = testfs::small_fs(kind) else { continue };
            let dir = WorkDir::open(&small.join("")).expect("opened");
            let (prover, checks) = check(&dir, 5).expect("checked");
            for ProverCheck { state, finding, words } in &checks {
                assert_ne!(*finding, Finding::Differs, "{kind}: {words}");
                let provable = match kind {
                    // Nothing can be dropped there.
                    FsKind::Tmpfs => *state == State::Warm && prover.counts_pages,
                    FsKind::Ext4 | FsKind::Xfs | FsKind::Btrfs => prover.counts_pages,
                };
                assert_eq!(*finding == Finding::Agrees, provable, "{kind}: {words}");
            }
        }
    }

    #[test]
    fn a_state_that_is_not_so_is_told() {
        let all = BYTES as u64;
        let check = |state, resident, read, expected| {
            assert_eq!(judge(state, resident, read).finding, expected, "{state:?} {resident}");
        };
        check(State::Cold, 0, Some(all), Finding::Agrees);
        check(State::Cold, 0, None, Finding::Agrees);
        check(State::Cold, 4096, Some(all), Finding::Differs);
        check(State::Cold, 0, Some(all / 2), Finding::Differs);
        check(State::Warm, all, Some(0), Finding::Agrees);
        check(State::Warm, all - 4096, Some(0), Finding::Differs);
        check(State::Warm, all, Some(all), Finding::Differs);
    }
}
