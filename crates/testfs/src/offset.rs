//! Offsets in files that are kept in memory.

/// An offset or a length as an index.
pub(crate) fn offset_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("files of tests fit into memory")
}
