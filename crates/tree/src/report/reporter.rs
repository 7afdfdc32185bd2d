//! Passes diagnostics and announcements to the observer of a run, and counts failures.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use engines::{Moved, Span, Variant};
use rustix::fs::{FileType, Mode};

use super::diagnostic::{Diagnostic, Severity};
use super::progress::ProgressTracker;
use super::receipt::{Attempt, Chosen, Offload, Receipt};
use crate::lock::lock;
use crate::request::Options;

/// Shared by all workers of a run.
pub(crate) struct Reporter<'r> {
    pub(crate) observer: &'r dyn Observer,
    verbose: bool,
    debug: bool,
    /// The order of messages about operands that are copied in parallel.
    pub(crate) order: MessageOrder,
    deferred_init: Once,
    failures: AtomicU64,
    /// The run is to stop, whatever the observer says.
    cancelled: &'r AtomicBool,
}

impl<'r> Reporter<'r> {
    /// For a run that also stops when `cancelled` is set.
    pub(crate) fn new(
        observer: &'r dyn Observer,
        options: &Options,
        cancelled: &'r AtomicBool,
    ) -> Reporter<'r> {
        Reporter {
            observer,
            verbose: options.verbose,
            debug: options.debug,
            order: MessageOrder::default(),
            deferred_init: Once::new(),
            failures: AtomicU64::new(0),
            cancelled,
        }
    }

    /// Reports `diagnostic` and counts it.
    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        self.count(&diagnostic);
        self.order.send(self.observer, diagnostic);
    }

    /// Reports the diagnostics of a file whose messages were pending.
    pub(crate) fn report_pending(&self, pending: PendingMessages, diagnostics: Vec<Diagnostic>) {
        diagnostics.iter().for_each(|diagnostic| self.count(diagnostic));
        self.order.release(self.observer, pending, diagnostics);
    }

    fn count(&self, diagnostic: &Diagnostic) {
        if diagnostic.severity() == Severity::Failure {
            self.add_failures(1);
        }
    }

    /// Counts failures without a message: a question that the user answered with no, and failures
    /// that another reporter has reported.
    pub(crate) fn add_failures(&self, failures: u64) {
        self.failures.fetch_add(failures, Ordering::Relaxed);
    }

    /// The number of failures so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Calls the deferred initialisation of the observer, once.
    pub(crate) fn deferred_init(&self) {
        self.deferred_init.call_once(|| self.observer.deferred_init());
    }

    /// Whether [`deferred_init`](Reporter::deferred_init) was called.
    pub(crate) fn is_deferred_init_done(&self) -> bool {
        self.deferred_init.is_completed()
    }

    /// Whether the run is to stop.
    pub(crate) fn interrupted(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.observer.interrupted()
    }

    /// Whether receipts are wanted.
    pub(crate) fn keeps_receipts(&self) -> bool {
        self.observer.keeps_receipts()
    }

    /// Whether the attempts of each engine are kept.
    pub(crate) fn keeps_attempts(&self) -> bool {
        self.debug || self.keeps_receipts()
    }

    /// With `--verbose`, announces the result of `announcement`.
    pub(crate) fn announce(&self, announcement: impl FnOnce() -> Announcement) {
        if self.verbose {
            self.observer.announce(announcement());
        }
    }

    /// With `--debug`, announces the result of `announcement`.
    pub(crate) fn announce_debug(&self, announcement: impl FnOnce() -> Announcement) {
        if self.debug {
            self.announce(announcement);
        }
    }
}

// Keeps messages about operands that are copied in parallel in the order of the operands.
//
// Messages about the first unfinished operand are passed on at once. Messages about a later one
// are held until all operands before it are finished. With `--durable` an operand is finished when
// it is synced, which may be long after it was written.

thread_local! {
    /// The index of the operand that this thread copies, if several are copied in parallel.
    static AT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The messages that are held.
#[derive(Debug, Default)]
pub(crate) struct MessageOrder(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The index of the first unfinished operand.
    first: usize,
    /// The operands after it, by index.
    later: BTreeMap<usize, Operand>,
}

#[derive(Debug, Default)]
struct Operand {
    messages: Vec<Diagnostic>,
    done: bool,
    /// Files of it whose sync may still fail.
    pending: usize,
}

/// The index of an operand with a file that may still have messages.
#[derive(Debug)]
#[must_use]
pub(crate) struct PendingMessages(Option<usize>);

impl MessageOrder {
    /// Passes `diagnostic` on, or holds it until its turn.
    pub(crate) fn send(&self, observer: &dyn Observer, diagnostic: Diagnostic) {
        match AT.get() {
            Some(at) => lock(&self.0).send(observer, at, diagnostic),
            None => observer.diagnose(diagnostic),
        }
    }

    /// Keeps the operand of this thread unfinished until [`MessageOrder::release`].
    pub(crate) fn hold(&self) -> PendingMessages {
        let at = AT.get();
        if let Some(at) = at {
            lock(&self.0).later.entry(at).or_default().pending += 1;
        }
        PendingMessages(at)
    }

    /// Passes on the last messages about a file, in the turn of its operand.
    pub(crate) fn release(
        &self,
        observer: &dyn Observer,
        pending: PendingMessages,
        messages: Vec<Diagnostic>,
    ) {
        let PendingMessages(Some(at)) = pending else {
            return messages.into_iter().for_each(|message| observer.diagnose(message));
        };
        let mut kept = lock(&self.0);
        messages.into_iter().for_each(|message| kept.send(observer, at, message));
        kept.later.entry(at).or_default().pending -= 1;
        kept.send_ready(observer);
    }

    /// Calls `act`, which copies the operand of index `at`. Indices start at zero without gaps.
    pub(crate) fn for_operand<T>(
        &self,
        observer: &dyn Observer,
        at: usize,
        act: impl FnOnce() -> T,
    ) -> T {
        AT.set(Some(at));
        let done = act();
        AT.set(None);
        let mut kept = lock(&self.0);
        kept.later.entry(at).or_default().done = true;
        kept.send_ready(observer);
        done
    }

    /// Passes on all held messages, of operands after one that was not copied. The next index is
    /// zero.
    pub(crate) fn flush(&self, observer: &dyn Observer) {
        let kept = std::mem::take(&mut *lock(&self.0));
        for operand in kept.later.into_values() {
            operand.messages.into_iter().for_each(|message| observer.diagnose(message));
        }
    }
}

impl Kept {
    fn send(&mut self, observer: &dyn Observer, at: usize, diagnostic: Diagnostic) {
        if at == self.first {
            observer.diagnose(diagnostic);
        } else {
            self.later.entry(at).or_default().messages.push(diagnostic);
        }
    }

    fn send_ready(&mut self, observer: &dyn Observer) {
        while let Some(operand) = self.later.get_mut(&self.first) {
            operand.messages.drain(..).for_each(|message| observer.diagnose(message));
            if !operand.done || operand.pending > 0 {
                // Further messages about this operand are passed on at once.
                return;
            }
            self.later.remove(&self.first);
            self.first += 1;
        }
    }
}

// The observer of a copy: it is told what is done, and answers questions.

/// Called from any thread that copies. Only [`diagnose`](Observer::diagnose) is required.
pub trait Observer: Sync {
    /// Reports a failure, a warning or a notice.
    fn diagnose(&self, diagnostic: Diagnostic);

    /// Asks whether to do something. `false` skips the entry.
    fn confirm(&self, question: Question) -> bool {
        let _ = question;
        false
    }

    /// Whether [`selects`](Observer::selects) is called, which costs a path for each entry.
    fn is_selective(&self) -> bool {
        false
    }

    /// Whether the entry `src` below an operand is copied. `kind` is its type as its directory lists
    /// it, which may be unknown. Without it a directory is not entered. Entries that the filter of the
    /// options leaves out are not asked about.
    fn selects(&self, src: &Path, kind: FileType) -> bool {
        let _ = (src, kind);
        true
    }

    /// Whether [`directory`](Observer::directory) is called, which costs two paths for each directory.
    fn follows_directories(&self) -> bool {
        false
    }

    /// The copy of the directory `src` to `dst` is at `stage`. `false` at [`DirectoryStage::Entered`]
    /// leaves out its entries. Not called in a dry run.
    fn directory(&self, src: &Path, dst: &Path, stage: DirectoryStage) -> bool {
        let _ = (src, dst, stage);
        true
    }

    /// Called when [`Options::verbose`](crate::Options::verbose) or
    /// [`Options::debug`](crate::Options::debug) is on.
    fn announce(&self, announcement: Announcement) {
        let _ = announcement;
    }

    /// Whether [`finished`](Observer::finished) is called, which costs two paths for each entry.
    fn keeps_receipts(&self) -> bool {
        false
    }

    /// An entry is finished. A directory is finished after its last entry.
    fn finished(&self, receipt: Receipt) {
        let _ = receipt;
    }

    /// An engine has copied a span of a file's data; called several times for a large file.
    fn moved(&self, variant: &Variant, span: Span, moved: Moved) {
        let _ = (variant, span, moved);
    }

    /// The deferred initialisation: what a copy of one small file does not need, such as a thread
    /// that waits for signals. Called at most once, when there is more to copy or a file system may
    /// block.
    fn deferred_init(&self) {}

    /// Where the run shows its progress.
    fn progress(&self) -> Option<&ProgressTracker> {
        None
    }

    /// Whether to stop soon. Directories that were entered still get their attributes.
    fn interrupted(&self) -> bool {
        false
    }
}

/// How far the copy of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryStage {
    /// The destination exists. No entry in it was copied yet, and other users may lack access to it.
    Entered,
    /// All entries were copied. The attributes of the destination were not.
    Filled,
}

/// A question of `--interactive`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Replace the destination `dst`?
    #[expect(missing_docs, reason = "explained above")]
    Overwrite { dst: PathBuf },
    /// The destination `dst` with the permissions `mode` is not writable. Remove it, if `removing`,
    /// or try to write?
    #[expect(missing_docs, reason = "explained above")]
    OverwriteUnwritable { dst: PathBuf, mode: Mode, removing: bool },
}

/// A message of `--verbose` or `--debug`. `src` is the source, `dst` the destination.
#[expect(missing_docs, reason = "the fields are explained above or with their variant")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// An entry is copied. `backup` is the backup of the existing file.
    Copied { src: PathBuf, dst: PathBuf, backup: Option<PathBuf> },
    /// A directory of `--parents` was created.
    ParentMade { src: PathBuf, dst: PathBuf },
    /// An existing destination was removed.
    Removed { dst: PathBuf },
    /// The copy failed, and the file was renamed from `backup` back to `dst`.
    Restored { backup: PathBuf, dst: PathBuf },
    /// An existing destination was kept. `--debug` only.
    Skipped { dst: PathBuf },
    /// An entry was left out by [`Options::filter`](crate::Options::filter). `--debug` only.
    LeftOut { src: PathBuf },
    /// How a regular file's data was copied, in the terms of GNU cp. `--debug` only.
    Data(Offload),
    /// Which engines copied it: the variant that was chosen, and all attempts. `--debug` only.
    Engine { src: PathBuf, dst: PathBuf, chosen: Chosen, attempts: Vec<Attempt> },
}

/// Receives nothing, for tests: a diagnostic ends them.
#[cfg(test)]
pub(crate) struct Silent;

#[cfg(test)]
impl Observer for Silent {
    fn diagnose(&self, diagnostic: Diagnostic) {
        panic!("{diagnostic:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Observer for Recorder {
        fn diagnose(&self, diagnostic: Diagnostic) {
            let Diagnostic::CyclicSymlink { src } = diagnostic else { unreachable!() };
            lock(&self.0).push(src.display().to_string());
        }
    }

    impl Recorder {
        fn received(&self) -> String {
            lock(&self.0).join(" ")
        }
    }

    fn message(text: &str) -> Diagnostic {
        Diagnostic::CyclicSymlink { src: PathBuf::from(text) }
    }

    /// Sends the messages `said`, by index and text, in this order, each index from its own thread.
    fn send_all(order: &MessageOrder, observer: &Recorder, said: &[(usize, &str)]) {
        let mut places: Vec<usize> = said.iter().map(|(at, _)| *at).collect();
        places.sort_unstable();
        places.dedup();
        std::thread::scope(|scope| {
            let senders: BTreeMap<_, _> = places
                .iter()
                .map(|&at| {
                    let (texts, received) = std::sync::mpsc::channel::<String>();
                    let (done, wait_done) = std::sync::mpsc::channel::<()>();
                    let thread = scope.spawn(move || {
                        order.for_operand(observer, at, || {
                            for text in received {
                                order.send(observer, message(&text));
                                done.send(()).expect("the test waits");
                            }
                        });
                    });
                    (at, (texts, wait_done, thread))
                })
                .collect();
            let mut senders = senders;
            for (index, (at, text)) in said.iter().enumerate() {
                let (texts, wait_done, _) = &senders[at];
                texts.send((*text).to_owned()).expect("the thread runs");
                wait_done.recv().expect("it was sent");
                if said[index + 1..].iter().all(|(later, _)| later != at) {
                    let (texts, _, thread) = senders.remove(at).expect("it was there");
                    drop(texts);
                    thread.join().expect("it has ended");
                }
            }
        });
    }

    #[test]
    fn messages_of_later_operands_are_held() {
        for (said, expected) in [
            (&[(0, "a"), (1, "b"), (2, "c")][..], "a b c"),
            (&[(2, "c"), (1, "b"), (0, "a")], "a b c"),
            (&[(1, "b"), (0, "a"), (1, "b2"), (0, "a2"), (2, "c")], "a a2 b b2 c"),
            (&[(1, "b"), (0, "a"), (2, "c"), (1, "b2"), (2, "c2")], "a b b2 c c2"),
        ] {
            let (order, observer) = (MessageOrder::default(), Recorder::default());
            send_all(&order, &observer, said);
            assert_eq!(observer.received(), expected, "{said:?}");
            order.flush(&observer);
            assert_eq!(observer.received(), expected, "{said:?}");
        }
    }

    #[test]
    fn messages_of_the_first_operand_are_passed_on_at_once() {
        let (order, observer) = (MessageOrder::default(), Recorder::default());
        order.for_operand(&observer, 0, || {
            order.send(&observer, message("a"));
            assert_eq!(observer.received(), "a");
        });
        order.send(&observer, message("without an operand"));
        assert_eq!(observer.received(), "a without an operand");
    }

    #[test]
    fn an_operand_with_pending_files_is_not_finished() {
        let (order, observer) = (MessageOrder::default(), Recorder::default());
        let first = order.for_operand(&observer, 0, || order.hold());
        let second = order.for_operand(&observer, 1, || order.hold());
        order.for_operand(&observer, 2, || order.send(&observer, message("c")));
        order.release(&observer, second, vec![message("b")]);
        assert_eq!(observer.received(), "");
        order.release(&observer, first, vec![message("a"), message("a2")]);
        assert_eq!(observer.received(), "a a2 b c");
        let none = order.hold();
        order.release(&observer, none, vec![message("without an operand")]);
        assert_eq!(observer.received(), "a a2 b c without an operand");
    }

    #[test]
    fn held_messages_are_flushed() {
        let (order, observer) = (MessageOrder::default(), Recorder::default());
        for at in [3, 1] {
            order.for_operand(&observer, at, || order.send(&observer, message(&at.to_string())));
        }
        assert_eq!(observer.received(), "");
        order.flush(&observer);
        assert_eq!(observer.received(), "1 3");
        order.for_operand(&observer, 0, || order.send(&observer, message("anew")));
        assert_eq!(observer.received(), "1 3 anew");
    }
}
