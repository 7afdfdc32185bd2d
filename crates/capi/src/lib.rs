//! libhaulage: the copier of haulage for C and C++.
//!
//! `include/haulage.h` is its own interface, made by cbindgen of `interface.rs` and
//! `exports.rs`. `include/copyfile.h`
//! is that of copyfile(3), implemented in `copyfile/`. Both call the crate `haulage`.
//!
//! At this border:
//!
//! - A panic becomes an error: `border.rs` catches it.
//! - A null pointer where one is not allowed becomes EINVAL. Other pointers are the caller's promise.
//! - Nothing is shared between states, and no descriptor of the caller is closed.

mod border;
mod copyfile;
mod exports;
mod handle;
mod interface;
mod state;
