//! The files of the two packages of the library for C: one to run programs, and one to compile them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::build::{self, Library};
use super::checkout::{CAPI_FOLDER, Checkout};
use super::format::Format;
use super::licences::{self, Linked};
use super::stage::{
    Content, Entry, LICENCES, compressed, debian_changes, lintian_overrides, with_gz,
};

/// The files of both packages, each sorted by path.
#[derive(Debug)]
pub(super) struct Files {
    /// What a program needs that is linked with the shared library.
    pub(super) runtime: Vec<Entry>,
    /// Headers, the archive, and what a compiler needs to find them.
    pub(super) development: Vec<Entry>,
}

/// The name of the package with the shared library. Debian asks for that of the soname, so that programs for an
/// earlier interface keep theirs.
pub(super) fn runtime_name(checkout: &Checkout, format: Format) -> anyhow::Result<String> {
    let soname = build::soname(checkout)?;
    let (name, version) = soname.split_once(".so.").context("a soname has a version")?;
    Ok(match format {
        Format::Deb => format!("{name}{version}"),
        _ => name.to_owned(),
    })
}

/// The name of the package with the headers.
pub(super) fn development_name(format: Format) -> &'static str {
    match format {
        Format::Deb => "libhaulage-dev",
        _ => "libhaulage-devel",
    }
}

/// The files of the packages of `format` with `library`.
pub(super) fn files(
    checkout: &Checkout,
    format: Format,
    library: &Library,
) -> anyhow::Result<Files> {
    let dir = library_dir(format)?;
    let soname = build::soname(checkout)?;
    let file = format!("libhaulage.so.{}", checkout.version());
    let mut runtime = Vec::new();
    let mut add = |path: PathBuf, content: Content| runtime.push(Entry { path, content });
    // rpm reads what a library provides if it may be executed. Debian forbids that mode.
    let mode = if format == Format::Rpm { 0o755 } else { 0o644 };
    add(dir.join(&file), Content::Library(library.shared.clone(), mode));
    if soname != file {
        add(dir.join(&soname), Content::Link(file));
    }
    let third_party = licences::of_third_parties(checkout, Linked::Library)?.into_bytes();
    let name = runtime_name(checkout, format)?;
    if format == Format::Deb {
        let doc = Path::new("usr/share/doc").join(&name);
        let changes = checkout.read("CHANGELOG.md".as_ref())?;
        let debian_changes = debian_changes(checkout);
        add(doc.join("changelog.gz"), Content::Data(compressed(&changes)?));
        add(doc.join("changelog.Debian.gz"), Content::Data(compressed(debian_changes.as_bytes())?));
        add(doc.join("copyright"), Content::Data(copyright(checkout)?));
        add(doc.join("THIRD-PARTY.gz"), Content::Data(compressed(&third_party)?));
        let (path, overrides) = lintian_overrides(&name);
        add(Path::new("usr").join(path), overrides);
    } else {
        let licences = Path::new("usr/share/licenses").join(&name);
        for file in LICENCES {
            add(licences.join(file), Content::Data(checkout.read(file.as_ref())?));
        }
        add(licences.join("THIRD-PARTY"), Content::Data(third_party));
    }
    let mut development = development(checkout, &dir, &soname, library)?;
    if format == Format::Deb {
        let path = Path::new("usr/share/doc").join(development_name(format));
        development.push(Entry { path, content: Content::Link(name) });
    }
    for entries in [&mut runtime, &mut development] {
        entries.sort_by(|one, other| one.path.cmp(&other.path));
    }
    Ok(Files { runtime, development })
}

fn development(
    checkout: &Checkout,
    dir: &Path,
    soname: &str,
    library: &Library,
) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut add = |path: PathBuf, content: Content| entries.push(Entry { path, content });
    add(dir.join("libhaulage.so"), Content::Link(soname.to_owned()));
    add(dir.join("libhaulage.a"), Content::Library(library.archive.clone(), 0o644));
    let found_by = pkg_config(checkout.version(), dir, &library.private_libraries);
    add(dir.join("pkgconfig/haulage.pc"), Content::Data(found_by.into_bytes()));
    for path in checkout.files_below(&format!("{CAPI_FOLDER}/include"))? {
        let name = path.file_name().context("a header has a name")?;
        add(Path::new("usr/include").join(name), Content::Data(checkout.read(&path)?));
    }
    for path in checkout.files_below(&format!("{CAPI_FOLDER}/man"))? {
        let name = with_gz(path.file_name().context("a page has a name")?.as_ref());
        let page = compressed(&checkout.read(&path)?)?;
        add(Path::new("usr/share/man/man3").join(name), Content::Data(page));
    }
    Ok(entries)
}

/// Where a system of `format` has the libraries of this architecture.
fn library_dir(format: Format) -> anyhow::Result<PathBuf> {
    Ok(match format {
        Format::Deb => {
            let output = Command::new("dpkg-architecture").arg("-qDEB_HOST_MULTIARCH").output();
            let output = output.context("dpkg-architecture is in the package dpkg-dev")?;
            ensure!(output.status.success(), "dpkg-architecture: {}", output.status);
            Path::new("usr/lib").join(String::from_utf8_lossy(&output.stdout).trim())
        }
        _ => PathBuf::from("usr/lib64"),
    })
}

/// What pkg-config reads, as cargo-c writes it.
fn pkg_config(version: &str, library_dir: &Path, private_libraries: &str) -> String {
    let library_dir = library_dir.strip_prefix("usr").unwrap_or(library_dir).display();
    format!(
        "prefix=/usr\n\
         exec_prefix=${{prefix}}\n\
         libdir=${{exec_prefix}}/{library_dir}\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: haulage\n\
         Description: Copies files and trees the fastest safe way\n\
         Version: {version}\n\
         Libs: -L${{libdir}} -lhaulage\n\
         Cflags: -I${{includedir}}\n\
         Libs.private: {private_libraries}\n"
    )
}

/// The copyright of the program without what is in its pages alone.
pub(super) fn copyright(checkout: &Checkout) -> anyhow::Result<Vec<u8>> {
    let text = checkout.read("packaging/copyright".as_ref())?;
    let text = String::from_utf8(text).context("packaging/copyright is no text")?;
    let is_of_pages = |paragraph: &&str| {
        ["Files: crates/report/", "License: bitstream-vera"]
            .iter()
            .any(|start| paragraph.starts_with(start))
    };
    let kept: Vec<&str> = text.split("\n\n").filter(|paragraph| !is_of_pages(paragraph)).collect();
    Ok(kept.join("\n\n").into_bytes())
}
