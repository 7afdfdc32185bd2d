//! A file system of its own in an image, which a test mounts as root.

use std::fs::{File, create_dir};
use std::path::{Path, PathBuf};
use std::process::Command;

use testfs::{is_root, skip, stderr, test_name};

/// Runs `command`; `Err` has its messages.
pub(crate) fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = stderr(&output);
    output.status.success().then_some(()).ok_or(format!("{command:?}: {said}"))
}

/// A file system of its own in an image.
pub(crate) struct Image {
    pub(crate) image: PathBuf,
    pub(crate) mounted: PathBuf,
}

impl Image {
    /// Makes an image of `mib` in `dir`, and runs the commands `mkfs` and `mount` for it. `None` after a skip that
    /// said so.
    pub(crate) fn new(mkfs: &str, mount: &str, mib: u64, dir: &Path) -> Option<Image> {
        let (image, mounted) = (dir.join("image"), dir.join("mounted"));
        File::create(&image).expect("created").set_len(mib << 20).expect("length set");
        create_dir(&mounted).expect("created");
        let run = |line: &str, paths: &[&Path]| {
            let mut words = line.split(' ');
            done(Command::new(words.next().expect("found")).args(words).args(paths))
        };
        let made = match is_root() {
            true => run(mkfs, &[&image]).and_then(|()| run(mount, &[&image, &mounted])),
            false => Err("to mount an image needs root".to_owned()),
        };
        made.inspect_err(|why| skip(&test_name(), why)).ok()?;
        Some(Image { image, mounted })
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.mounted.join(name)
    }

    /// What is on the medium at this instant, mounted in place of what the kernel has in memory.
    pub(crate) fn lose_power(&self) {
        let then = self.image.with_extension("then");
        // A clone is of one instant. While an image is copied, the kernel may write to it.
        let (now, clone) = (File::open(&self.image), File::create(&then));
        rustix::fs::ioctl_ficlone(clone.expect("a file"), now.expect("the image"))
            .expect("a clone of the image");
        // Two with one identity cannot be mounted at once.
        done(Command::new("umount").arg(&self.mounted)).expect("unmounted");
        let command = &mut Command::new("mount");
        done(command.args(["-o", "loop"]).args([&then, &self.mounted])).expect("mounted again");
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Err(error) = done(Command::new("umount").arg(&self.mounted)) {
            eprintln!("{error}");
        }
    }
}
