//! The profile on its way in and out.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use engines::profile::{
    FileSystem, Location, Machine, PairChoices, Profile, read_text, turn_to_change, write_text,
};
use lab::tune::Records;

use super::args::Target;
use super::comments::edited;
use crate::bench::print;

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
    /// have written it by hand.
    pub(super) fn find() -> anyhow::Result<Option<Place>> {
        let Some(place) = Place::of_process() else { return Ok(None) };
        place.read()?;
        Ok(Some(place))
    }

    fn of_process() -> Option<Place> {
        Location::of_process().path().map(|path| Place { path: path.to_owned() })
    }

    /// The same where there has to be one.
    pub(super) fn needed() -> anyhow::Result<Place> {
        Place::of_process().context("there is no profile, since HAULAGE_PROFILE is empty")
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds; nothing where there is no file.
    pub(super) fn read(&self) -> anyhow::Result<Profile> {
        let read = Profile::read(&self.path).map_err(|problem| {
            anyhow!("'{}': {problem}; correct it, or move it away", self.path.display())
        })?;
        Ok(read.map(|parsed| parsed.profile).unwrap_or_default())
    }

    /// Has `change` made to it, which may say that there is nothing to do. It is read anew, since
    /// another may have written it meanwhile, and nobody else changes it at the same time. Of what stays
    /// every comment stays.
    fn change(&self, change: impl FnOnce(&mut Profile) -> bool) -> anyhow::Result<()> {
        let cannot = || format!("cannot write '{}'", self.path.display());
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

/// `--export`.
pub(super) fn export(target: &Target) -> anyhow::Result<()> {
    let text = Place::needed()?.read()?.to_toml();
    match target {
        Target::Stream => print(&text),
        Target::File(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write '{}'", path.display()))
        }
    }
}

/// `--import`.
pub(super) fn import(target: &Target) -> anyhow::Result<()> {
    let (name, text) = match target {
        Target::Stream => ("standard input".to_owned(), read_all(std::io::stdin().lock())),
        Target::File(path) => {
            (format!("'{}'", path.display()), File::open(path).and_then(read_all))
        }
    };
    let text = text.with_context(|| format!("cannot read {name}"))?;
    let parsed = Profile::parse(&text).map_err(|problem| anyhow!("{name}: {problem}"))?;
    for mistake in &parsed.unusable {
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
        let is_of = |found: &FileSystem| pair.src.fits(found) || pair.dst.fits(found);
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

fn read_all(mut from: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    from.read_to_string(&mut text).map(|_| text)
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

    pub(super) fn write(&self, records: &Records) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(records).context("cannot write JSON")?;
        text.push('\n');
        let Some((path, file)) = &self.file else { return print(&text) };
        let cannot = || format!("cannot write '{}'", path.display());
        if file.metadata().with_context(cannot)?.is_file() {
            file.set_len(0).with_context(cannot)?;
        }
        let mut out: &File = file;
        out.write_all(text.as_bytes()).with_context(cannot)
    }
}
