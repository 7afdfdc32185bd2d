//! The variants for a pair of file systems if nothing was measured
//! (docs/design/engine-selection.md).

use engines::Variant;

use crate::fs::{TMPFS, is_reliable};
use crate::request::{Options, Reflink, Sparse};

/// Workers on one file, at most. Two fill the memory bus of the machines that were measured.
const WORKERS_MAX: usize = 4;

/// A shorter file is not split among workers: it is copied before they have started.
const SPLIT_BYTES_MIN: u64 = 16 << 20;

/// The variants for the first data of a process, each from a number of bytes on. They need no
/// buffer, of which each page costs a fault at its first use. Creating a pipe takes microseconds
/// too, more for a longer one (docs/speed.md, one file of 64 KiB to 16 MiB).
pub(crate) const EARLY_VARIANTS: [(u64, &str); 2] =
    [(1 << 20, "splice:512K,pipe=512K"), (64 << 10, "sendfile")];

/// The variant that is never refused. Its buffer fits the processor's cache.
pub(crate) const READ_WRITE: &str = "read_write:256K";

/// The variants of the rule between two file systems, each list in the order in which they are
/// tried.
#[derive(Debug)]
pub(crate) struct RuleVariants {
    /// For clones, if they are wanted.
    pub(crate) clone: Option<Variant>,
    /// For data.
    pub(crate) data: Vec<Variant>,
    /// Whether [`EARLY_VARIANTS`] apply.
    pub(crate) has_early: bool,
    /// Both file systems are local ones of a known type.
    pub(crate) is_local: bool,
    /// Whether idle workers may take parts of a large file.
    pub(crate) may_split: bool,
}

/// The workers for a file. Processors are counted only when their number matters.
#[derive(Clone, Copy)]
pub(crate) struct WorkerLoad<'c> {
    /// Other workers use all processors.
    pub(crate) others_busy: bool,
    /// How many workers may share the file.
    pub(crate) jobs: &'c dyn Fn() -> usize,
}

impl RuleVariants {
    /// The variants from a file system of type `src` to one of type `dst`.
    pub(crate) fn between(options: &Options, src: Option<u64>, dst: Option<u64>) -> RuleVariants {
        let required = options.reflink == Reflink::Always;
        let clones = options.reflink != Reflink::Never && options.sparse == Sparse::Auto;
        let clone = (clones && (required || options.engine.is_none())).then(|| variant("reflink"));
        let is_local = [src, dst].into_iter().all(|fs_type| fs_type.is_some_and(is_reliable));
        if options.no_cache && options.engine.is_none() {
            // These leave few pages in the cache, which are dropped after the copy.
            let data = ["dontcache", "direct", READ_WRITE].map(variant).into();
            let may_split = dst.is_some_and(|dst| is_reliable(dst) && dst != TMPFS);
            return RuleVariants { clone, data, has_early: false, is_local, may_split };
        }
        let first = match options.engine.as_ref().filter(|forced| is_allowed(options, forced)) {
            Some(forced) => Some(within_reflink(options, forced.clone())),
            // A server copies its files without sending them. A local file system that cannot share
            // blocks copies through a pipe, which is slower than through memory.
            None => (may_offload(options) && !is_local).then(|| variant("copy_file_range")),
        };
        let has_early = first.is_none() && is_local;
        let may_split = first.is_none() && is_local;
        let data = first.into_iter().chain([read_write()]).collect();
        RuleVariants { clone, data, has_early, is_local, may_split }
    }

    /// Whether `bytes` of data are split among workers.
    pub(crate) fn splits(&self, bytes: u64, load: WorkerLoad<'_>) -> bool {
        self.may_split(bytes) && !load.others_busy && workers((load.jobs)()) > 1
    }

    /// The same, if there are workers.
    pub(crate) fn may_split(&self, bytes: u64) -> bool {
        self.may_split && bytes >= SPLIT_BYTES_MIN
    }

    /// The index in [`EARLY_VARIANTS`] of the variant for `bytes` of data, if there is one.
    pub(crate) fn early(&self, bytes: u64) -> Option<usize> {
        EARLY_VARIANTS.iter().position(|(from, _)| self.has_early && bytes >= *from)
    }

    /// That variant, and those after a refusal.
    pub(crate) fn with_early(&self, early: usize) -> Vec<Variant> {
        let (_, first) = EARLY_VARIANTS[early];
        [variant(first)].into_iter().chain(self.data.iter().cloned()).collect()
    }

    /// The variants for data that `jobs` workers split.
    pub(crate) fn split(&self, jobs: usize) -> Vec<Variant> {
        let workers = workers(jobs);
        let split = self.data.iter().map(|variant| variant.shared_by(workers));
        split.chain([read_write()]).collect()
    }

    /// The variants for `bytes` of data.
    pub(crate) fn of(&self, bytes: u64, load: WorkerLoad<'_>) -> Vec<Variant> {
        match self.splits(bytes, load) {
            true => self.split((load.jobs)()),
            false => self.data.clone(),
        }
    }
}

/// Whether the options allow what the variant does to the process.
pub(crate) fn is_allowed(options: &Options, variant: &Variant) -> bool {
    options.sigbus_handler || !variant.handles_sigbus()
}

/// How many of `jobs` workers share one file.
pub(crate) fn workers(jobs: usize) -> usize {
    jobs.min(WORKERS_MAX)
}

/// `forced`, with the flag by which its engine shares no extents if the options forbid that.
fn within_reflink(options: &Options, mut forced: Variant) -> Variant {
    let has_flag = forced.engine.params.iter().any(|param| param.name == "unshared");
    if options.reflink == Reflink::Never && has_flag {
        forced.tuning = forced.tuning.with("unshared", 1);
    }
    forced
}

/// Whether the options allow copy_file_range(2).
pub(crate) fn may_offload(options: &Options) -> bool {
    options.sparse != Sparse::Never && options.reflink != Reflink::Never
}

/// [`READ_WRITE`], parsed.
pub(crate) fn read_write() -> Variant {
    variant(READ_WRITE)
}

fn variant(text: &str) -> Variant {
    text.parse().expect("the engine is in the table")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::EXT4;

    const NFS: u64 = 0x6969;

    fn check(options: &Options, (src, dst): (u64, u64), expected: &str) {
        let variants = RuleVariants::between(options, Some(src), Some(dst));
        let text =
            |list: &[Variant]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let clone = variants.clone.as_ref().map_or(String::from("-"), ToString::to_string);
        let shared = if variants.may_split { "shared" } else { "alone" };
        assert_eq!(format!("{clone} | {} | {shared}", text(&variants.data)), expected);
    }

    #[test]
    fn variants_suit_file_systems_and_options() {
        let plain = Options::default();
        let rw = "read_write:256K";
        check(&plain, (EXT4, EXT4), &format!("reflink | {rw} | shared"));
        check(&plain, (TMPFS, EXT4), &format!("reflink | {rw} | shared"));
        check(&plain, (EXT4, TMPFS), &format!("reflink | {rw} | shared"));
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
    fn early_data_is_copied_by_the_kernel() {
        let plain = Options::default();
        let text = |options: &Options, (src, dst), bytes| {
            let variants = RuleVariants::between(options, Some(src), Some(dst));
            let tried = variants.with_early(variants.early(bytes)?);
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
    fn a_file_is_split_among_the_workers_up_to_a_bound() {
        let data = ["dontcache", READ_WRITE].map(variant).into();
        let variants =
            RuleVariants { clone: None, data, has_early: false, is_local: true, may_split: true };
        let data = variants.data.clone();
        let alone =
            RuleVariants { clone: None, data, has_early: false, is_local: true, may_split: false };
        let text = |variants: &RuleVariants, bytes: u64, jobs: usize, others_busy: bool| {
            let tried = variants.of(bytes, WorkerLoad { others_busy, jobs: &|| jobs });
            tried.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let (one, two) =
            ("dontcache read_write:256K", "dontcache@2 read_write:256K@2 read_write:256K");
        let large = SPLIT_BYTES_MIN;
        assert_eq!(text(&variants, large, 1, false), one);
        assert_eq!(text(&variants, large, 2, false), two);
        assert_eq!(text(&variants, large, 64, false), two.replace("@2", "@4"));
        assert_eq!(text(&variants, large, 2, true), one, "the others have files of their own");
        assert_eq!(
            text(&variants, large - 1, 2, false),
            one,
            "it is copied before they have started"
        );
        assert_eq!(text(&alone, large, 2, false), one);
    }
}
