//! Whether a second build of the commit, in another directory, has the same bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::checkout::Checkout;
use super::format::Format;
use super::package::{self, Package, Packages};

/// Makes `packages` again from a clone and compares them. Prints which are equal, and for others which of
/// their files differ. Returns whether all are equal.
pub(super) fn compare(
    checkout: &Checkout,
    packages: &[(Format, Packages)],
) -> anyhow::Result<bool> {
    // The clone has its own target directory: nothing that was compiled is used twice.
    let dir = tempfile::Builder::new().prefix("second-").tempdir_in(checkout.out_dir())?;
    let second = checkout.clone_into(&dir.path().join("in-another-directory"))?;
    let mut all_equal = true;
    for (format, first) in packages {
        let again = package::make(&second, *format)?;
        for (first, again) in first.all().zip(again.all()) {
            all_equal &= are_equal(checkout, &second, first, again)?;
        }
    }
    Ok(all_equal)
}

fn are_equal(
    checkout: &Checkout,
    second: &Checkout,
    first: &Package,
    again: &Package,
) -> anyhow::Result<bool> {
    let same_name = first.path.file_name() == again.path.file_name();
    let is_equal = same_name && read(&first.path)? == read(&again.path)?;
    let name = first.path.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {}", if is_equal { "the same bytes" } else { "DIFFERENT" });
    if !is_equal {
        let [one, other] = [checkout, second].map(|it| it.root().join(&first.stage));
        let differing = differing_files(&one, &other)?;
        for path in &differing {
            eprintln!("xtask: {} differs", path.display());
        }
        if differing.is_empty() {
            eprintln!("xtask: its files are equal; what differs was added when it was packed");
        }
    }
    Ok(is_equal)
}

/// The files that are not the same below both directories.
fn differing_files(one: &Path, other: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (in_one, in_other) = (files_below(one)?, files_below(other)?);
    let mut differing = Vec::new();
    for path in in_one.union(&in_other) {
        let is_in_both = in_one.contains(path) && in_other.contains(path);
        if !is_in_both || fs::read(one.join(path))? != fs::read(other.join(path))? {
            differing.push(path.clone());
        }
    }
    Ok(differing)
}

fn files_below(dir: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at)? {
            let path = entry?.path();
            match path.is_dir() {
                true => open.push(path),
                false => drop(files.insert(path.strip_prefix(dir)?.to_owned())),
            }
        }
    }
    Ok(files)
}

fn read(package: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(package).with_context(|| format!("cannot read '{}'", package.display()))
}
