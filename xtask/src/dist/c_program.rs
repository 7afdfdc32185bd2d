//! The C program of the README, compiled against the library as it is installed in a root directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::checkout::Checkout;
use super::fresh_root::FreshRoot;

/// Whether this system has what it takes.
pub(super) fn can_be_compiled() -> bool {
    ["cc", "pkg-config"]
        .iter()
        .all(|program| Command::new(program).arg("--version").output().is_ok())
}

/// Compiles the program twice into the home of the user in `root`: `shared` with the shared library, and `static`
/// with the archive. The compiler is that of this system, because the root has none; headers, libraries and
/// options are those of the root.
pub(super) fn compile(checkout: &Checkout, root: &FreshRoot) -> anyhow::Result<()> {
    let readme = String::from_utf8(checkout.read("README.md".as_ref())?).context("README.md")?;
    let (_, after) = readme.split_once("```c\n").context("README.md has no program in C")?;
    let (program, _) = after.split_once("```").context("the program in README.md does not end")?;
    let dir = tempfile::tempdir().context("a directory for the program")?;
    let source = dir.path().join("copy.c");
    fs::write(&source, program)?;
    let shared = flags(root.path(), &[])?;
    let archive = flags(root.path(), &["--static"])?;
    let archive = archive.into_iter().map(|flag| match flag.as_str() {
        "-lhaulage" => "-l:libhaulage.a".to_owned(),
        _ => flag,
    });
    for (name, flags) in [("shared", shared), ("static", archive.collect())] {
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(root.home().join(name)).arg(&source);
        let output = cc.args(&flags).output().context("cc cannot be started")?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cc {}: {}", flags.join(" "), text.trim());
    }
    Ok(())
}

/// What pkg-config says of the library in `root`.
fn flags(root: &Path, args: &[&str]) -> anyhow::Result<Vec<String>> {
    let found = installed_in(root)?;
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs"])
        .args(args)
        .arg("haulage")
        .env("PKG_CONFIG_LIBDIR", found)
        .env("PKG_CONFIG_SYSROOT_DIR", root)
        // Those of the root are not where the compiler looks.
        .env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1")
        .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1")
        .output()
        .context("pkg-config cannot be started")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pkg-config: {}", text.trim());
    let flags = String::from_utf8(output.stdout).context("pkg-config printed no text")?;
    Ok(flags.split_whitespace().map(str::to_owned).collect())
}

/// The directory where haulage.pc is.
fn installed_in(root: &Path) -> anyhow::Result<std::path::PathBuf> {
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    let dirs = ["lib64".to_owned(), format!("lib/{multiarch}")];
    let mut dirs = dirs.iter().map(|dir| root.join("usr").join(dir).join("pkgconfig"));
    dirs.find(|dir| dir.join("haulage.pc").is_file()).context("haulage.pc is not installed")
}
