//! The file of the profile: reads and changes it, and imports and exports it.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use engines::profile::{
    FileSystem, Location, Machine, PairChoices, Problem, Profile, may_be_changed, read_text,
    text_of, turn_to_change, write_text,
};
use report::columns::visible;

use super::profile_text::edited;
use crate::terminal::output::{is_same_file, is_stream, print, write_file};
use crate::terminal::text::counted;

#[derive(Debug)]
pub(super) struct ProfileFile {
    path: PathBuf,
}

impl ProfileFile {
    /// The profile of this process. `None` if the environment names none.
    ///
    /// # Errors
    /// If the file is not a profile: it may be written by hand, and would be overwritten. If the file
    /// cannot be written: a search that cannot be stored would waste minutes.
    pub(super) fn find_writable() -> anyhow::Result<Option<ProfileFile>> {
        let Some(file) = ProfileFile::of_process() else { return Ok(None) };
        file.read()?;
        may_be_changed(&file.path).map_err(|why| {
            anyhow!("{}: {why}; HAULAGE_PROFILE=FILE names another file", file.cannot_write())
        })?;
        Ok(Some(file))
    }

    fn of_process() -> Option<ProfileFile> {
        Location::of_process().path().map(|path| ProfileFile { path: path.to_owned() })
    }

    /// The profile of this process.
    ///
    /// # Errors
    /// If the environment names none.
    pub(super) fn needed() -> anyhow::Result<ProfileFile> {
        ProfileFile::of_process().with_context(why_there_is_none)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The content of the file. An absent file is an empty profile.
    pub(super) fn read(&self) -> anyhow::Result<Profile> {
        let read = Profile::read(&self.path).map_err(|problem| {
            let problem_is_of_access = matches!(problem, Problem::Errno(_));
            let (path, problem) = (self.path.display(), visible(&problem.to_string()));
            match problem_is_of_access {
                true => anyhow!("cannot read '{path}': {problem}"),
                false => anyhow!("'{path}': {problem}; correct it or move it away"),
            }
        })?;
        Ok(read.map(|parsed| parsed.profile).unwrap_or_default())
    }

    /// Applies `change`, which returns whether it changed anything. The file is locked and read again,
    /// because another process may have written it. Comments on unchanged parts are kept.
    fn change(&self, change: impl FnOnce(&mut Profile) -> bool) -> anyhow::Result<()> {
        let cannot = || self.cannot_write();
        let _lock = turn_to_change(&self.path).with_context(cannot)?;
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

    /// Stores the results of a search on this machine.
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

/// Why the environment names no profile.
pub(crate) fn why_there_is_none() -> &'static str {
    match std::env::var_os("HAULAGE_PROFILE") {
        Some(_) => {
            "there is no profile, because HAULAGE_PROFILE is empty; set it to the path of a file"
        }
        None => {
            "there is no profile, because neither XDG_CONFIG_HOME nor HOME is an absolute path; \
             HAULAGE_PROFILE=FILE names a file for it"
        }
    }
}

/// `--export`: `-` is standard output.
pub(super) fn export(path: &Path) -> anyhow::Result<()> {
    let file = ProfileFile::needed()?;
    let text = file.read()?.to_toml();
    if is_stream(path) {
        return print(&text);
    }
    // An export has no comments: those of the profile would be lost.
    if is_same_file(path, &file.path) {
        bail!("'{}' is the profile itself", path.display());
    }
    write_file(path, text.as_bytes())
}

/// `--import`: `-` is standard input.
pub(super) fn import(path: &Path) -> anyhow::Result<()> {
    let (name, text) = if is_stream(path) {
        ("standard input".to_owned(), text_of(std::io::stdin().lock(), 0))
    } else {
        let name = format!("'{}'", path.display());
        let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
        let bytes = file.metadata().map_or(0, |found| found.len());
        (name, text_of(file, bytes))
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
    let file = ProfileFile::needed()?;
    let mut pairs = 0;
    file.change(|profile| {
        for machine in parsed.profile.machines {
            // Each pair is entered at the front. The reverse order keeps that of the export.
            for pair in machine.pairs.into_iter().rev() {
                profile.enter(&machine.machine, pair);
                pairs += 1;
            }
        }
        pairs > 0
    })?;
    print(&format!("{} imported into '{}'\n", counted_pairs(pairs), file.path.display()))
}

/// `--forget`: of `dirs`, or of everything.
pub(super) fn forget(dirs: &[PathBuf]) -> anyhow::Result<()> {
    let file = ProfileFile::needed()?;
    let mut of_dirs = Vec::new();
    for dir in dirs {
        let opened = File::open(dir).with_context(|| format!("cannot open '{}'", dir.display()))?;
        of_dirs.push(FileSystem::of(opened.as_fd()));
    }
    let is_meant = |pair: &PairChoices| {
        // A choice for all file systems of a type is written by hand, and belongs to no directory.
        let is_of = |found: &FileSystem| {
            [&pair.src, &pair.dst].into_iter().any(|side| side.is_one() && side.fits(found))
        };
        of_dirs.is_empty() || of_dirs.iter().any(is_of)
    };
    let this = Machine::this();
    let mut forgotten = 0;
    file.change(|profile| {
        // Choices for a machine without a name are for all machines, and stay.
        for machine in profile.machines.iter_mut().filter(|it| it.machine.id == this.id) {
            let before = machine.pairs.len();
            machine.pairs.retain(|pair| !is_meant(pair));
            forgotten += before - machine.pairs.len();
        }
        profile.machines.retain(|machine| !machine.pairs.is_empty());
        forgotten > 0
    })?;
    print(&format!("{} forgotten\n", counted_pairs(forgotten)))
}

fn counted_pairs(pairs: usize) -> String {
    format!("{} of file systems", counted(pairs, "pair"))
}
