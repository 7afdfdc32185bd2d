//! `cargo xtask book`: the documents as an mdBook.
//!
//! mdBook takes documents from one directory. Those of haulage are in docs/ and in the root of the
//! repository, and link to each other. So they are copied, with their places relative to each other, to a
//! directory in target/ where the root is the root of the book.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::command::root;

/// From the root of the repository.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Files that the documents show or link to.
const OTHERS: [&str; 3] = ["docs/report.png", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds the book in target/book.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let root = root();
    let book = root.join("target/book");
    let src = book.join("src");
    if src.exists() {
        fs::remove_dir_all(&src).context("cannot remove the last copies")?;
    }
    let summary = read(&root.join(SUMMARY))?;
    let dir = Path::new(SUMMARY).parent().unwrap_or(Path::new(""));
    let mut in_book = String::new();
    let mut pieces = summary.split("](");
    in_book.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (link, rest) = piece.split_once(')').context("a link of the summary has no end")?;
        let document = without_parents(&dir.join(link));
        copy(root, &src, &document)?;
        in_book.push_str(&format!("]({}){rest}", document.display()));
    }
    for other in OTHERS {
        copy(root, &src, Path::new(other))?;
    }
    fs::write(src.join("SUMMARY.md"), in_book).context("cannot write the summary")?;
    fs::copy(root.join("docs/book.toml"), book.join("book.toml"))
        .context("cannot copy book.toml")?;
    let status = match Command::new("mdbook").arg("build").arg(&book).status() {
        Ok(status) => status,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("there is no mdbook; install it with: cargo install mdbook --locked")
        }
        Err(error) => return Err(error).context("cannot start mdbook"),
    };
    if !status.success() {
        bail!("mdbook ended with {status}");
    }
    println!("{}", book.join("book/index.html").display());
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read '{}'", path.display()))
}

fn copy(root: &Path, src: &Path, file: &Path) -> anyhow::Result<()> {
    let (from, to) = (root.join(file), src.join(file));
    let dir = to.parent().unwrap_or(src);
    fs::create_dir_all(dir).with_context(|| format!("cannot create '{}'", dir.display()))?;
    fs::copy(&from, &to).with_context(|| format!("cannot copy '{}'", from.display()))?;
    Ok(())
}

/// `docs/../README.md` as `README.md`.
fn without_parents(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                found.pop();
            }
            part => found.push(part),
        }
    }
    found
}
