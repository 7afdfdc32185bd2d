//! `haulage tune DIR [DIR]…`: measured once, then every copy goes the fastest way that is known.

mod args;
mod board;
mod comments;
mod keep;
mod show;
mod table;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use engines::Variant;
use engines::profile::{FileSystems, Machine, PairChoices, Profile};
use lab::scratch::Scratch;
use lab::tune::case::Case;
use lab::tune::config::Config;
use lab::tune::plan::Plan;
use lab::tune::record::{Record, Records};
use tree::{PlannedFile, Predictor};

use crate::bench::{columns, print};
use crate::interrupt::{Interrupts, tell_of_abandoned};
use args::{Measure, Request, Target};
use board::Board;

/// The commit that this program was built from, where the build could tell.
const COMMIT: Option<&str> = option_env!("HAULAGE_COMMIT");

/// More files in flight than these wait for the medium, however many processors there are.
const AT_ONCE_MAX: usize = 4;

/// Runs the command. Exit status 1 when nothing could be measured, a copy was wrong, or the profile
/// cannot be read or written; 2 for bad usage.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    let request = match args::parse(args) {
        Ok(request) => request,
        Err(exit) => return exit,
    };
    let done = match &request {
        Request::Measure(measure) if measure.dry_run => plan(measure),
        Request::Measure(measure) => match tune(measure) {
            Ok(exit) => return exit,
            Err(error) => Err(error),
        },
        Request::Show => show::show(),
        Request::Export(target) => keep::export(target),
        Request::Import(target) => keep::import(target),
        Request::Forget(dirs) => keep::forget(dirs),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn complain(error: &anyhow::Error) {
    eprintln!("haulage tune: {}", crate::complaint::words(error));
}

/// Two open directories, and what is known of them.
struct Site {
    file_systems: FileSystems,
    /// What copies do as long as the user has measured nothing.
    unmeasured: Predictor,
    /// What they do by the profile, where there is something for these two in it.
    present: Option<Predictor>,
    jobs: usize,
}

impl Site {
    fn between(src_dir: &Path, dst_dir: &Path, profile: &Profile) -> anyhow::Result<Site> {
        let open = |dir: &Path| -> anyhow::Result<std::os::fd::OwnedFd> {
            use rustix::fs::{Mode, OFlags};
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(dir, flags, Mode::empty())
                .map_err(std::io::Error::from)
                .with_context(|| format!("cannot open the directory '{}'", dir.display()))
        };
        let (src, dst) = (open(src_dir)?, open(dst_dir)?);
        let file_systems = FileSystems::of(src.as_fd(), dst.as_fd());
        let known: Vec<PairChoices> =
            own(profile).into_iter().filter(|pair| pair.fits(&file_systems)).cloned().collect();
        let is_known = !known.is_empty();
        Ok(Site {
            present: is_known.then(|| Predictor::between(&file_systems, &known)),
            unmeasured: Predictor::between(&file_systems, &[]),
            file_systems,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    fn config<'c>(
        &self,
        measure: &Measure,
        (defaults, present): (&'c Defaults<'c>, &'c Present<'c>),
    ) -> Config<'c> {
        Config {
            time: measure.time,
            begun: Instant::now(),
            seed: measure.seed,
            at_once: self.jobs.clamp(2, AT_ONCE_MAX),
            workers_max: self.jobs,
            variants: Variant::proposed().into_iter().filter(Variant::is_copier).collect(),
            defaults,
            present,
        }
    }
}

type Defaults<'s> = dyn Fn(&Case) -> Vec<Variant> + 's;
type Present<'s> = dyn Fn(&Case) -> Option<Variant> + 's;

fn plan(measure: &Measure) -> anyhow::Result<()> {
    let mut text = String::new();
    for (src, dst) in &measure.pairs {
        let site = Site::between(src, dst, &Profile::default())?;
        let defaults = |case: &Case| site.defaults(case);
        let plan = Plan::of(&site.config(measure, (&defaults, &|_| None)), src, dst)?;
        text.push_str(&table::of_plan(&plan, &site.file_systems, measure.time, columns()));
    }
    print(&text)
}

/// What can be found out before is: a mistake that shows only after minutes is worth more than one word.
fn tune(measure: &Measure) -> anyhow::Result<ExitCode> {
    let place = keep::Place::find()?;
    if place.is_none() && measure.json.is_none() {
        anyhow::bail!(keep::why_there_is_none());
    }
    let profile = place.as_ref().map(keep::Place::read).transpose()?.unwrap_or_default();
    let mut sites = Vec::new();
    for (src, dst) in &measure.pairs {
        sites.push(Site::between(src, dst, &profile)?);
    }
    let output = measure.json.as_ref().map(keep::Output::open).transpose()?;
    let ends = measure.pairs.iter().flat_map(|(src, dst)| [src, dst]);
    tell_of_abandoned("tune", ends.collect::<BTreeSet<_>>());
    let interrupts = Interrupts::watch("tune").context("cannot watch for signals")?;
    let mut records = Records::of(Vec::new());
    let (mut kept, mut exit) = (0, ExitCode::SUCCESS);
    for ((src, dst), site) in measure.pairs.iter().zip(&sites) {
        if place.is_some() {
            interrupts.saying(what_stays(kept));
        }
        let record = match tune_pair(measure, (src, dst), site, &interrupts) {
            Ok(record) => record,
            // The next pair may do better.
            Err(error) => {
                let between = format!("'{}' to '{}'", src.display(), dst.display());
                let several = measure.pairs.len() > 1;
                complain(&if several { error.context(between) } else { error });
                exit = ExitCode::FAILURE;
                continue;
            }
        };
        let choices = site.choices(&record);
        let is_answered = !choices.lines.is_empty();
        // After each pair: an interrupt later on takes nothing of this one back.
        let entered = place.as_ref().map(|place| place.enter(choices).map(|()| place.path()));
        let entered = entered.transpose();
        if measure.json != Some(Target::Stream) {
            let path = entered.as_ref().ok().copied().flatten();
            print(&table::of_record(&record, &site.file_systems, path, columns()))?;
        }
        records.pairs.push(record);
        if let Some(output) = &output {
            output.write_so_far(&records)?;
        }
        kept += usize::from(is_answered);
        if let Err(error) = &entered {
            complain(error);
        }
        if entered.is_err() || !is_answered {
            exit = ExitCode::FAILURE;
        }
    }
    if let Some(output) = output {
        output.write(&records)?;
    }
    Ok(exit)
}

/// What an interrupt leaves of the profile, where `kept` pairs of directories are in it already. Half a
/// search does not take the place of a whole one.
fn what_stays(kept: usize) -> String {
    match kept {
        0 => " and the profile is as it was".to_owned(),
        1 => "; what was found for the first pair is in the profile".to_owned(),
        kept => format!("; what was found for the first {kept} pairs is in the profile"),
    }
}

fn tune_pair(
    measure: &Measure,
    (src_dir, dst_dir): (&Path, &Path),
    site: &Site,
    interrupts: &Interrupts,
) -> anyhow::Result<Record> {
    let defaults = |case: &Case| site.defaults(case);
    let present = |case: &Case| site.present(case);
    let config = site.config(measure, (&defaults, &present));
    let plan = Plan::of(&config, src_dir, dst_dir)?;
    let src = scratch_in(src_dir, interrupts)?;
    let dst = scratch_in(dst_dir, interrupts)?;
    let mut board = Board::new(&site.file_systems);
    let record = {
        // What an interrupt has to say is not drawn over.
        let mut watch = |event: &lab::tune::Event<'_>| {
            interrupts.give_way();
            board.show(event);
        };
        lab::tune::run(&config, &plan, &src, &dst, COMMIT, &mut watch)
    };
    interrupts.give_way();
    board.clear();
    let mut record = record?;
    site.name_rule(&mut record);
    Ok(record)
}

fn scratch_in(dir: &Path, interrupts: &Interrupts) -> anyhow::Result<Scratch> {
    Ok(interrupts.guard(|| {
        let scratch = Scratch::create(dir, "tune")?;
        let remover = scratch.remover()?;
        Ok((scratch, remover))
    })?)
}

impl Site {
    /// What a copy tries without a profile of the user's.
    fn defaults(&self, case: &Case) -> Vec<Variant> {
        let (situation, bytes) = (case.situation, case.file_bytes);
        self.unmeasured.variants(&PlannedFile { situation, bytes, jobs: self.jobs })
    }

    /// What it goes by after an earlier search.
    fn present(&self, case: &Case) -> Option<Variant> {
        let (situation, bytes) = (case.situation, case.file_bytes);
        let ways =
            self.present.as_ref()?.variants(&PlannedFile { situation, bytes, jobs: self.jobs });
        ways.into_iter().next()
    }

    /// Says of each situation what the rule has there: the first of its ways that works.
    fn name_rule(&self, record: &mut Record) {
        let refused: Vec<String> = record.refused.iter().map(|it| it.variant.clone()).collect();
        for finding in &mut record.situations {
            let Some(situation) = finding.situation() else { continue };
            let prospect = PlannedFile { situation, bytes: finding.file_bytes, jobs: self.jobs };
            let ways = self.unmeasured.rule_variants(&prospect);
            let mut ways = ways.iter().map(ToString::to_string);
            finding.rule = ways.find(|way| !refused.contains(way));
        }
    }

    /// What goes into the profile.
    fn choices(&self, record: &Record) -> PairChoices {
        let FileSystems { src, dst, same } = self.file_systems.clone();
        PairChoices { src, dst, same: Some(same), kernel: Some(release()), lines: record.lines() }
    }
}

/// The release of the kernel, as uname(2) tells it.
fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// What `profile` holds for this machine.
fn own(profile: &Profile) -> Vec<&PairChoices> {
    profile.pairs_of(&Machine::this()).collect()
}
