//! Signals that end a race: the scratch directory is removed first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab::fixture::{Remover, Scratch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
        let mut signals = vec![SIGINT, SIGTERM];
        // Under nohup a hangup is to be survived.
        if !hangup_is_ignored() {
            signals.push(SIGHUP);
        }
        let mut signals = Signals::new(signals)?;
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

/// Bit 0 of SigIgn, proc_pid_status(5), is signal 1.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}
