//! What a task could not do on this machine.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

/// Prints a skip, also where `cargo xtask test` collects them.
pub fn report_skip(reason: &str) -> anyhow::Result<()> {
    eprintln!("SKIPPED {reason}");
    let Some(skips) = std::env::var_os("HAULAGE_SKIPS") else { return Ok(()) };
    append(skips.as_ref(), &format!("SKIPPED {reason}"))
}

/// Adds a line to the file in which `cargo xtask test` collects skips.
pub fn append(skips: &Path, line: &str) -> anyhow::Result<()> {
    let add = || {
        let mut file = std::fs::File::options().append(true).create(true).open(skips)?;
        writeln!(file, "{line}")
    };
    add().with_context(|| format!("the file of the reported skips, {}", skips.display()))
}
