//! From operands to entries: the traversal and its workers.
//!
//! | question | file |
//! |---|---|
//! | which name a source operand gets | `operands.rs` |
//! | when a second worker starts | `single_worker.rs` |
//! | how workers divide a tree | `work_pool.rs`, `tree.rs` |
//! | how many directories stay open | `resource_limits.rs`, `stack.rs` |
//! | how many files are created before the first is filled | `batch.rs` |

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
