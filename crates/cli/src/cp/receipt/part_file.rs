//! A file that is written under another name beside it, and gets its name once it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use haulage::events::FileId;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use crate::terminal::output::parent_of;

/// What follows the name until the file is complete; a random number comes after it.
const SUFFIX: &str = ".part-";

/// The name of a file that is being written.
#[derive(Debug)]
pub(crate) struct PartFile {
    pub(crate) path: PathBuf,
    target: PathBuf,
    /// The file that had the name before, which the complete one replaces.
    pub(crate) replaced: Option<FileId>,
}

impl PartFile {
    /// Creates a file for `target`, locked as long as it is open. A file that exists keeps its mode.
    ///
    /// # Errors
    /// As realpath(3) and open(2). Also if `target` is a directory, or a symbolic link to nothing.
    pub(crate) fn create(target: &Path) -> io::Result<(PartFile, File)> {
        let target = resolved(target)?;
        let old = target.metadata().ok();
        if old.as_ref().is_some_and(Metadata::is_dir) {
            return Err(Errno::ISDIR.into());
        }
        let random = sys::process_random().unwrap_or_default();
        let number = u32::from_ne_bytes(*random.first_chunk().expect("it has sixteen bytes"));
        let mut name = target.clone().into_os_string();
        name.push(format!("{SUFFIX}{number:08x}"));
        let path = PathBuf::from(name);
        let file = File::options().write(true).create_new(true).open(&path)?;
        // Without locks a second run takes this one for one that was killed, and says so.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        if let Some(old) = &old {
            // Some file systems have no modes. There the file is as they make it.
            let _ = file.set_permissions(Permissions::from_mode(old.mode() & 0o7777));
        }
        let replaced = old.as_ref().map(id_of);
        Ok((PartFile { path, target, replaced }, file))
    }

    /// Gives the file its name. Its contents are on the medium by then.
    ///
    /// # Errors
    /// As fdatasync(2) and rename(2); EEXIST if another program has made a file of that name meanwhile.
    pub(crate) fn complete(&self, file: &File) -> io::Result<()> {
        file.sync_data()?;
        let (from, to) = (&self.path, &self.target);
        match self.replaced {
            None => match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
                // Not every file system has the flag.
                Err(Errno::INVAL | Errno::NOSYS) if to.symlink_metadata().is_err() => {}
                Err(Errno::INVAL | Errno::NOSYS) => return Err(Errno::EXIST.into()),
                renamed => return Ok(renamed?),
            },
            Some(replaced) => {
                let now = to.symlink_metadata()?;
                if id_of(&now) != replaced {
                    return Err(Errno::EXIST.into());
                }
            }
        }
        std::fs::rename(from, to)
    }
}

/// Files that runs which did not end have left for `target`.
pub(crate) fn left_over(target: &Path) -> Vec<PathBuf> {
    let Ok(target) = resolved(target) else { return Vec::new() };
    let (Some(dir), Some(name)) = (target.parent(), target.file_name()) else { return Vec::new() };
    let start: OsString = [name, OsStr::new(SUFFIX)].into_iter().collect();
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let parts = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        name.starts_with(start.as_bytes()) && !is_locked(path)
    });
    let mut parts: Vec<PathBuf> = parts.collect();
    parts.sort();
    parts
}

/// Whether another process is writing the file.
fn is_locked(path: &Path) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

pub(crate) fn id_of(metadata: &Metadata) -> FileId {
    FileId { dev: metadata.dev(), ino: metadata.ino() }
}

/// The absolute path of `target`, which need not exist.
fn resolved(target: &Path) -> io::Result<PathBuf> {
    if target.symlink_metadata().is_ok() {
        return target.canonicalize();
    }
    let name = target.file_name().ok_or(Errno::NOENT)?;
    Ok(parent_of(target).canonicalize()?.join(name))
}

/// The one of `directories` in which `target` would be, at any depth.
pub(crate) fn directory_above<'d>(target: &Path, directories: &[&'d Path]) -> Option<&'d Path> {
    let target = resolved(target).ok()?;
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let above: Vec<_> = target.ancestors().skip(1).filter_map(id).collect();
    let is_above = |dir: &&&Path| id(dir).is_some_and(|id| above.contains(&id));
    directories.iter().find(is_above).copied()
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, read, read_to_string, write};
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_has_its_name_once_it_is_complete() {
        let dir = tempfile::tempdir().expect("created");
        let target = dir.path().join("r");
        for old in [false, true] {
            let (part, mut file) = PartFile::create(&target).expect("created");
            assert_eq!(part.replaced.is_some(), old);
            writeln!(file, "new, {old}").expect("written");
            assert_eq!(target.exists(), old);
            assert_eq!(left_over(&target), Vec::<PathBuf>::new(), "it is being written");
            part.complete(&file).expect("renamed");
            assert_eq!(read_to_string(&target).expect("read"), format!("new, {old}\n"));
            assert!(!part.path.exists());
            std::fs::set_permissions(&target, Permissions::from_mode(0o640)).expect("mode set");
        }
        assert_eq!(target.metadata().expect("looked at").mode() & 0o777, 0o640);
        let (part, file) = PartFile::create(&target).expect("created");
        drop(file);
        let left = part.path.canonicalize().expect("resolved");
        assert_eq!(left_over(&target), [left], "its run is dead");
        assert_eq!(left_over(&dir.path().join("other")), Vec::<PathBuf>::new());
    }

    #[test]
    fn nothing_that_appeared_meanwhile_is_replaced() {
        let dir = tempfile::tempdir().expect("created");
        let target = dir.path().join("r");
        let (part, file) = PartFile::create(&target).expect("created");
        write(&target, "other").expect("written");
        let error = part.complete(&file).expect_err("it is there");
        assert_eq!(error.raw_os_error(), Some(Errno::EXIST.raw_os_error()));
        std::fs::remove_file(&part.path).expect("removed");
        // Another file takes the place of the one that was to be replaced.
        let (part, file) = PartFile::create(&target).expect("created");
        write(dir.path().join("third"), "third").expect("written");
        std::fs::rename(dir.path().join("third"), &target).expect("renamed");
        assert!(part.complete(&file).is_err());
        assert_eq!(read(&target).expect("read"), b"third");
    }

    #[test]
    fn a_link_is_followed_and_a_directory_is_not_replaced() {
        let dir = tempfile::tempdir().expect("created");
        let [target, link] = ["r", "link"].map(|name| dir.path().join(name));
        write(&target, "old").expect("written");
        symlink("r", &link).expect("linked");
        let (part, mut file) = PartFile::create(&link).expect("created");
        file.write_all(b"new").expect("written");
        part.complete(&file).expect("renamed");
        assert_eq!(read(&target).expect("read"), b"new");
        assert!(link.is_symlink());
        symlink("nowhere", dir.path().join("dangling")).expect("linked");
        assert!(PartFile::create(&dir.path().join("dangling")).is_err());
        assert!(PartFile::create(dir.path()).is_err());
    }

    #[test]
    fn a_file_below_a_directory_is_recognised() {
        let dir = tempfile::tempdir().expect("created");
        let [src, dst] = ["src", "dst"].map(|name| dir.path().join(name));
        create_dir(&src).expect("created");
        create_dir(src.join("below")).expect("created");
        create_dir(&dst).expect("created");
        symlink("src/below", dir.path().join("link")).expect("linked");
        let sources = [&*src];
        for (target, is_below) in [
            ("src/r", true),
            ("src/below/r", true),
            ("link/r", true),
            ("dst/r", false),
            ("r", false),
        ] {
            let above = directory_above(&dir.path().join(target), &sources);
            assert_eq!(above, is_below.then_some(&*src), "{target}");
        }
    }
}
