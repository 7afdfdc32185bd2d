//! A sample of `cargo xtask dist --check` with the debug build: what a package would contain, without
//! writing one.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use tempfile::TempDir;
use testfs::{skip, test_name};

use super::checkout::Checkout;
use super::{build, require_tools, stage_library, stage_program};

const CP_LINK: &str = "lib/haulage/bin/cp";

/// The files of a package.
struct Staged {
    dir: PathBuf,
    _out: TempDir,
}

impl Staged {
    /// The files of the package of the program that the other tests use. `None` after a skip if there is
    /// none.
    fn of_program(format: &str) -> Option<Staged> {
        // Tests are in target/debug/deps.
        let test = std::env::current_exe().expect("a path");
        let program = test.ancestors().nth(2).expect("found").join("haulage");
        if !program.is_file() {
            skip(&test_name(), &format!("'{}' was not built", program.display()));
            return None;
        }
        let out = tempfile::tempdir().expect("created");
        stage_program(&checkout()?, format, &program, out.path()).expect("staged");
        Some(Staged { dir: out.path().join("stage").join(format), _out: out })
    }

    /// Every file and link, from the top.
    fn paths(&self) -> Vec<PathBuf> {
        let (mut paths, mut open) = (Vec::new(), vec![self.dir.clone()]);
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).expect("listed") {
                let path = entry.expect("listed").path();
                match path.is_dir() && !path.is_symlink() {
                    true => open.push(path),
                    false => paths.push(path.strip_prefix(&self.dir).expect("below").to_owned()),
                }
            }
        }
        paths
    }

    fn text(&self, path: &str) -> String {
        let bytes = std::fs::read(self.dir.join(path)).expect(path);
        let mut text = String::new();
        if path.ends_with(".gz") {
            assert_eq!(&bytes[4..8], [0; 4], "{path} has no time");
            GzDecoder::new(&*bytes).read_to_string(&mut text).expect("gzip and text");
            return text;
        }
        String::from_utf8(bytes).expect("text")
    }

    #[track_caller]
    fn check_has(&self, paths: &[impl AsRef<Path>]) {
        for path in paths {
            let path = path.as_ref();
            assert!(
                self.dir.join(path).symlink_metadata().is_ok(),
                "{} is missing",
                path.display()
            );
        }
    }
}

fn checkout() -> Option<Checkout> {
    let checkout = Checkout::own();
    checkout.map_err(|why| skip(&test_name(), &format!("{why:#}"))).ok()
}

#[test]
fn packages_have_what_belongs_in_them() {
    for (format, prefix, zsh, gz) in [
        ("deb", "usr/", "share/zsh/vendor-completions/_haulage", ".gz"),
        ("rpm", "usr/", "share/zsh/site-functions/_haulage", ".gz"),
        ("tar", "", "share/zsh/site-functions/_haulage", ""),
    ] {
        let Some(staged) = Staged::of_program(format) else { return };
        let doc = format!("{prefix}share/doc/haulage");
        staged.check_has(&match format {
            "deb" => ["THIRD-PARTY.gz", "changelog.gz", "changelog.Debian.gz", "docs/glossary.md"]
                .map(|name| format!("{doc}/{name}")),
            "rpm" => ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY", "THIRD-PARTY"]
                .map(|name| format!("usr/share/licenses/haulage/{name}")),
            _ => ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY", "CHANGELOG.md"]
                .map(|name| format!("{doc}/{name}")),
        });
        let expected = [
            "bin/haulage",
            CP_LINK,
            "share/bash-completion/completions/haulage",
            "share/fish/vendor_completions.d/haulage.fish",
            zsh,
        ];
        staged.check_has(&expected.map(|path| format!("{prefix}{path}")));
        let pages = ["haulage", "haulage-cp", "haulage-race", "haulage-man"];
        staged.check_has(&pages.map(|page| format!("{prefix}share/man/man1/{page}.1{gz}")));
        for path in staged.paths() {
            assert!(path.starts_with(prefix), "{}", path.display());
            let full = staged.dir.join(&path);
            // No link is dangling.
            let mode = full.metadata().expect("looked at").permissions().mode() & 0o777;
            assert_eq!(
                mode,
                if full.ends_with("bin/haulage") || full.is_symlink() { 0o755 } else { 0o644 }
            );
            if path.to_string_lossy().ends_with(".gz") {
                assert!(!staged.text(&path.to_string_lossy()).is_empty());
            }
        }
        check_links(&staged, &doc, format);
    }
}

/// Every document that another one links to is there. The licences of a Debian package have another name.
fn check_links(staged: &Staged, doc: &str, format: &str) {
    let documents: Vec<PathBuf> =
        staged.paths().into_iter().filter(|path| path.starts_with(doc)).collect();
    assert!(documents.len() > 10);
    for path in documents.iter().filter(|path| path.extension().is_some_and(|it| it == "md")) {
        let text = staged.text(&path.to_string_lossy());
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in targets.filter(|target| !target.is_empty() && !target.contains(':')) {
            let target = staged.dir.join(path).with_file_name("").join(link);
            let elsewhere = link.contains("LICENSE") && format != "tar";
            let of_sources = ["crates", "xtask", "experiments", "record", ".github"]
                .iter()
                .any(|folder| link.trim_start_matches("../").starts_with(folder));
            assert!(target.exists() || elsewhere || of_sources, "{}: {link}", path.display());
        }
    }
}

#[test]
fn the_licences_of_all_crates_are_named() {
    let Some(staged) = Staged::of_program("tar") else { return };
    let text = staged.text("share/doc/haulage/THIRD-PARTY");
    for expected in ["\nrustix 1.", "\nclap 4.", "\nDejaVu Sans", "\nmusl: "] {
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
    let (Some(staged), Some(checkout)) = (Staged::of_program("deb"), checkout()) else { return };
    let changes = staged.text("usr/share/doc/haulage/changelog.Debian.gz");
    let first = format!("haulage ({}-1) unstable; urgency=medium\n", checkout.version);
    assert!(changes.starts_with(&first), "{changes}");
    // cargo-deb packs it as it is if it has this form.
    let copyright = std::fs::read_to_string(checkout.root.join("packaging/copyright"));
    let form = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n";
    assert!(copyright.expect("a file").starts_with(form));
}

#[test]
fn the_library_has_a_package_for_programs_and_one_for_compilers() {
    let Some(checkout) = checkout() else { return };
    let debian = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let soname = build::soname(&checkout).expect("a soname");
    let interface = soname.strip_prefix("libhaulage.so.").expect("a version");
    assert!(checkout.version.starts_with(interface), "{interface}");
    for (format, dir, doc, licence) in [
        ("deb", debian.as_str(), format!("usr/share/doc/libhaulage{interface}"), "copyright"),
        ("rpm", "usr/lib64", "usr/share/licenses/libhaulage".to_owned(), "LICENSE-MIT"),
    ] {
        if format == "deb" && Command::new("dpkg-architecture").output().is_err() {
            skip(&test_name(), "no dpkg-architecture, which is in dpkg-dev");
            continue;
        }
        let out = tempfile::tempdir().expect("created");
        let [shared, archive] = ["shared", "archive"].map(|name| out.path().join(name));
        std::fs::write(&shared, "").and_then(|()| std::fs::write(&archive, "")).expect("written");
        let private_libraries = "-lgcc_s -lc".to_owned();
        let built = build::Library { shared, archive, private_libraries };
        stage_library(&checkout, format, &built, out.path()).expect("staged");
        let of = |package| Staged {
            dir: out.path().join(format!("stage/{format}-{package}")),
            _out: tempfile::tempdir().expect("created"),
        };
        let (runtime, development) = (of("runtime"), of("devel"));
        assert!(runtime.paths().iter().all(|path| !development.paths().contains(path)));
        let version = &checkout.version;
        let library = format!("{dir}/libhaulage.so.{version}");
        runtime.check_has(&[library, format!("{dir}/{soname}"), format!("{doc}/{licence}")]);
        let own = ["libhaulage.so", "libhaulage.a", "pkgconfig/haulage.pc"];
        development.check_has(&own.map(|name| format!("{dir}/{name}")));
        let others = ["include/haulage.h", "include/copyfile.h", "share/man/man3/haulage.3.gz"];
        development.check_has(&others.map(|name| format!("usr/{name}")));
        let link = |path: String| std::fs::read_link(path).expect("read").display().to_string();
        let [in_runtime, in_development] =
            [&runtime, &development].map(|it| format!("{}/{dir}", it.dir.display()));
        assert_eq!(link(format!("{in_runtime}/{soname}")), format!("libhaulage.so.{version}"));
        assert_eq!(link(format!("{in_development}/libhaulage.so")), soname);
        let found = development.text(&format!("{dir}/pkgconfig/haulage.pc"));
        let library_dir = dir.strip_prefix("usr").expect("below usr");
        assert!(found.contains(&format!("\nlibdir=${{exec_prefix}}{library_dir}\n")), "{found}");
        assert!(found.ends_with("\nLibs.private: -lgcc_s -lc\n"), "{found}");
        if format == "deb" {
            let text = runtime.text(&format!("{doc}/copyright"));
            let parts = [("Files: *\n", true), ("License: MIT\n", true), ("Bitstream", false)];
            for (part, is_there) in parts {
                assert_eq!(text.contains(part), is_there, "{part}: {text}");
            }
        }
    }
}

#[test]
fn the_link_of_a_package_acts_as_cp() {
    let (Some(staged), Some(checkout)) = (Staged::of_program("tar"), checkout()) else { return };
    let link = staged.dir.join(CP_LINK);
    let run = |args: &[&str]| {
        // As a shell starts what it finds in the PATH.
        let mut command = Command::new(&link);
        let output = command.arg0("cp").args(args).current_dir(&staged.dir).output();
        let output = output.expect("it runs");
        (
            output.status.code(),
            String::from_utf8(output.stdout).expect("text"),
            String::from_utf8(output.stderr).expect("text"),
        )
    };
    let (status, version, _) = run(&["--version"]);
    assert_eq!(status, Some(0));
    assert_eq!(version.lines().next(), Some(&*format!("cp (haulage) {}", checkout.version)));
    let (_, help, _) = run(&["--help"]);
    assert!(help.starts_with("Usage: cp [OPTION]..."), "{help}");
    let missing = "cp: cannot stat 'missing': No such file or directory\n";
    assert_eq!(run(&["missing", "there"]), (Some(1), String::new(), missing.to_owned()));
    let usage = "cp: missing file operand\nTry 'cp --help' for more information.\n";
    assert_eq!(run(&[]), (Some(1), String::new(), usage.to_owned()));
    let (status, _, errors) = run(&["-a", "share", "copy"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let pages = |top: &str| testfs::names_in(&staged.dir.join(top).join("man/man1"));
    assert_eq!(pages("copy"), pages("share"));
}

#[test]
fn missing_tools_are_named_together() {
    let asked = ["deb", "rpm", "tar"];
    assert!(require_tools(&asked, true, |_| true).is_ok());
    assert!(require_tools(&["tar"], false, |_| false).is_ok());
    let error = require_tools(&asked, true, |_| false).unwrap_err().to_string();
    let expected = "--deb needs dpkg-shlibdeps, which Debian has in dpkg-dev; \
                    --rpm needs rpmbuild, which Debian has in rpm; \
                    --check needs debootstrap, which Debian has in debootstrap";
    assert_eq!(error, expected);
}
