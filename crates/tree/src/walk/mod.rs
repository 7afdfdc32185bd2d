//! From operands to entries: the traversal and its workers.

mod batch;
pub(crate) mod operands;
mod parallel_operands;
pub(crate) mod pre_scan;
mod resource_limits;
mod single_worker;
mod stack;
mod tree;
mod tree_walk;
mod work_pool;
mod worker;
