//! Runs a copy on a thread of its own, while the thread of the caller handles signals and calls
//! callbacks.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use haulage::Copy;
use haulage::events::{PreScan, Totals};
use haulage::options::{Options, Request};
use pyo3::prelude::*;

use crate::call::call;
use crate::callbacks::Callbacks;
use crate::observer::{Event, Observer};
use crate::progress::Progress;
use crate::receipt::dict_of;

/// Events that wait for the thread of the caller, at most. Then the copy waits.
const EVENTS_MAX: usize = 1024;

/// The time between two calls of the progress callback, and between two looks for signals.
const TICK: Duration = Duration::from_millis(100);

/// What there is to copy.
#[derive(Clone, Copy)]
pub(crate) enum Total {
    Unknown,
    /// One file of so many bytes.
    File(u64),
    /// A total that is counted while the copy runs.
    Counted,
}

/// Copies, and waits for the end. The lock of the interpreter is held only during callbacks.
///
/// # Errors
/// The exception of a callback, or of the handler of a signal such as `KeyboardInterrupt`. The copy
/// has stopped then.
pub(crate) fn run_beside(
    py: Python<'_>,
    (request, options): (&Request, &Options),
    observer: &Observer,
    callbacks: &Callbacks,
    total: Total,
) -> PyResult<()> {
    let (events, received) = sync_channel(EVENTS_MAX);
    observer.connect(events.clone());
    let scan = PreScan::default();
    std::thread::scope(|scope| {
        let run = || {
            // Also after a panic.
            let _end = SendsEnd(events);
            let _ = Copy::of(request.clone(), options.clone()).run_observed(observer);
        };
        let thread = std::thread::Builder::new().name("haulage".into());
        let copying = thread.spawn_scoped(scope, run)?;
        let counts = matches!(total, Total::Counted) && callbacks.progress.is_some();
        let counting = counts.then(|| {
            // Without the thread the total stays unknown.
            let thread = std::thread::Builder::new().name("haulage-count".into());
            thread.spawn_scoped(scope, || scan.run(request, options, &|| ())).ok()
        });
        let begun = Instant::now();
        let progress = || {
            let total = match total {
                Total::Unknown => None,
                Total::File(bytes) => Some(Totals { entries: 1, bytes, all: true }),
                Total::Counted => Some(scan.get()),
            };
            Progress::of(observer.tracker(), total, begun.elapsed())
        };
        let served = serve(py, received, callbacks, &progress);
        scan.stop();
        if served.is_err() {
            observer.quit();
        }
        py.detach(|| {
            for thread in [Some(copying), counting.flatten()].into_iter().flatten() {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        served
    })
}

/// Calls the callbacks until the copy has ended. Then no one is at the other end of the channel: workers
/// that wait for an answer, or for room in it, go on.
///
/// # Errors
/// The first exception.
fn serve(
    py: Python<'_>,
    mut received: Receiver<Event>,
    callbacks: &Callbacks,
    progress: &dyn Fn() -> Progress,
) -> PyResult<()> {
    let mut next = Instant::now() + TICK;
    loop {
        // Only a receiver that is moved there can be used without the lock.
        let event;
        (received, event) = py.detach(move || {
            let event = received.recv_timeout(next.saturating_duration_since(Instant::now()));
            (received, event)
        });
        match event {
            Ok(Event::Entered(dir, answer)) => {
                // The copy may have been stopped, and want no answer.
                let _ = answer.send(callbacks.ignored(py, &dir)?);
            }
            Ok(Event::Finished(receipt)) => {
                if let Some(callback) = &callbacks.receipt {
                    call(callback.bind(py), dict_of(py, &receipt)?)?;
                }
            }
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => {
                return callbacks.show(py, progress);
            }
            Err(RecvTimeoutError::Timeout) => (),
        }
        // Events may come without a pause.
        if Instant::now() >= next {
            next = Instant::now() + TICK;
            py.check_signals()?;
            callbacks.show(py, progress)?;
        }
    }
}

/// Tells the thread of the caller that the copy has ended.
struct SendsEnd(SyncSender<Event>);

impl Drop for SendsEnd {
    fn drop(&mut self) {
        // The receiver may be gone.
        let _ = self.0.send(Event::Ended);
    }
}
