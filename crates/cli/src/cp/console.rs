//! The terminal as the observer of a copy: announcements go to standard output, diagnostics and
//! questions to standard error, answers come from standard input. With `--progress` a few lines are
//! redrawn below everything else on standard error.

use std::io::{BufRead, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Instant;

use haulage::events::{
    Announcement, CurrentFile, Diagnostic, Errno, Observer, PreScan, ProgressTracker, Question,
    Receipt, Severity,
};

use crate::cp::interrupt::{Interrupts, SignalActions};
use crate::cp::messages::sink::{self, put_stderr};
use crate::cp::messages::wording;
use crate::cp::progress::current_files::ShownFiles;
use crate::cp::progress::rate::{REDRAW_EVERY, RateEstimator};
use crate::cp::progress::screen::{self, Screen};
use crate::cp::progress::view::View;
use crate::cp::receipt::recorder::Recorder;
use crate::terminal::live_lines::terminal_size;

/// Standard output and standard error. Buffered output is written before anything goes to standard
/// error, so that both have one order if they go to the same file.
pub(super) struct Console {
    /// For threads that outlive the copy.
    this: Weak<Console>,
    out: Mutex<Out>,
    line_buffered: bool,
    interrupts: Interrupts,
    recorder: Option<Recorder>,
    shows_notices: bool,
    tracker: ProgressTracker,
    /// How much there is to copy; only with `--progress`.
    scan: Option<Arc<PreScan>>,
    /// Failures that were reported.
    failures: AtomicU64,
}

struct Out {
    writer: BufWriter<Stdout>,
    error: Option<OutputError>,
    /// The lines that are redrawn below everything else.
    screen: Screen,
    shown_files: ShownFiles,
    rate: RateEstimator,
    /// A redraw was left out, because the process may have been stopped.
    skipped_redraw: bool,
    /// Nothing may be drawn at the moment: the user is being asked, or the copy was interrupted.
    paused: bool,
    /// The copy has ended. Nothing is drawn any more.
    ended: bool,
}

/// What is shown besides GNU cp's messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConsoleOptions {
    /// Redraw the progress all the time.
    pub(super) shows_progress: bool,
    /// Print diagnostics of [`Severity::Notice`].
    pub(super) shows_notices: bool,
}

/// Why output was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputError {
    /// The reader is gone, and SIGPIPE was not ignored: the process has to end by it. The copy is
    /// completed first, because half a tree is of no use.
    BrokenPipe,
    /// Another error, which was reported on standard error.
    Reported,
}

impl Console {
    /// A console whose copy stops when a signal arrives in `interrupts`, and which records each entry
    /// in `recorder`. `scan` knows how much there is to copy.
    pub(super) fn new(
        interrupts: Interrupts,
        recorder: Option<Recorder>,
        options: ConsoleOptions,
        scan: Option<Arc<PreScan>>,
    ) -> Arc<Console> {
        let stdout = std::io::stdout();
        Arc::new_cyclic(|this| Console {
            this: this.clone(),
            line_buffered: stdout.is_terminal(),
            out: Mutex::new(Out::new(stdout)),
            interrupts,
            recorder,
            shows_notices: options.shows_notices,
            tracker: if options.shows_progress {
                ProgressTracker::fine_grained()
            } else {
                ProgressTracker::default()
            },
            scan,
            failures: AtomicU64::new(0),
        })
    }

    /// Starts the thread that waits for signals, unless it runs.
    pub(super) fn watch_signals(&self) {
        if let Some(console) = self.this.upgrade() {
            let actions: Arc<dyn SignalActions> = console;
            self.interrupts.watch(&actions);
        }
    }

    /// Draws the progress. Returns whether it has to be drawn again later.
    fn draw(&self) -> bool {
        let stderr = std::io::stderr();
        let mut out = self.lock();
        // After a pause in which the process may have been stopped, one redraw is left out: if it was
        // stopped, SIGCONT arrives before the next, and another process may own the terminal. On a
        // busy machine there is no SIGCONT, so only one is left out.
        let skip = out.rate.tick(Instant::now()) && !out.skipped_redraw;
        out.skipped_redraw = skip;
        if skip && !out.ended {
            return true;
        }
        if out.paused || !screen::is_in_foreground(&stderr) {
            // The next lines are drawn below what the shell has written meanwhile.
            out.screen.forget();
            return !out.ended;
        }
        let (columns, rows) = terminal_size(&stderr);
        let files = out.shown_files.select(self.tracker.current_files());
        let lines = self.view(&mut out, files).lines(columns, rows);
        let text = out.screen.draw(&lines, columns);
        put_stderr(text.as_bytes());
        true
    }

    fn view(&self, out: &mut Out, files: Vec<CurrentFile>) -> View {
        let (now, progress) = (Instant::now(), self.tracker.progress());
        out.rate.add_sample(now, progress);
        let total = self.scan.as_ref().map(|scan| scan.get());
        View::new(now, &out.rate, progress, total, files)
    }

    /// Writes what is still buffered, the summary of the receipts, and the statistics.
    ///
    /// # Errors
    /// The first error of all output.
    pub(super) fn finish(&self, failures: u64) -> Result<(), OutputError> {
        {
            let mut out = self.lock();
            out.paused = true;
            out.ended = true;
            out.erase();
        }
        if let Some(scan) = &self.scan {
            scan.stop();
        }
        let is_complete = self.close_recorder(failures, |text| self.report(text));
        let mut out = self.lock();
        out.flush();
        out.error.map_or(if is_complete { Ok(()) } else { Err(OutputError::Reported) }, Err)
    }

    /// Ends the receipts, and reports errors and statistics by `put`. Returns whether every receipt
    /// was written.
    fn close_recorder(&self, failures: u64, put: impl Fn(&[u8])) -> bool {
        let recorder = self.recorder.as_ref();
        let closing =
            recorder.and_then(|recorder| recorder.close(failures, self.interrupts.name()));
        let Some(closing) = closing else { return true };
        closing.error_line.iter().for_each(|line| put(line));
        closing.stats.iter().for_each(|text| put(text.as_bytes()));
        closing.is_complete
    }

    /// Lines with the files that are not complete, for the last words of a thread that may hold any
    /// lock.
    pub(super) fn incomplete_at_failure(&self) -> Vec<u8> {
        let files = self.tracker.current_files_at_failure();
        let diagnostics = files.into_iter().filter(|file| !file.atomic).map(|file| {
            let CurrentFile { dst, bytes, bytes_expected, .. } = file;
            Diagnostic::Incomplete { dst, bytes, bytes_expected }
        });
        diagnostics.flat_map(|incomplete| wording::of_diagnostic(&incomplete)).collect()
    }

    /// Writes what another rank has to say to standard error, after all buffered output.
    pub(super) fn put_line_of_rank(&self, bytes: &[u8]) {
        let mut out = self.lock();
        out.erase();
        out.flush();
        put_stderr(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes to standard error, after all buffered output.
    fn report(&self, bytes: &[u8]) {
        self.lock().report(bytes);
    }
}

impl SignalActions for Console {
    fn print_status(&self) {
        let mut out = self.lock();
        let line = self.view(&mut out, self.tracker.current_files()).status();
        out.report(line.as_bytes());
    }

    fn resumed(&self) {
        let mut out = self.lock();
        if out.rate.resume(Instant::now(), self.tracker.progress()) {
            out.screen.forget();
        }
    }

    fn report_incomplete(&self) {
        let files = self.tracker.current_files();
        let mut lines: Vec<u8> = files
            .into_iter()
            .map(|CurrentFile { dst, bytes, atomic, .. }| match atomic {
                true => Diagnostic::InterruptedBefore { dst },
                false => Diagnostic::Interrupted { dst, bytes },
            })
            .flat_map(|interrupted| wording::of_diagnostic(&interrupted))
            .collect();
        if lines.is_empty() {
            lines = b"cp: interrupted\n".into();
        }
        // The thread that holds the lock may be blocked in a write to a full pipe.
        match self.out.try_lock() {
            Ok(mut out) => {
                out.paused = true;
                out.report(&lines);
            }
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => sink::put(&lines),
        }
        self.close_recorder(self.failures.load(Ordering::Relaxed), sink::put);
    }
}

impl Observer for Console {
    fn diagnose(&self, diagnostic: Diagnostic) {
        match diagnostic.severity() {
            Severity::Failure => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            Severity::Notice if !self.shows_notices => return,
            Severity::Warning | Severity::Notice => (),
        }
        if let (Diagnostic::LeftOver { .. }, Some(recorder)) = (&diagnostic, &self.recorder) {
            recorder.count_left_over();
        }
        self.report(&wording::of_diagnostic(&diagnostic));
    }

    fn confirm(&self, question: Question) -> bool {
        self.report(&wording::of_question(&question));
        self.lock().paused = true;
        let mut answer = Vec::new();
        // An answer that cannot be read counts as no.
        let read = || std::io::stdin().lock().read_until(b'\n', &mut answer);
        let _ = self.interrupts.while_prompting(read);
        self.lock().paused = false;
        matches!(answer.first(), Some(b'y' | b'Y'))
    }

    fn announce(&self, announcement: Announcement) {
        let line = wording::of_announcement(&announcement);
        let mut out = self.lock();
        if self.line_buffered {
            out.erase();
        }
        let written = out.writer.write_all(&line);
        out.check(written);
        if self.line_buffered {
            out.flush();
        }
    }

    fn progress(&self) -> Option<&ProgressTracker> {
        Some(&self.tracker)
    }

    fn keeps_receipts(&self) -> bool {
        self.recorder.is_some()
    }

    fn finished(&self, receipt: Receipt) {
        if let Some(Err(line)) = self.recorder.as_ref().map(|recorder| recorder.record(&receipt)) {
            self.report(&line);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupts.arrived()
    }

    fn deferred_init(&self) {
        self.watch_signals();
    }
}

/// Redraws the progress of `console` in a thread of its own until the copy ends.
pub(super) fn keep_drawing(console: &Arc<Console>) {
    let console = console.clone();
    let thread = std::thread::Builder::new().name(String::from("progress"));
    // If the thread cannot be started, the copy runs without a progress bar.
    let _ = thread.spawn(move || {
        while {
            std::thread::sleep(REDRAW_EVERY);
            console.draw()
        } {}
    });
}

/// Writes all of `text` to standard output.
///
/// # Errors
/// The first error of the write or of the flush.
pub(super) fn print(text: &str) -> Result<(), OutputError> {
    let mut out = Out::new(std::io::stdout());
    let written = out.writer.write_all(text.as_bytes());
    out.check(written);
    out.flush();
    out.error.map_or(Ok(()), Err)
}

impl Out {
    fn new(stdout: Stdout) -> Out {
        Out {
            writer: BufWriter::new(stdout),
            error: None,
            screen: Screen::default(),
            shown_files: ShownFiles::default(),
            rate: RateEstimator::new(Instant::now()),
            skipped_redraw: false,
            paused: false,
            ended: false,
        }
    }

    /// Writes to standard error, after all buffered output.
    fn report(&mut self, bytes: &[u8]) {
        self.erase();
        self.flush();
        sink::put(bytes);
    }

    /// Removes the redrawn lines from the terminal.
    fn erase(&mut self) {
        let (columns, _) = terminal_size(&std::io::stderr());
        put_stderr(self.screen.erase(columns).as_bytes());
    }

    fn flush(&mut self) {
        let is_closed = engines::sys::stdout_was_closed() && !self.writer.buffer().is_empty();
        let result = if is_closed { Err(Errno::BADF.into()) } else { self.writer.flush() };
        self.check(result);
    }

    /// Reports and keeps the first error.
    fn check(&mut self, result: std::io::Result<()>) {
        let (Err(error), None) = (result, self.error) else { return };
        let broken_pipe = error.kind() == ErrorKind::BrokenPipe;
        if broken_pipe && !engines::sys::sigpipe_was_ignored() {
            self.error = Some(OutputError::BrokenPipe);
            return;
        }
        let words = wording::error_words(&error);
        sink::put(format!("cp: write error: {words}\n").as_bytes());
        self.error = Some(OutputError::Reported);
    }
}
