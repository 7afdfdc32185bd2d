//! Computed bytes for files: cheap to compute, every page different, and incompressible.

/// The word at byte `8 * index`, in the machine's order of bytes. A multiple of an odd constant
/// with its high half folded into the low one: a multiplication and two cheap steps.
pub(crate) fn word(index: u64) -> u64 {
    // 2^64 divided by the golden ratio, as in Knuth's multiplicative hashing.
    let mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

/// Bytes of a word.
pub(crate) const WORD_BYTES: u64 = 8;

/// Fills `bytes`, which lie at `at` of the whole, a multiple of a word.
pub(crate) fn fill(at: u64, bytes: &mut [u8]) {
    let (words, rest) = bytes.as_chunks_mut::<8>();
    let last = at / WORD_BYTES + words.len() as u64;
    for (place, index) in words.iter_mut().zip(at / WORD_BYTES..) {
        *place = word(index).to_ne_bytes();
    }
    rest.copy_from_slice(&word(last).to_ne_bytes()[..rest.len()]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_page_is_different() {
        let mut whole = vec![0; 100_003];
        super::fill(0, &mut whole);
        let pages: std::collections::HashSet<&[u8]> = whole.chunks(4096).collect();
        assert_eq!(pages.len(), 25);
    }
}
