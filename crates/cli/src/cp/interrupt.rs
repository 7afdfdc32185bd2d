//! Signals that end a copy: it stops between two pieces of a file, tells which file is incomplete,
//! gives the directories it had entered their attributes, and dies of the signal.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use engines::sys::{hold_back, let_come};
use signal_hook::consts::{SIGCONT, SIGUSR1};
use signal_hook::iterator::Signals;

use super::console::Console;

/// How long the copy has to come to an orderly end. A read from a pipe may never return.
const GRACE: Duration = Duration::from_secs(1);

/// How long the last words may take. Whoever reads them may hang as well.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The signal that came, if any did.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    /// Somebody waits for signals, or cannot.
    watched: Arc<OnceLock<()>>,
    /// SIGUSR1 is held back, as it was not before this process began.
    held_back: Arc<AtomicBool>,
    /// Its number; 0 before one comes.
    caught: Arc<AtomicI32>,
    /// The user is being asked something, so nothing is half done.
    asking: Arc<AtomicBool>,
}

impl Interrupts {
    /// Of a process that is beginning. SIGUSR1, which asks how far the copy is, must not end it: it
    /// waits until it can be answered.
    pub(super) fn of_process() -> Interrupts {
        let interrupts = Interrupts::default();
        interrupts.held_back.store(hold_back(SIGUSR1), Ordering::Relaxed);
        interrupts
    }

    /// Waits for signals in a thread of its own from now on. Before that, and where the thread cannot
    /// be had, a signal ends the copy on the spot, as it does by default.
    pub(super) fn watch(&self, console: &Arc<Console>) {
        self.watched.get_or_init(|| {
            let (watching, console) = (self.clone(), console.clone());
            let thread = std::thread::Builder::new().name("signals".to_owned());
            let ending = crate::signals::ending();
            let heeded = [&ending[..], &crate::signals::not_ignored(&[SIGUSR1, SIGCONT])].concat();
            if let Ok(mut signals) = Signals::new(&heeded) {
                let handle = signals.handle();
                let held_back = self.hold_back(&heeded);
                let watch = move || {
                    // In this thread alone: the others may be in calls that no handler interrupts,
                    // a read from a server that has gone away for one.
                    held_back.into_iter().for_each(let_come);
                    watching.wait(&mut signals, &ending, &console);
                };
                if thread.spawn(watch).is_err() {
                    handle.close();
                }
            }
        });
    }

    /// Holds `signals` back from this thread and those that it makes. Returns those that were not
    /// held back when the process began.
    fn hold_back(&self, signals: &[i32]) -> Vec<i32> {
        let before = self.held_back.load(Ordering::Relaxed).then_some(SIGUSR1);
        let now = signals.iter().copied().filter(|signal| hold_back(*signal));
        now.chain(before).collect()
    }

    /// Whether a signal has come.
    pub(super) fn came(&self) -> bool {
        self.caught.load(Ordering::Relaxed) != 0
    }

    /// The name of the signal that came.
    pub(super) fn name(&self) -> Option<&'static str> {
        signal_hook::low_level::signal_name(self.caught.load(Ordering::SeqCst))
    }

    /// Runs `ask`, during which a signal ends the program at once.
    pub(super) fn asking<T>(&self, ask: impl FnOnce() -> T) -> T {
        self.asking.store(true, Ordering::SeqCst);
        let answer = ask();
        self.asking.store(false, Ordering::SeqCst);
        answer
    }

    /// Dies of the signal that came, as whoever sent it expects to see; returns if none did.
    pub(super) fn die_if_one_came(&self) {
        let signal = self.caught.load(Ordering::SeqCst);
        if signal != 0 {
            die_of(signal);
        }
    }

    fn wait(&self, signals: &mut Signals, ending: &[i32], console: &Arc<Console>) {
        let Some(signal) = signals.forever().find(|signal| ends(*signal, ending, console)) else {
            return;
        };
        self.caught.store(signal, Ordering::SeqCst);
        if self.asking.load(Ordering::SeqCst) {
            die_of(signal);
        }
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
            // Whoever asks twice does not want to wait.
            if signals.pending().any(|signal| ends(signal, ending, console)) {
                die_of(signal);
            }
        }
        let (said, all_said) = mpsc::channel();
        let console = console.clone();
        let last_words = std::thread::Builder::new().spawn(move || {
            console.abandon();
            let _ = said.send(());
        });
        if last_words.is_ok() {
            let _ = all_said.recv_timeout(LAST_WORDS);
        }
        die_of(signal);
    }
}

/// Whether `signal` ends the copy; does what is to be done of one that does not.
fn ends(signal: i32, ending: &[i32], console: &Arc<Console>) -> bool {
    match signal {
        SIGUSR1 => aside(console, Console::tell_status),
        SIGCONT => aside(console, Console::come_back),
        _ => {}
    }
    ending.contains(&signal)
}

/// Has another thread do it: a terminal that was stopped must not keep this one from the signals that
/// end the copy.
fn aside(console: &Arc<Console>, act: fn(&Console)) {
    let console = console.clone();
    let _ = std::thread::Builder::new().spawn(move || act(&console));
}

/// Ends the process as `signal` does by default.
pub(super) fn die_of(signal: i32) -> ! {
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    // Only a signal that does not end a program by default gets here.
    std::process::exit(128 + signal)
}
