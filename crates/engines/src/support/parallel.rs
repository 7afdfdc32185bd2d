//! Several workers on one file: a composition over spans, not an engine. It works with every engine
//! whose facts include positions.

use crate::contract::{Copier, StatusFlags};
use crate::span::Pos;
use crate::support::placement::spawn_worker;
use crate::support::presized::{Presized, src_bytes_from};
use crate::support::stripes::Stripes;
use crate::{Moved, Pair, Side, Span, Stop};

/// A shorter span is copied by one worker: to start threads takes longer than they save.
const SHARED_BYTES_MIN: u64 = 16 << 20;

/// Copiers that share the stripes of each span.
pub(crate) struct Parallel {
    copiers: Vec<Box<dyn Copier>>,
}

impl Parallel {
    /// # Panics
    /// If there is no copier.
    pub(crate) fn new(copiers: Vec<Box<dyn Copier>>) -> Parallel {
        assert!(!copiers.is_empty());
        Parallel { copiers }
    }
}

impl Copier for Parallel {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        let (Pos::At(src_at), Pos::At(dst_at)) = (span.src, span.dst) else {
            return self.copiers[0].copy(pair, span);
        };
        let shared = match src_bytes_from(pair, src_at) {
            Ok(available) => available.min(span.len),
            Err(errno) => return Moved::failed(Side::Src, errno),
        };
        if shared < SHARED_BYTES_MIN {
            return self.copiers[0].copy(pair, span);
        }
        let presized = match Presized::for_writes(pair, dst_at, shared) {
            Ok(presized) => presized,
            Err(moved) => return moved,
        };
        let mut moved = share(&mut self.copiers, pair, Span { len: shared, ..span });
        if moved.stop == Stop::Done && shared < span.len {
            // The end that fstat returned is no proof: continue to read.
            let tail = self.copiers[0].copy(pair, span.after(shared));
            moved = Moved { bytes: shared + tail.bytes, stop: tail.stop };
        }
        presized.shrink_after(pair, moved.bytes);
        moved
    }

    fn touch(&mut self) {
        self.copiers.iter_mut().for_each(|copier| copier.touch());
    }

    fn status_flags(&self) -> StatusFlags {
        self.copiers[0].status_flags()
    }
}

/// Copies the stripes of `span` with all `copiers`. Only the unbroken prefix counts.
fn share(copiers: &mut [Box<dyn Copier>], pair: Pair<'_>, span: Span) -> Moved {
    let stripes = Stripes::new(span, copiers.len());
    let (first, others) = copiers.split_first_mut().expect("never without a copier");
    std::thread::scope(|scope| {
        for copier in others {
            let stripes = &stripes;
            let work = move || stripes.work(pair, copier.as_mut());
            // If a thread cannot be created, the other workers take its stripes.
            let _ = spawn_worker(scope, std::thread::Builder::new(), work);
        }
        stripes.work(pair, first.as_mut());
    });
    stripes.outcome()
}
