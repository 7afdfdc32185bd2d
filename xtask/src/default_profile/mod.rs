//! `cargo xtask default-profile`: the built-in profile, derived from the measurements in record/.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, anyhow, bail, ensure};
use lab::tune::record::{Record, Records};

use crate::file_systems::FileSystems;
use crate::peers::{FsPair, build_haulage, parse_fs};

pub(crate) mod derive;

/// Derive the built-in profile, crates/engines/src/profile/default.toml, from the measurements in
/// record/: one or more files for each pair of file systems, as 'haulage tune --json' writes them,
/// without single runs.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask default-profile", bin_name = "cargo xtask default-profile")]
pub(crate) struct Args {
    /// First measure again, on images and a tmpfs that are mounted for it (as root)
    #[arg(long)]
    measure: bool,
    /// Seconds for each pair
    #[arg(long, value_name = "S", default_value_t = 180.0, requires = "measure")]
    time: f64,
    /// The file systems to measure, and SRC:DST for copies from one to another [default: all of ext4,
    /// xfs, btrfs and tmpfs, and every pair of them]
    #[arg(long, value_name = "FS|SRC:DST", value_delimiter = ',', value_parser = parse_fs,
          requires = "measure")]
    fs: Vec<FsPair>,
    /// The build of haulage to measure with [default: build this tree]
    #[arg(long, value_name = "PATH", requires = "measure")]
    haulage: Option<PathBuf>,
    /// First add this record of 'haulage tune --json' to record/, under its own name: from another
    /// machine, or with other mkfs options
    #[arg(long, value_name = "FILE", conflicts_with = "measure")]
    keep: Option<PathBuf>,
    /// Only check that the profile is the one derived from record/
    #[arg(long, conflicts_with_all = ["measure", "keep"])]
    check: bool,
}

impl Args {
    /// Whether no file system has to be mounted.
    pub(crate) fn needs_no_mounts(&self) -> bool {
        !self.measure
    }

    /// The kinds of file system to mount.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        match self.fs.as_slice() {
            [] => testfs::FsKind::ALL.map(testfs::FsKind::name).into(),
            pairs => pairs.iter().flat_map(|pair| [pair.src.as_str(), pair.dst.as_str()]).collect(),
        }
    }

    fn pairs(&self) -> Vec<FsPair> {
        if !self.fs.is_empty() {
            return self.fs.clone();
        }
        let kinds = testfs::FsKind::ALL.map(|kind| kind.name().to_owned());
        let of = |src: &String| {
            let pair = |dst: &String| FsPair { src: src.clone(), dst: dst.clone() };
            kinds.iter().map(pair).collect::<Vec<_>>()
        };
        kinds.iter().flat_map(of).collect()
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, file_systems: &FileSystems) -> anyhow::Result<ExitCode> {
    if args.measure {
        measure(args, file_systems)?;
    }
    if let Some(path) = &args.keep {
        let name = path.file_name().with_context(|| format!("'{}' is no file", path.display()))?;
        ensure!(path.extension().is_some_and(|ending| ending == "json"), "it has to end in .json");
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        keep(&text, Path::new(name))?;
    }
    let derived = derive::profile_text(&records()?.iter().collect::<Vec<_>>());
    let path = profile_path();
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    if args.check {
        ensure!(present == derived, "'{}' is not the profile derived from record/", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(&path, &derived).with_context(|| path.display().to_string())?;
    let word = if present == derived { "is unchanged" } else { "is rewritten" };
    eprintln!("xtask: '{}' {word}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args, file_systems: &FileSystems) -> anyhow::Result<()> {
    let haulage = match &args.haulage {
        Some(path) => std::path::absolute(path)?,
        None => build_haulage()?,
    };
    let mut measured = 0;
    for FsPair { src, dst } in args.pairs() {
        let dirs = match (file_systems.dir(&src), file_systems.dir(&dst)) {
            (Ok(src), Ok(dst)) => [src, dst],
            (Err(why), _) | (_, Err(why)) => {
                eprintln!("xtask: {src} to {dst} LEFT OUT: {why}");
                continue;
            }
        };
        dirs.iter().try_for_each(|dir| read_ahead_as_most_devices(dir))?;
        let json = tempfile::NamedTempFile::new()?;
        let status = Command::new(&haulage)
            .arg("tune")
            .args(if src == dst { &dirs[..1] } else { &dirs[..] })
            .args(["--time", &args.time.to_string(), "--seed", "1", "--json"])
            .arg(json.path())
            // The measurements here do not go into the user's profile.
            .env("HAULAGE_PROFILE", "")
            .status()
            .with_context(|| haulage.display().to_string())?;
        ensure!(status.success(), "haulage tune: {status}");
        keep(&std::fs::read(json.path())?, format!("{src}-{dst}.json").as_ref())?;
        measured += 1;
    }
    ensure!(measured > 0, "there is no file system to measure on");
    Ok(())
}

/// The default readahead of Linux for most devices, in KiB. A loop device keeps the value of its
/// last use.
const READ_AHEAD_KIB: &str = "128";

/// Sets the readahead of the device of a directory, if it has one, to the default.
fn read_ahead_as_most_devices(dir: &Path) -> anyhow::Result<()> {
    let dev = rustix::fs::stat(dir).with_context(|| dir.display().to_string())?.st_dev;
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/queue/read_ahead_kb"));
    if path.exists() {
        std::fs::write(&path, READ_AHEAD_KIB).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Writes a measurement to record/, without the times of single runs.
fn keep(text: &[u8], name: &Path) -> anyhow::Result<()> {
    let records = Records::parse(text).map_err(|why| anyhow!("the measurement: {why}"))?;
    let summaries = records.pairs.into_iter().map(Record::summary).collect();
    let mut text = serde_json::to_string_pretty(&Records::of(summaries))?;
    text.push('\n');
    let path = root().join("record").join(name);
    std::fs::create_dir_all(root().join("record"))?;
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

/// Every record, in the order of their files' names.
pub(crate) fn records() -> anyhow::Result<Vec<Record>> {
    let dir = root().join("record");
    let mut files: Vec<PathBuf> = match std::fs::read_dir(&dir) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        // Nothing was measured: the rule applies everywhere.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => bail!("'{}': {error}", dir.display()),
    };
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut records = Vec::new();
    for path in files {
        let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let read = Records::parse(&text).map_err(|why| anyhow!("'{}': {why}", path.display()))?;
        records.extend(read.pairs);
    }
    Ok(records)
}

fn profile_path() -> PathBuf {
    root().join("crates/engines/src/profile/default.toml")
}

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ is in the repository")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profile_follows_from_the_record() {
        let derived = derive::profile_text(&records().expect("record/").iter().collect::<Vec<_>>());
        let committed = std::fs::read_to_string(profile_path()).expect("it is there");
        assert!(committed == derived, "run cargo xtask default-profile");
        engines::profile::Profile::parse(&committed).expect("a profile");
    }
}
