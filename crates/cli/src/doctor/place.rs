//! A directory and its file system, and the engines that work between two directories.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use anyhow::Context;
use engines::{ENGINES, Engine, Pair};
use report::columns::visible;
use rustix::fs::{StatVfsMountFlags, fstatvfs};
use serde::Serialize;

use crate::error_text::one_line;
use crate::kernel::{files_in_memory, offset_alignment_bytes};
use crate::sample_files::{self, EngineFound, open_dir, tried};

/// A directory.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Place {
    /// As it was given.
    pub(super) path: String,
    pub(super) fs_type: Option<String>,
    pub(super) mount_point: Option<String>,
    pub(super) device: Option<String>,
    pub(super) mount_options: Option<String>,
    pub(super) total_bytes: u64,
    /// For an ordinary user.
    pub(super) free_bytes: u64,
    pub(super) read_only: bool,
    /// The alignment of offsets that direct I/O needs; 0 if there is no direct I/O, `None` if it is not
    /// reported, or no file could be made to ask.
    pub(super) direct_alignment_bytes: Option<u32>,
    /// Whether an ext4 has a journal; `None` for another file system.
    pub(super) journal: Option<bool>,
    /// Why no sample could be written there, if none could.
    pub(super) not_writable: Option<String>,
}

impl Place {
    pub(super) fn of(path: &Path) -> anyhow::Result<Place> {
        let dir = open_dir(path)?;
        let space = fstatvfs(&dir).map_err(std::io::Error::from);
        let space = space.with_context(|| format!("cannot ask about '{}'", path.display()))?;
        let found = lab::environment::FileSystem::of(path);
        let text = |text: Option<String>| text.map(|text| visible(&text));
        let sample = sample_files::sample_file(path);
        Ok(Place {
            path: visible(&path.display().to_string()),
            fs_type: text(found.fs_type),
            mount_point: text(found.mount_point),
            device: text(found.device),
            mount_options: text(found.mount_options),
            total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
            free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
            read_only: space.f_flag.contains(StatVfsMountFlags::RDONLY),
            direct_alignment_bytes: sample.as_ref().ok().and_then(offset_alignment_bytes),
            journal: found.journal,
            not_writable: sample.err().map(|error| visible(&one_line(&error))),
        })
    }
}

/// Tries all engines that copy files from `src` to `dst`. If no file can be made there, between files in
/// memory; then only what works is certain.
pub(super) fn engines_between(src: &Path, dst: &Path) -> Vec<EngineFound> {
    let files = || -> anyhow::Result<(File, File)> {
        let empty = sample_files::empty_file(dst)?;
        Ok((sample_files::source(src)?, empty))
    };
    let why = match files() {
        Ok((src, dst)) => return all_tried(src.as_fd(), dst.as_fd()),
        Err(error) => visible(&one_line(&error)),
    };
    let tried = files_in_memory().map(|(src, dst)| all_tried(src.as_fd(), dst.as_fd()));
    let works = tried.unwrap_or_default().into_iter().filter(|engine| engine.verdict == "yes");
    let works: Vec<EngineFound> = works.collect();
    let is_copier = |engine: &&Engine| matches!(engine.kind, engines::Kind::Copier { .. });
    // What a file system in memory lacks, that of the directories may have.
    let found = |engine: &Engine| {
        let unknown = EngineFound { name: engine.name, verdict: "unknown", reason: why.clone() };
        works.iter().find(|it| it.name == engine.name).cloned().unwrap_or(unknown)
    };
    ENGINES.iter().copied().filter(is_copier).map(found).collect()
}

fn all_tried(src: BorrowedFd<'_>, dst: BorrowedFd<'_>) -> Vec<EngineFound> {
    let pair = Pair::new(src, dst);
    ENGINES.iter().filter_map(|engine| tried(engine, pair)).collect()
}
