//! One run of a sweep: what a case needs, and what became of the cases.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fastrand::Rng;
use tempfile::TempDir;

use super::counts::{Counts, Group, Verdict};
use xtask::file_systems::FileSystems;

/// How often the progress line is written.
const PROGRESS: Duration = Duration::from_secs(10);

/// One kind of sweep.
pub(crate) struct Sweep {
    pub(crate) name: &'static str,
    /// What is tried, in one line.
    pub(crate) about: &'static str,
    /// Tries cases until all were tried or `Run::goes_on` is false.
    pub(crate) try_cases: fn(&mut Run<'_>) -> anyhow::Result<()>,
    /// Tries the one case that this text names, as `Run::record` was given it.
    pub(crate) repeat: fn(&mut Run<'_>, &str) -> anyhow::Result<()>,
}

/// What the command line asks for.
pub(crate) struct Settings<'a> {
    /// The sweep.
    pub(crate) name: &'static str,
    /// The program to try.
    pub(crate) program: PathBuf,
    /// As it was given on the command line.
    pub(crate) given_program: Option<&'a Path>,
    /// The kinds of file system.
    pub(crate) kinds: &'a [&'static str],
    pub(crate) seed: u64,
    /// Whether every case is to be tried, in order.
    pub(crate) all: bool,
    /// How long cases are begun. `None` without end.
    pub(crate) limit: Option<Duration>,
    /// The largest number of cases.
    pub(crate) cases_max: Option<u64>,
}

/// A fresh directory on one file system, removed at the end.
pub(crate) struct Place {
    /// `ext4`, `xfs`, `btrfs` or `tmpfs`.
    pub(crate) kind: &'static str,
    dir: TempDir,
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// What one invocation of `cargo xtask sweep` has, and what it has found.
pub(crate) struct Run<'fs> {
    /// Decides which cases are tried. The same for the same `--seed`.
    pub(crate) rng: Rng,
    /// The mounted file systems, and why one is missing.
    pub(crate) file_systems: &'fs FileSystems,
    pub(crate) counts: Counts,
    places: Vec<Place>,
    program: PathBuf,
    /// The sweep, and what its command line needs besides the case.
    name: &'static str,
    given_program: Option<PathBuf>,
    all: bool,
    begun: Instant,
    deadline: Option<Instant>,
    cases_left: u64,
    findings: Vec<Finding>,
    progress_due: Instant,
}

/// A case that is neither right nor loud.
struct Finding {
    group: Group,
    case: String,
    what: String,
}

impl<'fs> Run<'fs> {
    pub(super) fn new(
        settings: &Settings<'_>,
        file_systems: &'fs FileSystems,
    ) -> anyhow::Result<Run<'fs>> {
        let mut places = Vec::new();
        for &kind in settings.kinds {
            let Ok(parent) = file_systems.dir(kind) else { continue };
            let dir = tempfile::Builder::new()
                .prefix("sweep-")
                .tempdir_in(parent)
                .with_context(|| parent.display().to_string())?;
            places.push(Place { kind, dir });
        }
        ensure!(!places.is_empty(), "there is no file system to copy on");
        let begun = Instant::now();
        Ok(Run {
            rng: Rng::with_seed(settings.seed),
            file_systems,
            counts: Counts::default(),
            places,
            program: settings.program.clone(),
            name: settings.name,
            given_program: settings.given_program.map(Path::to_owned),
            all: settings.all,
            begun,
            deadline: settings.limit.map(|limit| begun + limit),
            cases_left: settings.cases_max.unwrap_or(u64::MAX),
            findings: Vec::new(),
            progress_due: begun + PROGRESS,
        })
    }

    /// The kinds of the file systems that are there.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.places.iter().map(|place| place.kind).collect()
    }

    /// The directory on the file system `kind`.
    ///
    /// # Errors
    /// If there is none: `kind` is of a case that another machine tried, or is left out by `--fs`.
    pub(crate) fn place(&self, kind: &str) -> anyhow::Result<&Place> {
        let found = self.places.iter().find(|place| place.kind == kind);
        found.with_context(|| {
            let why = self.file_systems.dir(kind).err().unwrap_or("--fs leaves it out");
            format!("no {kind}: {why}")
        })
    }

    /// The program to try.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// A command that starts the program to try as `cp`, without the profile of this machine.
    pub(crate) fn cp(&self) -> Command {
        let mut command = testfs::command(self.program());
        command.arg("cp");
        command
    }

    /// Whether one more case is to be tried.
    pub(crate) fn goes_on(&self) -> bool {
        self.cases_left > 0 && self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }

    /// Whether every case is to be tried.
    pub(crate) fn tries_all(&self) -> bool {
        self.all
    }

    /// Puts `cases` into the order in which they are tried: as they are with `--all`, otherwise shuffled.
    pub(crate) fn order<T>(&mut self, cases: &mut [T]) {
        if !self.all {
            self.rng.shuffle(cases);
        }
    }

    /// Records what became of `case`. The text is what `Sweep::repeat` gets to try it again.
    pub(crate) fn record(&mut self, case: &str, group: Group, verdict: Verdict) {
        self.cases_left = self.cases_left.saturating_sub(1);
        self.counts.add(&group, &verdict);
        if let Verdict::Wrong(what) = verdict {
            let finding = Finding { group, case: case.to_owned(), what };
            eprintln!("xtask: FOUND {}", self.described(&finding));
            self.findings.push(finding);
        }
        if Instant::now() >= self.progress_due {
            self.progress_due = Instant::now() + PROGRESS;
            let (tried, found) = (self.counts.tried(), self.findings.len());
            eprintln!("xtask: {} s, {tried} cases, {found} findings", self.elapsed_s());
        }
    }

    pub(super) fn has_findings(&self) -> bool {
        !self.findings.is_empty()
    }

    /// The counts, and each finding with the command line that repeats it.
    pub(super) fn summary(&self) -> String {
        let mut text = self.counts.to_string();
        text += &format!(
            "\n{}: {} cases in {} s, {} missed, {} findings\n",
            self.name,
            self.counts.tried(),
            self.elapsed_s(),
            self.counts.missed(),
            self.findings.len()
        );
        for finding in &self.findings {
            text += &self.described(finding);
            text.push('\n');
        }
        text
    }

    fn elapsed_s(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    /// What was found, and on a line of its own the command that repeats it.
    fn described(&self, finding: &Finding) -> String {
        let mut words = vec!["cargo", "xtask", "sweep", self.name];
        let program = self.given_program.as_deref().map(|path| path.display().to_string());
        if let Some(program) = &program {
            words.extend(["--haulage", program]);
        }
        words.extend(["--case", &finding.case]);
        let Group { file_system, options, kind } = &finding.group;
        let what = finding.what.trim_end();
        format!("{file_system}: cp {options}: {kind}: {what}\n    {}", shell_words::join(words))
    }
}
