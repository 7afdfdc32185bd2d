//! The terminal as the observer of a copy: announcements go to standard output, diagnostics and
//! questions to standard error, answers come from standard input. With `--progress` a few lines are
//! redrawn below everything else on standard error.

use std::io::{BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use haulage::events::{
    Announcement, CurrentFile, Diagnostic, Errno, Observer, PreScan, Progress, ProgressTracker,
    Question, Receipt, Severity, words_of_error,
};
use rustix::io::retry_on_intr;

use crate::cp::interrupt::{Interrupts, SignalActions};
use crate::cp::job::{Collector, Job, OtherRanks};
use crate::cp::messages::sink;
use crate::cp::messages::wording;
use crate::cp::progress::current_files::ShownFiles;
use crate::cp::progress::rate::{REDRAW_EVERY, RateEstimator};
use crate::cp::progress::view::View;
use crate::cp::receipt::json::Receipts;
use crate::cp::receipt::recorder::{Ending, Recorder};
use crate::terminal::live_lines::{put_stderr, terminal_size};
use crate::terminal::screen::{self, Screen};

/// Standard output and standard error. Buffered output is written before anything goes to standard
/// error, so that both have one order if they go to the same file.
pub(super) struct Console {
    /// For threads that outlive the copy.
    this: Weak<Console>,
    out: Mutex<Out>,
    line_buffered: bool,
    interrupts: Interrupts,
    recorder: Option<Recorder>,
    options: ConsoleOptions,
    tracker: ProgressTracker,
    /// How much there is to copy; only with `--progress`.
    scan: Option<Arc<PreScan>>,
    /// The job of which this process is a rank.
    job: Option<Arc<dyn Job>>,
    /// Failures that were reported.
    failures: AtomicU64,
}

/// How long the last report waits for the lock: less than the time that it has in all.
const REPORT_WITHOUT_LOCK_AFTER: Duration = Duration::from_millis(200);

/// So many redraws are left out at most while SIGCONT may be on its way.
const LEFT_OUT_MAX: u32 = 4;

struct Out {
    writer: BufWriter<Stdout>,
    /// Something was written.
    is_used: bool,
    error: Option<OutputError>,
    /// The lines that are redrawn below everything else.
    screen: Screen,
    shown_files: ShownFiles,
    rate: RateEstimator,
    /// So many redraws in a row were left out, because the process may have been stopped.
    left_out: u32,
    /// Nothing may be drawn at the moment: the user is being asked.
    paused: bool,
    /// The copy has ended. Nothing is drawn any more.
    ended: bool,
}

/// What is shown besides GNU cp's messages.
#[derive(Clone, Debug)]
pub(super) struct ConsoleOptions {
    /// How the progress is shown.
    pub(super) shown: ShownProgress,
    /// Print diagnostics of [`Severity::Notice`].
    pub(super) shows_notices: bool,
    /// The copy waits until its data is on the medium.
    pub(super) waits: bool,
    /// Say at the end how much is still being written to this destination.
    pub(super) writes_to: Option<PathBuf>,
}

/// Less than that is not worth a message: a slow USB stick writes it in a second or two.
const UNWRITTEN_BYTES_MIN: u64 = 8 << 20;

/// How the progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownProgress {
    /// Only when a signal asks for it.
    No,
    /// Redrawn all the time, on a terminal.
    Redrawn,
    /// As a line a minute, where there is no terminal.
    Lines,
    /// Rank 0 shows it for this rank.
    ByRank0,
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
        job: Option<Arc<dyn Job>>,
    ) -> Arc<Console> {
        let stdout = std::io::stdout();
        Arc::new_cyclic(|this| Console {
            this: this.clone(),
            line_buffered: stdout.is_terminal(),
            out: Mutex::new(Out::new(stdout)),
            interrupts,
            recorder,
            tracker: match options.shown {
                ShownProgress::No => ProgressTracker::default(),
                _ => ProgressTracker::fine_grained(),
            },
            options,
            scan,
            job,
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
        // After a pause in which the process may have been stopped, some redraws are left out: if it was stopped,
        // another process may own the terminal, and SIGCONT is handled meanwhile, which takes its time on a busy
        // machine. There pauses are no stops, either, so that something is drawn between two of them.
        let may_have_stopped = out.rate.tick(Instant::now());
        out.left_out = match out.left_out {
            0 if !may_have_stopped => 0,
            LEFT_OUT_MAX => 0,
            some => some + 1,
        };
        if out.left_out > 0 && !out.ended {
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
        let now = Instant::now();
        let (mut progress, others) = self.progress_of_all();
        if !self.options.waits {
            progress.unwritten_bytes = 0;
        }
        out.rate.add_sample(now, progress);
        let total = self.scan.as_ref().map(|scan| scan.get());
        View::new(now, &out.rate, progress, total, files).with_other_ranks(others)
    }

    /// The sums of this process, or of all ranks, and how far the others are.
    fn progress_of_all(&self) -> (Progress, Option<OtherRanks>) {
        let own = self.tracker.progress();
        match &self.job {
            Some(job) if job.is_first() => {
                let others = job.others();
                (own.plus(others.progress), Some(others))
            }
            _ => (own, None),
        }
    }

    /// Prints a line with the progress of all ranks. Returns whether another is due later.
    fn print_progress(&self) -> bool {
        let mut out = self.lock();
        if out.ended {
            return false;
        }
        let line = self.view(&mut out, Vec::new()).status();
        out.report_of_all(line.as_bytes());
        true
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
        let is_complete = self.close_recorder(failures, true, |text| self.report(text));
        self.report_unwritten();
        let mut out = self.lock();
        out.close();
        out.error.map_or(if is_complete { Ok(()) } else { Err(OutputError::Reported) }, Err)
    }

    /// Says how much the kernel is still writing.
    fn report_unwritten(&self) {
        let Some(dst) = &self.options.writes_to else { return };
        let unwritten = self.tracker.progress().unwritten_bytes;
        if unwritten >= UNWRITTEN_BYTES_MIN {
            self.report(&wording::of_unwritten(unwritten, dst));
        }
    }

    /// Ends the receipts, and reports errors and statistics by `put`. Returns whether every receipt
    /// was written.
    fn close_recorder(&self, failures: u64, has_ended: bool, put: impl Fn(&[u8])) -> bool {
        let Some(recorder) = &self.recorder else { return true };
        let job = self.job.as_ref();
        // Those that rank 0 counts for the others are in their summaries.
        let failures = job.map_or(failures, |_| self.failures.load(Ordering::Relaxed));
        // Other ranks may be on other hosts.
        let unwritten_bytes = job.is_none().then(|| self.tracker.progress().unwritten_bytes);
        let signal = self.interrupts.name();
        let end = Ending { failures, signal, has_ended, unwritten_bytes };
        recorder.close(end, job, put)
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

    fn lock(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if it is free within `timeout`. The thread that holds it may be blocked in a write to
    /// a full pipe. Usually it draws the progress, and would draw over a line that another thread
    /// writes without the lock.
    fn lock_within(&self, timeout: Duration) -> Option<MutexGuard<'_, Out>> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.out.try_lock() {
                Ok(out) => return Some(out),
                Err(TryLockError::Poisoned(_)) => return None,
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Writes to standard error, after all buffered output.
    fn report(&self, bytes: &[u8]) {
        self.lock().report(bytes);
    }

    fn receipts(&self) -> Option<&Receipts> {
        self.recorder.as_ref().and_then(Recorder::receipts)
    }

    /// Reports the error line of a receipt.
    fn report_error_of(&self, written: Option<Result<(), Vec<u8>>>) {
        if let Some(Err(line)) = written {
            self.report(&line);
        }
    }
}

impl Collector for Console {
    fn tell(&self, lines: &[u8]) {
        self.lock().report_of_all(lines);
    }

    fn add_receipts(&self, lines: &[u8]) {
        self.report_error_of(self.receipts().map(|receipts| receipts.lines(lines)));
    }

    fn flush_receipts(&self) {
        self.report_error_of(self.receipts().map(Receipts::flush));
    }
}

impl SignalActions for Console {
    fn print_status(&self) {
        if self.job.as_ref().is_some_and(|job| !job.is_first()) {
            // mpirun passes the signal on to all ranks, and rank 0 answers for all.
            return;
        }
        let mut out = self.lock();
        let line = self.view(&mut out, self.tracker.current_files()).status();
        out.report_of_all(line.as_bytes());
    }

    fn resumed(&self) {
        let mut out = self.lock();
        if out.rate.resume(Instant::now(), self.tracker.progress()) {
            out.screen.forget();
            out.left_out = 0;
        }
    }

    fn report_incomplete(&self, is_prompting: bool) {
        if is_prompting {
            self.close_recorder(self.failures.load(Ordering::Relaxed), false, sink::put);
            return;
        }
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
        match self.lock_within(REPORT_WITHOUT_LOCK_AFTER) {
            Some(mut out) => {
                out.report(&lines);
                // These are the last words: the lock is kept until the process ends, as a read may fail before that.
                std::mem::forget(out);
            }
            None => sink::put(&lines),
        }
        self.close_recorder(self.failures.load(Ordering::Relaxed), false, sink::put);
    }
}

impl Observer for Console {
    fn diagnose(&self, diagnostic: Diagnostic) {
        match diagnostic.severity() {
            Severity::Failure => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            Severity::Notice if !self.options.shows_notices => return,
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
        // An answer that cannot be read counts as no. What comes after it is for the next program.
        let mut byte = [0];
        self.interrupts.while_prompting(|| {
            while retry_on_intr(|| rustix::io::read(std::io::stdin(), &mut byte)) == Ok(1)
                && byte[0] != b'\n'
            {
                answer.push(byte[0]);
            }
        });
        self.lock().paused = false;
        matches!(answer.first(), Some(b'y' | b'Y'))
    }

    fn announce(&self, announcement: Announcement) {
        let line = wording::of_announcement(&announcement);
        let mut out = self.lock();
        if self.line_buffered {
            out.erase();
        }
        out.write(&line);
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
        self.report_error_of(self.recorder.as_ref().map(|recorder| recorder.record(&receipt)));
    }

    fn interrupted(&self) -> bool {
        self.interrupts.arrived()
    }

    fn deferred_init(&self) {
        self.watch_signals();
    }
}

/// How often the progress is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Shows the progress of `console` in a thread of its own until the copy ends.
pub(super) fn keep_showing(console: &Arc<Console>, shown: ShownProgress) {
    let console = console.clone();
    let (every, show): (Duration, fn(&Console) -> bool) = match shown {
        ShownProgress::Lines => (LINE_EVERY, Console::print_progress),
        _ => (REDRAW_EVERY, Console::draw),
    };
    let thread = std::thread::Builder::new().name(String::from("progress"));
    // If the thread cannot be started, the copy runs without a progress bar.
    let _ = thread.spawn(move || {
        while {
            std::thread::sleep(every);
            show(&console)
        } {}
    });
}

/// Writes all of `text` to standard output.
///
/// # Errors
/// The first error of the write or of the flush.
pub(super) fn print(text: &str) -> Result<(), OutputError> {
    let mut out = Out::new(std::io::stdout());
    out.write(text.as_bytes());
    out.close();
    out.error.map_or(Ok(()), Err)
}

impl Out {
    fn new(stdout: Stdout) -> Out {
        Out {
            writer: BufWriter::new(stdout),
            is_used: false,
            error: None,
            screen: Screen::default(),
            shown_files: ShownFiles::default(),
            rate: RateEstimator::new(Instant::now()),
            left_out: 0,
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

    /// Writes to standard error what is not this rank's alone, after all buffered output.
    fn report_of_all(&mut self, bytes: &[u8]) {
        self.erase();
        self.flush();
        put_stderr(bytes);
    }

    /// Removes the redrawn lines from the terminal.
    fn erase(&mut self) {
        let (columns, _) = terminal_size(&std::io::stderr());
        put_stderr(self.screen.erase(columns).as_bytes());
    }

    fn flush(&mut self) {
        let is_closed = sys::stdout_was_closed() && !self.writer.buffer().is_empty();
        let result = if is_closed { Err(Errno::BADF.into()) } else { self.writer.flush() };
        self.check(result);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.is_used = true;
        let written = self.writer.write_all(bytes);
        self.check(written);
    }

    /// Reports what close(2) would: a network file system or a quota may refuse then what was written.
    fn close(&mut self) {
        self.flush();
        if self.is_used {
            self.check(sys::flush_as_close(std::io::stdout()).map_err(Into::into));
        }
    }

    /// Reports and keeps the first error.
    fn check(&mut self, result: std::io::Result<()>) {
        let (Err(error), None) = (result, self.error) else { return };
        let broken_pipe = error.kind() == ErrorKind::BrokenPipe;
        if broken_pipe && !sys::sigpipe_was_ignored() {
            self.error = Some(OutputError::BrokenPipe);
            return;
        }
        let words = words_of_error(&error);
        sink::put(format!("cp: write error: {words}\n").as_bytes());
        self.error = Some(OutputError::Reported);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_waits_for_the_lock_but_not_for_ever() {
        let shown = ShownProgress::No;
        let options = ConsoleOptions { shown, shows_notices: false, waits: false, writes_to: None };
        let console = Console::new(Interrupts::default(), None, options, None, None);
        std::thread::scope(|scope| {
            let held = console.lock();
            let waiting = scope.spawn(|| console.lock_within(Duration::from_secs(60)).is_some());
            std::thread::sleep(Duration::from_millis(20));
            drop(held);
            assert!(waiting.join().expect("joined"));

            let _held = console.lock();
            let waiting = scope.spawn(|| console.lock_within(Duration::from_millis(20)).is_some());
            assert!(!waiting.join().expect("joined"));
        });
    }
}
