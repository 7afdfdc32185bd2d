//! The errors that end an experiment.

use crate::run_dir::files::RunError;

/// What can end an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// The run directory cannot be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// What is to end sessions after the conductor's own end cannot be started.
    #[error("cannot start a process: {0}")]
    Watchdog(std::io::Error),
    /// A session failed, in its own words.
    #[error("{cell}: {why}")]
    Session {
        /// The cell.
        cell: String,
        /// In words.
        why: String,
        /// Whether something that a run made was wrong.
        wrong: bool,
    },
}
