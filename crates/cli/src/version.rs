//! Which haulage this is.

/// The version, as in `haulage --version`.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that this program was built from, if the build script found it.
pub(crate) const COMMIT: Option<&str> = option_env!("HAULAGE_COMMIT");

/// The text of `--version` of the program `name`: first the line that scripts read.
pub(crate) fn text(name: &str) -> String {
    format!(
        "{name} {VERSION}\ncommit {}, profile {}, target {}\n",
        COMMIT.unwrap_or("unknown"),
        env!("HAULAGE_PROFILE_NAME"),
        env!("HAULAGE_TARGET"),
    )
}
