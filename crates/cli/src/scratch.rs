//! The scratch directories of a measurement. They are removed however it ends, and named if they cannot be.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use lab::scratch::files::write_random;
use lab::scratch::{Remover, Scratch};
use lab::source::Source;

use crate::last_words;
use crate::signals::SignalQueue;

/// The scratch directories of this process, and the thread that waits for signals.
pub(crate) struct ScratchGuard {
    cleanup: Arc<Mutex<Cleanup>>,
}

#[derive(Default)]
struct Cleanup {
    /// Ends the processes that write to the directories.
    stop: Option<Box<dyn Fn() + Send>>,
    removers: Vec<Arc<Remover>>,
    /// The end of the message.
    note: String,
}

impl Cleanup {
    fn remove(&self) {
        if let Some(stop) = &self.stop {
            stop();
        }
        self.removers.iter().for_each(|remover| remover.remove());
    }

    /// A line for each directory that could not be removed.
    fn left(&self, command: &str) -> String {
        let left = self.removers.iter().filter_map(|remover| remover.left());
        left.map(|path| {
            format!("haulage {command}: cannot remove '{}', which is left over\n", path.display())
        })
        .collect()
    }
}

impl ScratchGuard {
    /// Calls `measure` with a guard whose messages start with `command`. If a signal arrives, the
    /// process ends and this does not return.
    pub(crate) fn around<T>(
        command: &'static str,
        measure: impl FnOnce(&ScratchGuard) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let guard = ScratchGuard::install(command).context("cannot watch for signals")?;
        let done = measure(&guard);
        guard.wait_if_ending();
        eprint!("{}", lock(&guard.cleanup).left(command));
        done
    }

    /// Starts a thread that waits for signals, so that a signal does not wait for the copy of a large
    /// file to end. It sleeps while runs are timed.
    fn install(command: &'static str) -> std::io::Result<ScratchGuard> {
        let mut signals = SignalQueue::of(&crate::signals::ending())?;
        let cleanup = Arc::new(Mutex::new(Cleanup::default()));
        let slot = Arc::clone(&cleanup);
        last_words::set_command("haulage", move || match slot.try_lock() {
            Ok(cleanup) => {
                cleanup.remove();
                cleanup.left(command).into_bytes()
            }
            // Another thread is removing them, or this one was making one.
            Err(_) => Vec::new(),
        });
        let slot = Arc::clone(&cleanup);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let signal = loop {
                if let Some(signal) = signals.wait().next() {
                    break signal;
                }
            };
            // The lock is held until the process ends: see `wait_if_ending`.
            let cleanup = lock(&slot);
            cleanup.remove();
            let (left, note) = (cleanup.left(command), &cleanup.note);
            // The terminal has echoed ^C at the start of the line.
            let start = if std::io::stderr().is_terminal() { "\r" } else { "" };
            let removed = if left.is_empty() { "; its scratch files are removed" } else { "" };
            eprint!("{start}haulage {command}: interrupted{removed}{note}\n{left}");
            // Ends by the signal, which the parent can see in the wait status.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(1);
        })?;
        Ok(ScratchGuard { cleanup })
    }

    /// Creates a scratch directory in `dir`, see [`Scratch::create`]. No signal can arrive between its creation and its
    /// registration.
    pub(crate) fn create_scratch(
        &self,
        dir: &Path,
        purpose: &str,
    ) -> Result<Scratch, lab::error::Error> {
        let mut cleanup = lock(&self.cleanup);
        let scratch = Scratch::create(dir, purpose)?;
        cleanup.removers.push(scratch.remover());
        Ok(scratch)
    }

    /// Appends `note` to the message.
    pub(crate) fn set_note(&self, note: String) {
        lock(&self.cleanup).note = note;
    }

    /// Calls `stop` before the directories are removed, and appends `note` to the message.
    pub(crate) fn on_signal(&self, stop: impl Fn() + Send + 'static, note: String) {
        let mut cleanup = lock(&self.cleanup);
        cleanup.stop = Some(Box::new(stop));
        cleanup.note = note;
    }

    /// If a signal has arrived, waits for the end of the process: an error of a measurement whose
    /// scratch files were removed must not be reported. Otherwise returns at once.
    pub(crate) fn wait_if_ending(&self) {
        drop(lock(&self.cleanup));
    }
}

fn lock(slot: &Mutex<Cleanup>) -> MutexGuard<'_, Cleanup> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports the scratch directories in `dirs` that a killed process left behind.
pub(crate) fn report_abandoned<'d>(command: &str, dirs: impl IntoIterator<Item = &'d PathBuf>) {
    for left in dirs.into_iter().flat_map(|dir| lab::scratch::abandoned(dir)) {
        let left = left.display();
        eprintln!(
            "haulage {command}: '{left}' was left behind by a run that was killed; remove it"
        );
    }
}

/// Creates the file `name` of `bytes` random bytes in `scratch`. File systems can neither compress them
/// nor find two equal blocks.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn random_source(
    scratch: &Scratch,
    name: &str,
    bytes: u64,
    seed: u64,
) -> anyhow::Result<Source> {
    let path = scratch.path().join(name);
    write_random(&path, bytes, &mut fastrand::Rng::with_seed(seed))?;
    Ok(Source::open(&path)?)
}
