//! What follows a refusal. No other code decides to try another engine.

use std::io;

use rustix::io::Errno;

use crate::engine::Copier;
use crate::moved::refuses_for_good;
use crate::read_write::READ_WRITE;
use crate::{Moved, Pair, Side, Span, Stop, Variant};

/// Variants in the order of preference for one pair of file systems. It remembers which of them
/// can never work there and does not ask them again.
pub struct Chain {
    links: Vec<Link>,
}

struct Link {
    variant: Variant,
    copier: Option<Box<dyn Copier>>,
    refused_for_good: bool,
}

/// Called with every attempt: the variant, what it was asked for, and what came of it. Progress,
/// `--debug`, receipts and the lab all hang on it.
pub type Observer<'o> = dyn FnMut(&Variant, Span, Moved) + 'o;

impl Chain {
    /// Exactly these variants: when the last refuses, the copy is refused.
    #[must_use]
    pub fn exactly(variants: impl IntoIterator<Item = Variant>) -> Chain {
        let link = |variant| Link { variant, copier: None, refused_for_good: false };
        Chain { links: variants.into_iter().map(link).collect() }
    }

    /// These variants, then `read_write`, which refuses nothing.
    #[must_use]
    pub fn with_last_resort(variants: impl IntoIterator<Item = Variant>) -> Chain {
        let mut chain = Chain::exactly(variants);
        let ends_well = chain.links.last().is_some_and(|last| {
            last.variant.engine.name == READ_WRITE.name && last.variant.workers == 1
        });
        if !ends_well {
            chain.links.extend(Chain::exactly([Variant::plain(&READ_WRITE)]).links);
        }
        chain
    }

    /// Starts the first variant's copier now rather than with the first span, so that its buffers,
    /// ring or pipe are there before a clock starts.
    ///
    /// # Errors
    /// What the kernel says when these cannot be had; [`FileCopy::copy`] then treats the variant as
    /// refused.
    pub fn start_first(&mut self) -> io::Result<()> {
        self.links.first_mut().map_or(Ok(()), |link| link.copier().map(|_| ()))
    }

    /// Status flags that the first variant's copier needs, once it is started.
    #[must_use]
    pub fn first_status_flags(&self) -> rustix::fs::OFlags {
        let first = self.links.first().and_then(|link| link.copier.as_ref());
        first.map_or(rustix::fs::OFlags::empty(), |copier| copier.status_flags())
    }

    /// Begins the copy of one file between descriptors of this chain's pair of file systems.
    pub fn file<'c>(&'c mut self, pair: Pair<'c>) -> FileCopy<'c> {
        FileCopy { chain: self, pair, bytes: 0 }
    }
}

/// The copy of one file: its spans, one after another.
pub struct FileCopy<'c> {
    chain: &'c mut Chain,
    pair: Pair<'c>,
    /// Moved so far, over all spans.
    bytes: u64,
}

impl FileCopy<'_> {
    /// Moves `span` by the first variant that does not refuse it; the next goes on exactly where a
    /// refusal left off. Whatever is not a refusal ends the copy: a real error is never covered up
    /// by trying another way.
    pub fn copy(&mut self, span: Span, observe: &mut Observer<'_>) -> Moved {
        let mut bytes = 0;
        let mut refusal = Errno::NOSYS;
        for link in self.chain.links.iter_mut().filter(|link| !link.refused_for_good) {
            let left = span.after(bytes);
            let moved = match link.copier() {
                Ok(copier) => copier.copy(self.pair, left),
                Err(error) => Moved::refused(errno_of(&error)),
            };
            observe(&link.variant, left, moved);
            bytes += moved.bytes;
            self.bytes += moved.bytes;
            match moved.stop {
                Stop::Done | Stop::Eof => return Moved { bytes, stop: moved.stop },
                Stop::Refused(errno) => {
                    link.refused_for_good = refuses_for_good(errno) || link.copier.is_none();
                    refusal = errno;
                }
                Stop::Failed { side: Side::Pair, errno }
                    if self.bytes == 0
                        && link.variant.engine.facts.first_call_excuses.contains(&errno) =>
                {
                    refusal = errno;
                }
                Stop::Failed { .. } => return Moved { bytes, stop: moved.stop },
            }
        }
        Moved { bytes, stop: Stop::Refused(refusal) }
    }
}

impl Link {
    fn copier(&mut self) -> io::Result<&mut dyn Copier> {
        if self.copier.is_none() {
            self.copier = Some(self.variant.start()?);
        }
        Ok(self.copier.as_mut().expect("it was just started").as_mut())
    }
}

fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::NOSYS, Errno::from_raw_os_error)
}
