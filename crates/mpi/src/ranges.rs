//! How a large file is cut into ranges that several ranks copy.

use haulage::partners::RangeBytes;

/// The longest range of a short file.
const RANGE_BYTES_MIN: u64 = 64 << 20;

/// The longest range: what a rank that joins late can still take, and what is copied again after a
/// rank died.
const RANGE_BYTES_MAX: u64 = 1 << 30;

/// How many ranges a file has at least if both bounds allow it.
const RANGES: u64 = 1024;

/// The shortest range: a rank asks the owner for each, and syncs it where other hosts mount the file
/// system.
const LEAST_BYTES: u64 = 8 << 20;

/// A range is never shorter than this part of the longest one, so that the owner of a long file does
/// not answer too many claims.
const LEAST_PART: u64 = 8;

/// The bounds for a file of `file_bytes`. Both are a multiple of `stripe_bytes`, where the file system
/// tells it (otherwise 0 or 1), so that no two ranks write to one stripe.
pub(crate) fn range_bytes(file_bytes: u64, stripe_bytes: u64) -> RangeBytes {
    let stripe_bytes = stripe_bytes.clamp(1, RANGE_BYTES_MAX);
    let most = (file_bytes / RANGES).clamp(RANGE_BYTES_MIN, RANGE_BYTES_MAX);
    let least = (most / LEAST_PART).max(LEAST_BYTES);
    RangeBytes {
        most: most.next_multiple_of(stripe_bytes),
        least: least.next_multiple_of(stripe_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_within_the_bounds_and_multiples_of_the_stripe() {
        const MIB: u64 = 1 << 20;
        // Bytes of the file and of the stripe; the longest and the shortest range, in MiB.
        for (file_bytes, stripe_bytes, most, least) in [
            (0, 0, 64, 8),
            (64 * MIB + 1, 1, 64, 8),
            (1 << 36, 4096, 64, 8),
            (1 << 38, 3 * MIB, 258, 33),
            (1 << 40, 0, 1024, 128),
            (10_000 * MIB, 48 * MIB, 96, 48),
            (1 << 30, u64::MAX, 1024, 1024),
            (u64::MAX, 0, 1024, 128),
        ] {
            let expected = RangeBytes { most: most * MIB, least: least * MIB };
            let shown = format!("{file_bytes} in stripes of {stripe_bytes}");
            assert_eq!(range_bytes(file_bytes, stripe_bytes), expected, "{shown}");
        }
    }
}
