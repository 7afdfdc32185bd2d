//! Writes a package from staged files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::build::{self, Libc};
use super::checkout::{CLI_FOLDER, Checkout};
use super::format::Format;
use super::stage::{self, Content, Entry};
use super::tools::CARGO_DEB;

fn libc(format: Format) -> Libc {
    match format {
        Format::Deb | Format::Rpm => Libc::System,
        Format::Tar => Libc::Musl,
    }
}

/// Builds the program, stages the files and writes the package of `format`. Returns its path.
pub(super) fn make(checkout: &Checkout, format: Format) -> anyhow::Result<PathBuf> {
    let program = build::program(checkout, libc(format))?;
    let entries = stage::entries(checkout, format, &program)?;
    stage::write(&entries, &checkout.root().join(format.stage_dir()), checkout)?;
    match format {
        Format::Deb => deb(checkout),
        Format::Rpm => rpm(checkout, &entries),
        Format::Tar => tar(checkout),
    }
}

fn deb(checkout: &Checkout) -> anyhow::Result<PathBuf> {
    let dir = empty_dir(checkout, "deb")?;
    let mut cargo_deb = Command::new(CARGO_DEB.find()?);
    cargo_deb.args(["--no-build", "--no-strip", "--quiet", "--profile", "dist", "--manifest-path"]);
    cargo_deb.arg(checkout.root().join(CLI_FOLDER).join("Cargo.toml")).arg("--output").arg(&dir);
    run(checkout, &mut cargo_deb)?;
    only_file(&dir)
}

/// By rpmbuild: cargo-generate-rpm packs neither symbolic links nor directories, so that the link would belong to
/// no package and directories would be left after its removal.
fn rpm(checkout: &Checkout, entries: &[Entry]) -> anyhow::Result<PathBuf> {
    let dir = empty_dir(checkout, "rpm")?;
    let work = tempfile::tempdir().context("a directory for rpmbuild")?;
    let files = work.path().join("files");
    std::fs::write(&files, rpm_files(entries)?).context("the list of files for the .rpm")?;
    let stage = checkout.root().join(Format::Rpm.stage_dir());
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet"]);
    for (name, value) in [
        ("haulage_version", Path::new(checkout.version())),
        ("haulage_stage", &stage),
        ("haulage_files", &files),
        ("_topdir", work.path()),
        ("_rpmdir", &dir),
    ] {
        rpmbuild.arg("--define").arg(format!("{name} {}", value.display()));
    }
    rpmbuild.args(["--define", "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"]);
    rpmbuild.arg(checkout.root().join("packaging/haulage.spec"));
    run(checkout, &mut rpmbuild).context("rpmbuild is in the package rpm, or rpm-build")?;
    only_file(&dir)
}

/// The files, and the directories of haulage's own, as `%files` of a spec file lists them.
fn rpm_files(entries: &[Entry]) -> anyhow::Result<String> {
    let mut list = String::new();
    for dir in own_dirs(entries) {
        let dir = dir.to_str().context("a path is text")?;
        list.push_str(&format!("%dir %attr(755,root,root) \"/{dir}\"\n"));
    }
    for Entry { path, content } in entries {
        let path = path.to_str().context("a path is text")?;
        let kind = match path {
            path if path.starts_with("usr/share/doc/") => "%doc ",
            path if path.starts_with("usr/share/licenses/") => "%license ",
            _ => "",
        };
        let mode = match content {
            Content::Link(_) => "-".to_owned(),
            content => format!("{:o}", content.mode()),
        };
        list.push_str(&format!("{kind}%attr({mode},root,root) \"/{path}\"\n"));
    }
    Ok(list)
}

/// Directories that every system with rpm has, from its package filesystem.
const STANDARD_DIRS: &[&str] = &[
    "",
    "usr",
    "usr/bin",
    "usr/lib",
    "usr/share",
    "usr/share/doc",
    "usr/share/licenses",
    "usr/share/man",
    "usr/share/man/man1",
];

/// The directories that the package has to bring along, the outermost first. Those of shells may belong to several
/// packages; the shells need not be installed.
fn own_dirs(entries: &[Entry]) -> Vec<PathBuf> {
    let parents = entries.iter().flat_map(|entry| entry.path.ancestors().skip(1));
    let is_own = |dir: &&Path| !STANDARD_DIRS.iter().any(|standard| *dir == Path::new(standard));
    let mut dirs: Vec<PathBuf> = parents.filter(is_own).map(Path::to_owned).collect();
    dirs.sort();
    dirs.dedup();
    dirs
}

fn tar(checkout: &Checkout) -> anyhow::Result<PathBuf> {
    let dir = empty_dir(checkout, "tar")?;
    let name = format!("haulage-{}-{}-linux-musl", checkout.version(), std::env::consts::ARCH);
    let package = dir.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "--mode=u+rwX,go+rX,go-w", "--use-compress-program=gzip -9n"]);
    tar.arg(format!("--mtime=@{}", checkout.epoch_s())).arg("--file").arg(&package);
    tar.arg("--directory").arg(checkout.root().join(Format::Tar.stage_dir()));
    // The top directory gets the name of the package.
    tar.args(["--transform", &format!("flags=r;s,^\\.,{name},"), "."]);
    run(checkout, &mut tar)?;
    Ok(package)
}

/// Runs a program that writes a package.
fn run(checkout: &Checkout, command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.current_dir(checkout.root());
    command.env("SOURCE_DATE_EPOCH", checkout.epoch_s().to_string());
    // It must find the files of this checkout, whatever the environment says of others.
    command.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET");
    let status = command.status().with_context(|| format!("{name} cannot be started"))?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

/// The empty directory `name` for packages.
fn empty_dir(checkout: &Checkout, name: &str) -> anyhow::Result<PathBuf> {
    let dir = checkout.out_dir().join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir)
            .with_context(|| format!("cannot empty '{}'", dir.display()))?;
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make '{}'", dir.display()))?;
    Ok(dir)
}

fn only_file(dir: &Path) -> anyhow::Result<PathBuf> {
    let files = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    match files.as_slice() {
        [file] => Ok(file.path()),
        _ => bail!("'{}' should have one package and has {}", dir.display(), files.len()),
    }
}
