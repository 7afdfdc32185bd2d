//! `haulage tune DIR [DIR]…`: searches for the fastest variants between directories, and stores them in
//! the profile for `haulage cp`.

mod args;
mod directory_pair;
mod profile_file;
mod profile_text;
mod progress_view;
mod show;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use engines::profile::Profile;
use lab::tune::Event;
use lab::tune::plan::Plan;
use lab::tune::record::{Record, Records};

use crate::scratch::{ScratchGuard, report_abandoned};
use crate::terminal::command;
use crate::terminal::output::{ResultFile, columns, json, print};
use crate::version::COMMIT;
pub(crate) use args::Args;
use args::Request;
use directory_pair::DirectoryPair;
use profile_file::ProfileFile;
pub(crate) use profile_file::why_there_is_none;
use progress_view::ProgressView;

/// Runs the command. Exit status 1 if nothing could be measured, a copy was wrong, or the profile cannot
/// be read or written; 2 for bad usage.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.request()? {
        Request::Measure(dirs) if args.dry_run => plan(args, &dirs),
        Request::Measure(dirs) => return tune(args, &dirs),
        Request::Show => show::show(),
        Request::Export(path) => profile_file::export(&path),
        Request::Import(path) => profile_file::import(&path),
        Request::Forget(dirs) => profile_file::forget(&dirs),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn plan(args: &Args, dirs: &[(PathBuf, PathBuf)]) -> anyhow::Result<()> {
    let mut text = String::new();
    for (src, dst) in dirs {
        let pair = DirectoryPair::open(src, dst, &Profile::default())?;
        let plan = pair.with_config(args, |config| Plan::of(config, src, dst))?;
        text.push_str(&table::of_plan(&plan, &pair.file_systems, args.time(), columns()));
    }
    print(&text)
}

/// Searches between each pair of `dirs`. Reports all mistakes that can be found without measuring first.
fn tune(args: &Args, dirs: &[(PathBuf, PathBuf)]) -> anyhow::Result<ExitCode> {
    let profile_file = ProfileFile::find_writable()?;
    if profile_file.is_none() && args.json.is_none() && args.export.is_none() {
        anyhow::bail!(profile_file::why_there_is_none());
    }
    let profile = profile_file.as_ref().map(ProfileFile::read).transpose()?.unwrap_or_default();
    let open = |(src, dst): &(PathBuf, PathBuf)| DirectoryPair::open(src, dst, &profile);
    let pairs = dirs.iter().map(open).collect::<anyhow::Result<Vec<_>>>()?;
    let options = [("--json", &args.json), ("--export", &args.export)];
    let [json, export] = ResultFile::open_two(options, None)?;
    let outputs = [(json, false), (export, true)].into_iter();
    let outputs =
        outputs.filter_map(|(file, is_for_others)| Some(Output { file: file?, is_for_others }));
    let outputs = outputs.collect();
    report_abandoned(
        "tune",
        dirs.iter().flat_map(|(src, dst)| [src, dst]).collect::<BTreeSet<_>>(),
    );
    ScratchGuard::around("tune", |guard| {
        let mut tuning =
            Tuning { args, profile_file, outputs, records: Records::of(Vec::new()), stored: 0 };
        let mut all_answered = true;
        for pair in &pairs {
            all_answered &= tuning.tune_pair(pair, dirs.len() > 1, guard)?;
        }
        tuning.outputs.iter().try_for_each(|output| output.write(&tuning.records))?;
        Ok(if all_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// A file for the results.
struct Output {
    file: ResultFile,
    /// Without single runs and without names of this machine.
    is_for_others: bool,
}

impl Output {
    fn write(&self, records: &Records) -> anyhow::Result<()> {
        if !self.is_for_others {
            return self.file.write(json(records)?.as_bytes());
        }
        let pairs = records.pairs.iter().cloned().map(Record::exported);
        self.file.write(json(&Records::of(pairs.collect()))?.as_bytes())
    }
}

/// The searches of one call of the command.
struct Tuning<'t> {
    args: &'t Args,
    profile_file: Option<ProfileFile>,
    outputs: Vec<Output>,
    records: Records,
    /// The pairs of directories whose results are in the profile.
    stored: usize,
}

impl Tuning<'_> {
    /// Searches between the directories of `pair` and stores the results. Returns whether there are
    /// any. Reports an error of the search, so that the next pair can be tuned.
    fn tune_pair(
        &mut self,
        pair: &DirectoryPair,
        is_one_of_several: bool,
        guard: &ScratchGuard,
    ) -> anyhow::Result<bool> {
        if self.profile_file.is_some() {
            guard.set_note(note_on_interrupt(self.stored));
        }
        let record = match search(self.args, pair, guard) {
            Ok(record) => record,
            Err(error) => {
                let error = if is_one_of_several { error.context(pair.in_words()) } else { error };
                command::report_error("tune", &error);
                return Ok(false);
            }
        };
        let choices = pair.choices(&record);
        let is_answered = !choices.lines.is_empty();
        // The profile is written after each pair, so that a later interrupt does not lose the result.
        let profile_file = self.profile_file.as_ref();
        let stored = profile_file.map_or(Ok(()), |file| file.enter(choices));
        if !self.outputs.iter().any(|output| output.file.is_standard_output()) {
            let path = profile_file.filter(|_| stored.is_ok()).map(ProfileFile::path);
            print(&table::of_record(&record, &pair.file_systems, path, columns()))?;
        }
        self.records.pairs.push(record);
        for output in self.outputs.iter().filter(|output| output.file.is_regular()) {
            output.write(&self.records)?;
        }
        self.stored += usize::from(is_answered);
        if let Err(error) = &stored {
            command::report_error("tune", error);
        }
        Ok(is_answered && stored.is_ok())
    }
}

/// What the message of an interrupt says of the profile. The results of an interrupted search are not
/// stored.
fn note_on_interrupt(stored: usize) -> String {
    match stored {
        0 => "; the profile is unchanged".to_owned(),
        1 => "; the profile has the results of the first pair".to_owned(),
        stored => format!("; the profile has the results of the first {stored} pairs"),
    }
}

fn search(args: &Args, pair: &DirectoryPair, guard: &ScratchGuard) -> anyhow::Result<Record> {
    pair.with_config(args, |config| {
        let plan = Plan::of(config, &pair.src, &pair.dst)?;
        let src = guard.create_scratch(&pair.src, "tune")?;
        let dst = guard.create_scratch(&pair.dst, "tune")?;
        let mut view = ProgressView::new(&pair.file_systems);
        let mut watch = |event: &Event<'_>| {
            // Nothing is drawn over the message of an interrupt.
            guard.wait_if_ending();
            view.show(event);
        };
        let record = lab::tune::run(config, &plan, &src, &dst, COMMIT, &mut watch);
        guard.wait_if_ending();
        view.clear();
        Ok(record?)
    })
}
