//! `cargo xtask dist`: packages, their test in a fresh root, and whether two builds are equal.
//!
//! The program and the library are built here. Scripts in packaging/ stage files, pack them and try the packages.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use build::Libc;
use checkout::Checkout;
use tools::CARGO_DEB;

use crate::command::succeed;

mod build;
pub(crate) mod checkout;
mod licences;
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

/// Options, the programs that they need, and the packages of these in Debian.
const TOOLS: &[(&str, &str, &str)] = &[
    ("deb", "dpkg-shlibdeps", "dpkg-dev"),
    ("rpm", "rpmbuild", "rpm"),
    ("check", "debootstrap", "debootstrap"),
];

/// Runs the command. Exit status 1 if a check fails or two builds differ.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checkout = Checkout::own()?;
    let asked = [("deb", args.deb), ("rpm", args.rpm), ("tar", args.tar)];
    let all = asked.iter().all(|(_, asked)| !asked);
    let formats: Vec<&str> =
        asked.iter().filter(|(_, asked)| all || *asked).map(|(format, _)| *format).collect();
    // What is missing is told before a build of some minutes.
    require_tools(&formats, args.check, crate::packages::is_found)?;
    if args.reproducible {
        checkout.require_clean()?;
    }
    let is_root = rustix::process::geteuid().is_root();
    ensure!(is_root || !args.check, "--check changes the root directory, which requires root");
    let packages = make(&checkout, &formats)?;
    for package in &packages {
        let megabytes = std::fs::metadata(package)?.len() as f64 / 1e6;
        let path = package.strip_prefix(&checkout.root).unwrap_or(package);
        println!("{}  {megabytes:.1} MB", path.display());
    }
    let mut holds = true;
    if args.check {
        for format in &formats {
            holds &= script(&checkout, "check.sh", &[format])?.status()?.success();
        }
    }
    if args.reproducible {
        holds &= is_made_equal(&checkout, &formats, &packages)?;
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// # Errors
/// One that names all programs that are missing.
fn require_tools(
    formats: &[&str],
    check: bool,
    is_found: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let is_asked = |option| formats.contains(&option) || option == "check" && check;
    let missing = TOOLS.iter().filter(|(option, tool, _)| is_asked(*option) && !is_found(tool));
    let missing: Vec<String> = missing
        .map(|(option, tool, package)| {
            format!("--{option} needs {tool}, which Debian has in {package}")
        })
        .collect();
    ensure!(missing.is_empty(), "{}", missing.join("; "));
    Ok(())
}

/// Makes the packages of `formats` and returns their paths.
fn make(checkout: &Checkout, formats: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let mut packages = Vec::new();
    for &format in formats {
        let libc = if format == "tar" { Libc::Musl } else { Libc::System };
        stage_program(checkout, format, &build::program(checkout, libc)?, &checkout.out_dir())?;
        let mut pack = script(checkout, "make.sh", &["pack", format])?;
        // The shared library needs the C library of the system. The tarball needs nothing.
        if format != "tar" {
            stage_library(checkout, format, &build::library(checkout)?, &checkout.out_dir())?;
        }
        if format == "deb" {
            pack.env("cargo_deb", CARGO_DEB.find()?);
        }
        succeed(&mut pack)?;
        let mut files: Vec<PathBuf> = std::fs::read_dir(checkout.out_dir().join(format))?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        files.sort();
        packages.extend(files);
    }
    Ok(packages)
}

/// Stages the files of the program's package below `out`.
fn stage_program(
    checkout: &Checkout,
    format: &str,
    program: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    let licences = out.join(format!("licences-{format}"));
    std::fs::create_dir_all(out)?;
    std::fs::write(&licences, licences::of_program(checkout, format == "tar")?)?;
    let mut stage = script(checkout, "make.sh", &["stage", format])?;
    succeed(stage.env("out", out).env("program", program).env("program_licences", licences))
}

/// Stages the files of the library's packages below `out`.
fn stage_library(
    checkout: &Checkout,
    format: &str,
    library: &build::Library,
    out: &Path,
) -> anyhow::Result<()> {
    let licences = out.join("licences-library");
    std::fs::write(&licences, licences::of_library(checkout)?)?;
    let mut stage = script(checkout, "make.sh", &["library", format])?;
    stage.env("out", out).env("shared", &library.shared).env("archive", &library.archive);
    succeed(stage.env("libraries", &library.private_libraries).env("library_licences", licences))
}

/// A script of packaging/, with what it has to know of the commit.
fn script(checkout: &Checkout, name: &str, arguments: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(checkout.root.join("packaging").join(name));
    command.args(arguments).current_dir(&checkout.root);
    command.env("out", checkout.out_dir()).env("arch", std::env::consts::ARCH);
    command.env("version", &checkout.version).env("soname", build::soname(checkout)?);
    command.env("epoch", checkout.epoch_s.to_string()).env("date", &checkout.date);
    command.env("maintainer", checkout.maintainer());
    Ok(command)
}

/// Makes `packages` again from a clone and compares them. Prints which are equal, and which of their files differ.
fn is_made_equal(
    checkout: &Checkout,
    formats: &[&str],
    packages: &[PathBuf],
) -> anyhow::Result<bool> {
    // The clone has its own target directory: nothing that was compiled is used twice.
    let dir = tempfile::Builder::new().prefix("second-").tempdir_in(checkout.out_dir())?;
    let second = checkout.clone_into(&dir.path().join("in-another-directory"))?;
    let again = make(&second, formats)?;
    let mut all_equal = again.len() == packages.len();
    for (first, again) in packages.iter().zip(&again) {
        let is_equal = first.file_name() == again.file_name()
            && std::fs::read(first)? == std::fs::read(again)?;
        let name = first.file_name().context("a package has a name")?;
        println!("{}: {}", name.display(), if is_equal { "the same bytes" } else { "DIFFERENT" });
        all_equal &= is_equal;
    }
    if !all_equal {
        let [one, other] = [checkout, &second].map(|it| it.out_dir().join("stage"));
        // Silent if files are equal: what differs was added when they were packed.
        Command::new("diff").arg("-rq").args([one, other]).status().context("diff")?;
    }
    Ok(all_equal)
}

#[cfg(test)]
mod tests;
