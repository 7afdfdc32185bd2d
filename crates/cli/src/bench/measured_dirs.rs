//! The option `--on` of `bench` and `certify`: the directories that are measured.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::sample_files::ends;
use crate::terminal::command::usage_error;

#[derive(clap::Args, Debug)]
pub(crate) struct MeasuredDirs {
    /// The directory to measure in; if it is given twice, the first is for sources and the second for
    /// copies [default: the current directory]
    #[arg(long, value_name = "DIR")]
    on: Vec<PathBuf>,
}

impl MeasuredDirs {
    /// The absolute paths of the directories of sources and copies. A resumed run needs them from
    /// another working directory.
    ///
    /// # Errors
    /// If `--on` is given more than twice, or a directory does not exist.
    pub(crate) fn absolute(&self) -> anyhow::Result<[PathBuf; 2]> {
        self.check()?;
        let [src, dst] = ends(&self.on);
        Ok([absolute(src)?, absolute(dst)?])
    }

    /// # Errors
    /// If `--on` is given more than twice.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self.on.len() {
            0..=2 => Ok(()),
            _ => Err(usage_error("--on can be given once or twice".to_owned())),
        }
    }
}

/// The absolute path of the directory `dir`, without symbolic links.
fn absolute(dir: &Path) -> anyhow::Result<PathBuf> {
    let found = std::fs::canonicalize(dir);
    found.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::NotFound => "; make it, or name another directory",
            _ => "",
        };
        anyhow!("cannot open '{}': {error}{advice}", dir.display())
    })
}
