//! The rule: which variant moves the data of a file if the user's profile says nothing of it
//! (docs/design/engine-selection.md).

use engines::Variant;

use crate::fs::{TMPFS, is_reliable};
use crate::request::{Options, Reflink, Sparse};

/// Workers on one file, at most. Two fill the memory bus of the machines that were measured.
const WORKERS_MAX: usize = 4;

/// A shorter file is not shared among workers: it is copied before they have started.
const SHARED_BYTES_MIN: u64 = 16 << 20;

/// A shorter file is read through the page cache even if it has to be read from storage.
const PAST_CACHE_BYTES_MIN: u64 = 64 << 20;

/// A pipe costs some microseconds, which a shorter file does not repay.
const PIPE_BYTES_MIN: u64 = 64 << 10;

/// The variant that is never refused, which follows every other one. Its buffer fits the processor's cache.
pub(crate) const READ_WRITE: &str = "read_write:256K";

/// The condition of the last row, which is the reason of what is read and written without a choice as well.
pub(crate) const OTHERS: &str = "every other file";

/// The condition of a clone, which comes before all rows.
pub(crate) const SHARED_BLOCKS: &str = "source and destination can share blocks";

/// One row of the [`RULE`].
#[derive(Debug)]
pub struct Row {
    /// When the row applies, in words. Bytes are those of the file without its holes.
    pub condition: &'static str,
    /// The variants, in the order in which they are tried. `read_write:256K` follows them.
    pub variants: &'static [&'static str],
    /// Whether idle workers share the file.
    pub is_shared: bool,
    /// What was measured, as a ratio of elapsed times to GNU cp 9.1 or to the variant that is named.
    pub measured: &'static str,
    applies: fn(&Case<'_>) -> bool,
}

/// The rule. The first row that applies decides.
pub static RULE: [Row; 7] = [
    Row {
        condition: "--no-cache, 16 MiB or more, shared by idle workers",
        variants: &["dontcache", "direct", READ_WRITE],
        is_shared: true,
        measured: "no other variant leaves as few pages in the page cache",
        applies: |case| case.between.no_cache && case.is_shared,
    },
    Row {
        condition: "--no-cache",
        variants: &["dontcache", "direct"],
        is_shared: false,
        measured: "as above",
        applies: |case| case.between.no_cache,
    },
    Row {
        condition: "a file system that is not known to be local",
        variants: &["copy_file_range"],
        is_shared: false,
        measured: "a server copies without sending the data",
        applies: |case| !case.between.is_local && case.between.may_offload,
    },
    Row {
        condition: "64 MiB or more that have to be read from storage",
        variants: &["direct_read:2M,depth=4"],
        is_shared: false,
        measured: "the fastest in 19 of 21 rows, 0.44 to 0.90; at 16 and 32 MiB 1.2 to 2.7",
        applies: |case| {
            case.between.is_local && case.bytes >= PAST_CACHE_BYTES_MIN && (case.is_absent)()
        },
    },
    Row {
        condition: "16 MiB or more, shared by idle workers",
        variants: &["read_write:512K"],
        is_shared: true,
        measured: "the fastest in 47 of 57 rows, 0.35 to 0.66; 256 KiB and 1 MiB are within 10 %",
        applies: |case| case.between.is_local && case.is_shared,
    },
    Row {
        condition: "64 KiB or more",
        variants: &["splice:512K,pipe=512K"],
        is_shared: false,
        measured: "0.42 to 0.51 in trees of photos, read_write:256K 0.51 to 0.60; \
            with a pipe of 1 MiB 2 to 3 on Zen 3",
        applies: |case| case.between.is_local && case.bytes >= PIPE_BYTES_MIN,
    },
    Row {
        condition: OTHERS,
        variants: &[READ_WRITE],
        is_shared: false,
        measured: "no descriptor and no mapping has to be made for it",
        applies: |_| true,
    },
];

/// What a row looks at.
struct Case<'c> {
    between: &'c Between,
    bytes: u64,
    /// Idle workers take parts of the file.
    is_shared: bool,
    /// Whether nothing of the source is in the page cache.
    is_absent: &'c dyn Fn() -> bool,
}

/// What the options and the types of two file systems decide for all of their files.
#[derive(Debug)]
pub(crate) struct Between {
    /// For clones, if they are wanted.
    pub(crate) clone: Option<Variant>,
    /// The variant of `--engine`, which is used in place of a row.
    pub(crate) forced: Option<Variant>,
    no_cache: bool,
    /// Both file systems are local ones of a known type.
    is_local: bool,
    /// `copy_file_range(2)` is allowed.
    may_offload: bool,
    /// Idle workers may take parts of a large file.
    may_share: bool,
}

/// The row for a file, and the workers that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowChoice {
    pub(crate) index: usize,
    workers: usize,
}

/// The workers for a file. Processors are counted only when their number matters.
#[derive(Clone, Copy)]
pub(crate) struct WorkerLoad<'c> {
    /// Other workers use all processors.
    pub(crate) others_busy: bool,
    /// How many workers may share the file.
    pub(crate) jobs: &'c dyn Fn() -> usize,
}

impl Between {
    /// For a file system of type `src` and one of type `dst`.
    pub(crate) fn new(options: &Options, src: Option<u64>, dst: Option<u64>) -> Between {
        let required = options.reflink == Reflink::Always;
        let clones = options.reflink != Reflink::Never && options.sparse == Sparse::Auto;
        let clone = (clones && (required || options.engine.is_none())).then(|| variant("reflink"));
        let is_local = [src, dst].into_iter().all(|fs_type| fs_type.is_some_and(is_reliable));
        let forced = options.engine.as_ref().filter(|forced| is_allowed(options, forced));
        let forced = forced.map(|forced| within_reflink(options, forced.clone()));
        let may_share = match options.no_cache {
            _ if options.engine.is_some() => false,
            false => is_local,
            true => dst.is_some_and(|dst| is_reliable(dst) && dst != TMPFS),
        };
        let no_cache = options.no_cache;
        Between { clone, forced, no_cache, is_local, may_offload: may_offload(options), may_share }
    }

    /// Whether `bytes` of data are shared among workers, if there are idle ones.
    pub(crate) fn may_share(&self, bytes: u64) -> bool {
        self.may_share && bytes >= SHARED_BYTES_MIN
    }

    /// The row for `bytes` of data. `is_absent` finds out whether nothing of the source is in the page cache; it
    /// is called if that matters.
    pub(crate) fn row(
        &self,
        bytes: u64,
        load: WorkerLoad<'_>,
        is_absent: &dyn Fn() -> bool,
    ) -> RowChoice {
        let may_share = self.may_share(bytes) && !load.others_busy;
        let idle_workers = if may_share { workers((load.jobs)()) } else { 1 };
        let case = Case { between: self, bytes, is_shared: idle_workers > 1, is_absent };
        let index = RULE.iter().position(|row| (row.applies)(&case));
        let index = index.expect("the last row applies to every file");
        RowChoice { index, workers: if RULE[index].is_shared { idle_workers } else { 1 } }
    }

    /// The variants of a row, or of `--engine`, in the order in which they are tried.
    pub(crate) fn variants(&self, choice: RowChoice) -> Vec<Variant> {
        let of_row = || {
            let shared = |text: &&str| variant(text).shared_by(choice.workers);
            RULE[choice.index].variants.iter().map(shared).collect()
        };
        let mut variants = self.forced.as_ref().map_or_else(of_row, |forced| vec![forced.clone()]);
        if variants.last() != Some(&read_write()) {
            variants.push(read_write());
        }
        variants
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
    use crate::fs::{EXT4, VFAT};
    use engines::fs_types::NFS;

    const MIB: u64 = 1 << 20;

    /// The variants for `bytes` of a source that is in the page cache, or on storage.
    fn text(between: &Between, bytes: u64, jobs: usize, is_absent: bool) -> String {
        let load = WorkerLoad { others_busy: false, jobs: &|| jobs };
        let variants = between.variants(between.row(bytes, load, &|| is_absent));
        variants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_variant_of_the_rule_is_in_the_table_of_engines() {
        for row in &RULE {
            for text in row.variants {
                let variant: Variant = text.parse().expect(text);
                assert_eq!(variant.to_string(), *text);
                assert!(!row.is_shared || variant.engine.facts.positions, "{text}");
            }
        }
    }

    #[test]
    fn rows_suit_file_systems_and_lengths() {
        let plain = Options::default();
        let rw = READ_WRITE;
        for (src, dst, bytes, is_absent, expected) in [
            (EXT4, EXT4, 3000, false, rw.to_owned()),
            (EXT4, EXT4, 65535, true, rw.to_owned()),
            (EXT4, TMPFS, 65536, true, format!("splice:512K,pipe=512K {rw}")),
            (EXT4, EXT4, 16 * MIB - 1, false, format!("splice:512K,pipe=512K {rw}")),
            (EXT4, EXT4, 16 * MIB, true, format!("read_write:512K@2 {rw}")),
            (TMPFS, EXT4, 64 * MIB, false, format!("read_write:512K@2 {rw}")),
            (EXT4, TMPFS, 64 * MIB, true, format!("direct_read:2M,depth=4 {rw}")),
            (NFS, NFS, 3000, false, format!("copy_file_range {rw}")),
            (EXT4, VFAT, MIB, false, format!("copy_file_range {rw}")),
            (EXT4, NFS, 64 * MIB, true, format!("copy_file_range {rw}")),
        ] {
            let between = Between::new(&plain, Some(src), Some(dst));
            assert_eq!(text(&between, bytes, 2, is_absent), expected, "{bytes}");
            assert_eq!(between.clone.as_ref().map(ToString::to_string), Some("reflink".to_owned()));
        }
    }

    #[test]
    fn rows_suit_the_options() {
        let plain = Options::default();
        let rw = READ_WRITE;
        let check = |options: &Options, (src, dst), expected: &str| {
            let between = Between::new(options, Some(src), Some(dst));
            let clone = between.clone.as_ref().map_or(String::from("-"), ToString::to_string);
            assert_eq!(format!("{clone} | {}", text(&between, 20 * MIB, 2, false)), expected);
        };
        let never = Options { reflink: Reflink::Never, ..plain.clone() };
        check(&never, (EXT4, EXT4), &format!("- | read_write:512K@2 {rw}"));
        check(&never, (NFS, NFS), &format!("- | {rw}"));
        let engine = Some("splice:1M".parse().expect("parsed"));
        let forced = Options { engine, ..plain.clone() };
        check(&forced, (EXT4, EXT4), &format!("- | splice:1M {rw}"));
        let no_cache = Options { no_cache: true, ..plain };
        let shared = format!("reflink | dontcache@2 direct@2 {rw}@2 {rw}");
        check(&no_cache, (EXT4, EXT4), &shared);
        check(&no_cache, (EXT4, TMPFS), &format!("reflink | dontcache direct {rw}"));
        check(&no_cache, (NFS, NFS), &format!("reflink | dontcache direct {rw}"));
        let required = Options { reflink: Reflink::Always, ..forced };
        check(&required, (EXT4, EXT4), &format!("reflink | splice:1M {rw}"));
    }

    #[test]
    fn a_file_is_shared_by_the_idle_workers_up_to_a_bound() {
        let between = Between::new(&Options::default(), Some(EXT4), Some(EXT4));
        let workers = |bytes, jobs, others_busy| {
            let load = WorkerLoad { others_busy, jobs: &|| jobs };
            between.variants(between.row(bytes, load, &|| false))[0].workers
        };
        assert_eq!(workers(SHARED_BYTES_MIN, 1, false), 1);
        assert_eq!(workers(SHARED_BYTES_MIN, 2, false), 2);
        assert_eq!(workers(SHARED_BYTES_MIN, 64, false), 4);
        assert_eq!(workers(SHARED_BYTES_MIN, 2, true), 1, "the others have files of their own");
        assert_eq!(workers(SHARED_BYTES_MIN - 1, 2, false), 1, "it is copied before they start");
    }
}
