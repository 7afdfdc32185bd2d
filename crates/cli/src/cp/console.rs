//! The terminal as the observer of a copy: announcements on standard output, complaints and
//! questions on standard error, answers from standard input.

use std::io::{BufRead, BufWriter, IsTerminal, Stdout, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tree::{Announcement, Diagnostic, Errno, Observer, Question};

use super::interrupt::Interrupts;
use super::messages;

/// Standard output with what is yet to be written. Whatever goes to standard error goes after it,
/// so that both in one file stand in the order in which they came.
pub(super) struct Console {
    out: Mutex<Out>,
    line_buffered: bool,
    interrupts: Interrupts,
}

struct Out {
    writer: BufWriter<Stdout>,
    failed: bool,
}

impl Console {
    /// A console whose copy stops when one of `interrupts` has come.
    pub(super) fn new(interrupts: Interrupts) -> Console {
        let stdout = std::io::stdout();
        Console {
            line_buffered: stdout.is_terminal(),
            out: Mutex::new(Out { writer: BufWriter::new(stdout), failed: false }),
            interrupts,
        }
    }

    /// Writes what is left. Returns whether everything could be written.
    pub(super) fn finish(self) -> bool {
        let mut out = self.lock();
        out.flush();
        !out.failed
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
/// What the kernel says, or would say had the standard library not replaced what is missing.
pub(super) fn print(text: &str) -> std::io::Result<()> {
    if engines::sys::stdout_was_closed() {
        return Err(Errno::BADF.into());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

impl Out {
    fn flush(&mut self) {
        let missing = engines::sys::stdout_was_closed() && !self.writer.buffer().is_empty();
        let result = if missing { Err(Errno::BADF.into()) } else { self.writer.flush() };
        self.heed(result);
    }

    fn heed(&mut self, result: std::io::Result<()>) {
        let Err(error) = result else { return };
        if !self.failed {
            let words = messages::error_words(&error);
            let _ = writeln!(std::io::stderr(), "cp: write error: {words}");
        }
        self.failed = true;
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

    fn interrupted(&self) -> bool {
        self.interrupts.came()
    }
}
