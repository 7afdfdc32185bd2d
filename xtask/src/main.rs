//! Sets up what the tests need and runs them: `cargo xtask test`.

fn main() {}
