//! FUSE file systems of other programs, which show a plain directory in their way.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::skip::{skip, test_name};

/// A mounted one. Dropping it unmounts it.
#[derive(Debug)]
pub struct ServedFs {
    dir: tempfile::TempDir,
}

impl ServedFs {
    /// Starts `program` with these arguments, in which `STORE` and `MOUNT` stand for the directory that it shows and
    /// the one that it mounts on. `None` after a reported skip, if it is missing or cannot mount.
    ///
    /// # Panics
    /// If no directories can be created for it.
    #[must_use]
    pub fn mount(program: &str, args: &str) -> Option<ServedFs> {
        /// A program that has not mounted after this time will not.
        const PATIENCE: Duration = Duration::from_secs(10);
        let served = ServedFs { dir: tempfile::tempdir().expect("created") };
        for dir in [served.store(), served.path()] {
            std::fs::create_dir(dir).expect("created");
        }
        let mut command = Command::new(program);
        let [store, mount] = [served.store(), served.path()].map(|dir| dir.display().to_string());
        command.args(args.replace("STORE", &store).replace("MOUNT", &mount).split(' '));
        // The server, which goes on, would keep pipes open.
        let ended =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let started = Instant::now();
        let why = match ended {
            Err(error) => format!("{program}: {error}"),
            Ok(status) if !status.success() => format!("{program} cannot mount: {status}"),
            Ok(_) => loop {
                if served.is_mounted() {
                    return Some(served);
                }
                if started.elapsed() > PATIENCE {
                    break format!("{program} has not mounted in {PATIENCE:?}");
                }
                std::thread::sleep(Duration::from_millis(5));
            },
        };
        skip(&test_name(), &why);
        None
    }

    /// The mount point.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("mount")
    }

    /// The directory that it shows.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn is_mounted(&self) -> bool {
        let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
        device(&self.path()) != device(self.dir.path())
    }
}

impl Drop for ServedFs {
    fn drop(&mut self) {
        // Lazily: the server may still close files.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.path()).output();
        if self.is_mounted() {
            eprintln!("{} stays mounted: {unmounted:?}", self.path().display());
        }
    }
}
