//! The C program of the README: compiled against the library as it is installed, it copies a tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testfs::{Aspects, assert_equal_trees, skip, test_name};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The only block of C in the README.
fn program() -> String {
    let text = fs::read_to_string(root().join("README.md")).expect("read");
    let (_, after) = text.split_once("```c\n").expect("it has a program in C");
    let (program, rest) = after.split_once("```").expect("the block ends");
    assert!(!rest.contains("```c\n"), "there is one");
    program.to_owned()
}

/// Compiles the program with `flags` and copies a tree with it.
fn check(flags: &[String], library_path: &Path) {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    fs::write(at("copy.c"), program()).expect("written");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .args([at("copy"), at("copy.c")])
        .args(flags)
        .output()
        .expect("the compiler ran");
    assert!(compiled.status.success(), "{}", testfs::stderr(&compiled));
    fs::create_dir_all(at("src/dir")).expect("created");
    fs::write(at("src/dir/file"), testfs::random_bytes(3_000_000, 1)).expect("written");
    let copied = Command::new(at("copy"))
        .args([at("src"), at("dst")])
        .env("LD_LIBRARY_PATH", library_path)
        .output()
        .expect("ran");
    assert!(copied.status.success(), "{}", testfs::stderr(&copied));
    assert!(testfs::stderr(&copied).ends_with("\r3.0 MB"), "{}", testfs::stderr(&copied));
    assert_equal_trees(&at("src"), &at("dst"), Aspects::CONTENT, "");
    let failed = Command::new(at("copy"))
        .args([at("none"), at("dst")])
        .env("LD_LIBRARY_PATH", library_path)
        .output();
    assert_eq!(failed.expect("it runs").status.code(), Some(1));
}

#[test]
fn the_program_of_the_readme_copies_a_tree() {
    let test = std::env::current_exe().expect("this program");
    let dir = test.parent().expect("it is in a directory");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let flags = [
        format!("-I{}", include.display()),
        format!("-L{}", dir.display()),
        "-lhaulage_capi".to_owned(),
    ];
    check(&flags, dir);
}

#[test]
fn the_installed_library_has_all_that_the_readme_says() {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("cargo-cinstall") || !has("pkg-config") {
        let why =
            "no cargo-cinstall or no pkg-config; `cargo xtask capi` builds cargo-c, and runs this";
        return skip(&test_name(), why);
    }
    let place = tempfile::tempdir().expect("created");
    let installed = Command::new(env!("CARGO"))
        .args(["cinstall", "--package", "haulage-capi", "--profile", "dev", "--locked"])
        .args(["--prefix", "/usr", "--libdir", "/usr/lib", "--destdir"])
        .arg(place.path())
        .current_dir(root())
        .output()
        .expect("cargo ran");
    assert!(installed.status.success(), "{}", testfs::stderr(&installed));
    let usr = place.path().join("usr");
    for file in [
        "include/haulage.h",
        "include/copyfile.h",
        "lib/libhaulage.so",
        "lib/libhaulage.a",
        "lib/pkgconfig/haulage.pc",
        "share/man/man3/haulage.3",
        "share/man/man3/copyfile.3",
    ] {
        assert!(usr.join(file).exists(), "{file}");
    }
    let found = Command::new("pkg-config")
        .args(["--define-variable=prefix=/usr", "--cflags", "--libs", "haulage"])
        .env("PKG_CONFIG_PATH", usr.join("lib/pkgconfig"))
        .env("PKG_CONFIG_SYSROOT_DIR", place.path())
        .env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1")
        .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1")
        .output()
        .expect("pkg-config ran");
    assert!(found.status.success(), "{}", testfs::stderr(&found));
    let flags: Vec<_> = testfs::stdout(&found).split_whitespace().map(str::to_owned).collect();
    check(&flags, &usr.join("lib"));
}
