//! A sample of `cargo xtask dist --check` with the debug build: what a package would contain, without
//! writing one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use testfs::{skip, test_name};

use super::build::{self, Library};
use super::checkout::Checkout;
use super::format::Format;
use super::library;
use super::stage::{self, CP_LINK, Content, Entry};

/// The program that the other tests use. `None` after a skip if there is none.
fn program() -> Option<PathBuf> {
    // Tests are in target/debug/deps.
    let test = std::env::current_exe().expect("a path");
    let program = test.ancestors().nth(2).expect("a directory").join("haulage");
    if !program.is_file() {
        skip(&test_name(), &format!("'{}' was not built", program.display()));
        return None;
    }
    Some(program)
}

fn checkout() -> Option<Checkout> {
    match Checkout::own() {
        Ok(checkout) => Some(checkout),
        Err(why) => {
            skip(&test_name(), &format!("{why:#}"));
            None
        }
    }
}

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip and text");
    text
}

fn data<'e>(entries: &'e [Entry], path: &str) -> &'e [u8] {
    let entry = entries.iter().find(|entry| entry.path == Path::new(path));
    match entry.map(|entry| &entry.content) {
        Some(Content::Data(bytes)) => bytes,
        other => panic!("{path}: {other:?}"),
    }
}

/// The relative links of a document, without those within it.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default().to_owned());
    files.filter(|target| !target.is_empty() && !target.contains(':')).collect()
}

/// `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[test]
fn packages_have_what_belongs_in_them() {
    let (Some(program), Some(checkout)) = (program(), checkout()) else { return };
    for (format, prefix, zsh, gz) in [
        (Format::Deb, "usr/", "share/zsh/vendor-completions/_haulage", ".gz"),
        (Format::Rpm, "usr/", "share/zsh/site-functions/_haulage", ".gz"),
        (Format::Tar, "", "share/zsh/site-functions/_haulage", ""),
    ] {
        let entries = stage::entries(&checkout, format, &program).expect("staged");
        let paths: BTreeSet<&Path> = entries.iter().map(|entry| entry.path.as_path()).collect();
        assert_eq!(paths.len(), entries.len(), "no path twice");
        let doc = format!("{prefix}share/doc/haulage");
        let licence_files = match format {
            Format::Deb => {
                ["THIRD-PARTY.gz", "changelog.gz", "changelog.Debian.gz", "docs/glossary.md"]
                    .map(|name| format!("{doc}/{name}"))
            }
            Format::Rpm => ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY", "THIRD-PARTY"]
                .map(|name| format!("usr/share/licenses/haulage/{name}")),
            Format::Tar => ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY", "CHANGELOG.md"]
                .map(|name| format!("{doc}/{name}")),
        };
        let expected = [
            "bin/haulage",
            CP_LINK.0,
            "share/bash-completion/completions/haulage",
            "share/fish/vendor_completions.d/haulage.fish",
            zsh,
        ];
        let pages = ["haulage", "haulage-cp", "haulage-race", "haulage-man"]
            .map(|page| format!("{prefix}share/man/man1/{page}.1{gz}"));
        let expected = expected.map(|path| format!("{prefix}{path}"));
        for path in expected.iter().chain(&pages).chain(&licence_files) {
            assert!(paths.contains(Path::new(path)), "{format:?}: {path} is missing");
        }
        for Entry { path, content } in &entries {
            assert!(path.starts_with(prefix.trim_end_matches('/')), "{}", path.display());
            assert_eq!(normal(path), *path, "it stays below the root");
            let is_program =
                path.file_name() == Some(OsStr::new("haulage")) && content.mode() == 0o755;
            assert!(is_program || content.mode() & 0o133 == 0 || content.mode() == 0o777);
            if let Content::Link(to) = content {
                let target = normal(&path.parent().expect("a directory").join(to));
                assert!(paths.contains(target.as_path()), "{} is dangling", path.display());
            }
            if let (Content::Data(bytes), true) =
                (content, path.extension() == Some(OsStr::new("gz")))
            {
                assert_eq!(&bytes[4..8], [0; 4], "{} has no time", path.display());
                assert!(!unpacked(bytes).is_empty());
            }
        }
        check_links(&entries, Path::new(&doc), format);
    }
}

/// Every document that another one links to is there. The licences of a Debian package have another name.
fn check_links(entries: &[Entry], doc: &Path, format: Format) {
    let documents: BTreeMap<&Path, &Vec<u8>> = entries
        .iter()
        .filter_map(|entry| match &entry.content {
            Content::Data(bytes) => Some((entry.path.strip_prefix(doc).ok()?, bytes)),
            _ => None,
        })
        .collect();
    assert!(documents.len() > 10);
    for (path, bytes) in &documents {
        if path.extension() != Some(OsStr::new("md")) {
            continue;
        }
        let text = std::str::from_utf8(bytes).expect("text");
        for link in links(text) {
            let target = normal(&path.parent().expect("a directory").join(&link));
            let elsewhere = link.contains("LICENSE") && format != Format::Tar;
            let is_there = documents.contains_key(target.as_path());
            let of_sources = ["crates", "xtask", "experiments", "record", ".github"]
                .iter()
                .any(|folder| target.starts_with(folder));
            assert!(is_there || elsewhere || of_sources, "{}: {link}", path.display());
        }
    }
}

#[test]
fn the_licences_of_all_crates_are_named() {
    let (Some(program), Some(checkout)) = (program(), checkout()) else { return };
    let entries = stage::entries(&checkout, Format::Tar, &program).expect("staged");
    let text = std::str::from_utf8(data(&entries, "share/doc/haulage/THIRD-PARTY")).expect("text");
    for expected in ["\nrustix 1.", "\nclap 4.", "\nDejaVu Sans", "\nplotly.js", "\nmusl: "] {
        assert!(text.contains(expected), "{expected}");
    }
    // Nothing of tests and nothing of our own.
    for unexpected in ["\nproptest ", "\nhaulage", "\nserde_derive "] {
        assert!(!text.contains(unexpected), "{unexpected}");
    }
    assert!(text.contains("Permission is hereby granted"));
    assert!(text.contains("Apache License"));
}

#[test]
fn a_debian_package_has_the_changes_in_the_form_of_debian() {
    let (Some(program), Some(checkout)) = (program(), checkout()) else { return };
    let entries = stage::entries(&checkout, Format::Deb, &program).expect("staged");
    let changes = unpacked(data(&entries, "usr/share/doc/haulage/changelog.Debian.gz"));
    let first = format!("haulage ({}-1) unstable; urgency=medium\n", checkout.version());
    assert!(changes.starts_with(&first), "{changes}");
    // cargo-deb packs it as it is if it has this form.
    let copyright = std::fs::read_to_string(checkout.root().join("packaging/copyright"));
    let form = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n";
    assert!(copyright.expect("a file").starts_with(form));
}

#[test]
fn the_library_has_a_package_for_programs_and_one_for_compilers() {
    let Some(checkout) = checkout() else { return };
    // The lists name the libraries and do not read them.
    let built = Library {
        shared: PathBuf::from("shared"),
        archive: PathBuf::from("archive"),
        private_libraries: "-lgcc_s -lc".to_owned(),
    };
    let debian = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let soname = build::soname(&checkout).expect("a soname");
    let interface = soname.strip_prefix("libhaulage.so.").expect("a version");
    assert!(checkout.version().starts_with(interface), "{interface}");
    for (format, dir, doc) in [
        (Format::Deb, debian.as_str(), format!("usr/share/doc/libhaulage{interface}")),
        (Format::Rpm, "usr/lib64", "usr/share/licenses/libhaulage".to_owned()),
    ] {
        if format == Format::Deb && Command::new("dpkg-architecture").output().is_err() {
            skip(&test_name(), "no dpkg-architecture, which is in dpkg-dev");
            continue;
        }
        let files = library::files(&checkout, format, &built).expect("staged");
        let paths = |entries: &[Entry]| -> BTreeSet<PathBuf> {
            entries.iter().map(|entry| entry.path.clone()).collect()
        };
        let (runtime, development) = (paths(&files.runtime), paths(&files.development));
        assert!(runtime.is_disjoint(&development), "no path twice");
        for path in [
            format!("{dir}/libhaulage.so.{}", checkout.version()),
            format!("{dir}/{soname}"),
            format!("{doc}/{}", if format == Format::Deb { "copyright" } else { "LICENSE-MIT" }),
        ] {
            assert!(runtime.contains(Path::new(&path)), "{format:?}: {path}");
        }
        let own = ["libhaulage.so", "libhaulage.a", "pkgconfig/haulage.pc"];
        let own = own.map(|name| format!("{dir}/{name}"));
        let others = ["include/haulage.h", "include/copyfile.h", "share/man/man3/haulage.3.gz"];
        for path in own.into_iter().chain(others.map(|name| format!("usr/{name}"))) {
            assert!(development.contains(Path::new(&path)), "{format:?}: {path}");
        }
        let all = [files.runtime.as_slice(), &files.development].concat();
        let parents = all.iter().flat_map(|entry| entry.path.ancestors());
        let there: BTreeSet<&Path> = parents.collect();
        for Entry { path, content } in &all {
            if let Content::Link(to) = content {
                let target = normal(&path.parent().expect("a directory").join(to));
                assert!(there.contains(target.as_path()), "{} is dangling", path.display());
            }
        }
        let found = data(&all, &format!("{dir}/pkgconfig/haulage.pc"));
        let found = std::str::from_utf8(found).expect("text");
        let library_dir = dir.strip_prefix("usr").expect("below usr");
        assert!(found.contains(&format!("\nlibdir=${{exec_prefix}}{library_dir}\n")), "{found}");
        assert!(found.ends_with("\nLibs.private: -lgcc_s -lc\n"), "{found}");
    }
}

#[test]
fn the_copyright_of_the_library_is_that_of_its_own_parts() {
    let Some(checkout) = checkout() else { return };
    let text = String::from_utf8(library::copyright(&checkout).expect("read")).expect("text");
    for (part, is_there) in
        [("Files: *\n", true), ("License: MIT\n", true), ("Bitstream", false), ("plotly", false)]
    {
        assert_eq!(text.contains(part), is_there, "{part}: {text}");
    }
}

#[test]
fn the_link_of_a_package_acts_as_cp() {
    let (Some(program), Some(checkout)) = (program(), checkout()) else { return };
    let entries = stage::entries(&checkout, Format::Tar, &program).expect("staged");
    let root = tempfile::tempdir().expect("a directory");
    let root = root.path().join("root");
    stage::write(&entries, &root, &checkout).expect("written");
    let link = root.join(CP_LINK.0);
    let run = |args: &[&str]| {
        // As a shell starts what it finds in the PATH.
        let mut command = Command::new(&link);
        let output = command.arg0("cp").args(args).current_dir(&root).output().expect("it runs");
        (
            output.status.code(),
            String::from_utf8(output.stdout).expect("text"),
            String::from_utf8(output.stderr).expect("text"),
        )
    };
    let (status, version, _) = run(&["--version"]);
    assert_eq!(status, Some(0));
    assert_eq!(version.lines().next(), Some(&*format!("cp (haulage) {}", checkout.version())));
    let (_, help, _) = run(&["--help"]);
    assert!(help.starts_with("Usage: cp [OPTION]..."), "{help}");
    let missing = "cp: cannot stat 'missing': No such file or directory\n";
    assert_eq!(run(&["missing", "there"]), (Some(1), String::new(), missing.to_owned()));
    let usage = "cp: missing file operand\nTry 'cp --help' for more information.\n";
    assert_eq!(run(&[]), (Some(1), String::new(), usage.to_owned()));
    let (status, _, errors) = run(&["-a", "share", "copy"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let pages = |top: &str| testfs::names_in(&root.join(top).join("man/man1"));
    assert_eq!(pages("copy"), pages("share"));
}
