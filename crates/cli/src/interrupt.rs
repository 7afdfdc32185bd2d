//! Signals that end a measurement: what runs is stopped and the scratch directories are removed first.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab::scratch::{Remover, Scratch};
use signal_hook::iterator::Signals;

/// What is to be done when a signal comes.
pub(crate) struct Interrupts {
    cleanup: Arc<Mutex<Cleanup>>,
}

#[derive(Default)]
struct Cleanup {
    /// Ends the processes that would go on writing.
    stop: Option<Box<dyn Fn() + Send>>,
    removers: Vec<Remover>,
    /// What else to say.
    words: String,
}

impl Interrupts {
    /// Waits for signals in a thread of its own: a copy of a large file takes its time, and whoever
    /// interrupts it should not have to wait for the end of it. The thread sleeps while runs are
    /// timed. `command` begins the message.
    pub(crate) fn watch(command: &'static str) -> std::io::Result<Interrupts> {
        let mut signals = Signals::new(crate::signals::ending())?;
        let cleanup = Arc::new(Mutex::new(Cleanup::default()));
        let slot = Arc::clone(&cleanup);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                // Held until the process ends: see `give_way`.
                let cleanup = lock(&slot);
                if let Some(stop) = &cleanup.stop {
                    stop();
                }
                cleanup.removers.iter().for_each(Remover::remove);
                let words = &cleanup.words;
                // A terminal has shown ^C where the line begins.
                let start = if std::io::stderr().is_terminal() { "\r" } else { "" };
                eprintln!(
                    "{start}haulage {command}: interrupted; its scratch files are removed{words}"
                );
                // Dies of the signal, as whoever sent it expects to see.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                std::process::exit(1);
            }
        })?;
        Ok(Interrupts { cleanup })
    }

    /// Makes a scratch directory so that no signal can come between its making and its guarding.
    pub(crate) fn guard(
        &self,
        make: impl FnOnce() -> Result<(Scratch, Remover), lab::error::Error>,
    ) -> Result<Scratch, lab::error::Error> {
        let mut cleanup = lock(&self.cleanup);
        let (scratch, remover) = make()?;
        cleanup.removers.push(remover);
        Ok(scratch)
    }

    /// Has `words` added to the message.
    pub(crate) fn saying(&self, words: String) {
        lock(&self.cleanup).words = words;
    }

    /// Has `stop` called before anything is removed, and `words` added to the message.
    pub(crate) fn stopping(&self, stop: impl Fn() + Send + 'static, words: String) {
        let mut cleanup = lock(&self.cleanup);
        cleanup.stop = Some(Box::new(stop));
        cleanup.words = words;
    }

    /// Waits for the end of the process when a signal has begun to end it: with the scratch files
    /// gone, what the measurement runs into then is no error of its own. Otherwise it returns at once.
    pub(crate) fn give_way(&self) {
        drop(lock(&self.cleanup));
    }
}

fn lock(slot: &Mutex<Cleanup>) -> MutexGuard<'_, Cleanup> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells of the scratch directories in `dirs` that nobody has removed.
pub(crate) fn tell_of_abandoned<'d>(command: &str, dirs: impl IntoIterator<Item = &'d PathBuf>) {
    for left in dirs.into_iter().flat_map(|dir| lab::scratch::abandoned(dir)) {
        let left = left.display();
        eprintln!(
            "haulage {command}: '{left}' was left behind by a run that was killed; remove it"
        );
    }
}
