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
    /// The same for a large file while other workers have nothing to do.
    pub(crate) shared: Option<Vec<Variant>>,
}

/// The most workers on one file. Two fill the memory bus of the machines that were measured.
const WORKERS_MAX: usize = 4;

/// The ways from the file system `src` to `dst`, each by the number that statfs(2) gives it.
pub(crate) fn ways(options: &Options, src: Option<u64>, dst: Option<u64>) -> Ways {
    let required = options.reflink == Reflink::Always;
    let clones = options.reflink != Reflink::Never && options.sparse == Sparse::Auto;
    let clone = (clones && (required || options.engine.is_none())).then(|| variant("reflink"));
    if let Some(forced) = &options.engine {
        return Ways { clone, data: vec![forced.clone(), variant(PLAIN)], shared: None };
    }
    // A server copies what it holds without sending it twice. A local file system that cannot
    // share blocks reads and writes as well, and does it worse through a pipe than through memory.
    let local = [src, dst].into_iter().all(|kind| kind.is_some_and(is_honest));
    if may_offload(options) && !local {
        return Ways {
            clone,
            data: vec![variant("copy_file_range"), variant(PLAIN)],
            shared: None,
        };
    }
    let workers = options.jobs.get().min(WORKERS_MAX);
    // On tmpfs the workers wait for one another: pages are given out one by one.
    let shares = local && workers > 1 && dst != Some(TMPFS);
    let shared = shares.then(|| vec![variant(PLAIN).shared_by(workers), variant(PLAIN)]);
    Ways { clone, data: vec![variant(PLAIN)], shared }
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
    use std::num::NonZeroUsize;

    use super::*;

    const EXT4: u64 = 0xef53;
    const NFS: u64 = 0x6969;

    fn check(options: &Options, (src, dst): (u64, u64), expected: &str) {
        let ways = ways(options, Some(src), Some(dst));
        let text = |variants: &[Variant]| {
            variants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let clone = ways.clone.as_ref().map_or(String::from("-"), ToString::to_string);
        let shared = ways.shared.as_deref().map_or(String::from("-"), text);
        assert_eq!(format!("{clone} | {} | {shared}", text(&ways.data)), expected);
    }

    #[test]
    fn the_way_suits_file_systems_and_options() {
        let two = Options { jobs: NonZeroUsize::new(2).expect("not zero"), ..Options::default() };
        let rw = "read_write:256K";
        let both = format!("{rw}@2 {rw}");
        check(&two, (EXT4, EXT4), &format!("reflink | {rw} | {both}"));
        check(&two, (TMPFS, EXT4), &format!("reflink | {rw} | {both}"));
        check(&two, (EXT4, TMPFS), &format!("reflink | {rw} | -"));
        check(&two, (NFS, NFS), &format!("reflink | copy_file_range {rw} | -"));
        check(&two, (EXT4, NFS), &format!("reflink | copy_file_range {rw} | -"));
        let one = Options { jobs: NonZeroUsize::MIN, ..Options::default() };
        check(&one, (EXT4, EXT4), &format!("reflink | {rw} | -"));
        let never = Options { reflink: Reflink::Never, ..two.clone() };
        check(&never, (EXT4, EXT4), &format!("- | {rw} | {both}"));
        check(&never, (NFS, NFS), &format!("- | {rw} | -"));
        let engine = Some("splice:1M".parse().expect("a variant"));
        let forced = Options { engine, ..two.clone() };
        check(&forced, (EXT4, EXT4), &format!("- | splice:1M {rw} | -"));
        let required = Options { reflink: Reflink::Always, ..forced };
        check(&required, (EXT4, EXT4), &format!("reflink | splice:1M {rw} | -"));
    }
}
