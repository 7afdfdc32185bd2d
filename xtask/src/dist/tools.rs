//! Programs from the registry of crates: cargo-deb, which writes Debian packages, and cargo-c, which builds
//! and installs libhaulage. Their versions are fixed: another one may write other bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::checkout::Checkout;
use crate::command::cargo;

/// A program from the registry of crates.
pub(crate) struct Tool {
    /// The name of the crate.
    name: &'static str,
    program: &'static str,
    version: &'static str,
}

pub(super) const CARGO_DEB: Tool =
    Tool { name: "cargo-deb", program: "cargo-deb", version: "3.8.0" };

pub(crate) const CARGO_C: Tool =
    Tool { name: "cargo-c", program: "cargo-cinstall", version: "0.10.24+cargo-0.98.0" };

impl Tool {
    /// The path of the tool. Installs it into target/tools of the checkout that xtask was built from, if it
    /// is there in no or another version.
    pub(crate) fn find(&self) -> anyhow::Result<PathBuf> {
        let tools = Checkout::own()?.root.join("target/tools");
        let program = tools.join("bin").join(self.program);
        if self.is_right(&program) {
            return Ok(program);
        }
        let Tool { name, version, .. } = self;
        eprintln!("xtask: installing {name} {version} into {}", tools.display());
        let install = ["install", "--locked", "--force", "--version", version, "--root"];
        let status = cargo()
            .args(install)
            .arg(&tools)
            .arg(name)
            .status()
            .context("cargo cannot be started")?;
        if !status.success() || !self.is_right(&program) {
            bail!(
                "{name} {version} is missing; install it with: cargo install --locked --version \
                 {version} --root {} {name}",
                tools.display()
            );
        }
        Ok(program)
    }

    fn is_right(&self, program: &Path) -> bool {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_whitespace().any(|word| word == self.version)
        })
    }
}
