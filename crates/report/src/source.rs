//! Reads run directories. Writes nothing.

use std::path::Path;

use lab::certificate::store::{Badge, StoredCertificate};
use lab::conduct;
use lab::definition::deltas::Deltas;
use lab::page_cache::state::State;
use lab::run_dir::Run;
use lab::run_dir::files::{self, RunError};
use lab::verdict::Verdict;

use crate::machine::file_systems;
use crate::plot::Facets;

/// A run directory and its verdict.
#[derive(Debug)]
pub struct Source {
    /// The samples, the definition and the environment.
    pub run: Run,
    /// The verdict: as written, or computed from the samples if the run ended before it wrote one.
    pub verdict: Verdict,
    /// How far the run can be trusted, by the certificate in its directory, its kernel and its version.
    pub badge: Badge,
}

impl Source {
    /// Reads the run directory at `path`.
    ///
    /// # Errors
    /// If a required file is missing, or a file is damaged.
    pub fn read(path: &Path) -> Result<Source, RunError> {
        let run = Run::read(path)?;
        let kernel = run.environment["kernel"].as_str().unwrap_or_default();
        let badge = StoredCertificate::of_run(path)?
            .map_or_else(Badge::none, |kept| kept.badge(kernel, &run.how.haulage_version));
        let path_of_verdict = path.join(files::VERDICT);
        let verdict = match files::read_json::<Verdict>(&path_of_verdict)? {
            Some(verdict) if verdict.delta < 0.0 || verdict.delta_cold < 0.0 => {
                return Err(RunError::about(&path_of_verdict, "a delta is negative"));
            }
            Some(verdict) => verdict,
            None => verdict_of(&run, &badge),
        };
        Ok(Source { run, verdict, badge })
    }

    /// Differences up to these shares do not matter.
    pub fn deltas(&self) -> Deltas {
        Deltas { warm: self.verdict.delta, cold: self.verdict.delta_cold }
    }

    /// The name of the run directory.
    pub fn name(&self) -> String {
        let path = std::fs::canonicalize(&self.run.path).unwrap_or_else(|_| self.run.path.clone());
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What the filters of the page look at, for a panel of one state.
    pub fn facets(&self, file_bytes: Option<u64>, state: State) -> Facets {
        let file_system = Some(file_systems(&self.run.environment));
        Facets { file_bytes, state: Some(state.name()), file_system }
    }
}

/// δ is that of the certificate that the run started with, as `badge` says.
fn verdict_of(run: &Run, badge: &Badge) -> Verdict {
    let cells = conduct::cells(&run.definition, Some(run));
    let mut verdict = badge.verdict(run, &cells, run.how.rounds);
    verdict.notes.push("the run ended before it wrote its verdict".to_owned());
    verdict
}
