//! Probes: whether an engine works between two files, determined by the copy of a sample.

use rustix::io::Errno;

use crate::contract::{Engine, Kind, Verdict};
use crate::support::until_done::pwrite_all;
use crate::{Pair, Side, Span, Stop, Variant};
use sys::Buffer;

/// The most bytes that a probe copies.
const SAMPLE_BYTES_MAX: u64 = 1 << 20;

/// The verdict on `engine` between these two files. `pair.src` should contain a few pages and not
/// end on a page boundary. `pair.dst` is an empty scratch file, open for reading and writing; it is
/// empty again afterwards. `None` for a floor, which copies no files.
#[must_use]
pub fn probe(engine: &Engine, pair: Pair<'_>) -> Option<Verdict> {
    match engine.kind {
        Kind::Copier { probe, .. } => Some(probe(pair)),
        Kind::Floor { .. } => None,
    }
}

/// Copies the start of the source, reads it back and compares. Most engines use this probe.
pub(crate) fn probe_by_copy(engine: &'static Engine, pair: Pair<'_>) -> Verdict {
    probe_variant(&Variant::plain(engine), pair)
}

/// Whether exactly this variant works between these two files, which [`probe`] describes.
#[must_use]
pub fn probe_variant(variant: &Variant, pair: Pair<'_>) -> Verdict {
    let verdict = copy_and_compare(variant, pair).unwrap_or_else(|errno| {
        Verdict::Maybe(format!("it could not be tried: {}", describe(errno)))
    });
    match rustix::fs::ftruncate(pair.dst, 0) {
        Ok(()) => verdict,
        Err(errno) => Verdict::Maybe(format!("the scratch file: {}", describe(errno))),
    }
}

fn copy_and_compare(variant: &Variant, pair: Pair<'_>) -> Result<Verdict, Errno> {
    let src_bytes = u64::try_from(rustix::fs::fstat(pair.src)?.st_size).unwrap_or(0);
    if src_bytes == 0 {
        return Ok(Verdict::Maybe("the source is empty, so nothing could be tried".to_owned()));
    }
    let mut copier = match variant.start() {
        Ok(copier) => copier,
        Err(error) => {
            let why = Errno::from_io_error(&error)
                .map_or_else(|| words_of_error(&error), refusal_in_words);
            return Ok(Verdict::No(why));
        }
    };
    let len = src_bytes.min(SAMPLE_BYTES_MAX);
    let moved = copier.copy(pair, Span::whole(len));
    Ok(match moved.stop {
        Stop::Refused(errno) if moved.bytes == 0 => Verdict::No(refusal_in_words(errno)),
        Stop::Failed { side, errno } => Verdict::No(match side {
            Side::Src => format!("reading: {}", describe(errno)),
            Side::Dst => format!("writing: {}", describe(errno)),
            Side::Pair => describe(errno),
        }),
        Stop::Done | Stop::Eof | Stop::Refused(_) => {
            if same_start(pair, moved.bytes)? {
                Verdict::Yes
            } else {
                Verdict::No("it copied wrong bytes".to_owned())
            }
        }
    })
}

fn refusal_in_words(errno: Errno) -> String {
    let meaning = match errno {
        Errno::NOSYS => "this kernel lacks the call, or a seccomp filter hides it",
        Errno::OPNOTSUPP | Errno::NOTTY | Errno::NODEV => "the file system does not offer it",
        Errno::XDEV => "the two files are on different file systems",
        Errno::PERM => "it is forbidden here",
        _ => "these files do not take it",
    };
    format!("{meaning} ({})", describe(errno))
}

/// Whether the first `bytes` of both files are equal.
fn same_start(pair: Pair<'_>, bytes: u64) -> Result<bool, Errno> {
    let mut at = 0;
    let (mut src, mut dst) = ([0; 8192], [0; 8192]);
    while at < bytes {
        let want = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(src.len());
        let src_got = rustix::io::pread(pair.src, &mut src[..want], at)?;
        let dst_got = rustix::io::pread(pair.dst, &mut dst[..want], at)?;
        let got = src_got.min(dst_got);
        if got == 0 || src[..got] != dst[..got] {
            return Ok(false);
        }
        at += got as u64;
    }
    Ok(true)
}

/// Fills `file` with `bytes` bytes that no file system can store as a hole: the sample for a probe.
///
/// # Errors
/// Those of write(2).
pub fn write_sample(file: std::os::fd::BorrowedFd<'_>, bytes: usize) -> std::io::Result<()> {
    let mut buffer = Buffer::page_aligned(bytes)?;
    for (index, byte) in buffer.as_mut_slice().iter_mut().enumerate() {
        // A linear congruential step, of which the high bits are used: no two pages are equal.
        let mixed = (index as u64).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = mixed.to_be_bytes()[1];
    }
    let (_, result) = pwrite_all(file, buffer.as_mut_slice(), 0);
    Ok(result?)
}

/// The system's description of an errno, without its number.
#[must_use]
pub fn describe(errno: Errno) -> String {
    words_of_error(&std::io::Error::from(errno))
}

/// The text of `error`, without the number that the standard library appends.
#[must_use]
pub fn words_of_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}
