//! Installs a package in a fresh root, tries the commands as an ordinary user, removes the package and looks
//! for what is left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::checkout::Checkout;
use super::format::Format;
use super::fresh_root::{FreshRoot, User};

/// A script of the user and what it must print. It must not fail. `PREFIX` is where the package is.
type Trial = (&'static str, &'static str);

const TRIALS: &[Trial] = &[
    ("haulage --version", "profile dist"),
    ("haulage help", "Usage: haulage"),
    (
        "mkdir -p tree/sub; head -c 300000 /dev/urandom > tree/sub/file; ln -s sub/file tree/link\n\
         haulage cp -a tree copy && diff -r tree copy && stat -c %F copy/link",
        "symbolic link",
    ),
    (
        "haulage cp missing copy 2>&1 || true",
        "cp: cannot stat 'missing': No such file or directory",
    ),
    ("PATH=PREFIX/lib/haulage/bin:$PATH; cp --version", "cp (haulage)"),
    ("PATH=PREFIX/lib/haulage/bin:$PATH; cp --help", "Usage: cp "),
    (
        "PATH=PREFIX/lib/haulage/bin:$PATH; cp missing copy 2>&1 || true",
        "cp: cannot stat 'missing': No such file or directory",
    ),
    (
        "PATH=PREFIX/lib/haulage/bin:$PATH; cp -r tree second && diff -r tree second && echo same",
        "same",
    ),
    ("cp --version", "GNU coreutils"),
    ("haulage engines", "copy_file_range"),
    ("haulage doctor", "in the page cache"),
    ("haulage race tree/sub/file copy --time 1", "x best (95 %)"),
    ("haulage bench --list", "engines"),
    ("haulage man cp", ".TH HAULAGE\\-CP 1"),
    (
        "bash -c 'source PREFIX/share/bash-completion/completions/haulage; complete -p haulage'",
        "haulage",
    ),
];

/// Those of a Debian package alone.
const TRIALS_OF_DEB: &[Trial] =
    &[("head -n 1 PREFIX/share/doc/haulage/copyright", "packaging-manuals/copyright-format/1.0/")];

/// What the trials make in the home directory.
const MADE: &[&str] = &["copy", "second", "tree"];

/// What the package manager itself writes down.
const BOOKS: &[&str] = &["var/lib/dpkg", "var/lib/rpm", "var/log", "var/cache"];

/// Checks `package` and prints what does not hold. Returns whether everything holds.
pub(super) fn check(checkout: &Checkout, format: Format, package: &Path) -> anyhow::Result<bool> {
    let root = FreshRoot::make(checkout)?;
    if format == Format::Rpm {
        // Systems with rpm have it from the package filesystem.
        fs::create_dir_all(root.path().join("usr/share/licenses"))?;
    }
    let before = root.listing()?;
    let mut problems = Vec::new();
    let prefix = install(&root, format, package)?;
    let installed = root.listing()?.len() - before.len();
    let of_deb = if format == Format::Deb { TRIALS_OF_DEB } else { &[] };
    for (script, expected) in TRIALS.iter().chain(of_deb) {
        let script = format!("PATH={prefix}/bin:$PATH\n{}", script.replace("PREFIX", &prefix));
        let output = root.run(User::Ordinary, &script)?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if !output.status.success() || !text.contains(expected) {
            problems.push(format!("{script}\n{}, without '{expected}':\n{text}", output.status));
        }
    }
    let made = root.empty_home()?;
    if made != MADE {
        problems.push(format!("the commands left {made:?} in the home directory, not {MADE:?}"));
    }
    remove(&root, format, &prefix)?;
    problems.extend(differences(&before, &root.listing()?));
    for problem in &problems {
        eprintln!("xtask: {}: {problem}", format.name());
    }
    println!(
        "{}: {installed} files and directories installed in a fresh root, {} scripts run as an ordinary \
         user, removed; {}",
        format.name(),
        TRIALS.len() + of_deb.len(),
        if problems.is_empty() { "nothing is left" } else { "PROBLEMS, see above" },
    );
    Ok(problems.is_empty())
}

/// Installs the package. Returns the prefix of its files.
fn install(root: &FreshRoot, format: Format, package: &Path) -> anyhow::Result<String> {
    match format {
        Format::Deb => {
            let inside = root.path().join("package.deb");
            fs::copy(package, &inside).context("the package into the root")?;
            as_root(root, "dpkg --install /package.deb")?;
            fs::remove_file(inside)?;
            Ok("/usr".to_owned())
        }
        Format::Rpm => {
            // The packages that it needs are those of Debian there, of which rpm knows nothing.
            rpm(root, &["--install", "--nodeps"], package)?;
            Ok("/usr".to_owned())
        }
        Format::Tar => {
            let mut tar = Command::new("tar");
            tar.arg("--extract").arg("--file").arg(package);
            tar.arg("--directory").arg(root.path().join("opt"));
            run(&mut tar)?;
            let name = package.file_name().context("a name")?.to_string_lossy().into_owned();
            Ok(format!("/opt/{}", name.trim_end_matches(".tar.gz")))
        }
    }
}

fn remove(root: &FreshRoot, format: Format, prefix: &str) -> anyhow::Result<()> {
    match format {
        Format::Deb => as_root(root, "dpkg --purge haulage"),
        Format::Rpm => rpm(root, &["--erase"], Path::new("haulage")),
        Format::Tar => Ok(fs::remove_dir_all(root.path().join(prefix.trim_start_matches('/')))?),
    }
}

fn rpm(root: &FreshRoot, args: &[&str], package: &Path) -> anyhow::Result<()> {
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(root.path()).args(["--dbpath", "/var/lib/rpm"]).args(args).arg(package);
    run(&mut rpm).context("rpm is in the Debian package rpm")
}

fn as_root(root: &FreshRoot, script: &str) -> anyhow::Result<()> {
    let output = root.run(User::Root, script)?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{script}: {}: {}", output.status, text.trim());
    Ok(())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} cannot be started"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}: {}", output.status, text.trim());
    Ok(())
}

/// What was added, removed or changed, apart from the books of the package manager.
fn differences(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
) -> Vec<String> {
    let is_book = |path: &Path| BOOKS.iter().any(|book| path.starts_with(book));
    let mut differences = Vec::new();
    for (path, now) in after.iter().filter(|(path, _)| !is_book(path)) {
        match before.get(path) {
            None => differences.push(format!("'/{}' is left", path.display())),
            Some(then) if then != now => {
                differences.push(format!("'/{}' was {then} and is {now}", path.display()));
            }
            Some(_) => {}
        }
    }
    let is_gone = |path: &&PathBuf| !is_book(path) && !after.contains_key(*path);
    let gone = before.keys().filter(is_gone);
    differences.extend(gone.map(|path| format!("'/{}' is gone", path.display())));
    differences
}
