//! Which haulage this is.

/// The version, as in `haulage --version`.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that this program was built from, if the build script found it.
pub(crate) const COMMIT: Option<&str> = option_env!("HAULAGE_COMMIT");
