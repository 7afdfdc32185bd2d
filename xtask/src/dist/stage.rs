//! The files of a package: which, where, and with which mode.

use std::fs::{self, File, FileTimes};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use flate2::{Compression, GzBuilder};

use super::checkout::Checkout;
use super::format::Format;
use super::licences::{self, Linked};

/// A file of a package.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its path from the root of the package.
    pub(super) path: PathBuf,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A program, copied from there.
    Program(PathBuf),
    /// A library, copied from there, with these permissions.
    Library(PathBuf, u32),
    /// A file that everyone may read.
    Data(Vec<u8>),
    /// A symbolic link.
    Link(String),
}

impl Content {
    /// Its permissions.
    pub(super) fn mode(&self) -> u32 {
        match self {
            Content::Program(_) => 0o755,
            Content::Library(_, mode) => *mode,
            Content::Data(_) => 0o644,
            Content::Link(_) => 0o777,
        }
    }
}

/// Where a kind of system expects what differs between them.
struct Places {
    /// Above bin, lib and share.
    prefix: &'static str,
    zsh: &'static str,
    /// Whether manual pages are compressed.
    compressed: bool,
}

impl Format {
    fn places(self) -> Places {
        match self {
            Format::Deb => {
                Places { prefix: "usr", zsh: "share/zsh/vendor-completions", compressed: true }
            }
            Format::Rpm => {
                Places { prefix: "usr", zsh: "share/zsh/site-functions", compressed: true }
            }
            // It is unpacked below a prefix such as /usr/local.
            Format::Tar => {
                Places { prefix: "", zsh: "share/zsh/site-functions", compressed: false }
            }
        }
    }
}

/// The link that acts as cp, from the prefix, and what it points to.
pub(super) const CP_LINK: (&str, &str) = ("lib/haulage/bin/cp", "../../../bin/haulage");

const DOC: &str = "share/doc/haulage";

/// The documents at the root of the repository, to which the others link, as git names them.
const ROOT_DOCUMENTS: &str = ":(glob)*.md";

pub(super) const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// What lintian need not report of the package `name`, which is not part of Debian: the file, and its content.
pub(super) fn lintian_overrides(name: &str) -> (PathBuf, Content) {
    let text = format!("{name}: initial-upload-closes-no-bugs *\n");
    (Path::new("share/lintian/overrides").join(name), Content::Data(text.into_bytes()))
}

/// The files of a package with `program`, sorted by path.
pub(super) fn entries(
    checkout: &Checkout,
    format: Format,
    program: &Path,
) -> anyhow::Result<Vec<Entry>> {
    let places = format.places();
    let mut entries = Vec::new();
    let mut add = |path: &Path, content: Content| {
        entries.push(Entry { path: Path::new(places.prefix).join(path), content });
    };
    add(Path::new("bin/haulage"), Content::Program(program.to_owned()));
    add(Path::new(CP_LINK.0), Content::Link(CP_LINK.1.to_owned()));
    for (name, page) in manual_pages(program)? {
        let path = Path::new("share/man/man1").join(&name);
        match places.compressed {
            true => add(&with_gz(&path), Content::Data(compressed(&page)?)),
            false => add(&path, Content::Data(page)),
        }
    }
    let zsh = format!("{}/_haulage", places.zsh);
    for (shell, path) in [
        ("bash", "share/bash-completion/completions/haulage"),
        ("fish", "share/fish/vendor_completions.d/haulage.fish"),
        ("zsh", &zsh),
    ] {
        let script = stdout_of(program, &["completions", shell])?;
        add(Path::new(path), Content::Data(script));
    }
    let read = |path: &Path| checkout.read(path);
    let doc = Path::new(DOC);
    let documents = checkout.files_below(ROOT_DOCUMENTS)?;
    for path in documents.into_iter().chain(checkout.files_below("docs")?) {
        add(&doc.join(&path), Content::Data(read(&path)?));
    }
    let third_party = licences::of_third_parties(checkout, Linked::Program(format))?.into_bytes();
    if format == Format::Deb {
        // Debian's policy names these two. cargo-deb adds packaging/copyright.
        add(&doc.join("changelog.gz"), Content::Data(compressed(&read("CHANGELOG.md".as_ref())?)?));
        let changes = debian_changes(checkout);
        add(&doc.join("changelog.Debian.gz"), Content::Data(compressed(changes.as_bytes())?));
        let (path, overrides) = lintian_overrides("haulage");
        add(&path, overrides);
        add(&doc.join("THIRD-PARTY.gz"), Content::Data(compressed(&third_party)?));
    } else {
        let dir = match format {
            Format::Rpm => Path::new("share/licenses/haulage"),
            _ => doc,
        };
        for name in LICENCES {
            add(&dir.join(name), Content::Data(read(Path::new(name))?));
        }
        add(&dir.join("THIRD-PARTY"), Content::Data(third_party));
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// Writes the entries below `dir`, which is emptied first. All have the time of the commit.
pub(super) fn write(entries: &[Entry], dir: &Path, checkout: &Checkout) -> anyhow::Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot empty '{}'", dir.display()))?;
    }
    make_dir(dir)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(checkout.epoch_s());
    for entry in entries {
        let path = dir.join(&entry.path);
        let cannot = || format!("cannot write '{}'", path.display());
        make_dir(path.parent().context("an entry has a directory")?)?;
        match &entry.content {
            Content::Link(to) => {
                symlink(to, &path).with_context(cannot)?;
                continue;
            }
            Content::Program(from) | Content::Library(from, _) => {
                fs::copy(from, &path).with_context(cannot)?;
            }
            Content::Data(bytes) => fs::write(&path, bytes).with_context(cannot)?,
        }
        let mode = fs::Permissions::from_mode(entry.content.mode());
        fs::set_permissions(&path, mode).with_context(cannot)?;
        let file = File::options().append(true).open(&path).with_context(cannot)?;
        file.set_times(FileTimes::new().set_modified(time)).with_context(cannot)?;
    }
    Ok(())
}

/// Makes `dir` and what is missing above it, open to everyone whatever the umask is.
fn make_dir(dir: &Path) -> anyhow::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        make_dir(parent)?;
    }
    let made = fs::create_dir(dir)
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(0o755)));
    made.with_context(|| format!("cannot make '{}'", dir.display()))
}

/// The manual pages that `program` writes, with their names.
fn manual_pages(program: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let dir = tempfile::tempdir().context("a directory for the manual pages")?;
    let path = dir.path().to_str().context("the name of a temporary directory is text")?;
    stdout_of(program, &["man", "--all", path])?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(dir.path())? {
        let path = entry?.path();
        let name = path.file_name().context("a name")?.to_string_lossy().into_owned();
        pages.push((name, fs::read(&path)?));
    }
    ensure!(!pages.is_empty(), "'{}' wrote no manual page", program.display());
    Ok(pages)
}

fn stdout_of(program: &Path, args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(program).args(args).output();
    let output = output.with_context(|| format!("'{}' cannot run", program.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "haulage {}: {}", args.join(" "), errors.trim());
    Ok(output.stdout)
}

/// As `gzip -9n` does: without a name and a time.
pub(super) fn compressed(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes).context("gzip")?;
    encoder.finish().context("gzip")
}

pub(super) fn with_gz(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    name.into()
}

/// The changes of the packages themselves, in the form of Debian.
pub(super) fn debian_changes(checkout: &Checkout) -> String {
    let (version, date) = (checkout.version(), checkout.date());
    let maintainer = checkout.maintainer();
    format!(
        "haulage ({version}-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {maintainer}  {date}\n",
    )
}
