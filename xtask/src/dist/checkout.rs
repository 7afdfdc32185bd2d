//! The sources that packages are made of: a checkout of the repository at one commit.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::command::{quietly, root};

/// The package of the workspace that has the program.
pub(super) const CLI_FOLDER: &str = "crates/cli";

/// The one that has the library for C.
pub(super) const CAPI_FOLDER: &str = "crates/capi";

/// A checkout.
#[derive(Clone, Debug)]
pub(crate) struct Checkout {
    pub(crate) root: PathBuf,
    /// The version of the workspace.
    pub(crate) version: String,
    /// When the commit was made, in seconds since 1970. Packages and the files in them have this time, so
    /// that two builds of one commit have the same.
    pub(crate) epoch_s: u64,
    /// The time of the commit as in mail: `Sat, 31 Jan 2026 12:00:00 +0000`.
    pub(crate) date: String,
    /// Who made the commit: `Name <address>`.
    committer: String,
}

impl Checkout {
    /// The one that xtask was built from.
    pub(crate) fn own() -> anyhow::Result<Checkout> {
        Checkout::at(root().to_owned())
    }

    /// The one in `root`.
    ///
    /// # Errors
    /// If it is not in a repository of git: packages have the time of the commit.
    pub(crate) fn at(root: PathBuf) -> anyhow::Result<Checkout> {
        let manifest = std::fs::read_to_string(root.join("Cargo.toml"))
            .with_context(|| format!("cannot read '{}'", root.join("Cargo.toml").display()))?;
        let version = version_in(&manifest).context("Cargo.toml has no version")?;
        let commit = git(&root, &["show", "--no-patch", "--format=%ct%n%cD%n%cn <%ce>", "HEAD"])
            .context("packages have the time of their commit, so a repository of git is needed")?;
        let [epoch, date, committer] = commit.trim().lines().collect::<Vec<_>>()[..] else {
            bail!("git tells no time of the commit");
        };
        let epoch_s = epoch.parse().context("the time of the commit")?;
        let (date, committer) = (date.to_owned(), committer.to_owned());
        Ok(Checkout { root, version, epoch_s, date, committer })
    }

    /// Who packages say maintains them, as Debian's tools take it from the environment: DEBFULLNAME and
    /// DEBEMAIL, by default the committer.
    pub(crate) fn maintainer(&self) -> String {
        let variables = ["DEBFULLNAME", "DEBEMAIL"].map(std::env::var);
        maintainer_of(variables.map(Result::ok), &self.committer)
    }

    /// Where packages are made.
    pub(crate) fn out_dir(&self) -> PathBuf {
        self.root.join("target/dist-packages")
    }

    /// The files of the commit below `folder`, or that match this pathspec of git.
    pub(crate) fn files_below(&self, folder: &str) -> anyhow::Result<Vec<PathBuf>> {
        let list = git(&self.root, &["ls-files", "-z", "--", folder])?;
        Ok(list.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from).collect())
    }

    /// The bytes of the file `path`, which is relative to the root.
    pub(crate) fn read(&self, path: &Path) -> anyhow::Result<Vec<u8>> {
        let path = self.root.join(path);
        std::fs::read(&path).with_context(|| format!("cannot read '{}'", path.display()))
    }

    /// # Errors
    /// If a file differs from the commit.
    pub(crate) fn require_clean(&self) -> anyhow::Result<()> {
        let changes = git(&self.root, &["status", "--porcelain"])?;
        ensure!(changes.is_empty(), "these files are not those of the commit:\n{changes}");
        Ok(())
    }

    /// Clones the commit into `dir`.
    pub(crate) fn clone_into(&self, dir: &Path) -> anyhow::Result<Checkout> {
        let (from, to) = (self.root.display().to_string(), dir.display().to_string());
        git(&self.root, &["clone", "--quiet", "--shared", "--no-checkout", &from, &to])?;
        let commit = git(&self.root, &["rev-parse", "HEAD"])?;
        git(dir, &["checkout", "--quiet", "--detach", commit.trim()])?;
        Checkout::at(dir.canonicalize()?)
    }
}

/// The standard output of git in `dir`.
pub(crate) fn git(dir: &Path, args: &[&str]) -> anyhow::Result<String> {
    quietly(Command::new("git").current_dir(dir).args(args))
        .with_context(|| format!("git {}", args.join(" ")))
}

/// `name <address>`, or `committer` if one of them is missing.
fn maintainer_of(name_and_address: [Option<String>; 2], committer: &str) -> String {
    match name_and_address.map(|value| value.filter(|value| !value.trim().is_empty())) {
        [Some(name), Some(address)] => format!("{name} <{address}>"),
        _ => committer.to_owned(),
    }
}

/// The version of the workspace in its manifest.
fn version_in(manifest: &str) -> Option<String> {
    let (_, package) = manifest.split_once("[workspace.package]\n")?;
    let line = package.lines().find_map(|line| line.strip_prefix("version = \""))?;
    Some(line.strip_suffix('"')?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::maintainer_of;

    #[test]
    fn the_maintainer_is_who_the_environment_names_or_the_committer() {
        let of = |name: Option<&str>, address: Option<&str>| {
            maintainer_of([name, address].map(|it| it.map(str::to_owned)), "C <c@example.org>")
        };
        assert_eq!(of(Some("A B"), Some("a@example.org")), "A B <a@example.org>");
        for (name, address) in
            [(None, None), (Some("A B"), None), (Some(""), Some("a@example.org"))]
        {
            assert_eq!(of(name, address), "C <c@example.org>");
        }
    }
}
