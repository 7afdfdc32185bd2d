//! `cargo xtask dist`: packages, their test in a fresh root, and whether two builds are equal.

use std::path::Path;
use std::process::ExitCode;

use checkout::Checkout;
use format::Format;
use package::Packages;

mod build;
mod c_program;
mod check;
pub(crate) mod checkout;
mod debian;
mod format;
mod fresh_root;
mod library;
mod licences;
mod package;
mod reproducible;
mod stage;
#[cfg(test)]
mod tests;
mod tools;

pub(crate) use tools::CARGO_C;

/// Make packages of this commit in target/dist-packages: .deb, .rpm and a static tarball.
///
/// Each format has the program of the profile `dist`, the manual pages, the completions for bash, zsh and
/// fish, the documents and the licences. As .deb and .rpm there are also two packages of the library for C: one
/// for programs, and one for compilers. Without --deb, --rpm and --tar it makes all. cargo-deb is installed into
/// target/tools if it is missing; dpkg-dev and rpmbuild have to be installed. docs/packages.md describes the
/// packages. They name as their maintainer who is in DEBFULLNAME and DEBEMAIL, or else who made the commit.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask dist", bin_name = "cargo xtask dist")]
pub(crate) struct Args {
    /// Make the Debian packages
    #[arg(long)]
    deb: bool,
    /// Make the RPM packages
    #[arg(long)]
    rpm: bool,
    /// Make the tarball, whose program is linked statically with musl
    #[arg(long)]
    tar: bool,
    /// Install each package in a fresh root, run the commands there as an ordinary user, remove the
    /// package, and report what it leaves behind; as root
    #[arg(long)]
    check: bool,
    /// Make the packages a second time, from a clone in another directory, and compare the bytes
    #[arg(long)]
    reproducible: bool,
}

/// Runs the command. Exit status 1 if a check fails or two builds differ.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checkout = Checkout::own()?;
    let formats = args.formats();
    Format::require_tools(&formats, args.check, crate::packages::is_found)?;
    if args.reproducible {
        // Before a build of some minutes.
        checkout.require_clean()?;
    }
    if args.check {
        fresh_root::require_root()?;
    }
    let packages = make(&checkout, &formats)?;
    let mut holds = true;
    if args.check {
        for (format, packages) in &packages {
            holds &= check::check(&checkout, *format, packages)?;
        }
    }
    if args.reproducible {
        holds &= reproducible::compare(&checkout, &packages)?;
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    fn formats(&self) -> Vec<Format> {
        let all = !(self.deb || self.rpm || self.tar);
        let asked = [(Format::Deb, self.deb), (Format::Rpm, self.rpm), (Format::Tar, self.tar)];
        asked.into_iter().filter(|(_, asked)| all || *asked).map(|(format, _)| format).collect()
    }
}

/// Makes the packages of `formats` and names them on standard output.
fn make(checkout: &Checkout, formats: &[Format]) -> anyhow::Result<Vec<(Format, Packages)>> {
    let mut made = Vec::new();
    for &format in formats {
        let packages = package::make(checkout, format)?;
        for package in packages.all() {
            println!("{}", shown(checkout, &package.path)?);
        }
        made.push((format, packages));
    }
    Ok(made)
}

/// The path and the size of a package.
fn shown(checkout: &Checkout, package: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::metadata(package)?.len();
    let path = package.strip_prefix(checkout.root()).unwrap_or(package);
    Ok(format!("{}  {:.1} MB", path.display(), bytes as f64 / 1e6))
}
