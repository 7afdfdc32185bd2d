//! The terminal as the observer of a copy: announcements on standard output, complaints and
//! questions on standard error, answers from standard input.

use std::io::{BufRead, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tree::{Announcement, Diagnostic, Errno, Observer, Question, Receipt};

use super::books::Books;
use super::interrupt::Interrupts;
use super::messages;

/// Standard output with what is yet to be written. Whatever goes to standard error goes after it,
/// so that both in one file stand in the order in which they came.
pub(super) struct Console {
    out: Mutex<Out>,
    line_buffered: bool,
    interrupts: Interrupts,
    books: Option<Books>,
}

struct Out {
    writer: BufWriter<Stdout>,
    failed: Option<Unsaid>,
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
    pub(super) fn new(interrupts: Interrupts, books: Option<Books>) -> Console {
        let stdout = std::io::stdout();
        Console {
            line_buffered: stdout.is_terminal(),
            out: Mutex::new(Out { writer: BufWriter::new(stdout), failed: None }),
            interrupts,
            books,
        }
    }

    /// Writes what is left, after a copy with so many failures.
    ///
    /// # Errors
    /// The first thing that was not said.
    pub(super) fn finish(self, failures: u64) -> Result<(), Unsaid> {
        let closed = self.books.as_ref().map(|books| books.close(failures, self.interrupts.name()));
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
        let mut out = self.lock();
        out.flush();
        // Nobody is left to tell of a failure.
        let _ = std::io::stderr().write_all(bytes);
    }
}

/// Writes all of `text` to standard output.
///
/// # Errors
/// Why it was not said.
pub(super) fn print(text: &str) -> Result<(), Unsaid> {
    let mut out = Out { writer: BufWriter::new(std::io::stdout()), failed: None };
    let written = out.writer.write_all(text.as_bytes());
    out.heed(written);
    out.flush();
    out.failed.map_or(Ok(()), Err)
}

impl Out {
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
        self.complain(&messages::of_diagnostic(&diagnostic));
    }

    fn confirm(&self, question: Question) -> bool {
        self.complain(&messages::of_question(&question));
        let mut answer = Vec::new();
        // No answer is no leave.
        let _ = self.interrupts.asking(|| std::io::stdin().lock().read_until(b'\n', &mut answer));
        matches!(answer.first(), Some(b'y' | b'Y'))
    }

    fn announce(&self, announcement: Announcement) {
        let line = messages::of_announcement(&announcement);
        let mut out = self.lock();
        let written = out.writer.write_all(&line);
        out.heed(written);
        if self.line_buffered {
            out.flush();
        }
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

    fn begins_in_earnest(&self) {
        self.interrupts.watch();
    }
}
