//! A variant: an engine with its tuning and workers, and how it is started.

use crate::contract::{Copier, Engine, Kind};
use crate::support::checked::Checked;
use crate::support::parallel::Parallel;
use crate::tuning::{ParamKind, Tuning};

/// The maximum number of workers that share one file.
pub const WORKERS_MAX: usize = 256;

/// An engine, its tuning, and the number of workers that share one file.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The row of the table.
    pub engine: &'static Engine,
    /// The values of its parameters.
    pub tuning: Tuning,
    /// Workers that share one file; 1 is the engine alone.
    pub workers: usize,
}

impl PartialEq for Variant {
    fn eq(&self, other: &Variant) -> bool {
        (self.engine.name, &self.tuning.set, self.workers)
            == (other.engine.name, &other.tuning.set, other.workers)
    }
}

impl Eq for Variant {}

impl Variant {
    /// The engine with one worker and every parameter at its default.
    #[must_use]
    pub fn plain(engine: &'static Engine) -> Variant {
        Variant { engine, tuning: Tuning::defaults(engine.params), workers: 1 }
    }

    /// The variant with this number of workers. [`start`](Variant::start) checks whether the engine
    /// allows it.
    #[must_use]
    pub fn shared_by(&self, workers: usize) -> Variant {
        Variant { workers, ..self.clone() }
    }

    /// Whether it moves bytes between descriptors. False for a floor.
    #[must_use]
    pub fn is_copier(&self) -> bool {
        matches!(self.engine.kind, Kind::Copier { .. })
    }

    /// Whether it reads the source from its device even if the source is in the page cache, and
    /// does not add it to the page cache.
    #[must_use]
    pub fn reads_past_cache(&self) -> bool {
        match self.engine.name {
            "direct" | "direct_read" => true,
            "io_uring" => self.tuning.flag("direct"),
            _ => false,
        }
    }

    /// Whether it handles SIGBUS, for the whole process: it writes to a mapping, and a page of a file
    /// that another process truncates is missing there.
    #[must_use]
    pub fn handles_sigbus(&self) -> bool {
        self.engine.name == "mmap" && self.tuning.flag("dst")
    }

    /// Starts it: allocates its buffers, ring or pipe, and creates its workers.
    ///
    /// # Errors
    /// The kernel's error if these cannot be allocated (io_uring is forbidden, no memory).
    /// `Unsupported` for a floor, which is no copier. `InvalidInput` without a worker, and with
    /// several workers if [`Facts::positions`](crate::Facts::positions) does not let them share a
    /// file.
    pub fn start(&self) -> std::io::Result<Box<dyn Copier>> {
        let Kind::Copier { start, .. } = self.engine.kind else {
            return Err(std::io::Error::new(
                std::io::ErrorKind::Unsupported,
                format!("{} moves bytes within memory and copies no file", self.engine.name),
            ));
        };
        if self.workers == 0 || (self.workers > 1 && !self.engine.facts.positions) {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                format!("{} cannot be shared by {} workers", self.engine.name, self.workers),
            ));
        }
        let copier: Box<dyn Copier> = if self.workers == 1 {
            start(&self.tuning)?
        } else {
            let copiers =
                (0..self.workers).map(|_| start(&self.tuning)).collect::<Result<_, _>>()?;
            Box::new(Parallel::new(copiers))
        };
        Ok(Box::new(Checked { flags: copier.status_flags(), copier }))
    }

    /// The variants next to this one: each quantity in its text, and its number of workers, doubled
    /// and halved within the limits of the engine; and offset 0 in place of an offset. There are at
    /// most `workers_max` workers.
    #[must_use]
    pub fn neighbours(&self, workers_max: usize) -> Vec<Variant> {
        let mut found = Vec::new();
        for (index, param) in self.engine.params.iter().enumerate() {
            let Some(value) = self.tuning.set[index] else { continue };
            let mut add = |value| {
                let mut variant = self.clone();
                variant.tuning.set[index] = value;
                found.push(variant);
            };
            match param.kind {
                ParamKind::Bytes { min, max, .. } | ParamKind::Count { min, max, .. } => {
                    let beside = [value / 2, value.saturating_mul(2)];
                    let beside = beside.into_iter().filter(|value| (min..=max).contains(value));
                    beside.for_each(|value| add(Some(value)));
                }
                ParamKind::Offset { .. } => add(None),
                ParamKind::Flag => {}
            }
        }
        let shareable = |&workers: &usize| {
            let fits = (1..=workers_max.min(WORKERS_MAX)).contains(&workers);
            fits && workers != self.workers && self.engine.facts.positions
        };
        let workers = [self.workers / 2, self.workers * 2].into_iter().filter(shareable);
        found.extend(workers.map(|workers| self.shared_by(workers)));
        found
    }

    /// The variant with every number of bytes limited to `bytes`. Two variants for which this is
    /// equal copy a file of that length in the same way, except for the memory that they allocate.
    #[must_use]
    pub fn within(&self, bytes: u64) -> Variant {
        let mut variant = self.clone();
        for (param, value) in self.engine.params.iter().zip(&mut variant.tuning.set) {
            if let ParamKind::Bytes { default, .. } = param.kind {
                *value = Some(value.unwrap_or(default).min(bytes));
            }
        }
        variant
    }
}
