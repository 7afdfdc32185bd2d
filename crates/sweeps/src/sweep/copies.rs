//! The copy that faults and kills are tried on: a small source with an entry of every kind, the options of
//! `cp`, and what the destination has to be afterwards.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use rustix::fs::CWD;
use testfs::{Aspects, Tree, fixture};

/// Options of `cp`, and how the destination begins.
#[derive(Debug)]
pub(crate) struct OptionSet<'a> {
    /// As on the command line.
    pub(crate) text: &'a str,
    /// Whether some of the files are there before, with other contents.
    pub(crate) existing: bool,
}

impl<'a> OptionSet<'a> {
    /// These options, where the destination does not exist before.
    pub(crate) fn new(text: &'a str) -> OptionSet<'a> {
        OptionSet { text, existing: false }
    }

    /// Whether `option` is among them.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.text.split_whitespace().any(|word| word == option)
    }

    /// Whether an existing file stays as it is until the new one is complete.
    pub(crate) fn is_atomic(&self) -> bool {
        self.has("--atomic") || self.has("--resume")
    }

    /// Whether the old contents of a file stay as its backup.
    pub(crate) fn backs_up(&self) -> bool {
        self.has("-b") || self.has("--backup=numbered")
    }

    /// What the copy keeps.
    pub(crate) fn aspects(&self) -> Aspects {
        if self.text.starts_with("-a") { Aspects::ALL } else { Aspects::CONTENT }
    }
}

/// The source, below a directory so that `--parents` has something to create.
const SOURCE: &str = "top/src";
const DESTINATION: &str = "dst";

/// Files that are there before, if an option set says so.
const EXISTING: &[&str] = &["small", "middle", "large", "d/inner1"];
const OLD_CONTENT: &[u8] = b"what was there before";

/// In every name of ours that is not to stay.
const OWN_NAME: &[u8] = b".haulage-";

/// A source in a directory, and its copies, one after the other.
pub(crate) struct Copies {
    dir: PathBuf,
    /// Absolute, or from `dir`.
    destination: PathBuf,
    source: Tree,
    /// Size and times of change by path, to see that a copy leaves its source alone.
    stamps: BTreeMap<PathBuf, (u64, i64, i64)>,
}

impl Copies {
    /// Creates the source in a fresh directory in `parent`.
    pub(crate) fn new(parent: &Path) -> anyhow::Result<Copies> {
        let dir = parent.join("copies");
        std::fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
        let source = dir.join(SOURCE);
        create_source(&source).with_context(|| source.display().to_string())?;
        let (destination, stamps) = (DESTINATION.into(), stamps(&source)?);
        Ok(Copies { destination, source: Tree::read(&source)?, stamps, dir })
    }

    /// Has copies made at `destination` from now on. Returns where they were made before.
    pub(crate) fn copy_to(&mut self, destination: PathBuf) -> PathBuf {
        std::mem::replace(&mut self.destination, destination)
    }

    /// `cp` with `set`, in the directory of the copies.
    pub(crate) fn command(&self, mut cp: Command, set: &OptionSet<'_>) -> Command {
        cp.args(set.text.split_whitespace()).current_dir(&self.dir);
        if !set.has("--parents") {
            cp.arg("-T");
        }
        cp.arg(SOURCE).arg(&self.destination);
        cp
    }

    pub(crate) fn destination(&self) -> PathBuf {
        self.dir.join(&self.destination)
    }

    /// Removes the last copy and creates what `set` starts from.
    pub(crate) fn prepare(&self, set: &OptionSet<'_>) -> anyhow::Result<()> {
        let dst = self.destination();
        remove(&dst)?;
        if set.existing || set.has("--parents") {
            std::fs::create_dir(&dst)?;
        }
        if set.existing {
            std::fs::create_dir(dst.join("d"))?;
            for name in EXISTING {
                std::fs::write(dst.join(name), OLD_CONTENT)?;
                let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
                File::options().write(true).open(dst.join(name))?.set_modified(long_ago)?;
            }
        }
        Ok(())
    }

    /// What a copy with `set` that reported success lacks of `aspects`, and what it has besides; backups are
    /// neither.
    pub(crate) fn differences(
        &self,
        set: &OptionSet<'_>,
        aspects: Aspects,
    ) -> anyhow::Result<Vec<String>> {
        let mut root = self.destination();
        if set.has("--parents") {
            root.push(SOURCE);
        }
        let copy = match Tree::read(&root) {
            Ok(copy) => copy,
            Err(error) => return Ok(vec![format!("the copy cannot be read: {error}")]),
        };
        let mut found = self.source.differences(&copy, aspects);
        if set.backs_up() {
            found.retain(|line| !is_backup_line(line));
        }
        Ok(found)
    }

    /// Files with a name that existed before which are neither as before nor complete.
    pub(crate) fn torn(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for name in EXISTING {
            let new = std::fs::read(self.dir.join(SOURCE).join(name))?;
            match std::fs::read(self.destination().join(name)) {
                Ok(content) if content == OLD_CONTENT || content == new => {}
                Ok(content) => {
                    found.push(format!("{name}: neither old nor new, {} bytes", content.len()));
                }
                Err(error) => found.push(format!("{name}: {error}")),
            }
        }
        Ok(found)
    }

    /// Whether the old content of `name` is still there, under its name or that of a backup.
    fn has_old_content(&self, name: &str) -> anyhow::Result<bool> {
        let path = self.destination().join(name);
        let parent = path.parent().context("it is in the destination")?;
        let stem = path.file_name().context("it has a name")?.as_bytes();
        for entry in std::fs::read_dir(parent)? {
            let entry = entry?;
            let is_one = entry.file_name().as_bytes().starts_with(stem);
            if is_one && entry.file_type()?.is_file() && std::fs::read(entry.path())? == OLD_CONTENT
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Names that existed before and whose old content is nowhere, where `set` keeps it.
    pub(crate) fn missing_backups(&self, set: &OptionSet<'_>) -> anyhow::Result<Vec<String>> {
        let mut lost = Vec::new();
        for name in EXISTING.iter().filter(|_| set.backs_up() && set.existing) {
            if !self.has_old_content(name)? {
                lost.push(format!("{name}: its old content is gone"));
            }
        }
        Ok(lost)
    }

    /// Temporary names, partial files, journals and markers that are still there.
    pub(crate) fn leftovers(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        each_below(&self.destination(), &mut |path| {
            let name = path.file_name().unwrap_or_default().as_bytes();
            if name.windows(OWN_NAME.len()).any(|part| part == OWN_NAME) {
                found.push(format!("{}: left over", path.display()));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether a line of differences or of leftovers names one of them.
    pub(crate) fn is_of_leftover(line: &str) -> bool {
        line.contains(".haulage-")
    }

    /// What has changed in the source.
    pub(crate) fn damage(&self) -> anyhow::Result<Vec<String>> {
        let now = stamps(&self.dir.join(SOURCE))?;
        let changed = self.stamps.iter().filter(|(path, stamp)| now.get(*path) != Some(stamp));
        let mut found: Vec<String> = changed
            .map(|(path, _)| format!("{}: the SOURCE was changed", path.display()))
            .collect();
        let added = now.keys().filter(|path| !self.stamps.contains_key(*path));
        found.extend(added.map(|path| format!("{}: added to the SOURCE", path.display())));
        Ok(found)
    }

    /// Whether `words` name an entry of the source or of the destination, the directory of the latter, or the file
    /// of receipts.
    pub(crate) fn is_named_in(words: &str) -> bool {
        [SOURCE, DESTINATION, "'top'", "'.'", "'receipt'"].iter().any(|name| words.contains(name))
    }
}

/// Whether a line of `Tree::differences` is about a backup, which only the copy has.
fn is_backup_line(line: &str) -> bool {
    line.ends_with("~: only right")
}

/// Creates a source with an entry of every kind and every attribute.
pub(crate) fn create_source(root: &Path) -> anyhow::Result<()> {
    // An ordinary user can have neither.
    let [device, owner] = match testfs::is_root() {
        true => ["null%1:3", "own=1234:1235"],
        false => [""; 2],
    };
    // One worker leaves files of 9 MiB, and not of less, to another.
    let entries = format!(
        "empty=; small#5000:0 mode=640; middle#300000:1 mode=4755 user.sweep=value; large#9M:2; \
         d/inner1#1:3 acl; d/inner2#4K:4 {owner}; d/inner3#70000:5 mode=400; \
         d/closed/inner#100:6; d/closed/ mode=555; d/empty-dir/; d/ mode=2750; \
         no\\xffutf8=odd\\sname; sparse~3M@1M,1028K; link->small; d/dangling->nothing; \
         d/hard==middle; fifo| mode=640; {device}"
    );
    fixture::add(&entries, root);
    let mut second = 1_000_000_000;
    each_below(root, &mut |path| {
        second += 1;
        let times = rustix::fs::Timestamps {
            last_access: rustix::fs::Timespec { tv_sec: second, tv_nsec: 7 },
            last_modification: rustix::fs::Timespec { tv_sec: second, tv_nsec: 123_456_789 },
        };
        rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    })
}

/// Calls `visit` with every path below `root`, the deepest first, and with `root` if it is there.
pub(crate) fn each_below(
    root: &Path,
    visit: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> anyhow::Result<()> {
    let metadata = match root.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if metadata.is_dir() {
        for entry in std::fs::read_dir(root).with_context(|| root.display().to_string())? {
            each_below(&entry?.path(), visit)?;
        }
    }
    visit(root).with_context(|| root.display().to_string())
}

fn stamps(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, (u64, i64, i64)>> {
    let mut stamps = BTreeMap::new();
    each_below(root, &mut |path| {
        let metadata = path.symlink_metadata()?;
        stamps.insert(path.to_owned(), (metadata.size(), metadata.ctime(), metadata.ctime_nsec()));
        Ok(())
    })?;
    Ok(stamps)
}

/// Removes a tree or a file, if it is there.
pub(crate) fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path).or_else(|error| {
            // A server may take root for nobody, who needs the rights of the owner.
            let script = "chmod -R u+rwx -- \"$0\"; exec rm -rf -- \"$0\"";
            let mut remove = Command::new("sh");
            let status = remove.args(["-c", script]).arg(path).uid(metadata.uid()).status()?;
            if status.success() { Ok(()) } else { Err(error) }
        }),
        _ => std::fs::remove_file(path),
    };
    removed.with_context(|| path.display().to_string())
}
