//! Images of disks, made and mounted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use xtask::command::quietly;

/// The bytes of a disk, most of which are never written: room for a source, two copies of it, and what
/// xfs needs at least.
const BYTES: u64 = 320 << 20;

/// Makes the image of a disk with an empty file system.
pub(super) fn make(kind: &str, image: &Path) -> anyhow::Result<()> {
    File::create(image).and_then(|file| file.set_len(BYTES)).context("an image")?;
    let mut mkfs = Command::new(format!("mkfs.{kind}"));
    // A block of ext4 is as long as a part that a disk writes as a whole.
    let options: &[&str] = if kind == "ext4" { &["-F", "-b", "4096"] } else { &["-f"] };
    quietly(mkfs.arg("-q").args(options).arg(image))?;
    Ok(())
}

/// A mounted file system. Dropping it unmounts it.
pub(super) struct Mounted {
    at: Option<PathBuf>,
}

impl Mounted {
    /// Mounts an image or a block device at `at`.
    pub(super) fn new(kind: &str, what: &Path, at: &Path) -> anyhow::Result<Mounted> {
        fs::create_dir_all(at).with_context(|| at.display().to_string())?;
        let is_image = what.is_file();
        // Without `noinit_itable` a kernel thread writes inode tables. A mount namespace that was made meanwhile keeps
        // the state that was mounted before, which has the same UUID.
        let options =
            [("loop", is_image), ("noinit_itable", kind == "ext4"), ("nouuid", kind == "xfs")];
        let options = options.into_iter().filter(|(_, is_needed)| *is_needed);
        let options: Vec<&str> = ["rw"].into_iter().chain(options.map(|(name, _)| name)).collect();
        let mut mount = Command::new("mount");
        quietly(mount.args(["-t", kind, "-o", &options.join(",")]).arg(what).arg(at))?;
        Ok(Mounted { at: Some(at.to_owned()) })
    }

    pub(super) fn path(&self) -> &Path {
        self.at.as_deref().expect("it is mounted")
    }

    /// Writes all to the disk and unmounts it. Unmounting alone writes nothing if another mount namespace keeps it.
    pub(super) fn unmount(mut self) -> anyhow::Result<()> {
        File::open(self.path()).and_then(|root| Ok(rustix::fs::syncfs(root)?)).context("a sync")?;
        let at = self.at.take().expect("it is mounted");
        quietly(Command::new("umount").arg(at))?;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(at) = self.at.take()
            && let Err(error) = quietly(Command::new("umount").arg(&at))
        {
            eprintln!("xtask: {error:#}");
            // Otherwise nothing else could be mounted there.
            let _ = quietly(Command::new("umount").arg("-l").arg(&at));
        }
    }
}
