//! How many workers there may be, and how many directories and files each keeps open, within the
//! descriptors that the process may open, and the address space that it may use.

use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;

use rustix::io::fcntl_dupfd_cloexec;

use super::tree_walk::BATCH_FILES;
use super::work_pool::SHARES_PER_WORKER;
use crate::concurrency::WorkerLimits;
use crate::data::engine_choice::profile::processors;
use crate::data::page_cache::HELD_FILES_MAX;
use crate::data::sync::files_kept;
use crate::data::worker::ENGINE_DESCRIPTORS;
use crate::fs::process::{OTHER_DESCRIPTORS, address_space_left_bytes, available_descriptors};
use crate::request::Options;

/// The most levels of a tree whose directories one worker has open, with two descriptors each.
const OPEN_LEVELS_MAX: usize = 32;

/// A further worker must be able to keep as many levels open.
const OPEN_LEVELS_MIN: usize = 8;

/// Few trees are deeper. Workers beyond the default number are allowed only if each can keep as
/// many levels open.
const OPEN_LEVELS_ENOUGH: usize = 16;

/// Entries of the descriptor table that are allocated ahead, at most: 32 KiB.
const TABLE_ENTRIES_MAX: usize = 4096;

/// Descriptors of a worker beside its directories: the files that it copies, the directory of the
/// first copy of a hard link, what its engines keep, and unfinished shares.
const WORKER_DESCRIPTORS: usize = 9 + ENGINE_DESCRIPTORS + 2 * SHARES_PER_WORKER;

/// Address space of a further worker: its stack, and buffers for data and for names.
const WORKER_BYTES: u64 = 2 << 20;

/// How many workers copy a tree, and what each keeps open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceLimits {
    pub(crate) workers: usize,
    pub(super) open_levels: usize,
    /// Files that a worker creates before it fills the first.
    pub(super) batch_files: usize,
}

/// How many workers there is room for, with `left_bytes` of address space if that is limited. Half
/// of it is for what grows with the tree, such as the registry of hard links.
fn workers_within(left_bytes: Option<u64>) -> usize {
    let others = left_bytes.map_or(u64::MAX, |bytes| bytes / 2 / WORKER_BYTES);
    usize::try_from(others).unwrap_or(usize::MAX).saturating_add(1)
}

/// How many workers copy the entries of a tree, or many operands.
pub(super) fn worker_limits(options: &Options) -> WorkerLimits {
    WorkerLimits::new(processors().get(), options.jobs.map(NonZeroUsize::get))
}

impl ResourceLimits {
    pub(crate) fn of_process(options: &Options, workers: usize) -> ResourceLimits {
        let workers = workers.min(workers_within(address_space_left_bytes()));
        let allowed = available_descriptors();
        let held = if options.no_cache { HELD_FILES_MAX } else { 0 };
        // Files that wait to be synced are kept as well.
        let kept = (held + files_kept(options, allowed)) * workers;
        ResourceLimits::within(allowed.saturating_sub(kept as u64), workers)
    }

    /// Reduces `limits` until each worker can keep enough levels open. `of` gives the resources of
    /// a number of workers.
    pub(super) fn for_workers(
        mut limits: WorkerLimits,
        of: impl Fn(usize) -> ResourceLimits,
    ) -> (WorkerLimits, ResourceLimits) {
        loop {
            let resources = of(limits.most);
            if resources.open_levels >= OPEN_LEVELS_ENOUGH || limits.most <= limits.workers {
                return (limits.within(resources.workers), resources);
            }
            limits = limits.within((limits.most / 2).max(limits.workers));
        }
    }

    /// Makes the kernel enlarge the process's descriptor table, by duplicating `fd` to a high
    /// number. Once there are threads, each doubling of the table blocks for 15 ms
    /// (docs/design/small-files.md).
    pub(super) fn grow_descriptor_table(self, workers: usize, fd: BorrowedFd<'_>) {
        let each = 2 * (self.open_levels + self.batch_files) + WORKER_DESCRIPTORS;
        let most = (each * workers).min(TABLE_ENTRIES_MAX);
        // An error means that the limit is lower, and then the table needs no room for more.
        let _ = fcntl_dupfd_cloexec(fd, i32::try_from(most).unwrap_or(i32::MAX));
    }

    fn within(descriptors: u64, workers_wanted: usize) -> ResourceLimits {
        let left = usize::try_from(descriptors.saturating_sub(OTHER_DESCRIPTORS));
        let left = left.unwrap_or(usize::MAX);
        let workers = workers_wanted.min(left / (2 * OPEN_LEVELS_MIN + WORKER_DESCRIPTORS));
        let pairs = match workers {
            0 | 1 => left / 2,
            _ => (left / workers - WORKER_DESCRIPTORS) / 2,
        };
        // One file is always created.
        let enough = OPEN_LEVELS_ENOUGH + if workers < 2 { WORKER_DESCRIPTORS / 2 } else { 0 };
        let more = pairs.saturating_sub(enough).min(BATCH_FILES - 1);
        let open_levels = (pairs - more).clamp(1, OPEN_LEVELS_MAX);
        ResourceLimits { workers: workers.max(1), open_levels, batch_files: 1 + more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_bound_the_number_of_workers() {
        for (descriptors, processors, workers, most, open_levels, batch_files) in [
            (1 << 20, 8, 8, 64, 32, 8),
            (1024, 2, 2, 16, 16, 6),
            (1024, 4, 4, 16, 16, 6),
            (1024, 24, 24, 24, 10, 1),
            (256, 2, 2, 4, 16, 4),
            (64, 2, 1, 1, 22, 1),
        ] {
            let limits = WorkerLimits::new(processors, None);
            let (limits, resources) = ResourceLimits::for_workers(limits, |wanted| {
                ResourceLimits::within(descriptors, wanted)
            });
            let of = format!("{descriptors} for {processors} processors");
            assert_eq!((limits.workers, limits.most), (workers, most), "{of}");
            assert_eq!(
                (resources.open_levels, resources.batch_files),
                (open_levels, batch_files),
                "{of}"
            );
        }
    }

    #[test]
    fn address_space_bounds_the_number_of_workers() {
        for (left_bytes, workers) in [
            (None, usize::MAX),
            (Some(0), 1),
            (Some((4 << 20) - 1), 1),
            (Some(4 << 20), 2),
            (Some(1 << 30), 257),
        ] {
            assert_eq!(workers_within(left_bytes), workers, "{left_bytes:?}");
        }
    }

    #[test]
    fn few_descriptors_are_shared_by_few_workers() {
        for (descriptors, wanted, workers, open_levels, batch_files) in [
            (u64::MAX, 1, 1, 32, 8),
            (1024, 2, 2, 32, 8),
            (1024, 64, 27, 8, 1),
            (1 << 20, 64, 64, 32, 8),
            (256, 8, 6, 9, 1),
            (120, 8, 2, 15, 1),
            (100, 1, 1, 32, 8),
            (64, 8, 1, 22, 1),
            (20, 8, 1, 1, 1),
            (0, 8, 1, 1, 1),
        ] {
            let resources = ResourceLimits::within(descriptors, wanted);
            let expected = ResourceLimits { workers, open_levels, batch_files };
            assert_eq!(resources, expected, "{descriptors} for {wanted}");
            let each = 2 * (resources.open_levels + resources.batch_files - 1) + WORKER_DESCRIPTORS;
            let all = usize::try_from(descriptors).unwrap_or(usize::MAX);
            assert!(resources.workers == 1 || each * resources.workers <= all);
        }
    }
}
