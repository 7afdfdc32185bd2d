//! Fallback: decides whether the next engine is tried. No other code decides that.

use std::io;

use rustix::fs::Advice;
use rustix::io::Errno;

use crate::contract::Copier;
use crate::engine::read_write::READ_WRITE;
use crate::moved::{errno_of, is_refusal, refuses_for_good};
use crate::{Moved, Pair, Span, Stop, Variant};

/// Variants for one pair of file systems, in order of preference. Remembers which of them can never
/// work on this pair, and does not try them again.
pub struct Chain {
    links: Vec<Link>,
}

struct Link {
    variant: Variant,
    copier: Option<Box<dyn Copier>>,
    /// The error for which it can never work on this pair of file systems.
    refused_for_good: Option<Errno>,
}

/// Called after every attempt with the variant, the span that was requested and the outcome. The
/// progress display, `--debug`, receipts and the lab use it.
pub type Observer<'o> = dyn FnMut(&Variant, Span, Moved) + 'o;

impl Chain {
    /// Only these variants. If the last one refuses, the copy is refused.
    #[must_use]
    pub fn exactly(variants: impl IntoIterator<Item = Variant>) -> Chain {
        let link = |variant| Link { variant, copier: None, refused_for_good: None };
        Chain { links: variants.into_iter().map(link).collect() }
    }

    /// A chain of `variants`, then `read_write`, which never refuses.
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

    /// Starts the first variant's copier before the first span and touches its memory. Its buffers,
    /// ring or pipe are then allocated before a clock starts.
    ///
    /// # Errors
    /// The kernel's error if these cannot be allocated. [`FileCopy::copy`] then treats the variant
    /// as refused.
    pub fn start_first(&mut self) -> io::Result<()> {
        self.links.first_mut().map_or(Ok(()), |link| link.copier().map(|copier| copier.touch()))
    }

    /// Forgets permanent refusals, so that the next file tries those variants again. This measures a
    /// program that does not remember them.
    pub fn forget_refusals(&mut self) {
        for link in &mut self.links {
            link.refused_for_good = None;
        }
    }

    /// Begins the copy of one file between descriptors of this chain's pair of file systems.
    pub fn file<'c>(&'c mut self, pair: Pair<'c>) -> FileCopy<'c> {
        self.file_after(pair, 0)
    }

    /// Like [`file`](Chain::file), for a file of which `bytes` were moved before. No error then
    /// counts as the error of a first call.
    pub fn file_after<'c>(&'c mut self, pair: Pair<'c>, bytes: u64) -> FileCopy<'c> {
        FileCopy { chain: self, pair, bytes, advised: false }
    }
}

/// The copy of one file, one span after another.
pub struct FileCopy<'c> {
    chain: &'c mut Chain,
    pair: Pair<'c>,
    /// Bytes moved so far in all spans.
    bytes: u64,
    /// The kernel was advised that the source is read sequentially.
    advised: bool,
}

/// The initial readahead of most devices. A shorter span does not profit from more.
const READ_AHEAD_BYTES: u64 = 128 << 10;

impl FileCopy<'_> {
    /// Moves `span` with the first variant that does not refuse it. After a refusal the next
    /// variant continues at exactly that byte. Any other error ends the copy, so that no attempt
    /// hides it.
    pub fn copy(&mut self, span: Span, observe: &mut Observer<'_>) -> Moved {
        let mut bytes = 0;
        let mut refusal = Errno::NOSYS;
        for link in &mut self.chain.links {
            if let Some(errno) = link.refused_for_good {
                refusal = errno;
                continue;
            }
            let left = span.after(bytes);
            let reads_ahead = link.variant.engine.facts.reads_ahead;
            if reads_ahead && !self.advised && left.len > READ_AHEAD_BYTES {
                // POSIX_FADV_SEQUENTIAL doubles the readahead: posix_fadvise(2). An error is
                // ignored: the copy is correct without it.
                let _ = rustix::fs::fadvise(self.pair.src, 0, None, Advice::Sequential);
                self.advised = true;
            }
            let moved = match link.copier() {
                Ok(copier) => copier.copy(self.pair, left),
                Err(error) => Moved::refused(errno_of(&error)),
            };
            observe(&link.variant, left, moved);
            bytes += moved.bytes;
            self.bytes += moved.bytes;
            let has_moved = self.bytes > 0;
            let Some(errno) = link.variant.engine.facts.refusal(moved.stop, has_moved) else {
                return Moved { bytes, stop: moved.stop };
            };
            refusal = errno;
            if matches!(moved.stop, Stop::Refused(_)) {
                // Memory or descriptors may be available again for the next file.
                let never_starts = link.copier.is_none() && is_refusal(errno);
                let for_good = refuses_for_good(errno) || never_starts;
                link.refused_for_good = for_good.then_some(errno);
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::contract::{Engine, Facts, Kind, Verdict};
    use crate::{Pos, Side, Tuning};

    /// Length of the source in bytes.
    const LEN: usize = 100;

    /// Moves `bytes` correctly, or the rest of the span if that is less, and then stops as
    /// specified.
    struct Scripted {
        bytes: u64,
        stop: Stop,
    }

    impl Copier for Scripted {
        fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
            let bytes = self.bytes.min(span.len);
            let (Pos::At(src_at), Pos::At(dst_at)) = (span.src, span.dst) else {
                panic!("the tests give positions")
            };
            let mut buffer = vec![0; usize::try_from(bytes).unwrap()];
            assert_eq!(rustix::io::pread(pair.src, &mut buffer, src_at), Ok(buffer.len()));
            assert_eq!(rustix::io::pwrite(pair.dst, &buffer, dst_at), Ok(buffer.len()));
            Moved { bytes, stop: self.stop }
        }
    }

    /// A variant that moves this many bytes and then stops this way. The last argument lists the
    /// errors that its facts excuse on a first call.
    macro_rules! variant {
        ($bytes:expr, $stop:expr) => {
            variant!($bytes, $stop, &[])
        };
        ($bytes:expr, $stop:expr, $excuses:expr) => {{
            fn start(_: &Tuning) -> io::Result<Box<dyn Copier>> {
                Ok(Box::new(Scripted { bytes: $bytes, stop: $stop }))
            }
            static ENGINE: Engine = engine(start, $excuses);
            Variant::plain(&ENGINE)
        }};
    }

    const fn engine(
        start: fn(&Tuning) -> io::Result<Box<dyn Copier>>,
        first_call_excuses: &'static [Errno],
    ) -> Engine {
        Engine {
            name: "scripted",
            about: "does what a test says",
            shares: "nothing",
            facts: Facts { first_call_excuses, ..Facts::REGULAR },
            params: &[],
            lab_variants: &[],
            kind: Kind::Copier { probe: |_| Verdict::Yes, start },
        }
    }

    fn all() -> Variant {
        variant!(u64::MAX, Stop::Done)
    }

    const fn failed(side: Side, errno: Errno) -> Stop {
        Stop::Failed { side, errno }
    }

    struct Files {
        src: File,
        dst: File,
    }

    impl Files {
        fn new() -> Files {
            let (src, dst) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
            src.write_all_at(&testfs::random_bytes(LEN, 1), 0).unwrap();
            Files { src, dst }
        }

        fn pair(&self) -> Pair<'_> {
            Pair::new(self.src.as_fd(), self.dst.as_fd())
        }

        fn dst_bytes(&self) -> Vec<u8> {
            let mut bytes = vec![0; usize::try_from(self.dst.metadata().unwrap().len()).unwrap()];
            self.dst.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        }
    }

    /// Copies a file with `chain` and checks that the bytes that count as moved are in the
    /// destination. Returns the outcome and the offset at which each attempt began.
    fn copy(chain: &mut Chain) -> (Moved, Vec<u64>) {
        let files = Files::new();
        let mut begun_at = Vec::new();
        let moved = chain.file(files.pair()).copy(Span::whole(LEN as u64), &mut |_, span, _| {
            let Pos::At(offset) = span.src else { panic!("the tests give positions") };
            assert_eq!(span, Span::whole(LEN as u64).after(offset));
            begun_at.push(offset);
        });
        let count = usize::try_from(moved.bytes).unwrap();
        assert_eq!(files.dst_bytes(), testfs::random_bytes(LEN, 1)[..count]);
        (moved, begun_at)
    }

    #[test]
    fn the_next_variant_continues_where_the_refusal_stopped() {
        let mut chain = Chain::exactly([
            variant!(0, Stop::Refused(Errno::XDEV)),
            variant!(10, Stop::Refused(Errno::INVAL)),
            variant!(7, Stop::Refused(Errno::OPNOTSUPP)),
            all(),
            all(),
        ]);
        let done = Moved { bytes: LEN as u64, stop: Stop::Done };
        assert_eq!(copy(&mut chain), (done, vec![0, 0, 10, 17]));
        // EINVAL is not permanent: the next file may be accepted.
        assert_eq!(copy(&mut chain), (done, vec![0, 10]));
    }

    #[test]
    fn a_real_error_ends_the_copy() {
        for side in [Side::Src, Side::Dst, Side::Pair] {
            let stop = match side {
                Side::Src => variant!(10, failed(Side::Src, Errno::IO)),
                Side::Dst => variant!(10, failed(Side::Dst, Errno::IO)),
                Side::Pair => variant!(10, failed(Side::Pair, Errno::IO)),
            };
            let mut chain = Chain::exactly([stop, all()]);
            let moved = Moved { bytes: 10, stop: failed(side, Errno::IO) };
            assert_eq!(copy(&mut chain), (moved, vec![0]), "{side:?}");
        }
        let mut chain = Chain::exactly([variant!(10, Stop::Eof), all()]);
        assert_eq!(copy(&mut chain), (Moved { bytes: 10, stop: Stop::Eof }, vec![0]));
    }

    #[test]
    fn errors_are_excused_only_where_the_facts_list_them() {
        const EXCUSED: &[Errno] = &[Errno::ACCESS];
        let done = Moved { bytes: LEN as u64, stop: Stop::Done };
        let excused = variant!(0, failed(Side::Pair, Errno::ACCESS), EXCUSED);
        assert_eq!(copy(&mut Chain::exactly([excused, all()])), (done, vec![0, 0]));
        for (real, errno, side, bytes) in [
            (variant!(0, failed(Side::Pair, Errno::ACCESS)), Errno::ACCESS, Side::Pair, 0),
            (variant!(0, failed(Side::Pair, Errno::IO), EXCUSED), Errno::IO, Side::Pair, 0),
            (variant!(0, failed(Side::Src, Errno::ACCESS), EXCUSED), Errno::ACCESS, Side::Src, 0),
            (variant!(1, failed(Side::Pair, Errno::ACCESS), EXCUSED), Errno::ACCESS, Side::Pair, 1),
        ] {
            let moved = Moved { bytes, stop: failed(side, errno) };
            assert_eq!(copy(&mut Chain::exactly([real, all()])), (moved, vec![0]));
        }
    }

    #[test]
    fn no_error_is_excused_after_a_byte_of_the_file_has_moved() {
        let files = Files::new();
        let fickle = variant!(0, failed(Side::Pair, Errno::ACCESS), &[Errno::ACCESS]);
        let mut chain = Chain::exactly([fickle, all()]);
        let mut file = chain.file(files.pair());
        let first = file.copy(Span::at(0, 10), &mut |_, _, _| {});
        assert_eq!(first, Moved { bytes: 10, stop: Stop::Done });
        let second = file.copy(Span::at(10, 10), &mut |_, _, _| {});
        assert_eq!(second, Moved::failed(Side::Pair, Errno::ACCESS));
        let later = chain.file_after(files.pair(), 20).copy(Span::at(20, 10), &mut |_, _, _| {});
        assert_eq!(later, Moved::failed(Side::Pair, Errno::ACCESS));
        // The next file starts from zero.
        assert_eq!(copy(&mut chain), (Moved { bytes: LEN as u64, stop: Stop::Done }, vec![0, 0]));
    }

    #[test]
    fn a_forbidden_engine_is_not_started_again() {
        static STARTS: AtomicUsize = AtomicUsize::new(0);
        fn start(_: &Tuning) -> io::Result<Box<dyn Copier>> {
            STARTS.fetch_add(1, Ordering::Relaxed);
            Err(Errno::PERM.into())
        }
        static FORBIDDEN: Engine = engine(start, &[]);
        let mut chain = Chain::exactly([Variant::plain(&FORBIDDEN)]);
        for _ in 0..3 {
            assert_eq!(copy(&mut chain).0, Moved::refused(Errno::PERM));
        }
        assert_eq!(STARTS.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_engine_that_lacked_memory_is_started_again() {
        static STARTS: AtomicUsize = AtomicUsize::new(0);
        fn start(_: &Tuning) -> io::Result<Box<dyn Copier>> {
            match STARTS.fetch_add(1, Ordering::Relaxed) {
                0 => Err(io::ErrorKind::OutOfMemory.into()),
                1 => Err(Errno::MFILE.into()),
                _ => Ok(Box::new(Scripted { bytes: u64::MAX, stop: Stop::Done })),
            }
        }
        static POOR: Engine = engine(start, &[]);
        let mut chain = Chain::exactly([Variant::plain(&POOR)]);
        assert_eq!(copy(&mut chain).0, Moved::refused(Errno::NOMEM));
        assert_eq!(copy(&mut chain).0, Moved::refused(Errno::MFILE));
        assert_eq!(copy(&mut chain).0, Moved { bytes: LEN as u64, stop: Stop::Done });
    }

    #[test]
    fn the_reported_errno_stays_the_same() {
        let mut chain = Chain::exactly([variant!(0, Stop::Refused(Errno::XDEV))]);
        for file in 0..2 {
            assert_eq!(copy(&mut chain).0, Moved::refused(Errno::XDEV), "file {file}");
        }
    }

    #[test]
    fn the_last_resort_occurs_once() {
        let done = Moved { bytes: LEN as u64, stop: Stop::Done };
        let refuses = variant!(33, Stop::Refused(Errno::INVAL));
        assert_eq!(copy(&mut Chain::with_last_resort([refuses])), (done, vec![0, 33]));
        let shared = Variant::plain(&READ_WRITE).shared_by(2);
        for (variants, links) in
            [(vec![], 1), (vec![Variant::plain(&READ_WRITE)], 1), (vec![shared], 2)]
        {
            assert_eq!(Chain::with_last_resort(variants).links.len(), links);
        }
    }
}
