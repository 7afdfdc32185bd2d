//! What the copier promises holds through every border: the crate, haulage.h, copyfile.h, and the package
//! for Python, for which `cargo xtask python` runs these tests with the environment variable
//! HAULAGE_PYTHON, the interpreter that has the package.
//!
//! | file | hazards |
//! |---|---|
//! | `files.rs` | of one file: its length, its identity, its contents while they are copied |
//! | `trees.rs` | of names and types in a tree |
//! | `descriptors.rs` | of descriptors that a program passes |
//! | `processes.rs` | of the process that copies: its limits and its descriptors |

mod border;
mod descriptors;
mod files;
mod processes;
mod trees;
