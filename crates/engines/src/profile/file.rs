//! The file of a profile: its location, and how it is read and replaced.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, accessat, flock, fstat,
};
use rustix::io::Errno;

use super::choices::Profile;
use super::problem::{LONGEST_BYTES, Mistake, Problem};
use super::text::Parsed;

/// The file from which a profile is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// No file: the rule decides.
    #[default]
    None,
    /// The user's own file, which need not exist.
    User(PathBuf),
    /// A file that the user named, which must exist.
    Named(PathBuf),
}

impl Location {
    /// The location according to the variables HAULAGE_PROFILE, XDG_CONFIG_HOME and HOME.
    #[must_use]
    pub fn of_process() -> Location {
        Location::of(|name| std::env::var_os(name))
    }

    /// The location according to the variables of `environment`. HAULAGE_PROFILE names a file, or
    /// none if it is empty. Without it the file is `haulage/profile.toml` in the user's
    /// configuration directory, as the XDG Base Directory Specification defines it.
    pub fn of(environment: impl Fn(&str) -> Option<OsString>) -> Location {
        if let Some(named) = environment("HAULAGE_PROFILE") {
            return Location::named(&named);
        }
        // The specification requires that a relative path is ignored.
        let absolute =
            |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = absolute("XDG_CONFIG_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".config")));
        config.map_or(Location::None, |dir| Location::User(dir.join("haulage/profile.toml")))
    }

    /// The file of that name; no file if the name is empty.
    #[must_use]
    pub fn named(name: &OsStr) -> Location {
        if name.is_empty() { Location::None } else { Location::Named(name.into()) }
    }

    /// The path of the file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Location::None => None,
            Location::User(path) | Location::Named(path) => Some(path),
        }
    }
}

impl Profile {
    /// Reads the file `path`; `None` if it does not exist. Does not block, whatever the type of the
    /// file.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn read(path: &Path) -> Result<Option<Parsed>, Problem> {
        read_text(path)?.map(|text| Profile::parse(&text)).transpose()
    }

    /// Writes the profile to `path` like [`write_text`].
    ///
    /// # Errors
    /// Those of [`write_text`].
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        write_text(path, &format!("{HEADING}{}", self.to_toml()))
    }
}

/// The text of the file `path`, as [`Profile::read`] reads it.
///
/// # Errors
/// Why it cannot be used.
pub fn read_text(path: &Path) -> Result<Option<String>, Problem> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(Problem::Errno(errno)),
    };
    let stat = fstat(&fd).map_err(Problem::Errno)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Problem::NotAFile);
    }
    text_of(File::from(fd), u64::try_from(stat.st_size).unwrap_or(0)).map(Some)
}

/// Reads a profile's text from `from`, whose length is probably `bytes`.
///
/// # Errors
/// Why it cannot be used.
pub fn text_of(from: impl Read, bytes: u64) -> Result<String, Problem> {
    // A buffer of sufficient size needs one read.
    let bytes = bytes.min(LONGEST_BYTES);
    let mut text = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0) + 1);
    let read = from.take(LONGEST_BYTES + 1).read_to_end(&mut text);
    read.map_err(|error| Problem::Errno(errno_of(&error)))?;
    if text.len() as u64 > LONGEST_BYTES {
        return Err(Problem::TooLong);
    }
    String::from_utf8(text).map_err(|error| {
        let right = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + right.iter().filter(|byte| **byte == b'\n').count();
        Problem::Mistake(Mistake { line, problem: String::from("this is no text in UTF-8") })
    })
}

/// Replaces the content of `path` by `text`. A concurrent reader gets the complete old text or the
/// complete new text. If `path` is a symbolic link, its target is replaced. The new file has the
/// owner and the mode of the old one. Missing directories, and a file that did not exist, are
/// created accessible to the user alone.
///
/// # Errors
/// The kernel's errors, and an error if `text` is longer than a profile that can be read.
pub fn write_text(path: &Path, text: &str) -> std::io::Result<()> {
    if text.len() as u64 > LONGEST_BYTES {
        return Err(std::io::Error::other(Problem::TooLong));
    }
    let (dir, target) = create_dir_of(path)?;
    let part = dir.join(format!(".profile-{}.part", std::process::id()));
    let written = write_new(&part, &target, text).and_then(|()| std::fs::rename(&part, &target));
    if written.is_err() {
        // The first error is reported, not that of the removal.
        let _ = std::fs::remove_file(&part);
    }
    written?;
    rustix::fs::fsync(File::open(dir)?.as_fd())?;
    Ok(())
}

/// Locks the profile `path` for writing, so that two searches that end together do not lose
/// results. Readers need no lock. Waits for the lock, and holds it until the result is dropped.
///
/// # Errors
/// If the profile's directory cannot be created or opened. Does not wait where the directory cannot
/// be locked (NFS).
pub fn turn_to_change(path: &Path) -> std::io::Result<OwnedFd> {
    let (dir, _) = create_dir_of(path)?;
    let dir = OwnedFd::from(File::open(dir)?);
    let _ = rustix::io::retry_on_intr(|| flock(&dir, FlockOperation::LockExclusive));
    Ok(dir)
}

/// Checks whether the profile `path` can be changed, as far as this can be determined without
/// changing anything. The user then gets the error before a measurement that takes minutes.
///
/// # Errors
/// Why it cannot be changed.
pub fn may_be_changed(path: &Path) -> std::io::Result<()> {
    let (dir, _) = dir_of(path);
    // Missing directories will be created in the nearest ancestor that exists.
    let existing = dir.ancestors().find(|dir| !dir.as_os_str().is_empty() && dir.exists());
    let existing = existing.unwrap_or(Path::new("."));
    if !existing.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    Ok(accessat(CWD, existing, access, AtFlags::EACCESS)?)
}

/// The file to which `path` resolves, and its directory, which is created if it is missing.
fn create_dir_of(path: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    let (dir, target) = dir_of(path);
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    Ok((dir, target))
}

/// The maximum number of symbolic links that are followed, as in the kernel.
const LINKS_MAX: usize = 40;

/// The directory of the file to which `path` resolves, and that file. The file need not exist: a
/// link may have been created before its target.
fn dir_of(path: &Path) -> (PathBuf, PathBuf) {
    let parent = |path: &Path| {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        dir.unwrap_or(Path::new(".")).to_owned()
    };
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(link) = std::fs::read_link(&target) else { break };
        target = parent(&target).join(link);
    }
    (parent(&target), target)
}

/// Writes a new file to replace `old`.
fn write_new(path: &Path, old: &Path, text: &str) -> std::io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if let Ok(old) = std::fs::metadata(old) {
        // Root may write a user's profile, which that user must be able to read afterwards.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

const HEADING: &str = "\
# Which way of copying was measured to be the fastest, for haulage cp.
# docs/profile.md of haulage describes the form. The first choice that fits is used.
";

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::{FileSystem, Machine, PairChoices};
    use super::*;

    #[test]
    fn the_environment_determines_the_location() {
        let user = |path: &str| Location::User(PathBuf::from(path));
        let named = |path: &str| Location::Named(PathBuf::from(path));
        for (variables, expected) in [
            (&[][..], Location::None),
            (&[("HOME", "/home/a")], user("/home/a/.config/haulage/profile.toml")),
            (&[("HOME", "")], Location::None),
            (&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")], user("/x/haulage/profile.toml")),
            (&[("HOME", "/h"), ("XDG_CONFIG_HOME", "")], user("/h/.config/haulage/profile.toml")),
            (&[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")], user("/h/.config/haulage/profile.toml")),
            (&[("HOME", "/h"), ("HAULAGE_PROFILE", "p")], named("p")),
            (&[("HOME", "/h"), ("HAULAGE_PROFILE", "")], Location::None),
        ] {
            let environment = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(Location::of(environment), expected, "{variables:?}");
        }
    }

    fn profile() -> Profile {
        let side = FileSystem { fs_type: Some(String::from("ext4")), ..FileSystem::default() };
        let pair = PairChoices { src: side.clone(), dst: side, ..PairChoices::default() };
        let mut profile = Profile::default();
        profile.enter(&Machine::this(), pair);
        profile
    }

    #[test]
    fn a_new_file_is_complete_and_private_to_its_user() {
        let dir = tempfile::tempdir().expect("created");
        let path = dir.path().join("config/haulage/profile.toml");
        assert_eq!(Profile::read(&path), Ok(None));
        profile().write(&path).expect("written");
        let mode = |path: &Path| path.metadata().expect("looked at").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&dir.path().join("config"))), (0o600, 0o700));
        let read = Profile::read(&path).expect("read").expect("there");
        assert_eq!(read, Parsed { profile: profile(), unusable: Vec::new() });
        // A symbolic link to a file elsewhere is kept.
        let link = dir.path().join("link");
        symlink(&path, &link).expect("linked");
        Profile::default().write(&link).expect("written");
        assert!(link.is_symlink());
        assert_eq!(Profile::read(&path), Ok(Some(Parsed::default())));
        let left = std::fs::read_dir(path.parent().expect("a directory")).expect("listed").count();
        assert_eq!(left, 1, "nothing is left beside it");
        // The target of a dangling symbolic link is created.
        let early = dir.path().join("early");
        symlink("config/later/profile.toml", &early).expect("linked");
        may_be_changed(&early).expect("its directory can be made");
        profile().write(&early).expect("written");
        assert!(early.is_symlink() && dir.path().join("config/later/profile.toml").is_file());
        // The new file has the mode of the old one.
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("changed");
        profile().write(&path).expect("written");
        assert_eq!(mode(&path), 0o644);
        let turn = turn_to_change(&path).expect("a turn");
        let other = File::open(path.parent().expect("a directory")).expect("opened");
        let locked = flock(&other, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(locked, Err(Errno::WOULDBLOCK), "one at a time");
        drop(turn);
        flock(&other, FlockOperation::NonBlockingLockExclusive).expect("the next one's turn");
    }

    #[test]
    fn text_that_is_too_long_to_read_is_not_written() {
        let dir = tempfile::tempdir().expect("created");
        let path = dir.path().join("profile.toml");
        profile().write(&path).expect("written");
        let long = "#".repeat(usize::try_from(LONGEST_BYTES).expect("it fits") + 1);
        let error = write_text(&path, &long).expect_err("too long").to_string();
        assert_eq!(error, "it is longer than 8388608 bytes");
        assert_eq!(Profile::read(&path).expect("read").expect("there").profile, profile());
        assert_eq!(text_of(std::io::repeat(b'#'), 0), Err(Problem::TooLong));
        write_text(&path, &long[1..]).expect("just short enough");
        assert_eq!(
            Profile::read(&path).expect_err("no version").to_string(),
            "line 1: missing field `version`"
        );
    }

    #[test]
    fn the_check_for_changes_reports_errors_and_changes_nothing() {
        let dir = tempfile::tempdir().expect("created");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "").expect("written");
        for (path, expected) in [
            (at("a/b/profile.toml"), Ok(())),
            (at("file"), Ok(())),
            (at("file/profile.toml"), Err(Errno::NOTDIR)),
        ] {
            let told = may_be_changed(&path).map_err(|error| errno_of(&error));
            assert_eq!(told, expected, "{path:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1);
    }

    #[test]
    fn a_file_that_is_no_profile_is_an_error() {
        let dir = tempfile::tempdir().expect("created");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("bytes"), b"version = 1\n\xff").expect("written");
        std::fs::write(at("text"), "version = 1\n\nno").expect("written");
        File::create(at("long")).and_then(|file| file.set_len(9 << 20)).expect("a file");
        let fifo = rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        );
        fifo.expect("a fifo");
        symlink(at("loop"), at("loop")).expect("linked");
        for (name, expected) in [
            ("", "it is no regular file"),
            ("fifo", "it is no regular file"),
            ("long", "it is longer than 8388608 bytes"),
            ("bytes", "line 2: this is no text in UTF-8"),
            ("text", "line 3: "),
            ("loop", "Too many levels of symbolic links"),
        ] {
            let problem = Profile::read(&at(name)).expect_err(expected).to_string();
            assert!(problem.starts_with(expected), "{name}: {problem}");
        }
        assert_eq!(Profile::read(&at("text/below")), Ok(None));
    }
}
