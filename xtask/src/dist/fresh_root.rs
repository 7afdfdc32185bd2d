//! The root directory of a small Debian in which a package is installed and tried.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use super::checkout::Checkout;

/// A user without privileges, in the fresh root.
const USER_ID: u32 = 1000;

/// The home of that user.
const HOME: &str = "home/user";

/// Who runs a command in the root.
#[derive(Clone, Copy, Debug)]
pub(super) enum User {
    Root,
    Ordinary,
}

/// A fresh root. It is removed at the end.
pub(super) struct FreshRoot {
    dir: TempDir,
}

/// # Errors
/// If this is not root: changing the root directory requires it.
pub(super) fn require_root() -> anyhow::Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    ensure!(is_root, "--check changes the root directory, which requires root");
    Ok(())
}

impl FreshRoot {
    /// Makes one. The first call fetches Debian with debootstrap, others copy it.
    pub(super) fn make(checkout: &Checkout) -> anyhow::Result<FreshRoot> {
        let base = base(&checkout.out_dir())?;
        let dir = tempfile::Builder::new().prefix("root-").tempdir_in(checkout.out_dir())?;
        let mut copy = Command::new("cp");
        run(copy.arg("-a").arg(base.join(".")).arg(dir.path()))?;
        let home = dir.path().join(HOME);
        fs::create_dir_all(&home).context("the home of the user")?;
        chown(&home, Some(USER_ID), Some(USER_ID)).context("the home of the user")?;
        Ok(FreshRoot { dir })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The home of the user, from outside.
    pub(super) fn home(&self) -> PathBuf {
        self.path().join(HOME)
    }

    /// Runs a shell script in the home directory, in namespaces of its own: its mounts and processes end
    /// with it.
    pub(super) fn run(&self, user: User, script: &str) -> anyhow::Result<Output> {
        let root = self.path();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]);
        command.arg(format!("--mount-proc={}", root.join("proc").display()));
        command.args(["--", "chroot"]);
        if let User::Ordinary = user {
            command.arg(format!("--userspec={USER_ID}:{USER_ID}")).arg("--groups=");
        }
        command.arg(root).args(["/usr/bin/env", "-i", "LC_ALL=C.UTF-8", "TERM=dumb"]);
        command.arg(format!("HOME=/{HOME}"));
        command.arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.args(["/bin/sh", "-c"]).arg(format!("cd /{HOME} && {{ {script}\n}}"));
        command.output().context("unshare cannot be started")
    }

    /// Removes what the user has made. Returns its names, sorted.
    pub(super) fn empty_home(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path().join(HOME))? {
            let entry = entry?;
            names.push(entry.file_name().to_string_lossy().into_owned());
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        names.sort();
        Ok(names)
    }

    /// Every file with its type, mode, owner and content, as text to compare.
    pub(super) fn listing(&self) -> anyhow::Result<BTreeMap<PathBuf, String>> {
        let mut listing = BTreeMap::new();
        let mut open = vec![PathBuf::new()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(self.path().join(&dir))? {
                let entry = entry?;
                let path = dir.join(entry.file_name());
                let found = entry.metadata()?;
                if found.is_dir() {
                    open.push(path.clone());
                }
                listing.insert(path, describe(&entry.path(), &found)?);
            }
        }
        Ok(listing)
    }
}

fn describe(path: &Path, found: &fs::Metadata) -> anyhow::Result<String> {
    let content = if found.is_symlink() {
        fs::read_link(path)?.display().to_string()
    } else if found.is_file() {
        let mut hasher = DefaultHasher::new();
        fs::read(path)?.hash(&mut hasher);
        format!("{} bytes {:016x}", found.len(), hasher.finish())
    } else {
        String::new()
    };
    Ok(format!("{:o} {}:{} {content}", found.mode(), found.uid(), found.gid()))
}

/// A small Debian as debootstrap makes it, kept for later checks.
fn base(out_dir: &Path) -> anyhow::Result<PathBuf> {
    let suite = suite();
    let base = out_dir.join(format!("debian-{suite}"));
    if base.is_dir() {
        return Ok(base);
    }
    fs::create_dir_all(out_dir)?;
    // A run that was interrupted leaves the other name.
    let partial = out_dir.join(format!("debian-{suite}.partial"));
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    eprintln!("xtask: debootstrap {suite}");
    let mut debootstrap = Command::new("debootstrap");
    let output = debootstrap.args(["--variant=minbase", &suite]).arg(&partial).output();
    let output =
        output.context("debootstrap cannot be started; it is in the package debootstrap")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        let last: Vec<&str> = text.lines().rev().take(3).collect();
        bail!("debootstrap: {}: {}", output.status, last.join("; "));
    }
    fs::rename(&partial, &base)?;
    Ok(base)
}

/// The release of this Debian, so that its C library is not older than the program needs; else the
/// present stable one.
fn suite() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    match (value("ID="), value("VERSION_CODENAME=")) {
        (Some("debian"), Some(suite)) => suite.to_owned(),
        _ => "stable".to_owned(),
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("{name} cannot be started"))?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}
