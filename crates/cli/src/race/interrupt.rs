//! Signals that end a race: the scratch directory is removed first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab::fixture::{Remover, Scratch};
use signal_hook::iterator::Signals;

/// What is to be removed when a signal comes.
pub(super) struct Interrupts {
    remover: Arc<Mutex<Option<Remover>>>,
}

impl Interrupts {
    /// Waits for signals in a thread of its own: a copy of a large file takes its time, and whoever
    /// interrupts it should not have to wait for the end of it. The thread sleeps while runs are
    /// timed.
    pub(super) fn watch() -> std::io::Result<Interrupts> {
        let mut signals = Signals::new(crate::signals::ending())?;
        let remover = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&remover);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                // Held until the process ends: see `give_way`.
                let slot = lock(&slot);
                if let Some(remover) = &*slot {
                    remover.remove();
                }
                eprintln!("haulage race: interrupted; its scratch files are removed");
                // Dies of the signal, as whoever sent it expects to see.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                std::process::exit(1);
            }
        })?;
        Ok(Interrupts { remover })
    }

    /// Makes a scratch directory so that no signal can come between its making and its guarding.
    pub(super) fn guard(
        &mut self,
        make: impl FnOnce() -> Result<(Scratch, Remover), lab::Error>,
    ) -> Result<Scratch, lab::Error> {
        let mut slot = lock(&self.remover);
        let (scratch, remover) = make()?;
        *slot = Some(remover);
        Ok(scratch)
    }

    /// Waits for the end of the process when a signal has begun to end it: with the scratch files
    /// gone, what the race runs into then is no error of its own. Otherwise it returns at once.
    pub(super) fn give_way(&self) {
        drop(lock(&self.remover));
    }
}

fn lock(slot: &Mutex<Option<Remover>>) -> MutexGuard<'_, Option<Remover>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
