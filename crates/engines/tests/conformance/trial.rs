//! One copy between two regular files, and the checks after it.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use engines::{Chain, Copier, Meter, Moved, Pair, Pos, Span, Stop, Variant};

/// A source in `dir` with this content.
pub(crate) fn source(dir: &Path, bytes: &[u8]) -> File {
    std::fs::write(dir.join("src"), bytes).unwrap();
    File::open(dir.join("src")).unwrap()
}

/// A new or truncated destination at `path`, open as any engine may need it.
pub(crate) fn empty_dst(path: impl AsRef<Path>) -> File {
    empty_dst_for(true, path)
}

/// Like [`empty_dst`], open for reading only if `is_readable`.
pub(crate) fn empty_dst_for(is_readable: bool, path: impl AsRef<Path>) -> File {
    File::options().read(is_readable).write(true).create(true).truncate(true).open(path).unwrap()
}

/// Copies `span` with `variant`, and continues where it refuses, as `cp` does.
pub(crate) fn chained(variant: &Variant, src: &impl AsFd, dst: &impl AsFd, span: Span) -> Moved {
    let mut chain = Chain::with_last_resort([variant.clone()]);
    let pair = Pair::new(src.as_fd(), dst.as_fd());
    chain.file(pair).copy(span, &mut |_, _, _| {})
}

/// The files of a copy and their content.
pub(crate) struct Trial<'t> {
    /// Variant, file system and case, for the message of a failure.
    pub(crate) context: String,
    pub(crate) variant: &'t Variant,
    pub(crate) src: &'t File,
    pub(crate) src_bytes: &'t [u8],
    pub(crate) dst: &'t Path,
    /// The content of the destination before the copy.
    pub(crate) dst_bytes: &'t [u8],
    pub(crate) span: Span,
}

impl Trial<'_> {
    /// Copies with `copier` and checks content, count and reason. A chain then copies the part that
    /// was refused, and must complete it.
    pub(crate) fn run(&self, copier: &mut dyn Copier) -> Moved {
        let file = self.fresh_dst();
        let meter = Meter::default();
        let pair = Pair::new(self.src.as_fd(), file.as_fd()).with_meter(Some(&meter));
        let moved = copier.copy(pair, self.span);
        self.check(moved);
        // A copy that shares extents moves no bytes.
        let moves = self.variant.engine.name != "reflink";
        if moves && moved.stop == Stop::Done {
            assert_eq!(meter.get(), moved.bytes, "{}: the meter", self.context);
        }
        if let Stop::Refused(_) = moved.stop {
            self.run_chain();
        }
        moved
    }

    fn run_chain(&self) {
        let file = self.fresh_dst();
        let moved = chained(self.variant, self.src, &file, self.span);
        let context = &self.context;
        assert!(!matches!(moved.stop, Stop::Refused(_)), "{context}: the chain refused");
        self.check(moved);
    }

    /// A destination with its content before the copy. It is open for reading only if the engine
    /// requires that, so an engine that reads without declaring it fails.
    fn fresh_dst(&self) -> File {
        std::fs::write(self.dst, self.dst_bytes).unwrap();
        let readable = self.variant.engine.facts.dst_readable;
        File::options().read(readable).write(true).open(self.dst).unwrap()
    }

    fn check(&self, moved: Moved) {
        let Trial { context, span, .. } = self;
        let (src_at, dst_at) = (self.offset(span.src), self.offset(span.dst));
        let available = self.src_bytes.len().saturating_sub(src_at) as u64;
        match moved.stop {
            Stop::Done => assert_eq!(moved.bytes, span.len, "{context}: done with {moved:?}"),
            Stop::Eof => {
                assert_eq!(moved.bytes, available, "{context}: the source ended with {moved:?}");
                assert!(available < span.len, "{context}: no need to look for the end");
            }
            Stop::Refused(_) => {
                assert!(moved.bytes <= available.min(span.len), "{context}: too much: {moved:?}");
            }
            Stop::Failed { .. } => panic!("{context}: {moved:?}"),
        }
        let count = usize::try_from(moved.bytes).unwrap();
        let end = if count > 0 { dst_at + count } else { 0 };
        // `Vec::resize` would write each zero by itself in a debug build.
        let mut expected = vec![0; end.max(self.dst_bytes.len())];
        expected[..self.dst_bytes.len()].copy_from_slice(self.dst_bytes);
        if count > 0 {
            expected[dst_at..end].copy_from_slice(&self.src_bytes[src_at..src_at + count]);
        }
        let found = std::fs::read(self.dst).unwrap();
        assert_eq!(found.len(), expected.len(), "{context}: length after {moved:?}");
        if found != expected {
            let at = found.iter().zip(&expected).position(|(found, right)| found != right);
            panic!("{context}: wrong from byte {at:?} on after {moved:?}");
        }
    }

    fn offset(&self, pos: Pos) -> usize {
        match pos {
            Pos::At(offset) => usize::try_from(offset).unwrap(),
            Pos::Here => panic!("{}: a trial has positions", self.context),
        }
    }
}
