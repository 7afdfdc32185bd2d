//! Offsets in memory.

/// An offset or a length as an index.
pub(crate) fn offset_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("files of tests fit into memory")
}

/// The offset of `bytes` from the start of a page.
#[must_use]
pub fn offset_in_page(bytes: &[u8]) -> usize {
    bytes.as_ptr().addr() % rustix::param::page_size()
}
