//! Moves one span by a variant through the copier's chain, where one end is a socket.

use engines::{Chain, Pair, Side, Span, Stop, Variant};

use crate::clock::Clock;
use crate::error::Error;
use crate::sample::measurement::Measurement;
use crate::trial::attribution::{Attempts, Attribution};
use crate::trial::words_of;

/// A started variant with the last resort behind it.
pub(crate) struct SocketCopy {
    variant: Variant,
    chain: Chain,
}

impl SocketCopy {
    /// Starts `variant`; the inner error says why it does not start here.
    pub(crate) fn start(variant: &Variant) -> Result<SocketCopy, String> {
        let mut chain = Chain::with_last_resort([variant.clone()]);
        chain.start_first().map_err(|error| words_of(&error))?;
        Ok(SocketCopy { variant: variant.clone(), chain })
    }

    /// Moves all of `span` under the clock, and says how much of it the variant itself did.
    pub(crate) fn run(
        &mut self,
        pair: Pair<'_>,
        span: Span,
        clock: Clock<'_>,
        measured: &mut Measurement,
    ) -> Result<Attribution, Error> {
        self.run_after(|| Ok(()), pair, span, clock, measured)
    }

    /// Moves all of `span` under the clock, after `first`, which runs with the clock running.
    pub(crate) fn run_after(
        &mut self,
        first: impl FnOnce() -> Result<(), Error>,
        pair: Pair<'_>,
        span: Span,
        clock: Clock<'_>,
        measured: &mut Measurement,
    ) -> Result<Attribution, Error> {
        let mut file = self.chain.file(pair);
        let mut attempts = Attempts::of(std::slice::from_ref(&self.variant));
        let moved = clock.time(measured, || {
            first()?;
            Ok(file.copy(span, &mut |tried, _, moved| attempts.note(tried, moved)))
        })?;
        let mut share = Attribution::default();
        share.add(&attempts);
        let failed =
            |side, errno| Err(Error::CopyFailed { variant: self.variant.to_string(), side, errno });
        match moved.stop {
            Stop::Done => Ok(share),
            Stop::Eof => {
                let variant = self.variant.to_string();
                let how = format!("it found an end after {} of {} bytes", moved.bytes, span.len);
                Err(Error::Wrong { variant, how })
            }
            Stop::Refused(errno) => failed(Side::Pair, errno),
            Stop::Failed { side, errno } => failed(side, errno),
        }
    }
}
