//! One file system of each kind that the tests know.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

/// The environment variable in which tests look for the file systems.
const VARIABLE: &str = "HAULAGE_TEST_FS";

/// The one in which they look for file systems small enough to be filled up.
const SMALL_VARIABLE: &str = "HAULAGE_TEST_SMALL_FS";

/// The mount point of a small file system in memory that holds images and mount points. It is in
/// /run so that tests which give up root can still reach it, whoever owns the repository.
const BASE: &str = "/run/haulage-test-fs";

/// The size of each image. They are sparse and in memory: only what the tests write is
/// ever there, and `discard` gives it back when they remove it.
const IMAGE_BYTES: u64 = 5 << 30;

/// The least room in which the tests of an ordinary user make sense.
const ROOM_BYTES_MIN: u64 = 1 << 30;

struct Image {
    name: &'static str,
    mkfs: &'static [&'static str],
    mount_options: &'static str,
    /// The size of a small one, which tests fill up: little more than mkfs asks for.
    small_bytes: u64,
    small_mkfs: &'static [&'static str],
}

const IMAGES: &[Image] = &[
    Image {
        name: "ext4",
        mkfs: &["mkfs.ext4", "-q", "-F"],
        // Without the option a kernel thread goes on writing inode tables during the tests.
        mount_options: "loop,discard,noinit_itable",
        small_bytes: 32 << 20,
        // No blocks are kept back for root: full is full.
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

/// The size of the tmpfs: room for a sparse file of 3 GiB whose holes were filled by mapping it,
/// and for a copy of it.
const TMPFS_BYTES: u64 = 7 << 30;

/// The size of the small one.
const SMALL_TMPFS_BYTES: u64 = 32 << 20;

/// Directories on file systems, by kind, and the kinds there are none of.
pub(crate) struct FileSystems {
    found: Vec<(&'static str, PathBuf)>,
    small: Vec<(&'static str, PathBuf)>,
    /// The kind and why.
    left_out: Vec<(&'static str, String)>,
    /// Directories that are to be removed in the end.
    _owned: Vec<TempDir>,
}

impl FileSystems {
    /// None, for a task that needs none.
    pub(crate) fn none() -> FileSystems {
        FileSystems {
            found: Vec::new(),
            small: Vec::new(),
            left_out: Vec::new(),
            _owned: Vec::new(),
        }
    }

    /// The environment in which tests find them.
    pub(crate) fn environment(&self) -> [(&'static str, OsString); 2] {
        [(VARIABLE, list(&self.found)), (SMALL_VARIABLE, list(&self.small))]
    }

    /// Says what there is and what is left out.
    pub(crate) fn announce(&self) {
        for (name, dir) in &self.found {
            eprintln!("xtask: {name:<6} {}", dir.display());
        }
        for (name, why) in &self.left_out {
            eprintln!("xtask: {name:<6} LEFT OUT: {why}");
        }
    }

    /// The directory on the file system `kind`, or why there is none.
    pub(crate) fn dir(&self, kind: &str) -> Result<&Path, &str> {
        if let Some((_, dir)) = self.found.iter().find(|(name, _)| *name == kind) {
            return Ok(dir);
        }
        let why = self.left_out.iter().find(|(name, _)| *name == kind);
        Err(why.map_or("it was not asked for", |(_, why)| why))
    }

    /// How many are left out.
    pub(crate) fn left_out_count(&self) -> usize {
        self.left_out.len()
    }
}

/// Makes and mounts one of each kind and size, in a mount namespace that is ours alone and ends
/// with us. What cannot be had is left out.
pub(crate) fn mount() -> anyhow::Result<FileSystems> {
    std::fs::create_dir_all(BASE).with_context(|| BASE)?;
    if let Err(error) = mount_tmpfs(Path::new(BASE), "mode=755") {
        // A container may grant the namespace and yet forbid to mount in it.
        return Ok(find(&format!("{error:#}")));
    }
    let (mut found, mut small, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for image in IMAGES {
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
        let dir = make_dir(dir_name)?;
        mount_tmpfs(&dir, &format!("mode=755,size={bytes}"))?;
        dirs.push(("tmpfs", dir));
    }
    Ok(FileSystems { found, small, left_out, _owned: Vec::new() })
}

/// Mounts those of `kinds`, with room for `scale` times as much as the tests need, in a mount
/// namespace that is ours alone. What cannot be had is left out.
pub(crate) fn mount_only(kinds: &[&str], scale: f64) -> anyhow::Result<FileSystems> {
    std::fs::create_dir_all(BASE).with_context(|| BASE)?;
    if let Err(error) = mount_tmpfs(Path::new(BASE), "mode=755") {
        return Ok(find(&format!("{error:#}")));
    }
    let scaled = |bytes: u64| bytes.saturating_mul(rounded_up(scale));
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for image in IMAGES.iter().filter(|image| kinds.contains(&image.name)) {
        match mount_image(image.name, image, image.mkfs, scaled(IMAGE_BYTES)) {
            Ok(dir) => found.push((image.name, dir)),
            Err(error) => left_out.push((image.name, format!("{error:#}"))),
        }
    }
    if kinds.contains(&"tmpfs") {
        let dir = make_dir("tmpfs")?;
        mount_tmpfs(&dir, &format!("mode=755,size={}", scaled(TMPFS_BYTES)))?;
        found.push(("tmpfs", dir));
    }
    Ok(FileSystems { found, small: Vec::new(), left_out, _owned: Vec::new() })
}

/// The least whole number, at least 1, that is not under `scale`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rounded_up(scale: f64) -> u64 {
    scale.ceil().max(1.0) as u64
}

/// Looks where an ordinary user may write for file systems of the kinds wanted; `why` says why none
/// can be mounted.
pub(crate) fn find(why: &str) -> FileSystems {
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
    let left_out = IMAGES
        .iter()
        .map(|image| image.name)
        .chain(["tmpfs"])
        .filter(|name| !found.iter().any(|(known, _)| known == name))
        .map(|name| (name, why.to_owned()))
        .collect();
    FileSystems { found, small: Vec::new(), left_out, _owned: owned }
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
    let (program, flags) = mkfs.split_first().expect("every row has a program");
    run(Command::new(program).args(flags).arg(&file))?;
    if !Path::new("/dev/loop-control").exists() {
        bail!("there are no loop devices: /dev/loop-control is missing");
    }
    let dir = make_dir(dir_name)?;
    let mount = ["-t", image.name, "-o", image.mount_options];
    run(Command::new("mount").args(mount).args([&file, &dir]))?;
    // The loop device holds the image; without a name it goes when the mount goes.
    std::fs::remove_file(&file).with_context(|| file.display().to_string())?;
    Ok(dir)
}

fn make_dir(name: &str) -> anyhow::Result<PathBuf> {
    let dir = Path::new(BASE).join(name);
    std::fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
    Ok(dir)
}

fn mount_tmpfs(dir: &Path, options: &str) -> anyhow::Result<()> {
    run(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir))
}

/// Runs `command`; a failure is what it wrote to standard error.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = command
        // Debian keeps mkfs where only root's PATH looks.
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .output()
        .with_context(|| program.clone())?;
    let words = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = words.split_whitespace().collect();
    ensure!(output.status.success(), "{program}: {}", words.join(" "));
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

/// The kind of file system at `place`, if it is one the tests know and has room for them.
fn kind_with_room(place: &Path) -> Option<&'static str> {
    // The numbers of linux/magic.h.
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
