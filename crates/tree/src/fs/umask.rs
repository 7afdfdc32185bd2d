//! The umask of this process.
//!
//! umask(2) returns it only by setting it, for all threads at once: a file that another thread
//! creates meanwhile gets wrong permissions, and of two concurrent calls one may restore the value
//! of the other. So it is called only if the process has one thread.

use std::sync::Mutex;

use rustix::fs::{Mode, OFlags, open, stat};
use rustix::io::read;

use crate::lock::lock;

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
        let dir = tempfile::tempdir().expect("a directory");
        let (path, all) = (dir.path().join("new"), Mode::from_raw_mode(0o777));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let new = open(&path, flags, all).expect("a file");
        let mode = rustix::fs::fstat(new).expect("its mode").st_mode & 0o777;
        assert_eq!(read_from_proc(), Some(all & !Mode::from_raw_mode(mode)));
        assert_eq!(umask().as_raw_mode(), 0o777 & !mode);
    }
}
