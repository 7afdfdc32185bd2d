//! Which way of moving data suits a pair of file systems, as long as nothing was measured on them.

use engines::Variant;

use crate::extents::{TMPFS, is_honest};
use crate::options::{Options, Reflink, Sparse};

/// The ways between two file systems, each in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Ways {
    /// Sharing blocks, where that is wanted.
    pub(crate) clone: Option<Variant>,
    /// For data that need not be looked at.
    pub(crate) data: Vec<Variant>,
    /// Whether data of middling length at the beginning of a process has ways of its own.
    pub(crate) begins_apart: bool,
    /// Workers who have nothing else to do may share a large file.
    pub(crate) may_share: bool,
}

/// The most workers on one file. Two fill the memory bus of the machines that were measured.
const WORKERS_MAX: usize = 4;

/// A file that is worth several workers, as long as nobody has measured, in bytes.
const SHARED_BYTES_MIN: u64 = 16 << 20;

/// What is faster within the kernel as long as there is no buffer, whose every page costs a fault when it is
/// used for the first time: from how many bytes on, and how. To make a pipe, or one so long, takes some
/// microseconds too.
pub(crate) const AT_FIRST: [(u64, &str); 2] =
    [(1 << 20, "splice:512K,pipe=512K"), (64 << 10, "sendfile")];

/// Who is there to copy a file. Processors are counted only once their number matters.
#[derive(Clone, Copy)]
pub(crate) struct Hands<'c> {
    /// All other workers have something to do.
    pub(crate) others_busy: bool,
    /// How many workers there are.
    pub(crate) jobs: &'c dyn Fn() -> usize,
}

impl Ways {
    /// Whether workers that have nothing else to do share `bytes` of data: not where they would only
    /// wait for one another.
    pub(crate) fn are_shared(&self, bytes: u64, hands: Hands<'_>) -> bool {
        let may_share = self.may_share && !hands.others_busy && bytes >= SHARED_BYTES_MIN;
        may_share && workers((hands.jobs)()) > 1
    }

    /// Which of [`AT_FIRST`] goes first with `bytes` of data at the beginning of a process, if any does.
    pub(crate) fn at_first(&self, bytes: u64) -> Option<usize> {
        AT_FIRST.iter().position(|(from, _)| self.begins_apart && bytes >= *from)
    }

    /// What is tried then.
    pub(crate) fn beginning_with(&self, at_first: usize) -> Vec<Variant> {
        let (_, first) = AT_FIRST[at_first];
        [variant(first)].into_iter().chain(self.data.iter().cloned()).collect()
    }

    /// What is tried then, by `jobs` workers.
    pub(crate) fn shared(&self, jobs: usize) -> Vec<Variant> {
        let workers = workers(jobs);
        let shared = self.data.iter().map(|way| way.shared_by(workers));
        shared.chain([plain()]).collect()
    }

    /// What is tried with `bytes` of data, one after another.
    pub(crate) fn of(&self, bytes: u64, hands: Hands<'_>) -> Vec<Variant> {
        match self.are_shared(bytes, hands) {
            true => self.shared((hands.jobs)()),
            false => self.data.clone(),
        }
    }
}

/// The ways from the file system `src` to `dst`, each by the number that statfs(2) gives it.
pub(crate) fn ways(options: &Options, src: Option<u64>, dst: Option<u64>) -> Ways {
    let required = options.reflink == Reflink::Always;
    let clones = options.reflink != Reflink::Never && options.sparse == Sparse::Auto;
    let clone = (clones && (required || options.engine.is_none())).then(|| variant("reflink"));
    if options.no_cache && options.engine.is_none() {
        // These leave little in the cache, to be dropped behind the copy.
        let data = ["dontcache", "direct", PLAIN].map(variant).into();
        let may_share = dst.is_some_and(|dst| is_honest(dst) && dst != TMPFS);
        return Ways { clone, data, begins_apart: false, may_share };
    }
    let local = [src, dst].into_iter().all(|kind| kind.is_some_and(is_honest));
    let best = match &options.engine {
        Some(forced) => Some(forced.clone()),
        // A server copies what it holds without sending it twice. A local file system that cannot
        // share blocks reads and writes as well, and does it worse through a pipe than through
        // memory.
        None => (may_offload(options) && !local).then(|| variant("copy_file_range")),
    };
    let begins_apart = best.is_none() && local;
    // On tmpfs the workers wait for one another: pages are given out one by one.
    let may_share = best.is_none() && local && dst != Some(TMPFS);
    let data = best.into_iter().chain([variant(PLAIN)]).collect();
    Ways { clone, data, begins_apart, may_share }
}

/// How many of `jobs` workers share one file, where it is known only that several help.
pub(crate) fn workers(jobs: usize) -> usize {
    jobs.min(WORKERS_MAX)
}

/// Whether the options leave it to the kernel to copy.
pub(crate) fn may_offload(options: &Options) -> bool {
    options.sparse != Sparse::Never && options.reflink != Reflink::Never
}

/// What never refuses, with the buffer that fits the processor's cache.
pub(crate) const PLAIN: &str = "read_write:256K";

fn variant(text: &str) -> Variant {
    text.parse().expect("the engine is in the table")
}

/// The way through user memory.
pub(crate) fn plain() -> Variant {
    variant(PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extents::EXT4;

    const NFS: u64 = 0x6969;

    fn check(options: &Options, (src, dst): (u64, u64), expected: &str) {
        let ways = ways(options, Some(src), Some(dst));
        let text = |variants: &[Variant]| {
            variants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let clone = ways.clone.as_ref().map_or(String::from("-"), ToString::to_string);
        let shared = if ways.may_share { "shared" } else { "alone" };
        assert_eq!(format!("{clone} | {} | {shared}", text(&ways.data)), expected);
    }

    #[test]
    fn the_way_suits_file_systems_and_options() {
        let plain = Options::default();
        let rw = "read_write:256K";
        check(&plain, (EXT4, EXT4), &format!("reflink | {rw} | shared"));
        check(&plain, (TMPFS, EXT4), &format!("reflink | {rw} | shared"));
        check(&plain, (EXT4, TMPFS), &format!("reflink | {rw} | alone"));
        check(&plain, (NFS, NFS), &format!("reflink | copy_file_range {rw} | alone"));
        check(&plain, (EXT4, NFS), &format!("reflink | copy_file_range {rw} | alone"));
        let never = Options { reflink: Reflink::Never, ..plain.clone() };
        check(&never, (EXT4, EXT4), &format!("- | {rw} | shared"));
        check(&never, (NFS, NFS), &format!("- | {rw} | alone"));
        let engine = Some("splice:1M".parse().expect("a variant"));
        let forced = Options { engine, ..plain.clone() };
        check(&forced, (EXT4, EXT4), &format!("- | splice:1M {rw} | alone"));
        let no_cache = Options { no_cache: true, ..plain.clone() };
        let data = format!("reflink | dontcache direct {rw}");
        check(&no_cache, (EXT4, EXT4), &format!("{data} | shared"));
        check(&no_cache, (EXT4, TMPFS), &format!("{data} | alone"));
        check(&no_cache, (NFS, NFS), &format!("{data} | alone"));
        let required = Options { reflink: Reflink::Always, ..forced };
        check(&required, (EXT4, EXT4), &format!("reflink | splice:1M {rw} | alone"));
    }

    #[test]
    fn what_is_neither_short_nor_long_goes_through_the_kernel_at_first() {
        let plain = Options::default();
        let text = |options: &Options, (src, dst), bytes| {
            let ways = ways(options, Some(src), Some(dst));
            let tried = ways.beginning_with(ways.at_first(bytes)?);
            Some(tried.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        let local = (EXT4, TMPFS);
        for (bytes, expected) in [
            (64 << 10, Some("sendfile read_write:256K")),
            ((64 << 10) - 1, None),
            (1 << 20, Some("splice:512K,pipe=512K read_write:256K")),
        ] {
            assert_eq!(text(&plain, local, bytes).as_deref(), expected, "{bytes}");
        }
        assert_eq!(text(&plain, (EXT4, NFS), 64 << 10), None, "a server is asked to copy");
        let engine = Some("splice:1M".parse().expect("a variant"));
        for options in
            [Options { engine, ..plain.clone() }, Options { no_cache: true, ..plain.clone() }]
        {
            assert_eq!(text(&options, local, 64 << 10), None);
        }
    }

    #[test]
    fn a_file_is_shared_by_as_many_as_there_are_and_no_more_than_help() {
        let data = ["dontcache", PLAIN].map(variant).into();
        let ways = Ways { clone: None, data, begins_apart: false, may_share: true };
        let data = ways.data.clone();
        let alone = Ways { clone: None, data, begins_apart: false, may_share: false };
        let text = |ways: &Ways, bytes: u64, jobs: usize, others_busy: bool| {
            let tried = ways.of(bytes, Hands { others_busy, jobs: &|| jobs });
            tried.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let (one, two) =
            ("dontcache read_write:256K", "dontcache@2 read_write:256K@2 read_write:256K");
        let large = SHARED_BYTES_MIN;
        assert_eq!(text(&ways, large, 1, false), one);
        assert_eq!(text(&ways, large, 2, false), two);
        assert_eq!(text(&ways, large, 64, false), two.replace("@2", "@4"));
        assert_eq!(text(&ways, large, 2, true), one, "the others have files of their own");
        assert_eq!(text(&ways, large - 1, 2, false), one, "it is over before they have begun");
        assert_eq!(text(&alone, large, 2, false), one);
    }
}
