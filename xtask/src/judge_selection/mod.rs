//! `cargo xtask judge-selection`: how far a copy without a profile is from the fastest variant.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use lab::page_cache::state::State;

use crate::file_systems::FileSystems;
use crate::peers::cases::{Case, Job, PLAIN_CASE};
use crate::peers::copiers::{Copier, on_path};
use crate::peers::place::Place;
use crate::peers::rounds::{self, Settings};
use crate::peers::source_tree::{Builder, MIB};
use crate::peers::{FsPair, bin, build_haulage, install, kinds, parse_fs, places, table};
use verdict::Verdict;

mod verdict;

/// The default file systems and pairs.
const PLACES: &str = "ext4,tmpfs,xfs,btrfs,xfs:ext4,tmpfs:ext4";

/// The default variants: each mechanism by one and by two workers, in the sizes that won on the
/// machines that were measured.
const VARIANTS: &str = "read_write:256K read_write:256K@2 read_write:1M@2 splice:1M,pipe=1M \
                        splice:1M,pipe=1M@2 copy_file_range copy_file_range@2 sendfile \
                        direct_read:2M,depth=4 io_uring:256K,depth=4";

/// What a call takes longer with `--slow`, in microseconds: ten times as long as a copy of 1 MiB.
const SLOW_MICROS: u32 = 1000;

/// Time `haulage cp` without a profile against each variant and GNU cp, for one large file.
///
/// Each round runs every variant once, in shuffled order, as a whole process into a fresh
/// destination, with --reflink=never. The loss is the ratio of the time of the default to that of the
/// variant with the least median; because that is the least of several, the loss of a choice that is
/// as good is a little over 1. The exit status is 1 if a copy was wrong.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask judge-selection", bin_name = "cargo xtask judge-selection")]
pub(crate) struct Args {
    /// Images and tmpfs to mount (as root) and copy on; SRC:DST copies from one to another
    #[arg(long, value_name = "FS|SRC:DST", value_delimiter = ',', default_value = PLACES,
          value_parser = parse_fs, conflicts_with = "on")]
    fs: Vec<FsPair>,
    /// Copy in this directory, or from the first to the second, and mount nothing
    #[arg(long, value_name = "DIR[:DIR]")]
    on: Option<PathBuf>,
    /// Sizes and states of the page cache [default: all] [possible values: 128M-warm, 256M-warm,
    /// 1G-warm, 128M-cold, 256M-cold, 1G-cold]
    #[arg(long = "case", value_name = "NAME", value_delimiter = ',', value_parser = parse_case)]
    cases: Vec<&'static Case>,
    /// Rounds, after one more to warm up
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(2..))]
    rounds: u32,
    /// The seed of the sources and of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The variants, separated by blanks
    #[arg(long, value_name = "LIST", default_value = VARIANTS)]
    variants: String,
    /// Make each of these system calls take 1 ms longer in every program, with strace(1), such as
    /// pread64,pwrite64 or splice: a machine on which one engine is slow
    #[arg(long, value_name = "CALL,...")]
    slow: Option<String>,
    /// A build of haulage to time [default: this tree's]
    #[arg(long, value_name = "PATH")]
    haulage: Option<PathBuf>,
    /// The GNU cp to compare with
    #[arg(long, value_name = "PATH")]
    cp: Option<PathBuf>,
}

const FILE: Case = Case { job: Job::NoReflink, about: "one file", ..PLAIN_CASE };

static CASES: &[Case] = &[
    Case { name: "128M-warm", build: |builder, _| file(builder, 128), ..FILE },
    Case { name: "256M-warm", build: |builder, _| file(builder, 256), ..FILE },
    Case { name: "1G-warm", build: |builder, _| file(builder, 1024), ..FILE },
    Case { name: "128M-cold", state: State::Cold, build: |builder, _| file(builder, 128), ..FILE },
    Case { name: "256M-cold", state: State::Cold, build: |builder, _| file(builder, 256), ..FILE },
    Case { name: "1G-cold", state: State::Cold, build: |builder, _| file(builder, 1024), ..FILE },
];

fn file(builder: &mut Builder, mib: u64) -> anyhow::Result<()> {
    builder.only_file(mib * MIB)
}

impl Args {
    /// Whether no file system has to be mounted.
    pub(crate) fn needs_no_mounts(&self) -> bool {
        self.on.is_some()
    }

    /// The kinds of file system to mount.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        kinds(&self.fs)
    }

    /// GNU cp, the default, and the variants. The program is installed in `bin`.
    fn copiers(&self, bin: &Path) -> anyhow::Result<Vec<Copier>> {
        let cp = match &self.cp {
            Some(path) => install(path, "cp", bin)?,
            None => on_path("cp").context("there is no cp")?,
        };
        let built = match &self.haulage {
            Some(path) => path.clone(),
            None => build_haulage()?,
        };
        let program = install(&built, "haulage", bin)?;
        let mut copiers = vec![Copier::cp(cp), Copier::haulage("default", program.clone())];
        for variant in self.variants.split_whitespace() {
            let options = vec![format!("--engine={variant}")];
            copiers.push(Copier::haulage_with(variant, program.clone(), options));
        }
        if let Some(calls) = &self.slow {
            on_path("strace").context("--slow: there is no strace")?;
            copiers = copiers.into_iter().map(|one| one.slowed(calls, SLOW_MICROS)).collect();
        }
        Ok(copiers)
    }
}

/// Runs every case at every place.
pub(crate) fn run(args: &Args, file_systems: &FileSystems) -> anyhow::Result<ExitCode> {
    let bin = bin()?;
    let copiers = args.copiers(bin.path())?;
    let settings = Settings { rounds: args.rounds, seed: args.seed, scale: 1.0 };
    let (mut verdicts, mut is_right) = (Vec::new(), true);
    for place in places(args.on.as_deref(), &args.fs, file_systems)? {
        for case in CASES.iter().filter(|case| args.runs(case)) {
            if let Some(why) = place.unfit(case) {
                eprintln!("xtask: {} on {} LEFT OUT: {why}", case.name, place.name);
                continue;
            }
            verdicts.extend(judge(case, &place, &copiers, &settings, &mut is_right)?);
        }
    }
    print!("{}", verdict::render(&verdicts));
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    fn runs(&self, case: &Case) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|one| one.name == case.name)
    }
}

fn judge(
    case: &'static Case,
    place: &Place,
    copiers: &[Copier],
    settings: &Settings,
    is_right: &mut bool,
) -> anyhow::Result<Option<Verdict>> {
    let report = rounds::run(case, place, copiers, settings)
        .with_context(|| format!("{} on {}", case.name, place.name))?;
    println!("{}", table::render(&report));
    // A variant that does not work there has failed, and is no candidate.
    *is_right &= report.rows.iter().all(|row| row.wrong.is_none());
    Ok(Verdict::of(&report))
}

fn parse_case(name: &str) -> anyhow::Result<&'static Case> {
    CASES.iter().find(|case| case.name == name).with_context(|| {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        format!("the cases are {}", lab::words::listed(&names))
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
        let args = Args::try_parse_from(["x", "--case", "1G-warm,128M-cold", "--fs", "xfs:ext4"]);
        let args = args.expect("parsed");
        assert_eq!(args.kinds(), ["xfs", "ext4"]);
        let runs: Vec<&str> =
            CASES.iter().filter(|case| args.runs(case)).map(|case| case.name).collect();
        assert_eq!(runs, ["1G-warm", "128M-cold"]);
        assert!(Args::try_parse_from(["x", "--case", "2G-warm"]).is_err());
    }

    #[test]
    fn every_variant_is_one_of_an_engine() {
        for variant in VARIANTS.split_whitespace() {
            variant.parse::<engines::Variant>().expect(variant);
        }
    }
}
