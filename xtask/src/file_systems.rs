//! The file systems that tests use, one of each kind.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::command::quietly;
use crate::{namespace, packages};

/// The kinds of file system, the tmpfs last.
pub const KINDS: [&str; 4] = ["ext4", "xfs", "btrfs", "tmpfs"];

/// The environment variable in which tests look for the file systems.
const VARIABLE: &str = "HAULAGE_TEST_FS";

/// The variable for small file systems, for tests of ENOSPC.
const SMALL_VARIABLE: &str = "HAULAGE_TEST_SMALL_FS";

/// The mount point of a tmpfs for images and mount points. It is in /run so that tests which drop
/// root can still reach it, whatever the permissions of the repository.
const BASE: &str = "/run/haulage-test-fs";

/// The size of each image. They are sparse and in memory: they use memory for what the tests write,
/// and `discard` frees it when files are removed.
const IMAGE_BYTES: u64 = 5 << 30;

/// The free space that tests without root need at least.
const ROOM_BYTES_MIN: u64 = 1 << 30;

struct Image {
    name: &'static str,
    mkfs: &'static [&'static str],
    mount_options: &'static str,
    /// The size of the small one, which tests fill: little more than the minimum of mkfs.
    small_bytes: u64,
    small_mkfs: &'static [&'static str],
}

const IMAGES: &[Image] = &[
    Image {
        name: "ext4",
        mkfs: &["mkfs.ext4", "-q", "-F"],
        // Without `noinit_itable` a kernel thread writes inode tables during the tests.
        mount_options: "loop,discard,noinit_itable",
        small_bytes: 32 << 20,
        // No blocks are reserved for root.
        small_mkfs: &["mkfs.ext4", "-q", "-F", "-m", "0"],
    },
    Image {
        name: "xfs",
        mkfs: &["mkfs.xfs", "-q", "-f"],
        mount_options: "loop,discard",
        small_bytes: 300 << 20,
        small_mkfs: &["mkfs.xfs", "-q", "-f"],
    },
    Image {
        name: "btrfs",
        mkfs: &["mkfs.btrfs", "-q", "-f"],
        mount_options: "loop,discard",
        small_bytes: 128 << 20,
        small_mkfs: &["mkfs.btrfs", "-q", "-f", "--mixed"],
    },
];

/// The size of the tmpfs: enough for a sparse file of 3 GiB whose holes a mapping filled, and for
/// its copy.
const TMPFS_BYTES: u64 = 7 << 30;

/// The size of the small tmpfs.
const SMALL_TMPFS_BYTES: u64 = 32 << 20;

/// Directories on file systems, by kind, and the missing kinds.
pub struct FileSystems {
    found: Vec<(&'static str, PathBuf)>,
    small: Vec<(&'static str, PathBuf)>,
    /// The kind and why.
    left_out: Vec<(&'static str, String)>,
    /// Directories to remove at the end.
    _owned: Vec<TempDir>,
}

impl FileSystems {
    /// The file systems that the environment of this process names, if it names any.
    pub fn from_environment() -> anyhow::Result<Option<FileSystems>> {
        let Some(list) = std::env::var_os(VARIABLE) else { return Ok(None) };
        let found = parsed(&list).context(VARIABLE)?;
        let small = match std::env::var_os(SMALL_VARIABLE) {
            Some(list) => parsed(&list).context(SMALL_VARIABLE)?,
            None => Vec::new(),
        };
        let left_out = left_out(&found, &format!("not in {VARIABLE}"));
        Ok(Some(FileSystems { found, small, left_out, _owned: Vec::new() }))
    }

    /// The environment in which tests find them.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        [(VARIABLE, list(&self.found)), (SMALL_VARIABLE, list(&self.small))]
    }

    /// Prints the directories and the missing kinds.
    pub fn announce(&self) {
        for (name, dir) in &self.found {
            eprintln!("xtask: {name:<6} {}", dir.display());
        }
        for (name, why) in &self.left_out {
            eprintln!("xtask: {name:<6} LEFT OUT: {why}");
        }
    }

    /// The directory on the file system `kind`, or why there is none.
    pub fn dir(&self, kind: &str) -> Result<&Path, &str> {
        if let Some((_, dir)) = self.found.iter().find(|(name, _)| *name == kind) {
            return Ok(dir);
        }
        let why = self.left_out.iter().find(|(name, _)| *name == kind);
        Err(why.map_or("it was not requested", |(_, why)| why))
    }

    /// The directory on the small file system `kind`, if there is one.
    pub fn small_dir(&self, kind: &str) -> Option<&Path> {
        self.small.iter().find(|(name, _)| *name == kind).map(|(_, dir)| dir.as_path())
    }

    /// How many are left out.
    pub fn left_out_count(&self) -> usize {
        self.left_out.len()
    }
}

/// What `mount` mounts in a mount namespace of its own: this program is started again there. Where that cannot
/// be, directories that are there.
///
/// # Errors
/// If `mount` fails.
pub fn mounted(mount: impl FnOnce() -> anyhow::Result<FileSystems>) -> anyhow::Result<FileSystems> {
    if namespace::is_entered() {
        return mount();
    }
    packages::install_missing();
    Ok(find(&namespace::enter()))
}

/// [`mounted`] with one file system of each kind and size.
///
/// # Errors
/// If a mount point cannot be made.
pub fn all_mounted() -> anyhow::Result<FileSystems> {
    mounted(|| mount_with_small(&KINDS))
}

/// Creates and mounts one of each of `kinds` and of each size, in the private mount namespace of this
/// process. Those that fail are left out.
pub fn mount_with_small(kinds: &[&str]) -> anyhow::Result<FileSystems> {
    std::fs::create_dir_all(BASE).with_context(|| BASE)?;
    if let Err(error) = mount_tmpfs(Path::new(BASE), "mode=755") {
        // A container may allow the namespace and forbid mounts in it.
        return Ok(find(&format!("{error:#}")));
    }
    // What tests make there goes with the namespace, also when they are killed.
    let shared_memory = Path::new("/dev/shm");
    if shared_memory.exists() {
        mount_tmpfs(shared_memory, "mode=1777")?;
    }
    let (mut found, mut small, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for image in IMAGES.iter().filter(|image| kinds.contains(&image.name)) {
        match mount_image(image.name, image, image.mkfs, IMAGE_BYTES) {
            Ok(dir) => found.push((image.name, dir)),
            Err(error) => left_out.push((image.name, format!("{error:#}"))),
        }
        let dir_name = format!("small-{}", image.name);
        match mount_image(&dir_name, image, image.small_mkfs, image.small_bytes) {
            Ok(dir) => small.push((image.name, dir)),
            Err(error) => left_out.push((image.name, format!("a small one: {error:#}"))),
        }
    }
    for (dirs, dir_name, bytes) in
        [(&mut found, "tmpfs", TMPFS_BYTES), (&mut small, "small-tmpfs", SMALL_TMPFS_BYTES)]
    {
        if !kinds.contains(&"tmpfs") {
            continue;
        }
        let dir = make_dir(dir_name)?;
        mount_tmpfs(&dir, &format!("mode=755,size={bytes}"))?;
        dirs.push(("tmpfs", dir));
    }
    Ok(FileSystems { found, small, left_out, _owned: Vec::new() })
}

/// Finds directories that an ordinary user can write to, by kind of file system. `why` says why
/// none can be mounted.
fn find(why: &str) -> FileSystems {
    let mut found: Vec<(&'static str, PathBuf)> = Vec::new();
    let mut owned = Vec::new();
    let target = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned()));
    for place in target.into_iter().chain([PathBuf::from("/dev/shm"), std::env::temp_dir()]) {
        let Some(name) = kind_with_room(&place) else { continue };
        if found.iter().any(|(known, _)| *known == name) {
            continue;
        }
        if let Ok(dir) = tempfile::Builder::new().prefix("haulage-test-").tempdir_in(&place) {
            found.push((name, dir.path().to_owned()));
            owned.push(dir);
        }
    }
    let left_out = left_out(&found, why);
    FileSystems { found, small: Vec::new(), left_out, _owned: owned }
}

/// The kinds that are not `found`.
fn left_out(found: &[(&'static str, PathBuf)], why: &str) -> Vec<(&'static str, String)> {
    let is_missing = |kind: &&str| !found.iter().any(|(known, _)| known == kind);
    KINDS.into_iter().filter(is_missing).map(|kind| (kind, why.to_owned())).collect()
}

fn mount_image(
    dir_name: &str,
    image: &Image,
    mkfs: &[&str],
    bytes: u64,
) -> anyhow::Result<PathBuf> {
    let file = Path::new(BASE).join(format!("{dir_name}.img"));
    File::create(&file)
        .and_then(|file| file.set_len(bytes))
        .with_context(|| file.display().to_string())?;
    let (program, flags) = mkfs.split_first().expect("each row names a program");
    quietly(Command::new(program).args(flags).arg(&file))?;
    if !Path::new("/dev/loop-control").exists() {
        bail!("there are no loop devices: /dev/loop-control is missing");
    }
    let dir = make_dir(dir_name)?;
    let mount = ["-t", image.name, "-o", image.mount_options];
    quietly(Command::new("mount").args(mount).args([&file, &dir]))?;
    // The loop device keeps the image open. Without a name it is freed with the mount.
    std::fs::remove_file(&file).with_context(|| file.display().to_string())?;
    Ok(dir)
}

fn make_dir(name: &str) -> anyhow::Result<PathBuf> {
    let dir = Path::new(BASE).join(name);
    std::fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
    Ok(dir)
}

fn mount_tmpfs(dir: &Path, options: &str) -> anyhow::Result<()> {
    quietly(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir))?;
    Ok(())
}

/// `name=/directory:name=/directory…`
fn list(dirs: &[(&str, PathBuf)]) -> OsString {
    let mut list = OsString::new();
    for (name, dir) in dirs {
        if !list.is_empty() {
            list.push(":");
        }
        list.push(name);
        list.push("=");
        list.push(dir);
    }
    list
}

/// What `list` makes, read again.
fn parsed(list: &OsString) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let list = list.to_str().context("it is no UTF-8")?;
    let items = list.split(':').filter(|item| !item.is_empty());
    items
        .map(|item| {
            let (name, dir) = item.split_once('=').with_context(|| item.to_owned())?;
            let kind =
                KINDS.into_iter().find(|kind| *kind == name).with_context(|| item.to_owned())?;
            Ok((kind, PathBuf::from(dir)))
        })
        .collect()
}

/// The kind of file system at `place`, if tests use that kind and it has enough free space.
fn kind_with_room(place: &Path) -> Option<&'static str> {
    // From linux/magic.h.
    let name = match rustix::fs::statfs(place).ok()?.f_type {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x0102_1994 => "tmpfs",
        _ => return None,
    };
    let stat = rustix::fs::statvfs(place).ok()?;
    (stat.f_bavail * stat.f_frsize >= ROOM_BYTES_MIN).then_some(name)
}
