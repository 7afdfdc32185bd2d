//! This process: its user, umask, free descriptors and address space.

use std::sync::Mutex;

use rustix::fs::{Mode, OFlags, Stat, open, stat};
use rustix::io::read;
use rustix::param::page_size;
use rustix::process::Resource;
use sys::resource_limit;

use crate::lock::lock;

/// The effective user and group of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) euid: u32,
    egid: u32,
}

impl Caller {
    /// The effective user and group of the calling process now.
    pub(crate) fn of_process() -> Caller {
        Caller {
            euid: rustix::process::geteuid().as_raw(),
            egid: rustix::process::getegid().as_raw(),
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.euid == 0
    }

    /// Whether the inode belongs to this user.
    pub(crate) fn owns(&self, stat: &Stat) -> bool {
        stat.st_uid == self.euid
    }

    /// Whether a file that this user creates gets the inode's owner and group without chown(2). In
    /// a set-group-ID directory it gets another group, which [`crate::metadata`] corrects.
    pub(crate) fn owns_with_group(&self, stat: &Stat) -> bool {
        (stat.st_uid, stat.st_gid) == (self.euid, self.egid)
    }
}

/// The umask of this process.
pub(crate) fn umask() -> Mode {
    // Reading /proc takes a tenth of the time of a small copy.
    let read = if is_single_threaded() { None } else { read_from_proc() };
    read.unwrap_or_else(read_by_setting)
}

/// Whether the process has one thread, by the link count of its directory of threads.
fn is_single_threaded() -> bool {
    stat("/proc/self/task").is_ok_and(|threads| threads.st_nlink == 3)
}

/// The umask in /proc since Linux 4.7, see proc_pid_status(5).
fn read_from_proc() -> Option<Mode> {
    let fd = open("/proc/thread-self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    // It is in the second line.
    let mut text = [0; 256];
    let bytes = read(fd.ok()?, &mut text).ok()?;
    parse(&text[..bytes])
}

fn parse(status: &[u8]) -> Option<Mode> {
    let mut lines = status.split(|&byte| byte == b'\n');
    let octal = lines.find_map(|line| line.strip_prefix(b"Umask:"))?.trim_ascii();
    let octal = std::str::from_utf8(octal).ok()?;
    u32::from_str_radix(octal, 8).ok().map(Mode::from_raw_mode)
}

/// Sets the strictest umask and restores the old one. What another thread creates meanwhile is too
/// private rather than too public.
fn read_by_setting() -> Mode {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = lock(&ONE_AT_A_TIME);
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(umask);
    umask
}

/// Descriptors of everything but the copied files and directories, such as standard streams.
pub(crate) const OTHER_DESCRIPTORS: u64 = 20;

/// With a limit above this, open descriptors are not counted, which takes 20 microseconds.
const FEW_DESCRIPTORS: u64 = 1024;

/// With a limit under this no descriptor can be spared for what is only faster.
const DESCRIPTORS_ENOUGH: u64 = 256;

/// Whether the process may open so few descriptors that none is kept from file to file.
pub(crate) fn descriptors_are_few() -> bool {
    let limit = resource_limit(Resource::Nofile);
    limit.is_ok_and(|limit| limit.current.is_some_and(|current| current < DESCRIPTORS_ENOUGH))
}

/// How many descriptors the process may have, less those that it has open beyond
/// [`OTHER_DESCRIPTORS`].
pub(crate) fn available_descriptors() -> u64 {
    // The usual limit stands for one that cannot be read.
    let allowed = resource_limit(Resource::Nofile)
        .map_or(FEW_DESCRIPTORS, |limit| limit.current.unwrap_or(u64::MAX));
    if allowed > FEW_DESCRIPTORS {
        return allowed;
    }
    // If /proc cannot be read, EMFILE comes later.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64);
    allowed.saturating_sub(open.saturating_sub(OTHER_DESCRIPTORS))
}

/// Bytes that are left below RLIMIT_AS; `None` without a limit. What is not known is not left.
pub(crate) fn address_space_left_bytes() -> Option<u64> {
    let limit = resource_limit(Resource::As).ok()?.current?;
    let used = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| used_pages(&text));
    let page_bytes = page_size() as u64;
    Some(used.map_or(0, |pages| limit.saturating_sub(pages.saturating_mul(page_bytes))))
}

/// The first number of proc_pid_statm(5).
fn used_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_umask_is_parsed_from_the_status_file() {
        for (status, expected) in [
            ("Name:\thaulage\nUmask:\t0022\nState:\tR (running)\n", Some(0o022)),
            ("Name:\tUmask: 0777\nUmask:\t0007\n", Some(0o007)),
            ("Name:\tcp\nState:\tR (running)\n", None),
            ("Umask:\n", None),
            ("", None),
        ] {
            assert_eq!(parse(status.as_bytes()).map(Mode::as_raw_mode), expected, "{status:?}");
        }
    }

    #[test]
    fn the_umask_is_withheld_from_new_files() {
        // Other tests run beside this one.
        assert!(!is_single_threaded());
        let dir = tempfile::tempdir().expect("created");
        let (path, all) = (dir.path().join("new"), Mode::from_raw_mode(0o777));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let new = open(&path, flags, all).expect("opened");
        let mode = rustix::fs::fstat(new).expect("looked at").st_mode & 0o777;
        assert_eq!(read_from_proc(), Some(all & !Mode::from_raw_mode(mode)));
        assert_eq!(umask().as_raw_mode(), 0o777 & !mode);
    }

    #[test]
    fn the_pages_of_a_process_are_counted() {
        assert_eq!(used_pages("4241 1028 911 52 0 325 0\n"), Some(4241));
        assert_eq!(used_pages(""), None);
    }
}
