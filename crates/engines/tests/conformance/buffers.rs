//! Checks the addresses of the buffers that are passed to read and write calls.
//!
//! A copy is made to block on an empty or a full pipe. /proc/self/task/TID/syscall then contains
//! the arguments of the blocked call, including the address of its buffer: see proc_pid_syscall(5).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use engines::{Moved, Pair, Pos, Span, Stop, Variant};
use rustix::pipe::fcntl_setpipe_size;
use testfs::{random_bytes, skip, test_name};

use crate::variants;
use crate::watchdog::watched;

/// The length of a source at most.
const BYTES_MAX: u64 = 1 << 20;

/// A blocked call, as /proc reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    number: i64,
    buffer_at: usize,
}

#[test]
fn reads_and_writes_begin_on_page_boundaries() {
    if std::fs::read_to_string("/proc/thread-self/syscall").is_err() {
        skip(&test_name(), "this kernel shows no thread's call in /proc/self/task/TID/syscall");
        return;
    }
    let mut checked = Vec::new();
    // A flag may make an engine refuse pipes, and several workers block in several threads.
    let is_plain = |variant: &Variant| variant.workers == 1 && !variants::has_flag(variant);
    for variant in variants::all().into_iter().filter(is_plain) {
        let facts = variant.engine.facts;
        if facts.dst.pipe && writes_whole_buffers(&variant) {
            let call = watched(&variant.to_string(), || blocked_write(&variant));
            check(&variant, &call, [libc::SYS_write, libc::SYS_pwrite64], &mut checked);
        }
        if facts.src.pipe {
            let call = watched(&variant.to_string(), || blocked_read(&variant));
            check(&variant, &call, [libc::SYS_read, libc::SYS_pread64], &mut checked);
        }
    }
    for text in ["read_write:256K", "read_write:256K,offset=16", "stdio:64K,setvbuf=64K", "mmap"] {
        assert!(checked.iter().any(|checked| checked == text), "{text} is not in {checked:?}");
    }
}

/// A stream writes from any offset in an item that is shorter than its buffer.
fn writes_whole_buffers(variant: &Variant) -> bool {
    variant.engine.name != "stdio" || variant.tuning.get("setvbuf") == variant.tuning.get("item")
}

/// Calls without user memory, such as splice, are no reads or writes, and need no check.
fn check(variant: &Variant, call: &Call, numbers: [libc::c_long; 2], checked: &mut Vec<String>) {
    if !numbers.contains(&call.number) {
        return;
    }
    let has_offset = variant.engine.params.iter().any(|param| param.name == "offset");
    let expected = if has_offset { variant.tuning.bytes("offset") } else { 0 };
    assert_eq!(call.buffer_at % rustix::param::page_size(), expected, "{variant}: {call:?}");
    checked.push(variant.to_string());
}

/// The length that a copy by `variant` is asked for: more than the smallest capacity of a pipe, which is a page.
fn len_for(variant: &Variant) -> u64 {
    let capacity_bytes = rustix::param::page_size() as u64;
    variants::bytes_max(variant).clamp(2 * capacity_bytes, BYTES_MAX)
}

/// The write of a copy from a file to a pipe that is not read.
fn blocked_write(variant: &Variant) -> Call {
    let len = len_for(variant);
    let bytes = random_bytes(usize::try_from(len).unwrap(), 3);
    let mut src = tempfile::tempfile().unwrap();
    src.write_all(&bytes).unwrap();
    let (reader, writer) = io::pipe().unwrap();
    // The smallest capacity, so that every buffer fills the pipe.
    fcntl_setpipe_size(&writer, 4096).unwrap();
    let begin = Pos::At(0);
    let (call, moved) = waiting(variant, (src.into(), begin), (writer.into(), Pos::Here), || {
        let mut copied = Vec::new();
        File::from(OwnedFd::from(reader)).read_to_end(&mut copied).unwrap();
        assert!(copied == bytes, "{variant}: other bytes");
    });
    assert_eq!(moved, Moved { bytes: len, stop: Stop::Done }, "{variant}");
    call
}

/// The read of a copy from an empty pipe to a file.
fn blocked_read(variant: &Variant) -> Call {
    let dst = tempfile::tempfile().unwrap();
    let (reader, writer) = io::pipe().unwrap();
    let ends = ((reader.into(), Pos::Here), (dst.into(), Pos::At(0)));
    let (call, moved) = waiting(variant, ends.0, ends.1, || drop(writer));
    assert_eq!(moved, Moved { bytes: 0, stop: Stop::Eof }, "{variant}");
    call
}

/// Copies in another thread until it blocks, and calls `release`. Returns the blocked call and the
/// outcome.
fn waiting(
    variant: &Variant,
    (src, src_pos): (OwnedFd, Pos),
    (dst, dst_pos): (OwnedFd, Pos),
    release: impl FnOnce(),
) -> (Call, Moved) {
    let mut copier = variant.start().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let copying = scope.spawn(move || {
            tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            let span = Span { src: src_pos, dst: dst_pos, len: len_for(variant) };
            copier.copy(Pair::new(src.as_fd(), dst.as_fd()), span)
        });
        let task = std::path::Path::new("/proc").join(told.recv().unwrap());
        let call = waited_in(&task);
        release();
        (call, copying.join().unwrap())
    })
}

/// The call in which the thread with the directory `task` stays blocked. A running thread has none, one that blocks
/// briefly leaves its call, and one that waits for a processor does not sleep.
fn waited_in(task: &std::path::Path) -> Call {
    let read =
        |name| std::fs::read_to_string(task.join(name)).expect("the copy waits and has not ended");
    let begun = Instant::now();
    let mut before = String::new();
    let mut times = 0;
    while begun.elapsed() < Duration::from_secs(30) {
        let line = read("syscall");
        // The name before the state is in parentheses, proc_pid_stat(5).
        let sleeps = read("stat").rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
        times = if sleeps && line == before { times + 1 } else { 0 };
        if times == 5
            && let Some(call) = parse(&line)
        {
            return call;
        }
        before = line;
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the copy waits for nothing: {before}");
}

/// `NUMBER 0xFD 0xBUFFER …`, or `running`.
fn parse(line: &str) -> Option<Call> {
    let mut words = line.split(' ');
    let number: i64 = words.next()?.trim().parse().ok().filter(|&number| number >= 0)?;
    let buffer = words.nth(1)?.strip_prefix("0x")?;
    Some(Call { number, buffer_at: usize::from_str_radix(buffer, 16).ok()? })
}
