//! From operands to entries: the traversal and its workers.
//!
//! | question | file |
//! |---|---|
//! | what a call of the library does first | `run.rs`; the contexts of the layers: `contexts.rs` |
//! | which name a source operand gets | `operands.rs` |
//! | which directory operand `--resume` continues | `run.rs` |
//! | when a second worker starts | `single_worker.rs` |
//! | how workers divide a tree | `work_pool.rs`, `tree.rs` |
//! | how names, and ranges of large files, pass to partners | `partner_shares.rs`, `opened_places.rs` |
//! | how many directories stay open | `resource_limits.rs`, `stack.rs` |
//! | how many files are created before the first is filled | `tree_walk.rs` |

pub(crate) mod contexts;
mod opened_places;
mod operands;
mod partner_shares;
pub(crate) mod pre_scan;
mod resource_limits;
pub(crate) mod run;
mod single_worker;
mod stack;
mod tree;
mod tree_walk;
mod work_pool;
