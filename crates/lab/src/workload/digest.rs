//! Digests a file, through a buffer or mapped; and reads a file without using its bytes.
//!
//! Mapped bytes are digested in place, without a copy. They must not change meanwhile, so the file
//! is leased (F_SETLEASE); taking the lease is not timed. With `none` a buffer is filled and
//! dropped, and of a mapping every byte is loaded and summed.

use engines::Errno;
use md5::Digest as _;
use sys::{Buffer, Leased};

use super::cached_source::{CachedSource, by_reading};
use super::interface::{Needs, ReadyVariant, Setting, Workload};
use super::parameters;
use crate::clock::Clock;
use crate::definition::cell::Cell;
use crate::error::Error;
use crate::sample::measurement::Measurement;
use crate::source::Part;
use crate::trial::NotRun;

pub(crate) static DIGEST: Workload = Workload {
    name: "digest",
    variants: "read:64K,md5 or mmap:8M,blake3 or mmap:whole,md5, with sequential or populate",
    check: |variant| Variant::parse(variant, Purpose::Digest).map(drop),
    start: |setting, variant| Ok(Box::new(start(setting, variant, Purpose::Digest)?)),
    needs,
    has_state: true,
    can_be_durable: false,
    calls_of_run: None,
};

pub(crate) static READ: Workload = Workload {
    name: "read",
    variants: "read:64K or mmap:8M or mmap:whole, with sequential or populate",
    check: |variant| Variant::parse(variant, Purpose::Read).map(drop),
    start: |setting, variant| Ok(Box::new(start(setting, variant, Purpose::Read)?)),
    needs,
    has_state: true,
    can_be_durable: false,
    calls_of_run: None,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Digest,
    Read,
}

#[derive(Clone, Debug)]
struct Variant {
    by: By,
    /// Each file gets a copy.
    digest: Hasher,
    sequential: bool,
    populate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Read {
        buffer_bytes: usize,
    },
    /// `None` is the whole file at once.
    Mmap {
        window_bytes: Option<usize>,
    },
}

/// The most bytes of a buffer or window.
const PIECE_BYTES_MAX: u64 = 1 << 36;

impl Variant {
    fn parse(text: &str, purpose: Purpose) -> Result<Variant, String> {
        let mut items = text.split(',');
        let by = By::parse(items.next().unwrap_or(""))?;
        let (mut digest, mut sequential, mut populate) = (None, false, false);
        for item in items {
            let twice = match item {
                "md5" => digest.replace(Hasher::Md5(md5::Md5::new())).is_some(),
                "blake3" => digest.replace(Hasher::Blake3(Box::default())).is_some(),
                "none" => digest.replace(Hasher::None(0)).is_some(),
                "sequential" => std::mem::replace(&mut sequential, true),
                "populate" => std::mem::replace(&mut populate, true),
                _ => return Err(format!("'{item}' is neither a digest nor an option")),
            };
            if twice {
                return Err(format!("'{item}' is one digest or option too many"));
            }
        }
        if populate && matches!(by, By::Read { .. }) {
            return Err("populate is for mmap".to_owned());
        }
        let digest = match (purpose, digest) {
            (Purpose::Digest, Some(digest)) => digest,
            (Purpose::Digest, None) => return Err("it lacks md5, blake3 or none".to_owned()),
            (Purpose::Read, None) => Hasher::None(0),
            (Purpose::Read, Some(_)) => {
                return Err("reading makes no digest; the workload digest does".to_owned());
            }
        };
        Ok(Variant { by, digest, sequential, populate })
    }
}

impl By {
    fn parse(text: &str) -> Result<By, String> {
        let (how, size) = text.split_once(':').unwrap_or((text, ""));
        match (how, size) {
            ("mmap", "whole") => Ok(By::Mmap { window_bytes: None }),
            ("mmap", size) => {
                let window_bytes = parameters::window_bytes_of(size, PIECE_BYTES_MAX)?;
                Ok(By::Mmap { window_bytes: Some(window_bytes) })
            }
            ("read", size) => {
                Ok(By::Read { buffer_bytes: parameters::bytes_of(size, PIECE_BYTES_MAX)? })
            }
            _ => Err(format!("'{how}' is neither read nor mmap")),
        }
    }
}

fn needs(cell: &Cell) -> Needs {
    Needs { src_bytes: cell.run_bytes(), ..Needs::default() }
}

/// A digest under computation.
#[derive(Clone, Debug)]
enum Hasher {
    Md5(md5::Md5),
    Blake3(Box<blake3::Hasher>),
    /// The sum of the loaded words, so that the compiler cannot remove the loads.
    None(u64),
}

impl Hasher {
    /// Bytes that a read has put into a buffer.
    fn take_read(&mut self, bytes: &[u8]) {
        match self {
            Hasher::None(_) => {
                // The kernel has written them; a variant that only reads does not look at them.
                std::hint::black_box(bytes);
            }
            _ => self.take(bytes),
        }
    }

    /// Bytes that lie in a mapping.
    fn take(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Md5(md5) => md5.update(bytes),
            Hasher::Blake3(blake3) => drop(blake3.update(bytes)),
            Hasher::None(sum) => *sum = sum.wrapping_add(sum_of(bytes)),
        }
    }

    /// The digest; empty where none was made.
    fn finish(self) -> Vec<u8> {
        match self {
            Hasher::Md5(md5) => md5.finalize().to_vec(),
            Hasher::Blake3(blake3) => blake3.finalize().as_bytes().to_vec(),
            Hasher::None(sum) => {
                std::hint::black_box(sum);
                Vec::new()
            }
        }
    }
}

/// Loads every byte: words added up, which the compiler turns into the widest loads there are.
fn sum_of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    let rest: u64 = words.remainder().iter().map(|&byte| u64::from(byte)).sum();
    words.fold(rest, |sum, word| {
        sum.wrapping_add(u64::from_ne_bytes(word.try_into().expect("8 bytes")))
    })
}

/// A variant with its buffer.
struct Digesting {
    text: String,
    variant: Variant,
    cached: CachedSource,
    /// The digests of the files, computed beforehand.
    expected: Vec<Vec<u8>>,
    /// Written once, so that its first use causes no page faults; empty for mmap.
    buffer: Buffer,
}

fn start(setting: &Setting<'_>, text: &str, purpose: Purpose) -> Result<Digesting, NotRun> {
    let variant = Variant::parse(text, purpose)?;
    let cached = CachedSource::open(setting)?;
    if matches!(variant.by, By::Mmap { .. })
        && let Err(errno) = Leased::take(cached.source.open_file(cached.load.parts[0].file)?)
    {
        let why = engines::describe(errno);
        return Err(format!("no lease on the file keeps its bytes as they are: {why}").into());
    }
    let buffer = parameters::touched(match variant.by {
        By::Read { buffer_bytes } => buffer_bytes,
        By::Mmap { .. } => 0,
    })?;
    let expected = expected(&cached, &variant.digest)?;
    Ok(Digesting { text: text.to_owned(), variant, cached, expected, buffer })
}

fn expected(cached: &CachedSource, digest: &Hasher) -> Result<Vec<Vec<u8>>, Error> {
    let of_part = |part: &Part| {
        let mut hasher = digest.clone();
        cached.read(part, |bytes| hasher.take_read(bytes))?;
        Ok(hasher.finish())
    };
    cached.load.parts.iter().map(of_part).collect()
}

/// Maps up to `bytes` of a file, window after window, and returns how many there were.
fn by_mapping(
    leased: &Leased,
    window_bytes: Option<usize>,
    variant: &Variant,
    bytes: u64,
    mut take: impl FnMut(&[u8]),
) -> rustix::io::Result<u64> {
    let bytes = bytes.min(leased.bytes());
    let whole = usize::try_from(bytes).map_err(|_| Errno::FBIG)?;
    let mut done = 0;
    while done < whole {
        let len = window_bytes.unwrap_or(whole).min(whole - done);
        let map = leased.map(done as u64, len, variant.populate, variant.sequential)?;
        take(&map);
        done += len;
    }
    Ok(bytes)
}

impl Digesting {
    /// Processes one file under the clock. Returns the number of calls that returned bytes.
    fn digest_part(
        &mut self,
        index: usize,
        clock: Clock<'_>,
        measured: &mut Measurement,
    ) -> Result<u64, Error> {
        let part = self.cached.load.parts[index];
        let path = self.cached.source.path_of(part.file);
        let failed = || Error::path("cannot read", &path);
        let fd = self.cached.source.open_file(part.file)?;
        let (variant, buffer) = (&self.variant, self.buffer.as_mut_slice());
        let mut hasher = variant.digest.clone();
        let mut calls = 0;
        let done = match variant.by {
            By::Read { .. } => clock.time(measured, || {
                if variant.sequential {
                    rustix::fs::fadvise(&fd, 0, None, rustix::fs::Advice::Sequential)?;
                }
                let bytes = by_reading(&fd, buffer, part.bytes, |bytes| {
                    hasher.take_read(bytes);
                    calls += 1;
                })?;
                Ok((bytes, hasher.finish()))
            }),
            By::Mmap { window_bytes } => {
                let leased = Leased::take(fd).map_err(failed())?;
                clock.time(measured, || {
                    let bytes = by_mapping(&leased, window_bytes, variant, part.bytes, |bytes| {
                        hasher.take(bytes);
                        calls += 1;
                    })?;
                    Ok((bytes, hasher.finish()))
                })
            }
        };
        let (bytes, digest) = done.map_err(failed())?;
        self.check(index, bytes, &digest)?;
        Ok(calls)
    }

    fn check(&self, index: usize, bytes: u64, digest: &[u8]) -> Result<(), Error> {
        let part = self.cached.load.parts[index];
        let expected = &self.expected[index];
        let path = self.cached.source.path_of(part.file);
        let path = path.display();
        let how = match bytes == part.bytes {
            true if digest == expected => return Ok(()),
            true => format!("of '{path}' it made {} and not {}", hex(digest), hex(expected)),
            false => format!("of '{path}' it went through {bytes} bytes and not {}", part.bytes),
        };
        // The variant is not to blame when another process wrote to the source meanwhile.
        self.cached.source.open_file(part.file)?;
        Err(Error::Wrong { variant: self.text.clone(), how })
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ReadyVariant for Digesting {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        let started = self.cached.begin()?;
        let mut measured = Measurement::default();
        let mut calls = 0;
        for index in 0..self.cached.load.parts.len() {
            calls += self.digest_part(index, clock, &mut measured)?;
        }
        self.cached.end(started, &mut measured)?;
        measured.verified = true;
        measured.calls = Some(calls);
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::TestCell;

    const BYTES: u64 = (3 << 20) + 77;

    #[test]
    fn digests_are_right_and_faults_are_seen() {
        let mut trial = TestCell::new(&DIGEST, BYTES);
        for digest in ["md5", "blake3", "none"] {
            let read = trial.run(&format!("read:64K,{digest}"));
            let mapped = trial.run(&format!("mmap:whole,{digest}"));
            for measured in [&read, &mapped] {
                assert!(measured.elapsed_ns > 0 && measured.verified && measured.counted);
                assert!(measured.user_ns + measured.system_ns < 10 * measured.elapsed_ns);
            }
            assert_eq!((read.calls, mapped.calls), (Some(49), Some(1)));
            assert!(mapped.minor_faults > read.minor_faults + 10, "{mapped:?} {read:?}");
        }
        for variant in ["read:1000,md5", "mmap:4K,md5", "mmap:1M,blake3,populate,sequential"] {
            assert!(trial.run(variant).verified, "{variant}");
        }
        trial.workload = &READ;
        assert!(trial.run("read:64K,sequential").verified);
    }

    #[test]
    fn several_files_are_gone_through_one_after_another() {
        let mut trial = TestCell::new(&DIGEST, 5000);
        trial.cell.files = 20;
        trial.cell.shape = crate::definition::cell::Shape::Tree;
        assert_eq!(trial.run("read:4K,md5").calls, Some(40));
        assert_eq!(trial.run("mmap:whole,md5").calls, Some(20));
    }

    #[test]
    fn a_wrong_digest_is_an_error() {
        let trial = TestCell::new(&DIGEST, BYTES);
        let mut digesting =
            start(&trial.setting(), "mmap:8M,md5", Purpose::Digest).expect("it starts");
        digesting.expected[0][0] ^= 1;
        let error = digesting.run(Clock::default()).expect_err("it differs");
        assert!(
            matches!(error, NotRun::Failed(Error::Wrong { .. }))
                && error.to_string().contains("it made"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_somebody_writes_to_is_not_mapped() {
        let mut trial = TestCell::new(&DIGEST, BYTES);
        assert!(trial.run("mmap:8M,md5").verified);
        let path = trial.dirs.source(&trial.cell, 0).expect("there");
        let writer = std::fs::File::options().append(true).open(path).expect("opened");
        let why = trial.refusal("mmap:8M,md5");
        assert!(why.contains("no lease on the file"), "{why}");
        assert!(trial.run("read:64K,md5").verified);
        drop(writer);
        assert!(trial.run("mmap:8M,md5").verified);
    }
}
