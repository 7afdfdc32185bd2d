//! The kernel: its release, and which of the calls that haulage can use it has, found by trying them.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use engines::{Engine, Pair, Verdict};
use rustix::fs::{AtFlags, MemfdFlags, StatxFlags, memfd_create, statx};
use rustix::io::Errno;
use serde::Serialize;
use sys::Uname;

/// Bytes of a sample: whole pages, and a part of one.
const SAMPLE_BYTES: usize = 9876;

/// A call of the kernel that haulage uses where it is found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) found: bool,
    /// Empty if it is found.
    pub(crate) reason: String,
    /// The first release that has it, as major and minor number.
    #[serde(skip)]
    pub(crate) since: (u32, u32),
    /// What haulage does with it, as the end of a sentence that begins with "haulage".
    #[serde(skip)]
    pub(crate) purpose: &'static str,
}

/// The release, as uname(2) gives it: `6.18.44-1-amd64`. `unknown` if that fails.
pub(crate) fn release() -> String {
    Uname::or_unknown().release
}

/// The first two numbers of a release.
pub(crate) fn major_and_minor(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// What `--version` says of the kernel, as a line.
pub(crate) fn line() -> String {
    let found = calls().into_iter().filter(|it| it.found).map(|it| it.name);
    let found: Vec<&str> = found.collect();
    let separator = if found.is_empty() { "" } else { ": " };
    format!("kernel {}{separator}{}\n", release(), found.join(", "))
}

/// Tries each call between two files in memory, so that it works in any directory.
pub(crate) fn calls() -> Vec<Call> {
    let files = files_in_memory();
    let engine = |name: &str| {
        let (src, dst) = files.as_ref().map_err(Clone::clone)?;
        let engine = engines::by_name(name).expect("an engine of the table");
        works(engine, Pair::new(src.as_fd(), dst.as_fd()))
    };
    let all = [
        ("copy_file_range", (5, 3), "copies inside the kernel", engine("copy_file_range")),
        ("splice", (2, 6), "copies through a pipe, without user memory", engine("splice")),
        (
            "io_uring",
            (5, 1),
            "reads files that are not in the page cache ahead (direct_read)",
            io_uring(),
        ),
        ("cachestat", (6, 5), "asks how much of a file is in the page cache", cachestat()),
        ("statx DIO alignment", (6, 1), "aligns direct I/O as the file system asks", alignment()),
    ];
    let call = |(name, since, purpose, tried): (_, _, _, Result<(), String>)| {
        let (found, reason) = (tried.is_ok(), tried.err().unwrap_or_default());
        Call { name, found, reason, since, purpose }
    };
    all.into_iter().map(call).collect()
}

/// A source with a sample, and an empty destination.
pub(crate) fn files_in_memory() -> Result<(OwnedFd, OwnedFd), String> {
    let make = || memfd_create(c"haulage", MemfdFlags::CLOEXEC);
    let (src, dst) = make().and_then(|src| Ok((src, make()?))).map_err(in_words)?;
    engines::write_sample(src.as_fd(), SAMPLE_BYTES).map_err(|error| error.to_string())?;
    Ok((src, dst))
}

fn works(engine: &'static Engine, pair: Pair<'_>) -> Result<(), String> {
    match engines::probe(engine, pair) {
        Some(Verdict::No(why) | Verdict::Maybe(why)) => Err(why),
        Some(Verdict::Yes) | None => Ok(()),
    }
}

/// Whether a ring can be made, and what forbids it.
fn io_uring() -> Result<(), String> {
    let engine = engines::by_name("io_uring").expect("an engine of the table");
    let started = engines::Variant::plain(engine).start();
    let Err(error) = started else { return Ok(()) };
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let disabled = read("/proc/sys/kernel/io_uring_disabled");
    let status = read("/proc/self/status");
    Err(match Errno::from_io_error(&error) {
        Some(errno) => why_no_ring(errno, disabled.trim(), is_filtered(&status)),
        None => error.to_string(),
    })
}

/// Whether a process with this /proc/self/status runs under a seccomp filter.
fn is_filtered(status: &str) -> bool {
    // 2 is SECCOMP_MODE_FILTER: proc_pid_status(5).
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

/// Why io_uring_setup(2) failed. `disabled` is the sysctl kernel.io_uring_disabled.
fn why_no_ring(errno: Errno, disabled: &str, filtered: bool) -> String {
    match (errno, disabled, filtered) {
        (Errno::PERM, "2", _) => "the sysctl kernel.io_uring_disabled is 2".to_owned(),
        (Errno::PERM, "1", _) => {
            "the sysctl kernel.io_uring_disabled is 1, and this user is not in the group \
             kernel.io_uring_group"
                .to_owned()
        }
        (Errno::PERM | Errno::NOSYS | Errno::ACCESS, _, true) => {
            "a seccomp filter forbids it, as those of containers do".to_owned()
        }
        (Errno::NOSYS, ..) => "this kernel lacks it".to_owned(),
        (Errno::NOMEM, ..) => "the limit of locked memory is too low for it (ulimit -l)".to_owned(),
        (errno, ..) => in_words(errno),
    }
}

fn cachestat() -> Result<(), String> {
    let (src, _) = files_in_memory()?;
    sys::cachestat(src.as_fd(), 0, 0).map(|_| ()).map_err(why_no_call)
}

/// Files in memory have no alignment. The program's own file is on a file system that usually has one.
fn alignment() -> Result<(), String> {
    let program = File::open("/proc/self/exe");
    let program = program.map_err(|error| format!("not tried: /proc/self/exe: {error}"))?;
    match reported_alignment(program) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err("the file system of the program does not report it".to_owned()),
        Err(errno) => Err(why_no_call(errno)),
    }
}

/// Why a call failed that no file can refuse.
fn why_no_call(errno: Errno) -> String {
    match errno {
        Errno::NOSYS => "this kernel lacks it, or a seccomp filter hides it".to_owned(),
        Errno::PERM => "a seccomp filter forbids it".to_owned(),
        errno => in_words(errno),
    }
}

/// The alignment of offsets that direct I/O on a file needs, in bytes; 0 if the file has no direct I/O.
/// `None` if the kernel or the file system does not report it: statx(2), Linux 6.1.
pub(crate) fn offset_alignment_bytes(fd: impl AsFd) -> Option<u32> {
    reported_alignment(fd).ok().flatten()
}

fn reported_alignment(fd: impl AsFd) -> Result<Option<u32>, Errno> {
    let stat = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    let reported = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN);
    Ok(reported.then_some(stat.stx_dio_offset_align))
}

fn in_words(errno: Errno) -> String {
    engines::describe(errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_two_numbers() {
        for (release, expected) in [
            ("6.18.44-fc-v669", Some((6, 18))),
            ("5.10.0-30-amd64", Some((5, 10))),
            ("7.0-rc1", Some((7, 0))),
            ("6", None),
            ("", None),
            ("x.y", None),
        ] {
            assert_eq!(major_and_minor(release), expected, "{release}");
        }
        assert!(major_and_minor(&release()).is_some_and(|found| found >= (5, 10)));
    }

    #[test]
    fn the_reason_of_a_refused_ring_is_the_one_that_can_be_changed() {
        for (errno, disabled, filtered, expected) in [
            (Errno::PERM, "2", true, "the sysctl kernel.io_uring_disabled is 2"),
            (Errno::PERM, "1", false, "is 1, and this user is not in the group"),
            (Errno::PERM, "0", true, "a seccomp filter forbids it"),
            (Errno::PERM, "", false, "Operation not permitted"),
            (Errno::NOSYS, "", true, "a seccomp filter forbids it"),
            (Errno::NOSYS, "", false, "this kernel lacks it"),
            (Errno::NOMEM, "0", false, "locked memory"),
            (Errno::MFILE, "0", true, "Too many open files"),
        ] {
            let why = why_no_ring(errno, disabled, filtered);
            assert!(why.contains(expected), "{errno} {disabled} {filtered}: {why}");
        }
        assert!(is_filtered("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!is_filtered("Seccomp:\t0\nSeccomp_filters:\t2\n"));
    }
}
