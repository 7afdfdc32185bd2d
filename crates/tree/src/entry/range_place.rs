//! Where a large file is, for other ranks of a job that copy ranges of it.

use std::any::Any;

/// The directories of a file and of its copy.
pub(crate) trait RangePlace {
    /// How another rank opens them; `None` if it cannot, or is not to.
    fn encode(&self) -> Option<Vec<u8>>;

    /// Whether they are directories that are being copied. If not, the file is an operand.
    fn is_in_directory(&self) -> bool;

    /// What must not end before the other rank does.
    fn keep(&self) -> Box<dyn Any + Send + Sync>;
}
