//! Two directories to search between, and the variants that copies between them use now.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use engines::Variant;
use engines::profile::{FileSystems, Machine, PairChoices, Profile};
use haulage::prediction::{PlannedFile, Predictor};
use lab::tune::case::Case;
use lab::tune::config::Config;
use lab::tune::record::Record;

use super::args::Args;
use crate::kernel;
use crate::sample_files::open_dir;

/// The most copies in flight. More of them wait for the medium, on any number of processors.
const COPIES_IN_FLIGHT_MAX: usize = 4;

pub(super) struct DirectoryPair {
    pub(super) src: PathBuf,
    pub(super) dst: PathBuf,
    pub(super) file_systems: FileSystems,
    /// What copies use without a profile of the user.
    unmeasured: Predictor,
    /// What copies use by the profile, if it has choices for these file systems.
    present: Option<Predictor>,
    jobs: usize,
}

impl DirectoryPair {
    pub(super) fn open(src: &Path, dst: &Path, profile: &Profile) -> anyhow::Result<DirectoryPair> {
        let (src_fd, dst_fd) = (open_dir(src)?, open_dir(dst)?);
        let file_systems = FileSystems::of(src_fd.as_fd(), dst_fd.as_fd());
        let this = Machine::this();
        let known = profile.pairs_of(&this).filter(|pair| pair.fits(&file_systems));
        let known: Vec<PairChoices> = known.cloned().collect();
        Ok(DirectoryPair {
            src: src.to_owned(),
            dst: dst.to_owned(),
            present: (!known.is_empty()).then(|| Predictor::between(&file_systems, &known)),
            unmeasured: Predictor::between(&file_systems, &[]),
            file_systems,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// Calls `call` with the configuration of a search between them that starts now.
    pub(super) fn with_config<T>(&self, args: &Args, call: impl FnOnce(&Config<'_>) -> T) -> T {
        let defaults = |case: &Case| self.unmeasured.variants(&self.planned_file(case));
        let present = |case: &Case| {
            let variants = self.present.as_ref()?.variants(&self.planned_file(case));
            variants.into_iter().next()
        };
        call(&Config {
            time: args.time(),
            started: Instant::now(),
            seed: args.seed(),
            at_once: self.jobs.clamp(2, COPIES_IN_FLIGHT_MAX),
            workers_max: self.jobs,
            variants: Variant::proposed().into_iter().filter(Variant::is_copier).collect(),
            defaults: &defaults,
            present: &present,
        })
    }

    fn planned_file(&self, case: &Case) -> PlannedFile {
        PlannedFile { situation: case.situation, bytes: case.file_bytes, jobs: self.jobs }
    }

    /// The results as the profile stores them.
    pub(super) fn choices(&self, record: &Record) -> PairChoices {
        let FileSystems { src, dst, same } = self.file_systems.clone();
        let kernel = Some(kernel::release());
        PairChoices { src, dst, same: Some(same), kernel, lines: record.lines() }
    }

    /// `'SRC' to 'DST'`.
    pub(super) fn in_words(&self) -> String {
        format!("'{}' to '{}'", self.src.display(), self.dst.display())
    }
}
