//! One run of a sweep: the frame that all sweeps share. A sweep names its settings, such as options of `cp`, and the
//! points of each, such as a system call that fails; each file system with each setting is a cell. A short run tries
//! some points of each cell.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use fastrand::Rng;
use tempfile::TempDir;

use super::copies::Copies;
use super::counts::{Counts, Group, Verdict};
use xtask::file_systems::FileSystems;

/// How often the progress line is written.
const PROGRESS: Duration = Duration::from_secs(10);

/// How many points of a cell are tried in a row. To find out the points costs a copy or two.
const TURN_POINTS: usize = 4;

/// One kind of sweep. A case has the text `FILE-SYSTEM; SETTING; POINT`.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) name: &'static str,
    /// What is tried, in one line.
    pub(crate) about: &'static str,
    /// Every setting for a file system of this kind: options of `cp`, and after a `; ` what else its cases share.
    pub(crate) settings: fn(kind: &str) -> Vec<String>,
    /// Every point of a cell.
    pub(crate) points: Points,
    /// Tries a point, and records what became of it.
    pub(crate) attempt: fn(&mut Cell<'_>, point: &str) -> anyhow::Result<()>,
    /// How often a single case is tried until it is wrong.
    pub(crate) repeats: u32,
}

/// What differs between the cases of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Points {
    /// These texts.
    Listed(fn(&mut Cell<'_>) -> anyhow::Result<Vec<String>>),
    /// `seed=N`, of which there is no end.
    Seeds,
}

/// Points of a sweep whose cases have the same on every file system.
pub(crate) fn texts(settings: &[&str]) -> Vec<String> {
    settings.iter().map(|&text| text.to_owned()).collect()
}

/// The parts of a point, which has `; ` between them.
///
/// # Errors
/// If there are more or fewer.
pub(crate) fn parts<const N: usize>(point: &str) -> anyhow::Result<[&str; N]> {
    let parts: Vec<&str> = point.split("; ").collect();
    parts.try_into().ok().with_context(|| format!("'{point}' has not {N} parts"))
}

/// The number in a point of [`Points::Seeds`].
///
/// # Errors
/// If it is not of that form.
pub(crate) fn seed(point: &str) -> anyhow::Result<u64> {
    let seed = point.strip_prefix("seed=").and_then(|seed| seed.parse().ok());
    seed.with_context(|| format!("'{point}' is not of the form seed=N"))
}

/// Which cases are tried, and with what.
#[derive(clap::Args, Debug)]
pub(crate) struct Settings {
    /// Begin no case after this many seconds [default: 60; without end with --all or --cases]
    #[arg(long, value_name = "S")]
    time: Option<u64>,
    /// The seed of the choice and order of cases
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Try every case, in order; sweeps of random cases have no end
    #[arg(long, conflicts_with = "cases")]
    pub(crate) all: bool,
    /// Try at most this many cases
    #[arg(long, value_name = "N")]
    pub(crate) cases: Option<u64>,
    /// Try only this case, as a finding names it
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["all", "cases", "time"])]
    pub(crate) case: Option<String>,
    /// File systems to mount (as root) and copy on
    #[arg(long, value_name = "FS", value_delimiter = ',', value_parser = parse_kind,
          default_value = "ext4,xfs,btrfs,tmpfs")]
    pub(crate) fs: Vec<&'static str>,
    /// The program to try, instead of a debug build of this tree
    #[arg(long, value_name = "PATH")]
    pub(crate) haulage: Option<PathBuf>,
}

impl Settings {
    /// How long cases are begun. `None` without end.
    fn limit(&self) -> Option<Duration> {
        let seconds = match (self.time, self.all || self.cases.is_some() || self.case.is_some()) {
            (Some(seconds), _) => seconds,
            (None, true) => return None,
            (None, false) => 60,
        };
        Some(Duration::from_secs(seconds))
    }
}

fn parse_kind(name: &str) -> anyhow::Result<&'static str> {
    let known = testfs::FsKind::ALL.iter().find(|kind| kind.name() == name);
    known.map(|kind| kind.name()).with_context(|| format!("no file system is called '{name}'"))
}

/// A fresh directory on one file system with a source to be copied, removed at the end.
pub(crate) struct Place {
    /// `ext4`, `xfs`, `btrfs` or `tmpfs`.
    pub(crate) kind: &'static str,
    pub(crate) copies: Copies,
    dir: TempDir,
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Where cases are tried: on one file system with one setting.
pub(crate) struct Cell<'r> {
    pub(crate) run: &'r mut Run,
    pub(crate) place: &'r mut Place,
    pub(crate) setting: &'r str,
}

impl Cell<'_> {
    /// Records what became of the case `point`, of which `subject` was tried.
    pub(crate) fn record(&mut self, point: &str, subject: &str, verdict: Verdict) {
        let (file_system, subject) = (self.place.kind.to_owned(), subject.to_owned());
        let options = self.setting.split("; ").next().unwrap_or_default().to_owned();
        let case = format!("{file_system}; {}; {point}", self.setting);
        self.run.record(case, Group { file_system, options, kind: subject }, verdict);
    }
}

/// What one invocation of `cargo xtask sweep` has, and what it has found.
pub(crate) struct Run {
    sweep: &'static Sweep,
    /// The program to try.
    pub(crate) program: PathBuf,
    /// Decides which cases are tried. The same for the same `--seed`.
    rng: Rng,
    /// The mounted file systems, and why one is missing.
    pub(crate) file_systems: FileSystems,
    pub(crate) settings: Settings,
    pub(super) counts: Counts,
    begun: Instant,
    findings: Vec<Finding>,
    progress_due: Instant,
}

/// A case that is neither right nor loud.
struct Finding {
    group: Group,
    case: String,
    what: String,
}

impl Run {
    pub(super) fn new(
        sweep: &'static Sweep,
        program: PathBuf,
        settings: Settings,
        file_systems: FileSystems,
    ) -> Run {
        let begun = Instant::now();
        Run {
            sweep,
            program,
            rng: Rng::with_seed(settings.seed),
            file_systems,
            settings,
            counts: Counts::default(),
            begun,
            findings: Vec::new(),
            progress_due: begun + PROGRESS,
        }
    }

    /// A command that starts the program to try as `cp`, without the profile of this machine.
    pub(crate) fn cp(&self) -> Command {
        let mut command = testfs::command(&self.program);
        command.arg("cp");
        command
    }

    /// Whether one more case is to be tried.
    pub(crate) fn goes_on(&self) -> bool {
        self.settings.cases.is_none_or(|most| self.counts.tried() < most)
            && self.settings.limit().is_none_or(|limit| self.begun.elapsed() < limit)
    }

    /// Puts cases into the order in which they are tried: as they are with `--all`, otherwise shuffled.
    fn order<T>(&mut self, cases: &mut [T]) {
        if !self.settings.all {
            self.rng.shuffle(cases);
        }
    }

    /// Makes a directory on the file system `kind`.
    fn place(&self, kind: &'static str) -> anyhow::Result<Place> {
        let parent = self.file_systems.dir(kind).map_err(|why| anyhow!("no {kind}: {why}"))?;
        let dir = tempfile::Builder::new().prefix("sweep-").tempdir_in(parent);
        let dir = dir.with_context(|| parent.display().to_string())?;
        Ok(Place { kind, copies: Copies::new(dir.path())?, dir })
    }

    /// Tries the points of all cells until none are left or the run ends: in order with `--all`, otherwise some of
    /// each cell in turn, shuffled.
    pub(super) fn try_cases(&mut self) -> anyhow::Result<()> {
        let sweep = self.sweep;
        let kinds = self.settings.fs.iter().filter(|kind| self.file_systems.dir(kind).is_ok());
        let kinds = kinds.filter(|kind| !(sweep.settings)(kind).is_empty());
        let mut places: Vec<Place> =
            kinds.map(|kind| self.place(kind)).collect::<anyhow::Result<_>>()?;
        ensure!(!places.is_empty(), "there is no file system to copy on");
        let mut cells: Vec<(usize, String, Option<Vec<String>>)> = Vec::new();
        for (place, Place { kind, .. }) in places.iter().enumerate() {
            let settings = (sweep.settings)(kind).into_iter();
            cells.extend(settings.map(|setting| (place, setting, None)));
        }
        self.order(&mut cells);
        let mut cells = VecDeque::from(cells);
        while let Some((at, setting, left)) = cells.pop_front().filter(|_| self.goes_on()) {
            let mut cell = Cell { run: self, place: &mut places[at], setting: &setting };
            let points = match (left, sweep.points) {
                (Some(left), _) => left,
                (None, Points::Seeds) => vec![format!("seed={}", cell.run.rng.u64(..1 << 40))],
                (None, Points::Listed(list)) => {
                    let mut points = list(&mut cell)?;
                    cell.run.order(&mut points);
                    points
                }
            };
            let turn =
                if cell.run.settings.all { points.len() } else { TURN_POINTS.min(points.len()) };
            let (now, later) = points.split_at(turn);
            for point in now {
                if cell.run.goes_on() {
                    (sweep.attempt)(&mut cell, point)
                        .with_context(|| format!("{}; {setting}; {point}", cell.place.kind))?;
                }
            }
            let left = (!later.is_empty()).then(|| later.to_vec());
            if left.is_some() || matches!(sweep.points, Points::Seeds) {
                cells.push_back((at, setting, left));
            }
        }
        Ok(())
    }

    /// Tries the one case with this text.
    ///
    /// # Errors
    /// If there is none, or its file system is not here.
    pub(super) fn repeat(&mut self, case: &str) -> anyhow::Result<()> {
        let sweep = self.sweep;
        let (kind, setting, point) = sweep.parse(case)?;
        let kinds = &self.settings.fs;
        let kind = *kinds.iter().find(|known| **known == kind).context("--fs leaves it out")?;
        let mut place = self.place(kind)?;
        let mut cell = Cell { run: self, place: &mut place, setting: &setting };
        for _ in 0..sweep.repeats {
            if cell.run.findings.is_empty() {
                (sweep.attempt)(&mut cell, point)?;
            }
        }
        Ok(())
    }

    /// Records what became of `case`. The text is what [`Run::repeat`] gets to try it again.
    fn record(&mut self, case: String, group: Group, verdict: Verdict) {
        self.counts.add(&group, &verdict);
        if let Verdict::Wrong(what) = verdict {
            let finding = Finding { group, case, what };
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

    /// The counts, and each finding with the command that repeats it.
    pub(super) fn summary(&self) -> String {
        let mut text = self.counts.to_string();
        text += &format!(
            "\n{}: {} cases in {} s, {} missed, {} findings\n",
            self.sweep.name,
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
        let mut words = vec!["cargo", "xtask", "sweep", self.sweep.name];
        let program = self.settings.haulage.as_deref().map(|path| path.display().to_string());
        if let Some(program) = &program {
            words.extend(["--haulage", program]);
        }
        words.extend(["--case", &finding.case]);
        let Group { file_system, options, kind } = &finding.group;
        let what = finding.what.trim_end();
        format!("{file_system}: cp {options}: {kind}: {what}\n    {}", shell_words::join(words))
    }
}

impl Sweep {
    /// The kind of file system, the setting and the point of the case with this text.
    fn parse<'t>(&self, text: &'t str) -> anyhow::Result<(&'t str, String, &'t str)> {
        let form = || format!("'{text}' is not of the form FILE-SYSTEM; SETTING; POINT");
        let (kind, rest) = text.split_once("; ").with_context(form)?;
        for setting in (self.settings)(kind) {
            let point = rest.strip_prefix(&setting).and_then(|rest| rest.strip_prefix("; "));
            if let Some(point) = point {
                return Ok((kind, setting, point));
            }
        }
        Err(anyhow!("no setting of this sweep begins '{rest}'"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::SWEEPS;
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        for (name, kind, setting, point) in [
            ("calls", "ext4", "-a --atomic", "openat; 12+; EIO"),
            ("kills", "xfs", "-a --atomic, then -a --resume", "renameat; 3"),
            ("short", "ext4", "-a --reflink=never", "pread; 7; all half"),
            ("limits", "tmpfs", "-a --jobs=3; RLIMIT_AS, MiB over the start", "12"),
            ("power", "xfs", "-a --durable --jobs=4", "seed=7"),
            ("liars", "tmpfs", "-r", "seed=7"),
            ("attack", "xfs", "--jobs=4 --durable", "seed=7"),
            ("differential", "btrfs", "--jobs=4 --durable", "seed=7"),
        ] {
            let sweep = SWEEPS.iter().find(|sweep| sweep.name == name).expect(name);
            let text = format!("{kind}; {setting}; {point}");
            let (found_kind, found_setting, found_point) = sweep.parse(&text).expect("parsed");
            assert_eq!((found_kind, found_point), (kind, point));
            assert_eq!(found_setting, setting);
            for wrong in ["", kind, "xfs; -a --none; 1", &format!("{kind}; {setting}")] {
                assert!(sweep.parse(wrong).is_err(), "{name}: {wrong}");
            }
        }
        // A point has all its parts, and a seed is a number.
        assert_eq!(parts("openat; 12+; EIO").expect("three"), ["openat", "12+", "EIO"]);
        assert!(parts::<3>("openat").is_err());
        assert_eq!(seed("seed=7").expect("a seed"), 7);
        assert!(["7", "seed=", "seed=x"].iter().all(|text| seed(text).is_err()));
    }

    #[test]
    fn every_setting_has_a_text_of_its_own() {
        for Sweep { name, settings, .. } in SWEEPS {
            let texts = settings("xfs");
            let different: BTreeSet<&String> = texts.iter().collect();
            assert!(!texts.is_empty() && different.len() == texts.len(), "{name}");
        }
    }
}
