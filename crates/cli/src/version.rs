//! Which haulage this is.

/// The version, as in `haulage --version`.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that this program was built from, if the build script found it.
pub(crate) const COMMIT: Option<&str> = option_env!("HAULAGE_COMMIT");

/// The date of that commit, such as 2026-01-31; empty if it is unknown. The time of the build would make two
/// builds of one commit differ.
pub(crate) const DATE: &str = match option_env!("HAULAGE_COMMIT_DATE") {
    Some(date) => date,
    None => "",
};

/// The text of `--version` of the program `name`: first the line that scripts read.
pub(crate) fn text(name: &str) -> String {
    format!(
        "{name} {VERSION}\ncommit {}, profile {}, target {}\n",
        COMMIT.unwrap_or("unknown"),
        env!("HAULAGE_PROFILE_NAME"),
        env!("HAULAGE_TARGET"),
    )
}
