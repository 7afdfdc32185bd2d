//! Builds the program and the library so that their bytes do not depend on the directories of the builder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::checkout::{CAPI_FOLDER, CLI_FOLDER, Checkout};
use crate::command::{cargo, quietly};

/// Which C library the program is linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Libc {
    /// The shared library of the system.
    System,
    /// musl, linked statically.
    Musl,
}

/// Builds the program with the profile `dist` and returns its path.
pub(super) fn program(checkout: &Checkout, libc: Libc) -> anyhow::Result<PathBuf> {
    let mut program = checkout.out_dir().join("target");
    let mut cargo = cargo_for_packages(checkout, "build", CLI_FOLDER)?;
    if libc == Libc::Musl {
        let target = musl_target();
        require_target(&target)?;
        cargo.args(["--target", &target]);
        program.push(target);
    }
    let status = cargo.status().context("cargo cannot be started")?;
    ensure!(status.success(), "cargo build: {status}{}", advice(libc));
    program.extend(["dist", "haulage"]);
    ensure!(program.is_file(), "'{}' was not built", program.display());
    Ok(program)
}

/// The library for C, as it is built.
#[derive(Clone, Debug)]
pub(super) struct Library {
    /// With the soname of [`soname`].
    pub(super) shared: PathBuf,
    pub(super) archive: PathBuf,
    /// The libraries that a program needs which is linked with the archive, as options of the linker.
    pub(super) private_libraries: String,
}

/// Builds the library with the profile `dist`, as cargo-c does: both kinds in one compilation, without the crate
/// for Rust, which would rule link-time optimisation out.
pub(super) fn library(checkout: &Checkout) -> anyhow::Result<Library> {
    let mut cargo = cargo_for_packages(checkout, "rustc", CAPI_FOLDER)?;
    cargo.args(["--lib", "--crate-type", "cdylib,staticlib", "--features", "capi", "--"]);
    cargo.arg(format!("-Clink-arg=-Wl,-soname,{}", soname(checkout)?));
    // Relative, so that a build in another directory has the same options. It is written when the library is
    // compiled, and is kept with it.
    let list = "target/dist-packages/target/native-static-libs";
    cargo.arg(format!("--print=native-static-libs={list}"));
    let status = cargo.status().context("cargo cannot be started")?;
    ensure!(status.success(), "cargo rustc: {status}");
    let library = Library {
        shared: checkout.out_dir().join("libhaulage.so"),
        archive: checkout.out_dir().join("libhaulage.a"),
        private_libraries: String::from_utf8(checkout.read(Path::new(list))?)?.trim().to_owned(),
    };
    // The profile leaves a library its table of symbols, and the archive, which nothing links, the debug
    // information of the standard library.
    let dir = checkout.out_dir().join("target/dist");
    strip("--strip-unneeded", &dir.join("libhaulage_capi.so"), &library.shared)?;
    strip("--strip-debug", &dir.join("libhaulage_capi.a"), &library.archive)?;
    Ok(library)
}

/// Writes `from` without what `what` says to `to`.
fn strip(what: &str, from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut strip = Command::new("strip");
    strip.args([what, "--enable-deterministic-archives", "-o"]).arg(to).arg(from);
    let status =
        strip.status().context("strip cannot be started; it is in the package binutils")?;
    ensure!(status.success(), "strip: {status}");
    Ok(())
}

/// The name by which programs find the shared library: `libhaulage.so.0.1`. The manifest says, for cargo-c, how
/// many numbers of the version a change of the interface changes.
pub(super) fn soname(checkout: &Checkout) -> anyhow::Result<String> {
    let manifest = checkout.read(&Path::new(CAPI_FOLDER).join("Cargo.toml"))?;
    let manifest = String::from_utf8(manifest).context("the manifest of the library")?;
    let key = "version_suffix_components = ";
    let numbers = manifest.lines().find_map(|line| line.strip_prefix(key)?.parse::<usize>().ok());
    let numbers = numbers.with_context(|| format!("{CAPI_FOLDER}/Cargo.toml has no {key}"))?;
    let version: Vec<&str> = checkout.version.split('.').take(numbers).collect();
    Ok(format!("libhaulage.so.{}", version.join(".")))
}

/// `cargo COMMAND` for the crate in `folder`, with the profile `dist`, so that the bytes depend on nothing but the
/// commit and the tools.
fn cargo_for_packages(checkout: &Checkout, command: &str, folder: &str) -> anyhow::Result<Command> {
    let mut cargo = cargo();
    cargo.current_dir(&checkout.root);
    cargo.args([command, "--locked", "--profile", "dist", "--manifest-path"]);
    cargo.arg(Path::new(folder).join("Cargo.toml"));
    // Flags in RUSTFLAGS would make cargo compile everything anew in each of two directories with
    // different flags. This one is for packages alone.
    cargo.env("CARGO_TARGET_DIR", checkout.out_dir().join("target"));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", remapped(checkout)?.join("\x1f"));
    // Flags of the environment would be part of the bytes.
    cargo.env_remove("RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    cargo.env("SOURCE_DATE_EPOCH", checkout.epoch_s.to_string());
    Ok(cargo)
}

fn musl_target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

fn advice(libc: Libc) -> &'static str {
    match libc {
        Libc::System => "",
        Libc::Musl => "; the C parts need musl-gcc, which is in the Debian package musl-tools",
    }
}

/// Installs the standard library for `target` with rustup, if it is missing.
fn require_target(target: &str) -> anyhow::Result<()> {
    let sysroot = rustc(&["--print", "sysroot"])?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib");
    if library.is_dir() {
        return Ok(());
    }
    eprintln!("xtask: rustup target add {target}");
    let added = Command::new("rustup").args(["target", "add", target]).status();
    match added {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("the static tarball needs the target {target}; rustup: {status}"),
        Err(error) => bail!(
            "the static tarball needs the target {target}, and rustup cannot be started: {error}"
        ),
    }
}

/// Flags that replace the directories of this machine by names in messages of panics.
fn remapped(checkout: &Checkout) -> anyhow::Result<Vec<String>> {
    let mut from_to = vec![(checkout.root.to_owned(), "/haulage".to_owned())];
    // The folder of a registry is named after its address, which a mirror changes.
    let registries = cargo_home()?.join("registry/src");
    for entry in std::fs::read_dir(&registries).into_iter().flatten().flatten() {
        from_to.push((entry.path(), "/crates".to_owned()));
    }
    // If the sources of the standard library are installed, the compiler names that folder.
    let (sysroot, version) = (rustc(&["--print", "sysroot"])?, rustc(&["-vV"])?);
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "));
    let library = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    from_to.push((library, format!("/rustc/{}", commit.unwrap_or("unknown"))));
    let flag =
        |(from, to): (PathBuf, String)| format!("--remap-path-prefix={}={to}", from.display());
    Ok(from_to.into_iter().map(flag).collect())
}

fn cargo_home() -> anyhow::Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cargo"))
}

fn rustc(args: &[&str]) -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    quietly(Command::new(rustc).args(args))
}
