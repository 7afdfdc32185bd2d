//! Creates a file of computed bytes, through mapped windows or by writing a buffer.
//!
//! Both compute the same bytes a word at a time, directly into the mapped pages or into the buffer.
//! With mmap the file first gets its full length.

use std::os::fd::{AsFd, BorrowedFd};

use engines::Errno;
use sys::{Buffer, Guard, Window};

use super::interface::{Needs, ReadyVariant, Setting, Workload};
use super::output::Output;
use super::parameters;
use super::pattern;
use super::windows::Windows;
use crate::clock::{Clock, Counters};
use crate::error::Error;
use crate::sample::measurement::Measurement;
use crate::trial::NotRun;
use crate::trial::digest::Digests;

pub(crate) static CREATE: Workload = Workload {
    name: "create",
    variants: "write:64K or mmap:8M, the latter with populate",
    check: |variant| Method::parse(variant).map(drop),
    start: |setting, variant| Ok(Box::new(start(setting, variant)?)),
    needs: |cell| Needs { dst_bytes: cell.run_bytes(), ..Needs::default() },
    has_state: false,
    can_be_durable: true,
    calls_of_run: None,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Write { buffer_bytes: usize },
    Mmap(Windows),
}

/// The most bytes of a buffer.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

impl Method {
    fn parse(text: &str) -> Result<Method, String> {
        let (how, rest) = text.split_once(':').unwrap_or((text, ""));
        match how {
            "mmap" => Windows::parse(rest).map(Method::Mmap),
            "write" => {
                if let Some((_, option)) = rest.split_once(',') {
                    return Err(format!("'{option}' is no option of write"));
                }
                let buffer_bytes = parameters::bytes_of(rest, BUFFER_BYTES_MAX)?;
                match buffer_bytes as u64 % pattern::WORD_BYTES {
                    0 => Ok(Method::Write { buffer_bytes }),
                    _ => Err(format!("'{rest}' is no multiple of 8, the bytes of a word")),
                }
            }
            _ => Err(format!("'{how}' is neither write nor mmap")),
        }
    }
}

struct Creating {
    method: Method,
    /// Written once, so that its first use causes no page faults; empty for mmap.
    buffer: Buffer,
    output: Output,
}

fn start(setting: &Setting<'_>, text: &str) -> Result<Creating, NotRun> {
    parameters::one_file(setting.cell)?;
    let method = Method::parse(text)?;
    let buffer = parameters::touched(match method {
        Method::Write { buffer_bytes } => buffer_bytes,
        Method::Mmap(_) => 0,
    })?;
    let expected = Digests::of_made(setting.cell.file_bytes, pattern::fill);
    Ok(Creating { method, buffer, output: Output::new(setting, text, expected)? })
}

/// Computes and writes piece after piece. Returns the number of calls.
fn by_writing(fd: BorrowedFd<'_>, buffer: &mut [u8], bytes: u64) -> rustix::io::Result<u64> {
    let mut done = 0;
    let mut calls = 0;
    while done < bytes {
        let len = buffer.len().min(usize::try_from(bytes - done).unwrap_or(usize::MAX));
        let piece = &mut buffer[..len];
        pattern::fill(done, piece);
        let mut written = 0;
        while written < len {
            match rustix::io::write(fd, &piece[written..]) {
                Ok(0) => return Err(Errno::IO),
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            calls += 1;
        }
        done += len as u64;
    }
    Ok(calls)
}

/// Computes into a window of the file.
fn compute(window: &mut Window, guard: &Guard, at: u64) -> rustix::io::Result<u64> {
    let first = at / pattern::WORD_BYTES;
    let filled = window.fill(guard, |index| pattern::word(first + index as u64));
    // A page that cannot be mapped is one that the disk has no space for or cannot write.
    filled.map(|()| 1).map_err(|_| Errno::NOSPC)
}

impl ReadyVariant for Creating {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        let opened = self.output.open()?;
        let (fd, bytes, buffer) =
            (opened.fd.as_fd(), self.output.bytes, self.buffer.as_mut_slice());
        let guard = Guard::new();
        let counters = Counters::read();
        let mut measured = Measurement::without_source();
        let made = match self.method {
            Method::Write { .. } => clock.time(&mut measured, || by_writing(fd, buffer, bytes)),
            Method::Mmap(windows) => {
                let fill = |window: &mut Window, at: u64, _| compute(window, &guard, at);
                clock.time(&mut measured, || windows.fill(fd, bytes, fill))
            }
        };
        let calls = made.map_err(|errno| {
            let why = engines::describe(errno);
            Error::Unknown(format!("{} could not make the file: {why}", self.output.variant))
        })?;
        self.output.sync(&opened, &mut measured)?;
        counters.fill_since(&mut measured);
        measured.calls = Some(calls);
        self.output.end(opened, &mut measured)?;
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::cell::{Destination, Shape};
    use crate::workload::tests::TestCell;

    const BYTES: u64 = (2 << 20) + 4099;

    #[test]
    fn files_are_made_on_every_file_system() {
        testfs::each_fs(|kind, dir| {
            let mut trial = TestCell::new_in(&CREATE, BYTES, dir);
            for destination in [Destination::Fresh, Destination::Overwritten] {
                trial.cell.destination = destination;
                trial.cell.durable = destination == Destination::Fresh;
                for variant in ["write:8K", "write:64K", "mmap:8K", "mmap:8M", "mmap:1M,populate"] {
                    let (measured, what) = trial.written(variant, kind);
                    assert!(measured.elapsed_ns > 0, "{what}");
                }
            }
        });
    }

    #[test]
    fn a_wrong_byte_is_found() {
        let trial = TestCell::new(&CREATE, 100_000);
        let mut creating = start(&trial.setting(), "write:8K").expect("it starts");
        creating.output.expected = Digests::of_made(100_000, |at, bytes| {
            pattern::fill(at, bytes);
            bytes[77] ^= 1;
        });
        let error = creating.run(Clock::default()).expect_err("it differs");
        assert!(matches!(error, NotRun::Failed(Error::Wrong { .. })), "{error}");
        assert!(error.to_string().contains("write:8K is wrong: the file that it made has other"));
    }

    #[test]
    fn a_disk_that_is_full_is_no_sample_and_no_signal() {
        let Some(small) = testfs::small_fs(testfs::FsKind::Ext4) else { return };
        small.leave_room(1 << 20);
        let dir = small.join("here");
        std::fs::create_dir(&dir).expect("made");
        let trial = TestCell::new_in(&CREATE, 8 << 20, &dir);
        for variant in ["write:64K", "mmap:8M"] {
            let failed = trial.started(variant).run(Clock::default());
            let why = failed.map(|_| ()).expect_err("no room").to_string();
            assert!(why.contains("could not make the file: No space left"), "{why}");
        }
    }

    #[test]
    fn several_files_are_refused() {
        let mut trial = TestCell::new(&CREATE, 100);
        (trial.cell.files, trial.cell.shape) = (3, Shape::Flat);
        assert!(trial.refusal("write:8K").contains("one file at a time"));
    }
}
