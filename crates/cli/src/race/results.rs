//! The files that programs read.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lab::race::report::Report;
use lab::sample::csv_rows::Rows;

use super::args::Request;

/// Where the results go. The files are opened before the race: it would be a pity to race for a
/// minute and only then find that a directory does not exist.
pub(super) struct Results {
    json: Option<Target>,
    csv: Option<Target>,
}

enum Target {
    StandardOutput,
    File(PathBuf, File),
}

impl Results {
    pub(super) fn open(request: &Request) -> anyhow::Result<Results> {
        let open = |path: &Option<PathBuf>| {
            path.as_deref().map(|path| Target::open(path, request.src.as_deref())).transpose()
        };
        Ok(Results { json: open(&request.json)?, csv: open(&request.csv)? })
    }

    /// Whether one of them goes where the table would.
    pub(super) fn take_standard_output(&self) -> bool {
        [&self.json, &self.csv].iter().any(|target| matches!(target, Some(Target::StandardOutput)))
    }

    pub(super) fn write(&self, report: &Report) -> anyhow::Result<()> {
        if let Some(target) = &self.json {
            let mut text = serde_json::to_vec_pretty(report)?;
            text.push(b'\n');
            target.write(&text)?;
        }
        if let Some(target) = &self.csv {
            let mut rows = Rows::new(Vec::new());
            report.samples.iter().try_for_each(|sample| rows.add(sample))?;
            target.write(&rows.into_inner())?;
        }
        Ok(())
    }
}

impl Target {
    fn open(path: &Path, src: Option<&Path>) -> anyhow::Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::StandardOutput);
        }
        let cannot = || format!("cannot open '{}' for writing", path.display());
        // What it holds is kept until there is something better.
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .with_context(cannot)?;
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let src = src.and_then(|src| std::fs::metadata(src).ok()).map(identity);
        if src == Some(identity(file.metadata().with_context(cannot)?)) {
            bail!("'{}' is the source and cannot take the results", path.display());
        }
        Ok(Target::File(path.to_owned(), file))
    }

    fn write(&self, text: &[u8]) -> anyhow::Result<()> {
        match self {
            Target::StandardOutput => match std::io::stdout().lock().write_all(text) {
                // The reader has seen enough.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                result => result.context("cannot write to standard output"),
            },
            Target::File(path, file) => {
                let cannot = || format!("cannot write '{}'", path.display());
                if file.metadata().with_context(cannot)?.is_file() {
                    file.set_len(0).with_context(cannot)?;
                }
                let mut out: &File = file;
                out.write_all(text).with_context(cannot)
            }
        }
    }
}
