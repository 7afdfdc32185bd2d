//! Steps that several engines have in common, and copiers around a copier.

pub(crate) mod checked;
pub(crate) mod cursor;
pub(crate) mod parallel;
pub(crate) mod placement;
pub(crate) mod presized;
pub(crate) mod processor_cache;
pub(crate) mod stripes;
pub(crate) mod until_done;
