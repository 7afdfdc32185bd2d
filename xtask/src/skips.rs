//! What a task could not do on this machine.

use std::io::Write;

use anyhow::Context;

/// Prints a skip, also where `cargo xtask test` collects them.
pub(crate) fn report_skip(reason: &str) -> anyhow::Result<()> {
    eprintln!("SKIPPED {reason}");
    let Some(skips) = std::env::var_os("HAULAGE_SKIPS") else { return Ok(()) };
    let mut file = std::fs::File::options().append(true).create(true).open(skips)?;
    writeln!(file, "SKIPPED {reason}").context("HAULAGE_SKIPS")
}
