//! Which bytes of a copy the variant itself moved, and which the last resort behind it.

use engines::{Moved, Stop, Variant};
use rustix::io::Errno;

use crate::sample::measurement::Measurement;

/// Over all files of a run.
#[derive(Debug, Default)]
pub(crate) struct Attribution {
    /// Bytes that the variant moved.
    pub(crate) own_bytes: u64,
    last_resort_bytes: u64,
    refusals: Vec<String>,
}

/// The attempts at one span: cheap enough to be noted inside the timed part.
#[derive(Debug)]
pub(crate) struct Attempts<'v> {
    variants: &'v [Variant],
    own: Option<Moved>,
    last_resort_bytes: u64,
}

impl<'v> Attempts<'v> {
    /// Attempts of `variants`, one after another. Every other variant is the last resort.
    pub(crate) fn of(variants: &'v [Variant]) -> Attempts<'v> {
        Attempts { variants, own: None, last_resort_bytes: 0 }
    }

    /// For the chain's observer.
    pub(crate) fn note(&mut self, tried: &Variant, moved: Moved) {
        if self.variants.contains(tried) {
            let before = self.own.map_or(0, |before| before.bytes);
            self.own = Some(Moved { bytes: before + moved.bytes, stop: moved.stop });
        } else {
            self.last_resort_bytes += moved.bytes;
        }
    }
}

impl Attribution {
    pub(crate) fn add(&mut self, attempts: &Attempts<'_>) {
        if let Some(own) = attempts.own {
            self.own_bytes += own.bytes;
            match own.stop {
                Stop::Refused(errno) | Stop::Failed { errno, .. } => self.refused(own, errno),
                Stop::Done | Stop::Eof => {}
            }
        }
        self.last_resort_bytes += attempts.last_resort_bytes;
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
