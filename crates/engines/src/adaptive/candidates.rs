//! The candidates of a copy that measures.

use crate::Variant;
use crate::copy_file_range::COPY_FILE_RANGE;
use crate::direct_read::DIRECT_READ;
use crate::engine::Engine;
use crate::read_write::READ_WRITE;
use crate::splice::SPLICE;

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
    /// The variants. The first copies the first piece: `copy_file_range`, by which GNU cp copies. Each
    /// mechanism takes part with one worker and, if several may share the file, with all of them. The pieces
    /// of a cold source are long, so only four candidates take part there.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        let with = |engine: &'static Engine, values: &[(&str, u64)]| {
            let mut variant = Variant::plain(engine);
            for &(name, value) in values {
                variant.tuning = variant.tuning.with(name, value);
            }
            variant
        };
        let copy_file_range = self.may_share.then(|| Variant::plain(&COPY_FILE_RANGE));
        let read_write = with(&READ_WRITE, &[("buffer", 256 << 10)]);
        let splice = with(&SPLICE, &[("chunk", 1 << 20), ("pipe", 1 << 20)]);
        let mut variants: Vec<Variant> = copy_file_range.clone().into_iter().collect();
        variants.push(read_write.clone());
        if self.is_cold {
            let direct_read = with(&DIRECT_READ, &[("buffer", 1 << 20), ("depth", 4)]);
            let shared = [splice, read_write].map(|variant| variant.shared_by(self.workers));
            let first = copy_file_range.unwrap_or_else(|| variants[0].clone());
            return [first].into_iter().chain(shared).chain([direct_read]).collect();
        }
        if self.workers > 1 {
            let shared = [Some(splice), Some(read_write), copy_file_range];
            let shared = shared.into_iter().flatten();
            variants.extend(shared.map(|variant| variant.shared_by(self.workers)));
        } else {
            variants.push(splice);
        }
        variants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_depend_on_workers_residency_and_options() {
        let check = |workers, is_cold, may_share, expected: &str| {
            let set = CandidateSet { workers, is_cold, may_share };
            let texts: Vec<_> = set.variants().iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(" "), expected);
        };
        let two = "copy_file_range read_write:256K splice:1M,pipe=1M@2 read_write:256K@2 \
                   copy_file_range@2";
        check(2, false, true, two);
        let cold = "copy_file_range splice:1M,pipe=1M@2 read_write:256K@2 direct_read:1M,depth=4";
        check(2, true, true, cold);
        check(1, true, true, &cold.replace("@2", ""));
        check(2, true, false, &cold.replace("copy_file_range", "read_write:256K"));
        check(1, false, true, "copy_file_range read_write:256K splice:1M,pipe=1M");
        check(1, false, false, "read_write:256K splice:1M,pipe=1M");
        check(4, false, false, "read_write:256K splice:1M,pipe=1M@4 read_write:256K@4");
    }
}
