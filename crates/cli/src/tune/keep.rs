//! The profile on its way in and out.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use engines::profile::{
    FileSystem, Location, Machine, PairChoices, Problem, Profile, may_be_changed, read_text,
    text_of, turn_to_change, write_text,
};
use lab::tune::record::Records;

use super::args::Target;
use super::comments::edited;
use crate::bench::print;
use crate::complaint::visible;

/// The file of the profile.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
}

impl Place {
    /// Where it is; `None` where there is to be none.
    ///
    /// # Errors
    /// When there is a file that cannot be read as a profile: it would be overwritten, and somebody may
    /// have written it by hand. When none can be written: minutes later that would be a pity.
    pub(super) fn find() -> anyhow::Result<Option<Place>> {
        let Some(place) = Place::of_process() else { return Ok(None) };
        place.read()?;
        may_be_changed(&place.path).with_context(|| place.cannot_write())?;
        Ok(Some(place))
    }

    fn of_process() -> Option<Place> {
        Location::of_process().path().map(|path| Place { path: path.to_owned() })
    }

    /// The same where there has to be one.
    pub(super) fn needed() -> anyhow::Result<Place> {
        Place::of_process().with_context(why_there_is_none)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds; nothing where there is no file.
    pub(super) fn read(&self) -> anyhow::Result<Profile> {
        let read = Profile::read(&self.path).map_err(|problem| {
            let problem_is_of_access = matches!(problem, Problem::Errno(_));
            let (path, problem) = (self.path.display(), visible(&problem.to_string()));
            match problem_is_of_access {
                true => anyhow!("cannot read '{path}': {problem}"),
                false => anyhow!("'{path}': {problem}; correct it, or move it away"),
            }
        })?;
        Ok(read.map(|parsed| parsed.profile).unwrap_or_default())
    }

    /// Has `change` made to it, which may say that there is nothing to do. It is read anew, since
    /// another may have written it meanwhile, and nobody else changes it at the same time. Of what stays
    /// every comment stays.
    fn change(&self, change: impl FnOnce(&mut Profile) -> bool) -> anyhow::Result<()> {
        let cannot = || self.cannot_write();
        let _turn = turn_to_change(&self.path).with_context(cannot)?;
        let before = self.read()?;
        let mut after = before.clone();
        if !change(&mut after) {
            return Ok(());
        }
        match read_text(&self.path).ok().flatten() {
            Some(text) => write_text(&self.path, &edited(&text, &before, &after)),
            None => after.write(&self.path),
        }
        .with_context(cannot)
    }

    fn cannot_write(&self) -> String {
        format!("cannot write '{}'", self.path.display())
    }

    /// Enters what was measured on this machine.
    pub(super) fn enter(&self, pair: PairChoices) -> anyhow::Result<()> {
        if pair.lines.is_empty() {
            return Ok(());
        }
        self.change(|profile| {
            profile.enter(&Machine::this(), pair);
            true
        })
    }
}

/// Why there is no profile, for those who have to have one.
pub(super) fn why_there_is_none() -> &'static str {
    match std::env::var_os("HAULAGE_PROFILE") {
        Some(_) => "there is no profile, since HAULAGE_PROFILE is empty",
        None => "there is no profile, since neither XDG_CONFIG_HOME nor HOME is an absolute path",
    }
}

/// `--export`.
pub(super) fn export(target: &Target) -> anyhow::Result<()> {
    let place = Place::needed()?;
    let text = place.read()?.to_toml();
    match target {
        Target::Stream => print(&text),
        Target::File(path) => {
            // It would lose its comments.
            if is_same_file(path, &place.path) {
                anyhow::bail!("'{}' is the profile itself", path.display());
            }
            std::fs::write(path, text).with_context(|| format!("cannot write '{}'", path.display()))
        }
    }
}

/// `--import`.
pub(super) fn import(target: &Target) -> anyhow::Result<()> {
    let (name, text) = match target {
        Target::Stream => ("standard input".to_owned(), text_of(std::io::stdin().lock(), 0)),
        Target::File(path) => {
            let name = format!("'{}'", path.display());
            let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
            let bytes = file.metadata().map_or(0, |found| found.len());
            (name, text_of(file, bytes))
        }
    };
    let text = text.map_err(|problem| match problem {
        Problem::Errno(_) => anyhow!("cannot read {name}: {problem}"),
        _ => anyhow!("{name}: {problem}"),
    })?;
    let parsed = Profile::parse(&text)
        .map_err(|problem| anyhow!("{name}: {}", visible(&problem.to_string())))?;
    for mistake in &parsed.unusable {
        let mistake = visible(&mistake.to_string());
        eprintln!("haulage tune: {name}: {mistake}; this build cannot use it");
    }
    let place = Place::needed()?;
    let mut pairs = 0;
    place.change(|profile| {
        for machine in parsed.profile.machines {
            // What was exported first comes first here too.
            for pair in machine.pairs.into_iter().rev() {
                profile.enter(&machine.machine, pair);
                pairs += 1;
            }
        }
        pairs > 0
    })?;
    print(&format!("{} taken over into '{}'\n", counted(pairs), place.path.display()))
}

/// `--forget`.
pub(super) fn forget(dirs: &[PathBuf]) -> anyhow::Result<()> {
    let place = Place::needed()?;
    let mut of_dirs = Vec::new();
    for dir in dirs {
        let opened = File::open(dir).with_context(|| format!("cannot open '{}'", dir.display()))?;
        of_dirs.push(FileSystem::of(std::os::fd::AsFd::as_fd(&opened)));
    }
    let is_meant = |pair: &PairChoices| {
        // What is for all of a type was written by hand, and is of no directory.
        let is_of = |found: &FileSystem| {
            [&pair.src, &pair.dst].into_iter().any(|side| side.is_one() && side.fits(found))
        };
        of_dirs.is_empty() || of_dirs.iter().any(is_of)
    };
    let this = Machine::this();
    let mut forgotten = 0;
    place.change(|profile| {
        // A machine without a name stands for all, and is not this one's to forget.
        for machine in profile.machines.iter_mut().filter(|it| it.machine.id == this.id) {
            let before = machine.pairs.len();
            machine.pairs.retain(|pair| !is_meant(pair));
            forgotten += before - machine.pairs.len();
        }
        profile.machines.retain(|machine| !machine.pairs.is_empty());
        forgotten > 0
    })?;
    print(&format!("{} forgotten\n", counted(forgotten)))
}

fn counted(pairs: usize) -> String {
    match pairs {
        1 => "1 pair of file systems".to_owned(),
        pairs => format!("{pairs} pairs of file systems"),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Where the record goes. A file is opened before anything is measured: it would be a pity to find
/// only then that a directory does not exist.
pub(super) struct Output {
    file: Option<(PathBuf, File)>,
}

impl Output {
    pub(super) fn open(target: &Target) -> anyhow::Result<Output> {
        let Target::File(path) = target else { return Ok(Output { file: None }) };
        // What it holds is kept until there is something better.
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot open '{}' for writing", path.display()))?;
        Ok(Output { file: Some((path.clone(), file)) })
    }

    /// Writes what there is so far, where it can be written over: an interrupt later on takes nothing of
    /// it back.
    pub(super) fn write_so_far(&self, records: &Records) -> anyhow::Result<()> {
        match &self.file {
            Some((_, file)) if file.metadata().is_ok_and(|found| found.is_file()) => {
                self.write(records)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn write(&self, records: &Records) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(records).context("cannot write JSON")?;
        text.push('\n');
        let Some((path, file)) = &self.file else { return print(&text) };
        let cannot = || format!("cannot write '{}'", path.display());
        let mut out: &File = file;
        if file.metadata().with_context(cannot)?.is_file() {
            out.rewind().and_then(|()| file.set_len(0)).with_context(cannot)?;
        }
        out.write_all(text.as_bytes()).with_context(cannot)
    }
}
