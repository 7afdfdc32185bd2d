//! Runs one case at one place: builds the source, then runs each copier once in each round.

use std::fs::File;
use std::io::{IsTerminal, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use engines::sys::{Whose, usage};
use lab::clock::device_bytes::device_bytes;
use lab::environment::Environment;
use lab::page_cache::prover::{Prover, Reached};
use lab::page_cache::state::Proof;
use lab::scratch::inode_reclaim::InodesInUse;
use lab::source::{Load, Source};
use testfs::{Aspects, Tree};

use super::cases::{Case, Job};
use super::copiers::Copier;
use super::outcome::{Report, Row, Sample};
use super::place::Place;
use super::source_tree::Builder;

/// The settings of a case.
pub(crate) struct Settings {
    /// Rounds, after one more to warm up.
    pub(crate) rounds: u32,
    pub(crate) seed: u64,
    /// Multiplies the number of files, or the size of the single one.
    pub(crate) scale: f64,
}

/// One case with its source, ready to be run.
struct Bench<'a> {
    case: &'static Case,
    src: PathBuf,
    /// The contents of the source, to compare copies with.
    tree: Tree,
    prover: Prover,
    place: &'a Place,
}

/// Bytes of metadata for each file that a device may have to read although all data is in the page
/// cache.
const METADATA_BYTES_PER_FILE: u64 = 512;

/// Attempts to run in the requested page cache state. Other processes may evict the pages during a
/// run.
const ATTEMPTS: usize = 3;

/// Builds the source, runs all rounds and removes the source.
pub(crate) fn run(
    case: &'static Case,
    place: &Place,
    copiers: &[Copier],
    settings: &Settings,
) -> anyhow::Result<Report> {
    let src = place.src().join("src");
    let mut builder = Builder::new(src.clone(), settings.seed);
    eprintln!("xtask: {} on {}: building the source", case.name, place.name);
    (case.build)(&mut builder, settings.scale)?;
    builder.age()?;
    sync_fs(place.src())?;
    let source = Source::open(&src)?;
    let prover = Prover::try_on(&source, case.state)?;
    let tree = Tree::read(&src).with_context(|| src.display().to_string())?;
    let bench = Bench { case, src, tree, prover, place };
    let mut rows: Vec<Row> =
        copiers.iter().map(|copier| Row::new(copier, copier.note(case.job))).collect();
    let mut rng = fastrand::Rng::with_seed(settings.seed);
    let progress = Progress { shown: std::io::stderr().is_terminal() };
    for round in 0..=settings.rounds {
        let mut order: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].runs()).collect();
        rng.shuffle(&mut order);
        for (index, row) in order.into_iter().enumerate() {
            let row = &mut rows[row];
            for _ in 0..ATTEMPTS {
                progress
                    .show(&format!("round {round} of {}: {}", settings.rounds, row.copier.name));
                if bench.run_once(row, round, index + 1)? {
                    break;
                }
            }
        }
    }
    drop(progress);
    let environment =
        Environment::look(place.src(), place.dst(), bench.prover.clone(), settings.seed, None);
    let report = Report {
        case,
        place: place.name.clone(),
        files: builder.files(),
        bytes: builder.bytes(),
        rounds: settings.rounds,
        rows,
        environment,
    };
    remove(&bench.src)?;
    sync_fs(place.src())?;
    Ok(report)
}

impl Bench<'_> {
    /// One run in a fresh directory, which is removed afterwards. The first of each copier (round
    /// 0) is compared with the source and not counted. Returns whether the run can be used.
    fn run_once(&self, row: &mut Row, round: u32, order_in_round: usize) -> anyhow::Result<bool> {
        let dir = self.place.dst().join("dst");
        let home = File::open(self.place.dst())?;
        let inodes_before = InodesInUse::now(home.as_fd());
        std::fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
        // Dirty pages of earlier runs are written before this one.
        sync_fs(&dir)?;
        // Read again, so that its directories and inodes are in memory in any state.
        let source = Source::open(&self.src)?;
        let load = source.whole();
        let reached = self.prover.reach(self.case.state, &source, &load)?;
        let mut is_of_use = true;
        match self.timed(&row.copier, &dir)? {
            Err(why) => row.failed = Some(why),
            Ok((mut sample, device_read_bytes)) => {
                (sample.round, sample.order_in_round) = (round, order_in_round);
                sample.state = reached.proof;
                if let Some(why) = self.missed(&reached, device_read_bytes, &source, &load) {
                    sample.state = Proof::NotReached;
                    row.missed = Some(why);
                    is_of_use = false;
                }
                row.samples.push(sample);
                if round == 0 {
                    self.compare(row, &dir)?;
                }
            }
        }
        remove(&dir)?;
        inodes_before.wait_until_again(home.as_fd());
        Ok(is_of_use)
    }

    /// Why a run did not have the requested state. `None` if it did, or if that is unknown.
    fn missed(
        &self,
        reached: &Reached,
        device_read_bytes: Option<u64>,
        source: &Source,
        load: &Load,
    ) -> Option<String> {
        let Reached { proof, note, .. } = reached;
        if *proof == Proof::NotReached {
            return Some(note.clone());
        }
        let metadata_bytes = match proof {
            Proof::Warm => METADATA_BYTES_PER_FILE * load.parts.len() as u64,
            _ => 0,
        };
        let data_read_bytes = device_read_bytes.map(|read| read.saturating_sub(metadata_bytes));
        let medium_bytes = source.allocated_bytes(load);
        self.prover.disagrees(*proof, data_read_bytes, medium_bytes, false, false)
    }

    /// Runs the copier as often as the case requires. Returns the time of all its processes and the
    /// bytes that devices read for them, or how it failed.
    fn timed(
        &self,
        copier: &Copier,
        dir: &Path,
    ) -> anyhow::Result<Result<(Sample, Option<u64>), String>> {
        let mut words = tempfile::tempfile().context("a file for the output of copiers")?;
        let mut commands = Vec::new();
        for process in 0..self.case.processes {
            let dst = dir.join(process.to_string());
            let mut command = copier
                .command(self.case.job, &self.src, &dst)
                .with_context(|| dst.display().to_string())?;
            command.stderr(words.try_clone()?);
            commands.push(command);
        }
        let device_before = device_bytes();
        let usage_before = usage(Whose::Children)?;
        let begun = Instant::now();
        for command in &mut commands {
            let status = command.status().with_context(|| copier.program.display().to_string())?;
            if !status.success() {
                return Ok(Err(format!("{status}: {}", first_line(&mut words)?)));
            }
        }
        let elapsed = begun.elapsed();
        let used = usage(Whose::Children)?.since(usage_before);
        let device_read_bytes =
            device_bytes().zip(device_before).map(|(after, before)| after.read - before.read);
        let sample = Sample {
            round: 0,
            order_in_round: 0,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).context("a run of centuries")?,
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            state: Proof::Unverified,
        };
        Ok(Ok((sample, device_read_bytes)))
    }

    /// Records how the copies in `dir` differ from the source.
    fn compare(&self, row: &mut Row, dir: &Path) -> anyhow::Result<()> {
        for process in 0..self.case.processes {
            let dst = dir.join(process.to_string());
            let copy = match Tree::read(&dst) {
                Ok(copy) => copy,
                Err(error) => {
                    row.wrong = Some(format!("its copy cannot be read: {error}"));
                    return Ok(());
                }
            };
            let differences = self.tree.differences(&copy, Aspects::CONTENT);
            if let Some(first) = differences.first() {
                row.wrong = Some(format!("{} differences, first {first}", differences.len()));
                return Ok(());
            }
            if process == 0 && self.case.job.keeps_attributes() {
                row.lost = lost(&self.tree, &copy);
            }
            if process == 0 && self.case.job == Job::ArchiveSparse {
                let allocated = |path: &Path| std::fs::metadata(path).map(|file| file.blocks());
                if allocated(&dst)? > 2 * allocated(&self.src)? {
                    row.lost.push("holes");
                }
            }
        }
        Ok(())
    }
}

/// A progress line on a terminal. Dropping it clears it.
struct Progress {
    shown: bool,
}

impl Progress {
    fn show(&self, words: &str) {
        if self.shown {
            eprint!("\rxtask: {words:<60}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r{:70}\r", "");
        }
    }
}

/// The attributes in which `copy` differs from the source.
fn lost(source: &Tree, copy: &Tree) -> Vec<&'static str> {
    const NONE: Aspects = Aspects::CONTENT;
    const EACH: &[(&str, Aspects)] = &[
        ("modes", Aspects { modes: true, ..NONE }),
        ("owners", Aspects { owners: true, ..NONE }),
        ("times", Aspects { mtimes: true, ..NONE }),
        ("hard links", Aspects { hard_links: true, ..NONE }),
        ("xattrs", Aspects { xattrs: true, ..NONE }),
    ];
    EACH.iter()
        .filter(|(_, aspects)| !source.differences(copy, *aspects).is_empty())
        .map(|(name, _)| *name)
        .collect()
}

fn sync_fs(dir: &Path) -> anyhow::Result<()> {
    let failed = || format!("syncing {}", dir.display());
    rustix::fs::syncfs(File::open(dir).with_context(failed)?).with_context(failed)
}

/// Removes a file or a directory tree.
fn remove(path: &Path) -> anyhow::Result<()> {
    let is_dir = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let removed = if is_dir { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.with_context(|| format!("removing {}", path.display()))
}

fn first_line(words: &mut File) -> anyhow::Result<String> {
    let mut text = Vec::new();
    words.rewind()?;
    words.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    ensure!(text.len() < 1 << 20, "the error output of a copier exceeds 1 MiB");
    Ok(text.lines().next().unwrap_or("no error message").to_owned())
}
