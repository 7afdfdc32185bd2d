//! Where a profile is kept.

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

/// Which file a profile is read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// From none: what is built in has to do.
    #[default]
    None,
    /// The user's own, which need not be there.
    User(PathBuf),
    /// The one that was named.
    Named(PathBuf),
}

impl Location {
    /// As the variables HAULAGE_PROFILE, XDG_CONFIG_HOME and HOME say.
    #[must_use]
    pub fn of_process() -> Location {
        Location::of(|name| std::env::var_os(name))
    }

    /// The same as the variables of `environment` say: HAULAGE_PROFILE names a file, or none when it
    /// is empty; otherwise it is `haulage/profile.toml` in the user's configuration directory, as the
    /// XDG Base Directory Specification has it.
    pub fn of(environment: impl Fn(&str) -> Option<OsString>) -> Location {
        if let Some(named) = environment("HAULAGE_PROFILE") {
            return Location::named(&named);
        }
        // A relative one is to be ignored.
        let absolute =
            |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = absolute("XDG_CONFIG_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".config")));
        config.map_or(Location::None, |dir| Location::User(dir.join("haulage/profile.toml")))
    }

    /// The file of that name; none when it is empty.
    #[must_use]
    pub fn named(name: &OsStr) -> Location {
        if name.is_empty() { Location::None } else { Location::Named(name.into()) }
    }

    /// The file, if there is to be one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Location::None => None,
            Location::User(path) | Location::Named(path) => Some(path),
        }
    }
}

impl Profile {
    /// Reads the file `path`; `None` when there is none. It waits for nobody, whatever the name
    /// stands for.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn read(path: &Path) -> Result<Option<Parsed>, Problem> {
        read_text(path)?.map(|text| Profile::parse(&text)).transpose()
    }

    /// Writes it to `path` as [`write_text`] does.
    ///
    /// # Errors
    /// What the kernel says.
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

/// The same from wherever it comes, which is likely to have `bytes`.
///
/// # Errors
/// Why it cannot be used.
pub fn text_of(from: impl Read, bytes: u64) -> Result<String, Problem> {
    // With room for all of it, it is read at once.
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

/// Writes `text` to `path`, so that whoever reads it meanwhile gets the old one or the new one, whole.
/// Where `path` is a symbolic link, the file that it leads to is replaced; the new one has its owner and
/// its mode. Directories that are missing are made, for the user alone, and so is a file that was not
/// there.
///
/// # Errors
/// What the kernel says, and that `text` is longer than what would be read again.
pub fn write_text(path: &Path, text: &str) -> std::io::Result<()> {
    if text.len() as u64 > LONGEST_BYTES {
        return Err(std::io::Error::other(Problem::TooLong));
    }
    let (dir, target) = made_dir_of(path)?;
    let part = dir.join(format!(".profile-{}.part", std::process::id()));
    let written = write_new(&part, &target, text).and_then(|()| std::fs::rename(&part, &target));
    if written.is_err() {
        // What failed first is what is to be told.
        let _ = std::fs::remove_file(&part);
    }
    written?;
    rustix::fs::fsync(File::open(dir)?.as_fd())?;
    Ok(())
}

/// Waits until nobody else is about to change the profile `path`, and keeps others from it until the
/// result is dropped: two searches that end at the same time would lose what one of them found. Who only
/// reads it need not wait.
///
/// # Errors
/// When its directory cannot be made or opened. Where it cannot be locked (NFS) there is no waiting.
pub fn turn_to_change(path: &Path) -> std::io::Result<OwnedFd> {
    let (dir, _) = made_dir_of(path)?;
    let dir = OwnedFd::from(File::open(dir)?);
    let _ = rustix::io::retry_on_intr(|| flock(&dir, FlockOperation::LockExclusive));
    Ok(dir)
}

/// Whether the profile `path` can be changed, as far as that can be told without doing anything: whoever
/// is going to measure for minutes should learn it before.
///
/// # Errors
/// Why it cannot.
pub fn may_be_changed(path: &Path) -> std::io::Result<()> {
    let (dir, _) = dir_of(path);
    // What is missing will be made in the first that is there.
    let there = dir.ancestors().find(|dir| !dir.as_os_str().is_empty() && dir.exists());
    let there = there.unwrap_or(Path::new("."));
    if !there.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    Ok(accessat(CWD, there, access, AtFlags::EACCESS)?)
}

/// The file that `path` leads to, and its directory, which is made if it has to be.
fn made_dir_of(path: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    let (dir, target) = dir_of(path);
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    Ok((dir, target))
}

/// Links that are followed, as by the kernel.
const LINKS_MAX: usize = 40;

/// The directory of the file that `path` leads to, and that file, which need not be there: a link may
/// have been made before what it is to lead to.
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

/// Writes a file that is to replace `old`.
fn write_new(path: &Path, old: &Path, text: &str) -> std::io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if let Ok(old) = std::fs::metadata(old) {
        // Root may have been asked to write a user's profile, who is to be able to read it afterwards.
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
    fn the_environment_says_where_it_is() {
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
    fn it_is_written_whole_and_for_its_user_alone() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let path = dir.path().join("config/haulage/profile.toml");
        assert_eq!(Profile::read(&path), Ok(None));
        profile().write(&path).expect("written");
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&dir.path().join("config"))), (0o600, 0o700));
        let read = Profile::read(&path).expect("right").expect("there");
        assert_eq!(read, Parsed { profile: profile(), unusable: Vec::new() });
        // A link to a file elsewhere stays one.
        let link = dir.path().join("link");
        symlink(&path, &link).expect("a link");
        Profile::default().write(&link).expect("written");
        assert!(link.is_symlink());
        assert_eq!(Profile::read(&path), Ok(Some(Parsed::default())));
        let left = std::fs::read_dir(path.parent().expect("a directory")).expect("listed").count();
        assert_eq!(left, 1, "nothing is left beside it");
        // One that leads to nothing yet is no file to be replaced.
        let early = dir.path().join("early");
        symlink("config/later/profile.toml", &early).expect("a link");
        may_be_changed(&early).expect("its directory can be made");
        profile().write(&early).expect("written");
        assert!(early.is_symlink() && dir.path().join("config/later/profile.toml").is_file());
        // What somebody else is to read stays so.
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
    fn what_could_not_be_read_again_is_not_written() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let path = dir.path().join("profile.toml");
        profile().write(&path).expect("written");
        let long = "#".repeat(usize::try_from(LONGEST_BYTES).expect("it fits") + 1);
        let error = write_text(&path, &long).expect_err("too long").to_string();
        assert_eq!(error, "it is longer than 8388608 bytes");
        assert_eq!(Profile::read(&path).expect("right").expect("there").profile, profile());
        assert_eq!(text_of(std::io::repeat(b'#'), 0), Err(Problem::TooLong));
        write_text(&path, &long[1..]).expect("just short enough");
        assert_eq!(
            Profile::read(&path).expect_err("no version").to_string(),
            "line 1: missing field `version`"
        );
    }

    #[test]
    fn whether_it_can_be_changed_is_told_and_nothing_done() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "").expect("a file");
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
    fn what_is_no_profile_is_told() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("bytes"), b"version = 1\n\xff").expect("a file");
        std::fs::write(at("text"), "version = 1\n\nno").expect("a file");
        File::create(at("long")).and_then(|file| file.set_len(9 << 20)).expect("a file");
        let fifo = rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        );
        fifo.expect("a fifo");
        symlink(at("loop"), at("loop")).expect("a link");
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
