//! Where a large file is, for partners that copy ranges of it.

use std::any::Any;

use crate::shared::messages::FilePlace;

/// The directories of a file and of its copy.
pub(crate) trait RangePlace {
    /// How a partner opens them; `None` if it cannot, or is not to.
    fn message(&self) -> Option<FilePlace>;

    /// What must not end before the partner does.
    fn keep(&self) -> Box<dyn Any + Send + Sync>;
}
