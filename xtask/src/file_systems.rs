//! One file system of each kind that the tests know.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

/// The environment variable in which tests look for the file systems.
pub(crate) const VARIABLE: &str = "HAULAGE_TEST_FS";

/// The mount point of a small file system in memory that holds images and mount points. It is in
/// /run so that tests which give up root can still reach it, whoever owns the repository.
const BASE: &str = "/run/haulage-test-fs";

/// The size of each file system. The images are sparse and in memory: only what the tests write
/// is ever there, and `discard` gives it back when they remove it.
const IMAGE_BYTES: u64 = 5 << 30;

/// The least room in which the tests of an ordinary user make sense.
const ROOM_BYTES_MIN: u64 = 1 << 30;

struct Image {
    name: &'static str,
    mkfs: &'static [&'static str],
    mount_options: &'static str,
}

const IMAGES: &[Image] = &[
    Image {
        name: "ext4",
        mkfs: &["mkfs.ext4", "-q", "-F"],
        // Without the option a kernel thread goes on writing inode tables during the tests.
        mount_options: "loop,discard,noinit_itable",
    },
    Image { name: "xfs", mkfs: &["mkfs.xfs", "-q", "-f"], mount_options: "loop,discard" },
    Image { name: "btrfs", mkfs: &["mkfs.btrfs", "-q", "-f"], mount_options: "loop,discard" },
];

/// Directories on file systems, by kind, and the kinds there are none of.
pub(crate) struct FileSystems {
    found: Vec<(&'static str, PathBuf)>,
    /// The kind and why.
    left_out: Vec<(&'static str, String)>,
    /// Directories that are to be removed in the end.
    _owned: Vec<TempDir>,
}

impl FileSystems {
    /// The value of [`VARIABLE`].
    pub(crate) fn variable(&self) -> OsString {
        let mut list = OsString::new();
        for (name, dir) in &self.found {
            if !list.is_empty() {
                list.push(":");
            }
            list.push(name);
            list.push("=");
            list.push(dir);
        }
        list
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

    /// How many kinds are left out.
    pub(crate) fn left_out_count(&self) -> usize {
        self.left_out.len()
    }
}

/// Makes and mounts one of each kind, in a mount namespace that is ours alone and ends with us. A
/// kind that cannot be had is left out.
pub(crate) fn mount() -> anyhow::Result<FileSystems> {
    std::fs::create_dir_all(BASE).with_context(|| BASE)?;
    let base = Path::new(BASE);
    let mut all = FileSystems { found: Vec::new(), left_out: Vec::new(), _owned: Vec::new() };
    if let Err(error) = mount_tmpfs(base, "mode=755") {
        // A container may grant the namespace and yet forbid to mount in it.
        return Ok(find(&format!("{error:#}")));
    }
    for image in IMAGES {
        match mount_image(base, image) {
            Ok(dir) => all.found.push((image.name, dir)),
            Err(error) => all.left_out.push((image.name, format!("{error:#}"))),
        }
    }
    let dir = base.join("tmpfs");
    std::fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
    mount_tmpfs(&dir, &format!("mode=755,size={IMAGE_BYTES}"))?;
    all.found.push(("tmpfs", dir));
    Ok(all)
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
    FileSystems { found, left_out, _owned: owned }
}

fn mount_image(base: &Path, image: &Image) -> anyhow::Result<PathBuf> {
    let file = base.join(format!("{}.img", image.name));
    File::create(&file)
        .and_then(|file| file.set_len(IMAGE_BYTES))
        .with_context(|| file.display().to_string())?;
    let (program, flags) = image.mkfs.split_first().expect("every row has a program");
    run(Command::new(program).args(flags).arg(&file))?;
    let dir = base.join(image.name);
    std::fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
    if !Path::new("/dev/loop-control").exists() {
        bail!("there are no loop devices: /dev/loop-control is missing");
    }
    let mount = ["-t", image.name, "-o", image.mount_options];
    run(Command::new("mount").args(mount).args([&file, &dir]))?;
    // The loop device holds the image; without a name it goes when the mount goes.
    std::fs::remove_file(&file).with_context(|| file.display().to_string())?;
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
