//! Does nothing: cargo takes no notice of dependencies of a build script that is not there.

fn main() {}
