//! `haulage engines [PATH…]`: lists the engines, and why some do not work here.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{CommandFactory, Parser};
use engines::{ENGINES, Engine, Pair, Verdict};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;

use crate::terminal::{command, output};

/// Bytes of the sample that every engine copies: whole pages, and a part of one.
const SAMPLE_BYTES: usize = (256 << 10) + 1234;

/// List the engines, and whether each works here.
///
/// Every engine copies a small sample between two unnamed scratch files, and the copy is compared with
/// the sample. "yes": the copy was right. "maybe": the engine works with a limitation, or could not be
/// tried. "no": the engine does not work here. "floor": a measurement that copies no file, to compare
/// with.
#[derive(Parser, Debug)]
struct Args {
    /// The directory to copy within; or the source, a file or directory, and the destination directory
    /// [default: the current directory]
    #[arg(value_name = "PATH", num_args = 0..=2)]
    paths: Vec<PathBuf>,

    /// Print a JSON array of objects with name, verdict, reason, about and shares
    #[arg(long)]
    json: bool,
}

/// What `--json` prints of an engine.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    /// yes, maybe, no or floor.
    verdict: &'static str,
    /// Empty if the verdict is yes.
    reason: String,
    about: &'static str,
    shares: &'static str,
}

/// Runs the command. Exit status 1 if nothing could be tried, 2 for bad usage.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    command::run("engines", arguments, run)
}

/// Its arguments, for the manual and completions.
pub(crate) fn arguments() -> clap::Command {
    Args::command()
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let here = PathBuf::from(".");
    let (src_path, dst_path) = match args.paths.as_slice() {
        [] => (&here, &here),
        [both] => (both, both),
        [src, dst, ..] => (src, dst),
    };
    let dst = scratch_file(&directory_of(dst_path)?)?;
    let src = source(src_path)?;
    let pair = Pair::new(src.as_fd(), dst.as_fd());
    let rows: Vec<Row> = ENGINES.iter().map(|engine| row(engine, pair)).collect();
    output::print(&if args.json { output::json(&rows)? } else { table(&rows) })?;
    Ok(ExitCode::SUCCESS)
}

fn row(engine: &'static Engine, pair: Pair<'_>) -> Row {
    let (verdict, reason) = match engines::probe(engine, pair) {
        Some(Verdict::Yes) => ("yes", String::new()),
        Some(Verdict::Maybe(why)) => ("maybe", why),
        Some(Verdict::No(why)) => ("no", why),
        None => ("floor", "it copies no file; other engines are compared with it".to_owned()),
    };
    Row { name: engine.name, verdict, reason, about: engine.about, shares: engine.shares }
}

fn table(rows: &[Row]) -> String {
    let mut text =
        format!("{:<16} {:<6} what it does; what it shares or bypasses\n", "engine", "here");
    for row in rows {
        text.push_str(&format!("{:<16} {:<6} {}\n", row.name, row.verdict, row.about));
        text.push_str(&format!("{:<23} {}\n", "", row.shares));
        if !row.reason.is_empty() {
            text.push_str(&format!("{:<23} {}: {}\n", "", row.verdict, row.reason));
        }
    }
    text
}

/// The directory for scratch files: `path`, or the directory of the file `path`.
fn directory_of(path: &Path) -> anyhow::Result<PathBuf> {
    let metadata =
        std::fs::metadata(path).with_context(|| format!("cannot stat '{}'", path.display()))?;
    if metadata.is_dir() {
        return Ok(path.to_owned());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(parent.unwrap_or(Path::new(".")).to_owned())
}

/// The file to read: `path`, or a sample in the directory `path`. If no file can be made there, a file
/// of it.
fn source(path: &Path) -> anyhow::Result<std::fs::File> {
    if !path.is_dir() {
        let file = std::fs::File::open(path);
        return file.with_context(|| format!("cannot open '{}' for reading", path.display()));
    }
    let error = match scratch_file(path) {
        Ok(file) => {
            engines::write_sample(file.as_fd(), SAMPLE_BYTES)
                .with_context(|| format!("cannot write a sample in '{}'", path.display()))?;
            return Ok(file);
        }
        Err(error) => error,
    };
    let entries = std::fs::read_dir(path)
        .with_context(|| format!("cannot read directory '{}'", path.display()))?;
    let readable = entries.filter_map(Result::ok).find_map(|entry| {
        let metadata = entry.metadata().ok()?;
        let has_bytes = metadata.is_file() && metadata.len() > 0;
        has_bytes.then(|| std::fs::File::open(entry.path()).ok()).flatten()
    });
    match readable {
        Some(file) => Ok(file),
        None => bail!("{error:#}, and it has no file to read"),
    }
}

/// A file without a name. It cannot be left behind.
fn scratch_file(directory: &Path) -> anyhow::Result<std::fs::File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let unnamed = rustix::fs::open(directory, flags | OFlags::TMPFILE, mode);
    let file = match unnamed {
        Ok(fd) => return Ok(fd.into()),
        // Without O_TMPFILE in the file system or the kernel, the file has a name until it is unlinked.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
            let path = directory.join(format!(".haulage-engines-{}", std::process::id()));
            rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode).and_then(|fd| {
                rustix::fs::unlink(&path)?;
                Ok(fd)
            })
        }
        Err(errno) => Err(errno),
    };
    match file {
        Ok(fd) => Ok(fd.into()),
        Err(errno) => bail!(
            "cannot make a scratch file in '{}': {}",
            directory.display(),
            engines::describe(errno)
        ),
    }
}
