//! `cargo xtask peers`: compares `haulage cp` with GNU cp and other copiers, by ratios of
//! whole-process times from interleaved rounds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use crate::command::{cargo, succeed};
use crate::file_systems::FileSystems;
use cases::{CASES, Case};
use copiers::Copier;
use place::Place;
use rounds::Settings;

pub(crate) mod cases;
pub(crate) mod copiers;
pub(crate) mod outcome;
pub(crate) mod place;
pub(crate) mod rounds;
pub(crate) mod source_tree;
pub(crate) mod table;

/// The default file systems and pairs.
const PLACES: &str = "ext4,xfs,btrfs,tmpfs,ext4:xfs,tmpfs:ext4,ext4:tmpfs";

/// Time `haulage cp` against GNU cp, and against cpz, xcp, fcp and rsync if they are on the PATH.
///
/// Each round runs every copier once, in shuffled order, into a fresh destination. Each copy is
/// compared with the source once. The ratios are to GNU cp with the same options, within rounds.
/// haulage uses no profile of the user.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask peers", bin_name = "cargo xtask peers")]
pub(crate) struct Args {
    /// Cases to run [default: all that apply] [possible values: see --list]
    #[arg(long = "case", value_name = "NAME", value_delimiter = ',', value_parser = parse_case)]
    cases: Vec<&'static Case>,
    /// Images and tmpfs to mount (as root) and copy on; SRC:DST copies from one to another
    #[arg(long, value_name = "FS|SRC:DST", value_delimiter = ',', default_value = PLACES,
          value_parser = parse_fs, conflicts_with = "on")]
    fs: Vec<FsPair>,
    /// Copy in this directory, or from the first to the second, and mount nothing
    #[arg(long, value_name = "DIR[:DIR]")]
    on: Option<PathBuf>,
    /// Rounds, after one more to warm up
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(2..))]
    rounds: u32,
    /// The seed of the sources and of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Multiply the number of files, or the size of the single one
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = parse_scale)]
    pub(crate) scale: f64,
    /// A build of haulage to time. Without a name, or with the name `haulage`, it replaces this
    /// tree's, which is built otherwise; with another name it is added
    #[arg(long = "haulage", value_name = "[NAME=]PATH", value_parser = parse_build)]
    builds: Vec<(String, PathBuf)>,
    /// The GNU cp to compare with
    #[arg(long, value_name = "PATH")]
    cp: Option<PathBuf>,
    /// Other copiers to run if they are on the PATH; `--peers=` for none
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_peer,
          default_value = "cpz,xcp,fcp,rsync")]
    peers: Vec<String>,
    /// Write every run to this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print the cases and exit
    #[arg(long)]
    list: bool,
}

/// The kinds of file system of the source and of the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FsPair {
    pub(crate) src: String,
    pub(crate) dst: String,
}

impl Args {
    /// Whether no file system has to be mounted.
    pub(crate) fn needs_no_mounts(&self) -> bool {
        self.list || self.on.is_some()
    }

    /// The kinds of file system to mount.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        kinds(&self.fs)
    }

    /// All copiers to time. Builds of haulage are installed in `bin`.
    fn copiers(&self, bin: &Path) -> anyhow::Result<Vec<Copier>> {
        let mut copiers = vec![Copier::cp(match &self.cp {
            Some(path) => install(path, "cp", bin)?,
            None => copiers::on_path("cp").context("there is no cp")?,
        })];
        if !copiers[0].version().contains("GNU coreutils") {
            eprintln!("xtask: cp is not GNU cp: '{}'", copiers[0].version());
        }
        if !self.builds.iter().any(|(name, _)| name == "haulage") {
            let program = install(&build_haulage()?, "haulage", bin)?;
            copiers.push(Copier::haulage("haulage", program));
        }
        for (name, path) in &self.builds {
            ensure!(!copiers.iter().any(|known| known.name == *name), "two are called '{name}'");
            copiers.push(Copier::haulage(name, install(path, name, bin)?));
        }
        copiers.extend(Copier::peers_found(&self.peers));
        Ok(copiers)
    }
}

/// The kinds of file system of all `pairs`.
pub(crate) fn kinds(pairs: &[FsPair]) -> Vec<&str> {
    pairs.iter().flat_map(|pair| [pair.src.as_str(), pair.dst.as_str()]).collect()
}

/// The places to copy at: `on`, or the mounted file systems of `pairs`.
pub(crate) fn places(
    on: Option<&Path>,
    pairs: &[FsPair],
    file_systems: &FileSystems,
) -> anyhow::Result<Vec<Place>> {
    if let Some(on) = on {
        let (src, dst) = split_dirs(on);
        return Ok(vec![Place::new(None, &src, &dst)?]);
    }
    let mut places = Vec::new();
    for FsPair { src, dst } in pairs {
        let name = if src == dst { src.clone() } else { format!("{src} to {dst}") };
        match (file_systems.dir(src), file_systems.dir(dst)) {
            (Ok(src), Ok(dst)) => places.push(Place::new(Some(name), src, dst)?),
            (Err(why), _) | (_, Err(why)) => eprintln!("xtask: {name} LEFT OUT: {why}"),
        }
    }
    ensure!(!places.is_empty(), "there is no file system to copy on; --on DIR names one");
    Ok(places)
}

/// Runs every case at every place where it applies.
pub(crate) fn run(args: &Args, file_systems: &FileSystems) -> anyhow::Result<ExitCode> {
    if args.list {
        for Case { name, about, job, state, .. } in CASES {
            let options = job.cp_options().join(" ");
            println!("{name:<17} {:<16} {:<5} {about}", options, state.name());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let bin = bin()?;
    let copiers = args.copiers(bin.path())?;
    for copier in &copiers {
        eprintln!("xtask: {:<12} {}", copier.name, copier.version());
    }
    let mut csv = args.csv.as_deref().map(csv::Writer::from_path).transpose()?;
    if let Some(csv) = &mut csv {
        csv.write_record(outcome::CSV_HEADING)?;
    }
    let settings = Settings { rounds: args.rounds, seed: args.seed, scale: args.scale };
    let mut ours_is_right = true;
    for place in places(args.on.as_deref(), &args.fs, file_systems)? {
        for case in CASES {
            let named = args.cases.iter().any(|one| one.name == case.name);
            if !named && !args.cases.is_empty() {
                continue;
            }
            if let Some(why) = place.unfit(case) {
                if named {
                    eprintln!("xtask: {} on {} LEFT OUT: {why}", case.name, place.name);
                }
                continue;
            }
            let report = rounds::run(case, &place, &copiers, &settings)
                .with_context(|| format!("{} on {}", case.name, place.name))?;
            println!("{}", table::render(&report));
            if let Some(csv) = &mut csv {
                outcome::write_csv(&report, csv)?;
            }
            ours_is_right &= report.ours_is_right();
        }
    }
    Ok(if ours_is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A fresh directory for programs, on a file system that allows to execute them.
pub(crate) fn bin() -> anyhow::Result<TempDir> {
    let own = std::env::current_exe().context("this program's own path")?;
    let dir = own.parent().context("this program is in no directory")?;
    tempfile::Builder::new()
        .prefix(".peers-bin-")
        .tempdir_in(dir)
        .context("a directory for programs")
}

/// Copies a program, like an installation. A linker writes a program page by page through a
/// mapping, so the page cache holds it in single pages. A program written in large pieces is mapped
/// with fewer page faults: 7 % of the time of a process that copies one small file. The other
/// copiers are installed, too.
pub(crate) fn install(program: &Path, name: &str, bin: &Path) -> anyhow::Result<PathBuf> {
    ensure!(program.is_file(), "'{}' is no program", program.display());
    let installed = bin.join(name);
    let copied = std::fs::copy(program, &installed).and_then(|_| {
        // Synced, so that it is not written back during a run.
        std::fs::File::open(&installed)?.sync_all()
    });
    copied.with_context(|| format!("copying '{}'", program.display()))?;
    Ok(installed)
}

/// Builds this tree's haulage with the profile that is installed.
pub(crate) fn build_haulage() -> anyhow::Result<PathBuf> {
    let build =
        ["build", "--quiet", "--profile", "dist", "--package", "haulage-cli", "--bin", "haulage"];
    succeed(cargo().args(build))?;
    let own = std::env::current_exe().context("this program's own path")?;
    let profiles = own.parent().and_then(Path::parent).context("this program is not in target/")?;
    Ok(profiles.join("dist/haulage"))
}

/// `DIR` or `DIR:DIR`. A colon in the name of an existing directory is part of the name.
fn split_dirs(on: &Path) -> (PathBuf, PathBuf) {
    match on.to_str().and_then(|text| text.split_once(':')) {
        Some((src, dst)) if !on.is_dir() => (src.into(), dst.into()),
        _ => (on.to_owned(), on.to_owned()),
    }
}

fn parse_case(name: &str) -> anyhow::Result<&'static Case> {
    cases::by_name(name).with_context(|| {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        format!("the cases are {}", lab::words::listed(&names))
    })
}

pub(crate) fn parse_fs(text: &str) -> anyhow::Result<FsPair> {
    let (src, dst) = text.split_once(':').unwrap_or((text, text));
    for kind in [src, dst] {
        ensure!(
            testfs::FsKind::ALL.iter().any(|known| known.name() == kind),
            "no file system is called '{kind}'"
        );
    }
    Ok(FsPair { src: src.to_owned(), dst: dst.to_owned() })
}

fn parse_scale(text: &str) -> anyhow::Result<f64> {
    let scale: f64 = text.parse()?;
    ensure!(scale > 0.0 && scale <= 100.0, "it must be over 0 and at most 100");
    Ok(scale)
}

fn parse_build(text: &str) -> anyhow::Result<(String, PathBuf)> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) if !name.contains('/') => (name, path),
        _ => ("haulage", text),
    };
    if name.is_empty() || name == "cp" || copiers::peer_names().any(|peer| peer == name) {
        bail!("'{name}' cannot be the name of a build");
    }
    Ok((name.to_owned(), path.into()))
}

fn parse_peer(name: &str) -> anyhow::Result<String> {
    // The empty value of `--peers=`.
    if !name.is_empty() && !copiers::peer_names().any(|peer| peer == name) {
        bail!("no peer is called '{name}'");
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use clap::Parser;

    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        let args = ["peers"].into_iter().chain(line.split_whitespace());
        Args::try_parse_from(args).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn lists_and_pairs() {
        let args = parse("--case tree,tiny --case flat --fs ext4,tmpfs:ext4").expect("parsed");
        let names: Vec<&str> = args.cases.iter().map(|case| case.name).collect();
        assert_eq!(names, ["tree", "tiny", "flat"]);
        assert_eq!(args.kinds(), ["ext4", "ext4", "tmpfs", "ext4"]);
        assert!(!args.needs_no_mounts());
        assert!(parse("--on /tmp").expect("parsed").needs_no_mounts());
        assert_eq!(parse("").expect("parsed").fs.len(), 7);
    }

    #[test]
    fn builds_of_haulage_have_names() {
        let args = parse("--haulage base=/a --haulage /b").expect("parsed");
        let expected = [("base".to_owned(), "/a".into()), ("haulage".to_owned(), "/b".into())];
        assert_eq!(args.builds, expected);
        assert_eq!(parse_build("./odd=name").expect("a path").1, Path::new("./odd=name"));
    }

    #[test]
    fn timed_programs_are_installed() {
        let bin = bin().expect("a directory");
        let args = parse("--haulage /bin/true --cp /bin/true --peers=").expect("parsed");
        let copiers = args.copiers(bin.path()).expect("both are there");
        for (copier, name) in copiers.iter().zip(["cp", "haulage"]) {
            assert_eq!(copier.program, bin.path().join(name));
            let mode = copier.program.metadata().expect("it is there").permissions().mode();
            assert_eq!(mode & 0o111, 0o111, "{name} can be run: {mode:o}");
        }
        let missing = parse("--haulage /none").expect("parsed").copiers(bin.path());
        assert_eq!(missing.expect_err("no program").to_string(), "'/none' is no program");
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for (line, expected) in [
            ("--case treee", "the cases are tree, tree-r"),
            ("--fs ntfs", "no file system is called 'ntfs'"),
            ("--fs ext4 --on /tmp", "cannot be used with"),
            ("--rounds 1", "1 is not in"),
            ("--scale 0", "over 0"),
            ("--scale NaN", "over 0"),
            ("--haulage rsync=/a", "cannot be the name"),
            ("--peers scp", "no peer is called 'scp'"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn two_directories_or_one() {
        assert_eq!(split_dirs(Path::new("/a")), ("/a".into(), "/a".into()));
        assert_eq!(split_dirs(Path::new("/a:/b")), ("/a".into(), "/b".into()));
    }
}
