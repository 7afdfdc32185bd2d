//! `cargo xtask default-profile`: the built-in profile, derived from the measurements in record/.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use engines::profile::Profile;
use lab::tune::record::Record;
use machine::Machine;

use crate::file_systems::FileSystems;
use crate::peers::{FsPair, build_haulage, parse_fs};

pub(crate) mod derive;
mod machine;
mod store;

/// Derive the built-in profile, crates/engines/src/profile/default.toml, from the measurements in
/// record/: a folder a machine, with its description in machine.json, and a file or more for each
/// pair of file systems, as 'haulage tune SRC DST --export' writes them.
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
    /// First add the records of 'haulage tune --export FILE' to record/, in the folder of their
    /// machine. A record of the same machine and the same file systems is replaced
    #[arg(long, value_name = "FILE", conflicts_with = "measure")]
    keep: Option<PathBuf>,
    /// Add it beside the one of the same file systems, for file systems made with other options
    #[arg(long, value_name = "WORD", requires = "keep")]
    suffix: Option<String>,
    /// Only check. Without FILE: that the profile is the one derived from record/. With FILE: that
    /// the records of 'haulage tune --export FILE' can be added, and what would change
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["measure", "keep"])]
    check: Option<Option<PathBuf>>,
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
    if let Some(Some(path)) = &args.check {
        return check_record(path);
    }
    let dir = store::record_dir();
    if args.measure {
        measure(args, file_systems)?;
    }
    if let Some(path) = &args.keep {
        let records = store::read(path)?.pairs;
        records.iter().try_for_each(store::check_names)?;
        for path in store::add(&dir, records, args.suffix.as_deref())? {
            eprintln!("xtask: '{}' is written", path.display());
        }
    }
    if args.check.is_none() {
        store::describe_machines(&dir)?;
    }
    let derived = derive::profile_text(&records()?.iter().collect::<Vec<_>>());
    let path = profile_path();
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    if args.check.is_some() {
        ensure!(present == derived, "'{}' is not the profile derived from record/", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(&path, &derived).with_context(|| path.display().to_string())?;
    let word = if present == derived { "is unchanged" } else { "is rewritten" };
    eprintln!("xtask: '{}' {word}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Checks the records of the file `path` as `--keep` would, and prints what would change.
fn check_record(path: &Path) -> anyhow::Result<ExitCode> {
    let added = store::read(path)?.pairs;
    ensure!(!added.is_empty(), "'{}' has no records", path.display());
    let present = records()?;
    for record in &added {
        let check = store::check(record).and_then(|()| store::check_names(record));
        let place = store::fs_types(record).map(|types| types.join(" to ")).unwrap_or_default();
        check.with_context(|| format!("'{}', {place}", path.display()))?;
        let answered = record.situations.iter().filter(|it| it.choice.is_some()).count();
        let id = Machine::of(record).id();
        println!("{id}: {place}, {answered} of {} situations", record.situations.len());
    }
    // As after `--keep`: records of the same machine and file systems are replaced.
    let key = |record: &Record| (Machine::of(record).id(), store::fs_types(record));
    let stays = |record: &&Record| added.iter().all(|it| key(it) != key(record));
    let after: Vec<&Record> = present.iter().filter(stays).chain(&added).collect();
    let before: Vec<&Record> = present.iter().collect();
    let (before, after) =
        (lines(&derive::profile_text(&before)), lines(&derive::profile_text(&after)));
    let changes: Vec<String> = before
        .iter()
        .filter(|line| !after.contains(line))
        .map(|line| format!("- {line}"))
        .chain(after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}")))
        .collect();
    match changes.as_slice() {
        [] => println!("The built-in profile would not change."),
        changes => println!("The built-in profile would change:\n{}", changes.join("\n")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The choices of a profile, a line each.
fn lines(profile: &str) -> Vec<String> {
    let parsed = Profile::parse(profile).expect("a written profile can be parsed").profile;
    let pairs = parsed.machines.into_iter().flat_map(|machine| machine.pairs);
    let lines = pairs.flat_map(|pair| {
        let place = format!("{} to {}", pair.src.in_words(), pair.dst.in_words());
        pair.lines
            .into_iter()
            .map(move |line| format!("{place}, {}: {}", line.in_words(), line.choice.variant))
    });
    lines.collect()
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
            .args(["--time", &args.time.to_string(), "--seed", "1", "--export"])
            .arg(json.path())
            // The measurements here do not go into the user's profile.
            .env("HAULAGE_PROFILE", "")
            .status()
            .with_context(|| haulage.display().to_string())?;
        ensure!(status.success(), "haulage tune: {status}");
        store::add(&store::record_dir(), store::read(json.path())?.pairs, None)?;
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

/// Every record, by machine, in the order of their files' names.
pub(crate) fn records() -> anyhow::Result<Vec<Record>> {
    store::read_all(&store::record_dir())
}

fn profile_path() -> PathBuf {
    store::root().join("crates/engines/src/profile/default.toml")
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
