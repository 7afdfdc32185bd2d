//! Which haulage this is, and what it finds.

use crate::kernel;

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

/// The name of the profile that this program was built with: `dist`, `release`, `dev`.
pub(crate) const BUILD_PROFILE: &str = env!("HAULAGE_PROFILE_NAME");

/// What it was built for, such as `x86_64-unknown-linux-gnu`.
pub(crate) const TARGET: &str = env!("HAULAGE_TARGET");

/// The text of `--version` of the program `name`: first the line that scripts read, then the build, then
/// what the kernel has.
pub fn text(name: &str) -> String {
    format!("{name} {VERSION}\n{}\n{}", build(), kernel::line())
}

/// Commit, profile and target.
pub(crate) fn build() -> String {
    let commit = COMMIT.unwrap_or("unknown");
    format!("commit {commit}, profile {BUILD_PROFILE}, target {TARGET}")
}
