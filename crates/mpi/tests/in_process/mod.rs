//! Ranks that are threads of this process.

use std::process::ExitCode;
use std::sync::Arc;

use haulage::events::Observer;
use haulage::options::{Options, Request};
use haulage_mpi::driver;
use haulage_mpi::transport::Transport;

/// What other ranks send is not looked at.
struct Ignored;

impl haulage_cli::Collector for Ignored {
    fn tell(&self, _: &[u8]) {}

    fn add_receipts(&self, _: &[u8]) {}

    fn flush_receipts(&self) {}
}

/// Copies with a rank for each transport and observer. A rank that does not `takes_part` gives up at
/// the start. Returns the exit status of rank 0.
///
/// # Panics
/// If a rank does.
pub(crate) fn run_ranks<T, O>(
    ranks: impl IntoIterator<Item = (T, Arc<O>)>,
    request: &Request,
    options: &Options,
    takes_part: fn(&O) -> bool,
) -> u8
where
    T: Transport + Send + 'static,
    O: Observer + Send + 'static,
{
    let start = |(mut transport, observer): (T, Arc<O>)| {
        let (request, options) = (request.clone(), options.clone());
        std::thread::spawn(move || {
            driver::run_with(&mut transport, move |job| {
                if !takes_part(&observer) {
                    return ExitCode::FAILURE;
                }
                let collector: Arc<dyn haulage_cli::Collector> = Arc::new(Ignored);
                let observer: Arc<dyn Observer + Send> = observer;
                let outcome = job.copy(request, options, &observer, &collector);
                if outcome.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            })
        })
    };
    let threads: Vec<_> = ranks.into_iter().map(start).collect();
    let statuses: Vec<u8> =
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    statuses[0]
}
