//! Copies one file, or several one after another, by an engine, as `haulage cp` does.

use super::cached_source::CachedSource;
use super::interface::{Needs, ReadyVariant, Setting, StartResult, Workload};
use super::{parameters, source_facts};
use crate::clock::Clock;
use crate::definition::cell::{Cell, Destination};
use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::sample::measurement::Measurement;
use crate::scratch::WorkDir;
use crate::source::Source;
use crate::trial::{Bench, NotRun, Runner, Task};

pub(crate) static COPY: Workload = Workload {
    name: "copy",
    variants: "an engine with its tuning, as read_write:256K@2",
    check: |variant| parameters::variant_of(variant).map(drop),
    start,
    needs,
    has_state: true,
    can_be_durable: true,
    calls_of_run: None,
};

fn needs(cell: &Cell) -> Needs {
    let bytes = cell.run_bytes();
    let kept_bytes = if cell.destination == Destination::Overwritten { bytes } else { 0 };
    Needs { src_bytes: bytes, dst_bytes: bytes, kept_bytes, memory_bytes: 0 }
}

/// A started engine.
struct Copy {
    runner: Runner,
    files: Files,
}

/// What it copies, and to where.
struct Files {
    source: Source,
    task: Task,
    prover: Prover,
    dst: WorkDir,
    cell: Cell,
}

fn start(setting: &Setting<'_>, text: &str) -> StartResult {
    let runner = Runner::start(&parameters::variant_of(text)?)?;
    let CachedSource { source, load, prover, .. } = CachedSource::open(setting)?;
    let task = Task { digests: source_facts::digests(&source, &load)?, load };
    // A directory of its own, since the files in it are called by numbers.
    let path =
        setting.dirs.dst.path().join(format!("copy-{}-{}", std::process::id(), fastrand::u32(..)));
    std::fs::create_dir(&path).map_err(Error::path("cannot create", &path))?;
    let (dst, cell) = (WorkDir::open(&path)?, setting.cell.clone());
    Ok(Box::new(Copy { runner, files: Files { source, task, prover, dst, cell } }))
}

impl Files {
    fn bench(&self) -> Bench<'_> {
        Bench {
            source: &self.source,
            dst: &self.dst,
            prover: &self.prover,
            state: self.cell.state,
            destination: self.cell.destination,
            stays: false,
            durable: self.cell.durable,
        }
    }
}

impl ReadyVariant for Copy {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        self.files.bench().run(&mut self.runner, &self.files.task, clock)
    }

    fn count_calls(&mut self) -> Result<Option<u64>, Error> {
        self.files.bench().count_calls(&mut self.runner, &self.files.task)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Files that cannot be removed go with the scratch directory.
        let _ = std::fs::remove_dir_all(self.dst.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::cell::Shape;
    use crate::page_cache::state::{Proof, State};
    use crate::workload::tests::TestCell;

    const BYTES: u64 = (20 << 20) + 77;

    #[test]
    fn copies_are_what_the_cell_says() {
        testfs::each_fs(|kind, dir| {
            let mut trial = TestCell::new_in(&COPY, BYTES, dir);
            for destination in [Destination::Fresh, Destination::Overwritten] {
                trial.cell.destination = destination;
                trial.cell.durable = destination == Destination::Overwritten;
                for variant in ["read_write:64K", "read_write:256K@2", "sendfile", "mmap:8M,dst"] {
                    let (measured, what) = trial.written(variant, kind);
                    assert_eq!(measured.state_proved, Proof::Warm, "{what}");
                    assert_eq!(measured.src_resident_bytes_before, Some(BYTES), "{what}");
                    // At 100 GB/s it would be 0.2 ms.
                    assert!(measured.elapsed_ns > 200_000, "{what}");
                }
            }
        });
    }

    #[test]
    fn a_cold_copy_of_a_tree_reads_all_of_it() {
        let Some(scratch) = testfs::fs(testfs::FsKind::Ext4) else { return };
        let mut trial = TestCell::new_in(&COPY, 100_000, scratch.path());
        (trial.cell.files, trial.cell.shape) = (30, Shape::Tree);
        trial.cell.state = State::Cold;
        let measured = trial.run("read_write:64K");
        assert_eq!(measured.state_proved, Proof::Cold, "{}", measured.state_note);
        assert!(measured.device_read_bytes.is_some_and(|bytes| bytes >= 3_000_000));
    }

    /// More than the descriptors that a process may usually open.
    #[test]
    fn many_files_are_overwritten() {
        let Some(scratch) = testfs::fs(testfs::FsKind::Ext4) else { return };
        let mut trial = TestCell::new_in(&COPY, 100, scratch.path());
        (trial.cell.files, trial.cell.shape) = (1100, Shape::Tree);
        trial.cell.destination = Destination::Overwritten;
        assert!(trial.run("read_write:64K").verified);
    }

    #[test]
    fn a_refusal_has_a_reason_also_where_the_chain_does_not_ask_again() {
        let Some(scratch) = testfs::fs(testfs::FsKind::Ext4) else { return };
        let trial = TestCell::new_in(&COPY, 100_000, scratch.path());
        let mut started = trial.started("reflink");
        for _ in 0..2 {
            let why = started.run(Clock::default()).expect_err("no run").refusal();
            assert!(!why.expect("no error").is_empty());
        }
    }

    /// What a run waited for itself must not be taken off its time.
    #[test]
    fn waiting_for_a_processor_is_known_of_runs_that_work_alone() {
        let Some(scratch) = testfs::fs(testfs::FsKind::Ext4) else { return };
        let mut trial = TestCell::new_in(&COPY, BYTES, scratch.path());
        if trial.run("read_write:64K").processor_wait_ns.is_none() {
            let why = "this kernel does not count waiting for a processor";
            return testfs::skip(&testfs::test_name(), why);
        }
        assert!(trial.run("splice:1M,pipe=1M").processor_wait_ns.is_some());
        for helped in ["read_write:64K@2", "io_uring:256K,depth=8", "direct"] {
            assert_eq!(trial.run(helped).processor_wait_ns, None, "{helped}");
        }
        trial.cell.state = State::Cold;
        assert_eq!(trial.run("read_write:64K").processor_wait_ns, None, "a device serves it");
    }
}
