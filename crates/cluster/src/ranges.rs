//! How a large file is cut into ranges that several ranks copy.

/// The shortest range, unless the file ends: a rank opens two files for each range.
const RANGE_BYTES_MIN: u64 = 64 << 20;

/// The longest range: what a rank that joins late can still take, and what is copied again after a
/// rank died.
const RANGE_BYTES_MAX: u64 = 1 << 30;

/// How many ranges a file has if both bounds allow it: many more than most jobs have ranks, so that
/// no rank waits long for the last.
const RANGES: u64 = 1024;

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

/// The bytes of each range of a file of `file_bytes` but the last. They are a multiple of
/// `stripe_bytes`, where the file system tells it (otherwise 0 or 1), so that no two ranks write
/// to one stripe.
#[must_use]
pub fn range_bytes(file_bytes: u64, stripe_bytes: u64) -> u64 {
    let range_bytes = (file_bytes / RANGES).clamp(RANGE_BYTES_MIN, RANGE_BYTES_MAX);
    range_bytes.next_multiple_of(stripe_bytes.clamp(1, RANGE_BYTES_MAX))
}

/// The ranges of a file of `file_bytes`, in order and without gaps, each of [`range_bytes`].
pub fn ranges(file_bytes: u64, stripe_bytes: u64) -> impl Iterator<Item = Range> {
    let each = range_bytes(file_bytes, stripe_bytes);
    (0..file_bytes.div_ceil(each)).map(move |index| {
        let start = index * each;
        Range { start, end: start.saturating_add(each).min(file_bytes) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_file_once_within_the_bounds() {
        const MIB: u64 = 1 << 20;
        // Bytes of the file and of the stripe; how many ranges, and the bytes of the first.
        for (file_bytes, stripe_bytes, count, first_bytes) in [
            (0, 0, 0, 0),
            (1, 0, 1, 1),
            (64 * MIB, 0, 1, 64 * MIB),
            (64 * MIB + 1, 0, 2, 64 * MIB),
            (1 << 40, 0, 1024, 1024 * MIB),
            (1 << 44, 0, 16384, 1024 * MIB),
            (1 << 38, 3 * MIB, 1017, 258 * MIB),
            (10_000 * MIB, 48 * MIB, 105, 96 * MIB),
            (1 << 30, u64::MAX, 1, 1024 * MIB),
            (u64::MAX, 0, 1 << 34, 1024 * MIB),
        ] {
            let shown = format!("{file_bytes} in stripes of {stripe_bytes}");
            let all = ranges(file_bytes, stripe_bytes);
            let first = ranges(file_bytes, stripe_bytes).next();
            assert_eq!(first.map_or(0, |range| range.end - range.start), first_bytes, "{shown}");
            assert_eq!(all.size_hint().0, count, "{shown}");
            if count < 100_000 {
                let end = all.fold(0, |end, range| {
                    assert!(range.start == end && range.end > end, "{shown}: {range:?}");
                    assert!(stripe_bytes < 2 || range.start % stripe_bytes == 0, "{shown}");
                    range.end
                });
                assert_eq!(end, file_bytes, "{shown}");
            }
        }
    }
}
