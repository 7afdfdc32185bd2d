//! Signals that end a copy. The copy stops between two pieces of a file, reports which file is
//! incomplete, sets the attributes of the directories that it entered, and ends by the signal.
//! Within a file, `tree` checks for the signal in data/transfer.rs (`next_piece`).

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCONT, SIGUSR1};
use sys::{block_signal, unblock_signal};

use crate::signals::SignalQueue;

/// How long the copy may take to stop after a signal. A read from a pipe may never return.
const GRACE: Duration = Duration::from_secs(1);

/// How long the final report may take. The terminal or pipe that it is written to may block as well.
const FINAL_REPORT: Duration = Duration::from_millis(500);

/// The stack of the thread that waits. The default of 2 MiB would be missing where address space is
/// limited.
const STACK_BYTES: usize = 256 << 10;

/// What a signal makes the program report. Each call runs in a thread of its own.
pub(super) trait SignalActions: Send + Sync {
    /// SIGUSR1: print one line of progress.
    fn print_status(&self);
    /// SIGCONT: the process may have been stopped, and the terminal used by another process.
    fn resumed(&self);
    /// The copy did not stop within [`GRACE`]: report the files that are incomplete. While the user is asked a question,
    /// none is.
    fn report_incomplete(&self, is_prompting: bool);
}

/// The signal that arrived, if one did.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    /// Set once the thread that waits for signals was started, or could not be.
    watched: Arc<OnceLock<()>>,
    /// SIGUSR1 is blocked, and was not when this process began.
    blocked_usr1: bool,
    /// The signal's number; 0 before one arrives.
    caught: Arc<AtomicI32>,
    /// The user is being asked a question, so no file is incomplete.
    prompting: Arc<AtomicBool>,
}

impl Interrupts {
    /// For a process that is starting. Blocks SIGUSR1, which asks for the status and would end the
    /// process by default, until a thread can answer it.
    pub(super) fn of_process() -> Interrupts {
        Interrupts { blocked_usr1: block_signal(SIGUSR1), ..Interrupts::default() }
    }

    /// Starts a thread that waits for signals. Before that, and if the thread cannot be started, a
    /// signal ends the process at once, as it does by default.
    pub(super) fn watch(&self, actions: &Arc<dyn SignalActions>) {
        self.watched.get_or_init(|| {
            let (watching, actions) = (self.clone(), actions.clone());
            let thread =
                std::thread::Builder::new().name("signals".to_owned()).stack_size(STACK_BYTES);
            let ending = crate::signals::ending();
            let handled = [&ending[..], &crate::signals::not_ignored(&[SIGUSR1, SIGCONT])].concat();
            if let Ok(mut signals) = SignalQueue::of(&handled) {
                let handle = signals.handle();
                let blocked = self.block(&handled);
                let watch = move || {
                    // Unblocked in this thread only: other threads may be in a call that no handler
                    // interrupts, such as a read from an unreachable server.
                    blocked.into_iter().for_each(unblock_signal);
                    watching.wait(&mut signals, &ending, &actions);
                };
                if thread.spawn(watch).is_err() {
                    handle.close();
                }
            }
        });
    }

    /// Blocks `signals` in this thread and in the threads that it starts. Returns those that were
    /// not blocked when the process began.
    fn block(&self, signals: &[i32]) -> Vec<i32> {
        let before = self.blocked_usr1.then_some(SIGUSR1);
        let now = signals.iter().copied().filter(|signal| block_signal(*signal));
        now.chain(before).collect()
    }

    /// Whether a signal has arrived.
    pub(super) fn arrived(&self) -> bool {
        self.caught.load(Ordering::Relaxed) != 0
    }

    /// The name of the signal that arrived.
    pub(super) fn name(&self) -> Option<&'static str> {
        signal_hook::low_level::signal_name(self.caught.load(Ordering::SeqCst))
    }

    /// Runs `prompt`. A signal that arrives meanwhile ends the process at once.
    pub(super) fn while_prompting<T>(&self, prompt: impl FnOnce() -> T) -> T {
        self.prompting.store(true, Ordering::SeqCst);
        let answer = prompt();
        self.prompting.store(false, Ordering::SeqCst);
        answer
    }

    /// Ends the process by the signal that arrived, which its parent can see in the wait status.
    /// Returns if none arrived.
    pub(super) fn die_if_arrived(&self) {
        let signal = self.caught.load(Ordering::SeqCst);
        if signal != 0 {
            die_of(signal);
        }
    }

    fn wait(&self, signals: &mut SignalQueue, ending: &[i32], actions: &Arc<dyn SignalActions>) {
        let signal = loop {
            if let Some(signal) = signals.wait().find(|signal| handle(*signal, ending, actions)) {
                break signal;
            }
        };
        self.caught.store(signal, Ordering::SeqCst);
        let is_prompting = self.prompting.load(Ordering::SeqCst);
        let deadline = Instant::now() + if is_prompting { Duration::ZERO } else { GRACE };
        while Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
            // A second signal means that the user does not want to wait.
            if signals.pending().any(|signal| handle(signal, ending, actions)) {
                die_of(signal);
            }
        }
        let (reported, all_reported) = mpsc::channel();
        let actions = actions.clone();
        let report = std::thread::Builder::new().spawn(move || {
            actions.report_incomplete(is_prompting);
            let _ = reported.send(());
        });
        if report.is_ok() {
            let _ = all_reported.recv_timeout(FINAL_REPORT);
        }
        die_of(signal);
    }
}

/// Acts on a signal that does not end the copy. Returns whether `signal` ends it.
fn handle(signal: i32, ending: &[i32], actions: &Arc<dyn SignalActions>) -> bool {
    match signal {
        SIGUSR1 => in_thread(actions, |actions| actions.print_status()),
        SIGCONT => in_thread(actions, |actions| actions.resumed()),
        _ => {}
    }
    ending.contains(&signal)
}

/// Acts in another thread: a write to a stopped terminal blocks, and must not keep this thread from
/// the signals that end the copy.
fn in_thread(actions: &Arc<dyn SignalActions>, act: fn(&dyn SignalActions)) {
    let actions = actions.clone();
    let _ = std::thread::Builder::new().spawn(move || act(&*actions));
}

/// Ends the process as `signal` does by default.
pub(super) fn die_of(signal: i32) -> ! {
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    // Reached only for a signal that does not end a process by default.
    std::process::exit(128 + signal)
}
