//! Writes packages from staged files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::build::{self, Libc};
use super::checkout::{CLI_FOLDER, Checkout};
use super::debian;
use super::format::Format;
use super::library::{self, Files};
use super::stage::{self, Content, Entry};
use super::tools::CARGO_DEB;

fn libc(format: Format) -> Libc {
    match format {
        Format::Deb | Format::Rpm => Libc::System,
        Format::Tar => Libc::Musl,
    }
}

/// A package that was made.
#[derive(Clone, Debug)]
pub(super) struct Package {
    /// As its manager knows it.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The directory with its files, from the root of the checkout.
    pub(super) stage: PathBuf,
}

/// The packages of one format.
#[derive(Clone, Debug)]
pub(super) struct Packages {
    pub(super) program: Package,
    /// The library for C: for programs, and for compilers. A tarball has none.
    pub(super) library: Vec<Package>,
}

impl Packages {
    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Package> {
        std::iter::once(&self.program).chain(&self.library)
    }
}

/// Builds the program and the library, stages their files and writes the packages of `format`.
pub(super) fn make(checkout: &Checkout, format: Format) -> anyhow::Result<Packages> {
    let dir = empty_dir(checkout, format.name())?;
    let program = build::program(checkout, libc(format))?;
    let entries = stage::entries(checkout, format, &program)?;
    stage::write(&entries, &checkout.root().join(format.stage_dir()), checkout)?;
    let path = match format {
        Format::Deb => deb(checkout, &dir)?,
        Format::Rpm => {
            let lists = [("haulage_files", entries.as_slice())];
            rpm(checkout, "haulage", &format.stage_dir(), &lists, &dir)?;
            file_of(&dir, "haulage")?
        }
        Format::Tar => tar(checkout, &dir)?,
    };
    let program = Package { name: "haulage".to_owned(), path, stage: format.stage_dir() };
    let library = match format {
        Format::Deb | Format::Rpm => library_packages(checkout, format, &dir)?,
        // The shared library needs the C library of the system. The tarball needs nothing.
        Format::Tar => Vec::new(),
    };
    Ok(Packages { program, library })
}

fn library_packages(
    checkout: &Checkout,
    format: Format,
    dir: &Path,
) -> anyhow::Result<Vec<Package>> {
    let files = library::files(checkout, format, &build::library(checkout)?)?;
    let names =
        [library::runtime_name(checkout, format)?, library::development_name(format).to_owned()];
    let stages = match format {
        Format::Deb => debian::write(checkout, &files, dir)?,
        _ => {
            let stage = format.stage_dir_of("rpm-libhaulage");
            let Files { runtime, development } = &files;
            let all = [runtime.as_slice(), development.as_slice()].concat();
            stage::write(&all, &checkout.root().join(&stage), checkout)?;
            let lists =
                [("haulage_files", runtime.as_slice()), ("haulage_devel_files", development)];
            rpm(checkout, "libhaulage", &stage, &lists, dir)?;
            [stage.clone(), stage]
        }
    };
    let packages = names.into_iter().zip(stages);
    packages.map(|(name, stage)| Ok(Package { path: file_of(dir, &name)?, name, stage })).collect()
}

fn deb(checkout: &Checkout, dir: &Path) -> anyhow::Result<PathBuf> {
    let mut cargo_deb = Command::new(CARGO_DEB.find()?);
    cargo_deb.args(["--no-build", "--no-strip", "--quiet", "--profile", "dist", "--manifest-path"]);
    cargo_deb.arg(checkout.root().join(CLI_FOLDER).join("Cargo.toml")).arg("--output").arg(dir);
    cargo_deb.arg("--maintainer").arg(checkout.maintainer());
    run(checkout, &mut cargo_deb)?;
    file_of(dir, "haulage")
}

/// Writes the packages of the spec file `spec` into `dir`, by rpmbuild: cargo-generate-rpm packs neither symbolic
/// links nor directories, so that the link would belong to no package and directories would be left after its
/// removal. `lists` are the files of each package, with the names of their definitions.
fn rpm(
    checkout: &Checkout,
    spec: &str,
    stage: &Path,
    lists: &[(&str, &[Entry])],
    dir: &Path,
) -> anyhow::Result<()> {
    let work = tempfile::tempdir().context("a directory for rpmbuild")?;
    let packaging = checkout.root().join("packaging");
    let stage = checkout.root().join(stage);
    let maintainer = PathBuf::from(checkout.maintainer());
    let mut definitions = vec![
        ("haulage_version", PathBuf::from(checkout.version())),
        ("haulage_packaging", packaging.clone()),
        ("haulage_stage", stage),
        ("packager", maintainer),
        ("_topdir", work.path().to_owned()),
        ("_rpmdir", dir.to_owned()),
    ];
    for (name, entries) in lists {
        let list = work.path().join(name);
        std::fs::write(&list, rpm_files(entries)?).context("the list of files for the .rpm")?;
        definitions.push((*name, list));
    }
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet"]);
    for (name, value) in definitions {
        rpmbuild.arg("--define").arg(format!("{name} {}", value.display()));
    }
    rpmbuild.args(["--define", "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"]);
    rpmbuild.arg(packaging.join(spec).with_extension("spec"));
    run(checkout, &mut rpmbuild).context("rpmbuild is in the package rpm, or rpm-build")
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

/// Directories that every system with rpm has, from its packages filesystem and pkgconf.
pub(super) const STANDARD_DIRS: &[&str] = &[
    "",
    "usr",
    "usr/bin",
    "usr/include",
    "usr/lib",
    "usr/lib64",
    "usr/lib64/pkgconfig",
    "usr/share",
    "usr/share/doc",
    "usr/share/licenses",
    "usr/share/man",
    "usr/share/man/man1",
    "usr/share/man/man3",
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

fn tar(checkout: &Checkout, dir: &Path) -> anyhow::Result<PathBuf> {
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

/// The file of the package `name` in `dir`.
fn file_of(dir: &Path, name: &str) -> anyhow::Result<PathBuf> {
    // Its version follows, after `_` in a .deb and after `-` in an .rpm.
    let is_of = |file: &str| {
        let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix(['_', '-']));
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let entries = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    let files: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    let mut found =
        files.iter().filter(|path| path.file_name().is_some_and(|it| is_of(&it.to_string_lossy())));
    match (found.next(), found.next()) {
        (Some(file), None) => Ok(file.clone()),
        _ => bail!("'{}' should have one package {name}, and has {files:?}", dir.display()),
    }
}
