//! The terminal as the observer of a copy: announcements on standard output, complaints and
//! questions on standard error, answers from standard input. With `--progress` a few lines of standard
//! error are drawn again and again below all else.

use std::io::{BufRead, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Instant;

use tree::{
    Announcement, CurrentFile, Diagnostic, Errno, Observer, PreScan, ProgressTracker, Question,
    Receipt, Severity,
};

use super::at_hand::AtHand;
use super::books::Books;
use super::interrupt::Interrupts;
use super::messages;
use super::progress::View;
use super::screen::{self, Screen};
use super::speed::{RUNS_EVERY, Speed};
use crate::live::size_or_usual;

/// Standard output with what is yet to be written. Whatever goes to standard error goes after it,
/// so that both in one file stand in the order in which they came.
pub(super) struct Console {
    /// For threads that outlive the copy.
    this: Weak<Console>,
    out: Mutex<Out>,
    line_buffered: bool,
    interrupts: Interrupts,
    books: Option<Books>,
    /// What a script need not hear is said too.
    notices: bool,
    activity: ProgressTracker,
    /// What there is to do, when progress is shown.
    count: Option<Arc<PreScan>>,
    /// Failures that were told of.
    failures: AtomicU64,
}

struct Out {
    writer: BufWriter<Stdout>,
    failed: Option<Unsaid>,
    /// What is drawn below everything else.
    screen: Screen,
    at_hand: AtHand,
    speed: Speed,
    /// Something was not drawn because the process may have been stopped.
    waited: bool,
    /// Nothing is to be drawn at the moment.
    still: bool,
    /// Nor later.
    over: bool,
}

/// Who looks at what is said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    /// Somebody watches how far it is.
    pub(super) shows_progress: bool,
    /// Somebody may want to know more than what went wrong.
    pub(super) notices: bool,
}

/// Why what was to be said was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsaid {
    /// Nobody listens any more, which this process was to die of. The copy is finished first, since
    /// half a tree is of no use to anybody.
    Unheard,
    /// The complaint was made.
    Error,
}

impl Console {
    /// A console whose copy stops when one of `interrupts` has come, and enters it into `books`.
    /// What it shows of progress is watched all the time, or asked for now and then; the `count`
    /// knows how much there is.
    pub(super) fn new(
        interrupts: Interrupts,
        books: Option<Books>,
        looks: Looks,
        count: Option<Arc<PreScan>>,
    ) -> Arc<Console> {
        let stdout = std::io::stdout();
        Arc::new_cyclic(|this| Console {
            this: this.clone(),
            line_buffered: stdout.is_terminal(),
            out: Mutex::new(Out::new(stdout)),
            interrupts,
            books,
            notices: looks.notices,
            activity: if looks.shows_progress {
                ProgressTracker::fine_grained()
            } else {
                ProgressTracker::default()
            },
            count,
            failures: AtomicU64::new(0),
        })
    }

    /// Draws how far the copy is. Returns whether that is worth doing again.
    pub(super) fn draw(&self) -> bool {
        let stderr = std::io::stderr();
        let mut out = self.lock();
        // A signal that comes a moment later tells whether it was stopped, and with it whose the
        // screen is. On a machine that is only busy this must not go on.
        let waits = out.speed.runs(Instant::now()) && !out.waited;
        out.waited = waits;
        if waits && !out.over {
            return true;
        }
        if out.still || !screen::is_in_foreground(&stderr) {
            // What is drawn after a stop comes below what the shell has written meanwhile.
            out.screen.forget();
            return !out.over;
        }
        let (columns, rows) = size_or_usual(&stderr);
        let in_hand = out.at_hand.shown(self.activity.current_files());
        let lines = self.view(&mut out, in_hand).lines(columns, rows);
        let text = out.screen.draw(&lines, columns);
        put(text.as_bytes());
        true
    }

    /// Says in a line how far the copy is.
    pub(super) fn tell_status(&self) {
        let mut out = self.lock();
        let line = self.view(&mut out, self.activity.current_files()).status();
        out.flush_to(line.as_bytes());
    }

    /// The process was told to run again. If it was stopped, the terminal was somebody else's.
    pub(super) fn come_back(&self) {
        let mut out = self.lock();
        if out.speed.runs_again(Instant::now(), self.activity.progress()) {
            out.screen.forget();
        }
    }

    /// The last words of a copy that does not come to its end: what is left half done.
    pub(super) fn abandon(&self) {
        let in_hand = self.activity.current_files();
        let mut words: Vec<u8> = in_hand
            .into_iter()
            .map(|CurrentFile { dst, bytes, atomic, .. }| match atomic {
                true => Diagnostic::InterruptedBefore { dst },
                false => Diagnostic::Interrupted { dst, bytes },
            })
            .flat_map(|interrupted| messages::of_diagnostic(&interrupted))
            .collect();
        if words.is_empty() {
            words = b"cp: interrupted\n".into();
        }
        // Whoever holds the lock may be the one that hangs, writing where nobody reads.
        match self.out.try_lock() {
            Ok(mut out) => {
                out.still = true;
                out.flush_to(&words);
            }
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => put(&words),
        }
        let failures = self.failures.load(Ordering::Relaxed);
        if let Some(closed) =
            self.books.as_ref().and_then(|books| books.close(failures, self.interrupts.name()))
        {
            closed.complaint.iter().for_each(|line| put(line));
            closed.stats.iter().for_each(|text| put(text.as_bytes()));
        }
    }

    fn view(&self, out: &mut Out, in_hand: Vec<CurrentFile>) -> View {
        let (now, progress) = (Instant::now(), self.activity.progress());
        out.speed.note(now, progress);
        let counted = self.count.as_ref().map(|count| count.get());
        View::new(now, &out.speed, progress, counted, in_hand)
    }

    /// Writes what is left, after a copy with so many failures.
    ///
    /// # Errors
    /// The first thing that was not said.
    pub(super) fn finish(&self, failures: u64) -> Result<(), Unsaid> {
        {
            let mut out = self.lock();
            out.still = true;
            out.over = true;
            out.erase();
        }
        if let Some(count) = &self.count {
            count.stop();
        }
        let books = self.books.as_ref();
        let closed = books.and_then(|books| books.close(failures, self.interrupts.name()));
        if let Some(closed) = &closed {
            closed.complaint.iter().for_each(|line| self.complain(line));
            closed.stats.iter().for_each(|text| self.complain(text.as_bytes()));
        }
        let mut out = self.lock();
        out.flush();
        let kept = closed.is_none_or(|closed| closed.whole);
        out.failed.map_or(if kept { Ok(()) } else { Err(Unsaid::Error) }, Err)
    }

    fn lock(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes to standard error, after all that was to be said before.
    fn complain(&self, bytes: &[u8]) {
        self.lock().flush_to(bytes);
    }
}

/// Draws the progress of `console` until its copy is over.
pub(super) fn keep_drawing(console: &Arc<Console>) {
    let console = console.clone();
    let thread = std::thread::Builder::new().name(String::from("progress"));
    // Without a thread there is no bar; the copy is what matters.
    let _ = thread.spawn(move || {
        while {
            // As often as eyes follow.
            std::thread::sleep(RUNS_EVERY);
            console.draw()
        } {}
    });
}

/// Writes to standard error, where a failure leaves nobody to tell.
fn put(bytes: &[u8]) {
    let _ = std::io::stderr().write_all(bytes);
}

/// Writes all of `text` to standard output.
///
/// # Errors
/// Why it was not said.
pub(super) fn print(text: &str) -> Result<(), Unsaid> {
    let mut out = Out::new(std::io::stdout());
    let written = out.writer.write_all(text.as_bytes());
    out.heed(written);
    out.flush();
    out.failed.map_or(Ok(()), Err)
}

impl Out {
    fn new(stdout: Stdout) -> Out {
        Out {
            writer: BufWriter::new(stdout),
            failed: None,
            screen: Screen::default(),
            at_hand: AtHand::default(),
            speed: Speed::new(Instant::now()),
            waited: false,
            still: false,
            over: false,
        }
    }

    /// Writes to standard error what comes after all that was to be said before.
    fn flush_to(&mut self, bytes: &[u8]) {
        self.erase();
        self.flush();
        put(bytes);
    }

    /// Makes room for words.
    fn erase(&mut self) {
        let (columns, _) = size_or_usual(&std::io::stderr());
        put(self.screen.erase(columns).as_bytes());
    }

    fn flush(&mut self) {
        let missing = engines::sys::stdout_was_closed() && !self.writer.buffer().is_empty();
        let result = if missing { Err(Errno::BADF.into()) } else { self.writer.flush() };
        self.heed(result);
    }

    fn heed(&mut self, result: std::io::Result<()>) {
        let (Err(error), None) = (result, self.failed) else { return };
        let unheard = error.kind() == ErrorKind::BrokenPipe;
        if unheard && !engines::sys::sigpipe_was_ignored() {
            self.failed = Some(Unsaid::Unheard);
            return;
        }
        let words = messages::error_words(&error);
        let _ = writeln!(std::io::stderr(), "cp: write error: {words}");
        self.failed = Some(Unsaid::Error);
    }
}

impl Observer for Console {
    fn diagnose(&self, diagnostic: Diagnostic) {
        match diagnostic.severity() {
            Severity::Failure => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            Severity::Notice if !self.notices => return,
            Severity::Warning | Severity::Notice => (),
        }
        self.complain(&messages::of_diagnostic(&diagnostic));
    }

    fn confirm(&self, question: Question) -> bool {
        self.complain(&messages::of_question(&question));
        self.lock().still = true;
        let mut answer = Vec::new();
        // No answer is no leave.
        let _ = self.interrupts.asking(|| std::io::stdin().lock().read_until(b'\n', &mut answer));
        self.lock().still = false;
        matches!(answer.first(), Some(b'y' | b'Y'))
    }

    fn announce(&self, announcement: Announcement) {
        let line = messages::of_announcement(&announcement);
        let mut out = self.lock();
        if self.line_buffered {
            out.erase();
        }
        let written = out.writer.write_all(&line);
        out.heed(written);
        if self.line_buffered {
            out.flush();
        }
    }

    fn progress(&self) -> Option<&ProgressTracker> {
        Some(&self.activity)
    }

    fn keeps_receipts(&self) -> bool {
        self.books.is_some()
    }

    fn finished(&self, receipt: Receipt) {
        if let Some(Err(line)) = self.books.as_ref().map(|books| books.enter(&receipt)) {
            self.complain(&line);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupts.came()
    }

    fn deferred_init(&self) {
        if let Some(console) = self.this.upgrade() {
            self.interrupts.watch(&console);
        }
    }
}
