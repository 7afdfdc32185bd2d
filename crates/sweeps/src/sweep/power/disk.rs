//! Images of disks, made and mounted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use testfs::Content;

/// The bytes of a disk, most of which are never written: room for a source, two copies of it, and what
/// xfs needs at least.
const BYTES: u64 = 320 << 20;

/// A disk with an empty file system, made in `dir`.
pub(super) fn make(kind: &str, dir: &Path) -> anyhow::Result<Content> {
    let image = dir.join("fresh");
    File::create(&image).and_then(|file| file.set_len(BYTES)).context("an image")?;
    let mut mkfs = Command::new(format!("mkfs.{kind}"));
    // A block of ext4 is as long as a part that a disk writes as a whole.
    let options: &[&str] = if kind == "ext4" { &["-F", "-b", "4096"] } else { &["-f"] };
    run(mkfs.arg("-q").args(options).arg(&image))?;
    let content = Content::read(&image).context("an image")?;
    fs::remove_file(&image).context("an image")?;
    Ok(content)
}

/// A mounted file system. Dropping it unmounts it.
pub(super) struct Mounted {
    at: Option<PathBuf>,
}

impl Mounted {
    /// Mounts an image at `at`.
    pub(super) fn image(kind: &str, image: &Path, at: &Path) -> anyhow::Result<Mounted> {
        mount(kind, image, at, "loop")
    }

    /// Mounts a block device at `at`.
    pub(super) fn device(kind: &str, device: &Path, at: &Path) -> anyhow::Result<Mounted> {
        mount(kind, device, at, "rw")
    }

    pub(super) fn path(&self) -> &Path {
        self.at.as_deref().expect("it is mounted")
    }

    /// Unmounts it.
    pub(super) fn unmount(mut self) -> anyhow::Result<()> {
        let at = self.at.take().expect("it is mounted");
        run(Command::new("umount").arg(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(at) = self.at.take()
            && let Err(error) = run(Command::new("umount").arg(&at))
        {
            eprintln!("xtask: {error:#}");
            // Otherwise nothing else could be mounted there.
            let _ = run(Command::new("umount").arg("-l").arg(&at));
        }
    }
}

fn mount(kind: &str, what: &Path, at: &Path, options: &str) -> anyhow::Result<Mounted> {
    fs::create_dir_all(at).with_context(|| at.display().to_string())?;
    // Without `noinit_itable` a kernel thread writes inode tables.
    let more = if kind == "ext4" { ",noinit_itable" } else { "" };
    let options = format!("{options}{more}");
    run(Command::new("mount").args(["-t", kind, "-o", &options]).arg(what).arg(at))?;
    Ok(Mounted { at: Some(at.to_owned()) })
}

/// Runs `command`. The error is what it wrote to standard error.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().display().to_string();
    // On Debian mkfs is in a directory that only root's PATH has.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = command.env("PATH", path).output().with_context(|| program.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", said.trim());
    Ok(())
}
