//! Nothing but dependencies, with every feature that some package of the workspace asks for.
//!
//! Cargo compiles a dependency once for each set of features. `cargo run --package xtask` and the build of the
//! Python package select a package alone, and without this crate would compile most dependencies, and the
//! copier, again. The features that differ are those of
//! `cargo tree --package xtask --edges normal,build --format '{p} {f}'` and the same with `--workspace`.
