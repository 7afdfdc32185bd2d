//! Installs packages in a fresh root, tries the commands and the library as an ordinary user, removes the packages
//! and looks for what is left.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::c_program;
use super::checkout::Checkout;
use super::format::Format;
use super::fresh_root::{FreshRoot, User};
use super::package::{Package, Packages, STANDARD_DIRS};

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

/// Those of the library, with the program of the README.
const TRIALS_OF_LIBRARY: &[Trial] = &[
    (
        "mkdir -p tree/sub; head -c 3000000 /dev/urandom > tree/sub/file\n\
         ./shared tree first && diff -r tree first && echo same",
        "same",
    ),
    ("./static tree second && diff -r tree second && echo same", "same"),
    ("./shared missing third || echo failed", "failed"),
    ("ldd ./shared", "libhaulage.so."),
    ("ldd ./static | grep libhaulage || echo linked statically", "linked statically"),
    ("zcat PREFIX/share/man/man3/haulage.3.gz", ".TH HAULAGE 3"),
];

const MADE_OF_LIBRARY: &[&str] = &["first", "second", "shared", "static", "tree"];

/// What the package manager itself writes down.
const BOOKS: &[&str] = &["var/lib/dpkg", "var/lib/rpm", "var/log", "var/cache"];

/// What is installed together, and tried.
struct Subject<'p> {
    name: String,
    packages: Vec<&'p Package>,
    trials: Vec<&'static Trial>,
    /// What the trials and their preparation make in the home directory, sorted.
    made: &'static [&'static str],
}

/// Checks the program's package, and those of the library, and prints what does not hold. Returns whether
/// everything holds.
pub(super) fn check(
    checkout: &Checkout,
    format: Format,
    packages: &Packages,
) -> anyhow::Result<bool> {
    let of_deb = if format == Format::Deb { TRIALS_OF_DEB } else { &[] };
    let program = Subject {
        name: format.name().to_owned(),
        packages: vec![&packages.program],
        trials: TRIALS.iter().chain(of_deb).collect(),
        made: MADE,
    };
    let holds = check_in_fresh_root(checkout, format, &program, |_| Ok(()))?;
    if packages.library.is_empty() {
        return Ok(holds);
    }
    if !c_program::can_be_compiled() {
        println!("{}: SKIPPED: the library, which takes cc and pkg-config to try", format.name());
        return Ok(holds);
    }
    let library = Subject {
        name: format!("{}, library", format.name()),
        packages: packages.library.iter().collect(),
        trials: TRIALS_OF_LIBRARY.iter().collect(),
        made: MADE_OF_LIBRARY,
    };
    let compile = |root: &FreshRoot| c_program::compile(checkout, root);
    Ok(check_in_fresh_root(checkout, format, &library, compile)? && holds)
}

/// Installs what `subject` names, prepares its trials and runs them, and removes it again.
fn check_in_fresh_root(
    checkout: &Checkout,
    format: Format,
    subject: &Subject<'_>,
    prepare: impl FnOnce(&FreshRoot) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let root = FreshRoot::make(checkout)?;
    if format == Format::Rpm {
        for dir in STANDARD_DIRS {
            fs::create_dir_all(root.path().join(dir))?;
        }
    }
    let before = root.listing()?;
    let mut problems = Vec::new();
    let prefix = install(&root, format, &subject.packages)?;
    let installed = root.listing()?.len() - before.len();
    prepare(&root)?;
    for (script, expected) in &subject.trials {
        // A Debian looks for libraries where its packages have them, and not where those of rpm do.
        let paths = format!("PATH={prefix}/bin:$PATH; export LD_LIBRARY_PATH={prefix}/lib64");
        let script = format!("{paths}\n{}", script.replace("PREFIX", &prefix));
        let output = root.run(User::Ordinary, &script)?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if !output.status.success() || !text.contains(expected) {
            problems.push(format!("{script}\n{}, without '{expected}':\n{text}", output.status));
        }
    }
    let made = root.empty_home()?;
    if made != subject.made {
        let expected = subject.made;
        problems
            .push(format!("the commands left {made:?} in the home directory, not {expected:?}"));
    }
    remove(&root, format, &subject.packages, &prefix)?;
    problems.extend(differences(&before, &root.listing()?));
    for problem in &problems {
        eprintln!("xtask: {}: {problem}", subject.name);
    }
    println!(
        "{}: {installed} files and directories installed in a fresh root, {} scripts run as an ordinary \
         user, removed; {}",
        subject.name,
        subject.trials.len(),
        if problems.is_empty() { "nothing is left" } else { "PROBLEMS, see above" },
    );
    Ok(problems.is_empty())
}

/// Installs the packages. Returns the prefix of their files.
fn install(root: &FreshRoot, format: Format, packages: &[&Package]) -> anyhow::Result<String> {
    let paths = packages.iter().map(|package| package.path.as_path());
    match format {
        Format::Deb => {
            let inside = root.path().join("packages");
            fs::create_dir(&inside)?;
            for path in paths {
                let name = path.file_name().context("a name")?;
                fs::copy(path, inside.join(name)).context("the package into the root")?;
            }
            as_root(root, "dpkg --install /packages/*.deb")?;
            fs::remove_dir_all(inside)?;
            Ok("/usr".to_owned())
        }
        Format::Rpm => {
            // The packages that they need are those of Debian there, of which rpm knows nothing.
            rpm(root, &["--install", "--nodeps"], paths)?;
            Ok("/usr".to_owned())
        }
        Format::Tar => {
            let [package] = packages else { bail!("a tarball is alone") };
            let mut tar = Command::new("tar");
            tar.arg("--extract").arg("--file").arg(&package.path);
            tar.arg("--directory").arg(root.path().join("opt"));
            run(&mut tar)?;
            let name = package.path.file_name().context("a name")?.to_string_lossy().into_owned();
            Ok(format!("/opt/{}", name.trim_end_matches(".tar.gz")))
        }
    }
}

fn remove(
    root: &FreshRoot,
    format: Format,
    packages: &[&Package],
    prefix: &str,
) -> anyhow::Result<()> {
    let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    match format {
        Format::Deb => as_root(root, &format!("dpkg --purge {}", names.join(" "))),
        Format::Rpm => rpm(root, &["--erase"], names),
        Format::Tar => Ok(fs::remove_dir_all(root.path().join(prefix.trim_start_matches('/')))?),
    }
}

fn rpm(
    root: &FreshRoot,
    args: &[&str],
    packages: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> anyhow::Result<()> {
    let mut rpm = Command::new("rpm");
    rpm.arg("--root").arg(root.path()).args(["--dbpath", "/var/lib/rpm"]).args(args).args(packages);
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
