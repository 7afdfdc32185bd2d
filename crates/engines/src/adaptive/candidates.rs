//! The candidates of a copy that measures.

use crate::Variant;
use crate::copy_file_range::COPY_FILE_RANGE;
use crate::direct_read::DIRECT_READ;
use crate::engine::Engine;
use crate::processor_cache::l2_bytes;
use crate::read_write::READ_WRITE;
use crate::splice::SPLICE;

/// The buffer of `read_write` for a large file, on a processor with `l2_bytes` of second-level cache. The page
/// cache takes a write in folios of up to its length, and copies a longer folio faster; a buffer that the
/// second-level cache does not hold is read from a slower one. Where its size is unknown, 512 KiB loses the
/// least: docs/design/engine-selection.md has the figures.
fn read_write_bytes(l2_bytes: Option<u64>) -> u64 {
    const MIB: u64 = 1 << 20;
    if l2_bytes.is_some_and(|bytes| bytes >= MIB) { MIB } else { MIB / 2 }
}

/// What the candidates of a file depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSet {
    /// Workers that may share the file.
    pub workers: usize,
    /// The source has to be read from storage, at least in part.
    pub is_cold: bool,
    /// `copy_file_range` is allowed, which may share blocks.
    pub may_share: bool,
}

impl CandidateSet {
    /// The variants. The first copies until a trial pays, and alone where none does. It was the fastest or
    /// close to it on every processor that was measured: read and write by all workers in the page cache,
    /// direct reads by one from storage.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        self.variants_with_buffer(read_write_bytes(l2_bytes()))
    }

    /// The variants, with this buffer of `read_write`.
    fn variants_with_buffer(&self, buffer_bytes: u64) -> Vec<Variant> {
        let by_all = |variant: Variant| variant.shared_by(self.workers);
        let read_write = by_all(with(&READ_WRITE, &[("buffer", buffer_bytes)]));
        if self.is_cold {
            // What differs is how the device is read: the candidates in the page cache all wait for readahead.
            // One worker of `direct_read` reads and writes at the same time, and two were slower on two
            // processors; on more of them they may be the faster.
            let direct = with(&DIRECT_READ, &[("buffer", 2 << 20), ("depth", 4)]);
            let shared = (self.workers > 2).then(|| by_all(direct.clone()));
            return [direct, read_write].into_iter().chain(shared).collect();
        }
        let splice = by_all(with(&SPLICE, &[("chunk", 1 << 20), ("pipe", 1 << 20)]));
        let mut variants = vec![read_write, splice];
        if self.may_share {
            variants.push(by_all(Variant::plain(&COPY_FILE_RANGE)));
        }
        if self.workers > 1 {
            // Workers may wait for each other.
            variants.push(match self.may_share {
                true => Variant::plain(&COPY_FILE_RANGE),
                false => variants[0].shared_by(1),
            });
        }
        variants
    }

    /// The variants for files that are too short for a trial each. `first` copies until a trial pays.
    #[must_use]
    pub fn across_files(first: Variant, may_share: bool) -> Vec<Variant> {
        let splice = with(&SPLICE, &[("chunk", 512 << 10), ("pipe", 512 << 10)]);
        let others = [with(&READ_WRITE, &[("buffer", 256 << 10)]), splice];
        let copy_file_range = may_share.then(|| Variant::plain(&COPY_FILE_RANGE));
        let others = others.into_iter().chain(copy_file_range).filter(|other| *other != first);
        std::iter::once(first.clone()).chain(others).collect()
    }
}

/// The variant of `engine` with these parameters.
fn with(engine: &'static Engine, values: &[(&str, u64)]) -> Variant {
    let mut variant = Variant::plain(engine);
    for &(name, value) in values {
        variant.tuning = variant.tuning.with(name, value);
    }
    variant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_follows_the_second_level_cache() {
        let lengths = [None, Some(256), Some(512), Some(1024), Some(2048)]
            .map(|l2_kib| read_write_bytes(l2_kib.map(|kib: u64| kib << 10)) >> 10);
        assert_eq!(lengths, [512, 512, 512, 1024, 1024]);
    }

    #[test]
    fn candidates_depend_on_workers_residency_and_options() {
        let check = |workers, is_cold, may_share, expected: &str| {
            let set = CandidateSet { workers, is_cold, may_share };
            let texts: Vec<_> =
                set.variants_with_buffer(512 << 10).iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(" "), expected);
        };
        let two = "read_write:512K@2 splice:1M,pipe=1M@2";
        check(2, false, true, &format!("{two} copy_file_range@2 copy_file_range"));
        check(2, false, false, &format!("{two} read_write:512K"));
        let direct = "direct_read:2M,depth=4";
        check(2, true, true, &format!("{direct} read_write:512K@2"));
        check(4, true, true, &format!("{direct} read_write:512K@4 {direct}@4"));
        check(1, false, true, "read_write:512K splice:1M,pipe=1M copy_file_range");
        check(1, false, false, "read_write:512K splice:1M,pipe=1M");
        let first = Variant::plain(&SPLICE);
        let texts: Vec<_> =
            CandidateSet::across_files(first, true).iter().map(ToString::to_string).collect();
        assert_eq!(texts.join(" "), "splice read_write:256K splice:512K,pipe=512K copy_file_range");
        check(1, true, false, &format!("{direct} read_write:512K"));
    }
}
