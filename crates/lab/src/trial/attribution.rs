//! Which bytes of a copy the variant itself moved, and which the last resort behind it.

use engines::{Moved, Stop};
use rustix::io::Errno;

use crate::sample::measurement::Measurement;

/// Over all files of a run.
#[derive(Debug, Default)]
pub(crate) struct Attribution {
    /// Bytes that the variant moved.
    pub(crate) own_bytes: u64,
    last_resort_bytes: u64,
    /// What the variant moved of the present span, and how its last attempt at it ended.
    own: Option<Moved>,
    refusals: Vec<String>,
}

impl Attribution {
    /// Notes an attempt at a span by the variant or by the last resort: cheap enough for the timed part.
    pub(crate) fn note(&mut self, is_own: bool, moved: Moved) {
        if is_own {
            let before = self.own.map_or(0, |before| before.bytes);
            self.own = Some(Moved { bytes: before + moved.bytes, stop: moved.stop });
        } else {
            self.last_resort_bytes += moved.bytes;
        }
    }

    /// Ends a span.
    pub(crate) fn end_span(&mut self) {
        let Some(own) = self.own.take() else { return };
        self.own_bytes += own.bytes;
        match own.stop {
            Stop::Refused(errno) | Stop::Failed { errno, .. } => self.refused(own, errno),
            Stop::Done | Stop::Eof => {}
        }
    }

    /// Reports each kind of refusal once.
    fn refused(&mut self, moved: Moved, errno: Errno) {
        let words = engines::describe(errno);
        let text = match moved.bytes {
            0 => words,
            bytes => format!("{words} after {bytes} bytes"),
        };
        if self.refusals.len() < 3 && !self.refusals.contains(&text) {
            self.refusals.push(text);
        }
    }

    /// The refusals as text; never empty for a variant that moved nothing.
    pub(crate) fn refusals(&self) -> String {
        if self.own_bytes == 0 && self.refusals.is_empty() {
            // The chain does not ask again.
            return "it has refused before, for all files of this kind".to_owned();
        }
        self.refusals.join("; ")
    }

    /// Fills in what the last resort did. The refusals if it did all.
    pub(crate) fn fill(&self, measured: &mut Measurement) -> Result<(), String> {
        measured.refusals = self.refusals();
        measured.last_resort_bytes = self.last_resort_bytes;
        if self.own_bytes == 0 { Err(self.refusals()) } else { Ok(()) }
    }
}
