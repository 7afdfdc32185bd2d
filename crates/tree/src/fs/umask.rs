//! The permissions that new files of this process do not get.
//!
//! The call that tells them also sets them, for all threads at once: what another thread makes in
//! that instant has the wrong permissions, and of two who ask at once one may hear, and leave
//! behind, what the other has set. So it is called where nobody else is there to be disturbed.

use std::sync::Mutex;

use rustix::fs::{Mode, OFlags, open, stat};
use rustix::io::read;

use crate::lock::lock;

/// The umask of this process.
pub(crate) fn umask() -> Mode {
    // To read what the kernel tells of a process costs a small copy a tenth of its time.
    let told = if is_alone() { None } else { told_by_kernel() };
    told.unwrap_or_else(by_setting_it)
}

/// Whether this process has no other thread: its directory of threads has no other.
fn is_alone() -> bool {
    stat("/proc/self/task").is_ok_and(|threads| threads.st_nlink == 3)
}

/// What the kernel says of it since Linux 4.7, see proc_pid_status(5).
fn told_by_kernel() -> Option<Mode> {
    let fd = open("/proc/thread-self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    // It stands in the second line.
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

/// For the instant it is the strictest, so that what another thread makes is too private rather
/// than too public.
fn by_setting_it() -> Mode {
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
    fn it_is_read_from_what_the_kernel_says() {
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
    fn it_is_what_new_files_do_not_get() {
        // Other tests run beside this one.
        assert!(!is_alone());
        let dir = tempfile::tempdir().expect("a directory");
        let (path, all) = (dir.path().join("new"), Mode::from_raw_mode(0o777));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let new = open(&path, flags, all).expect("a file");
        let mode = rustix::fs::fstat(new).expect("its mode").st_mode & 0o777;
        assert_eq!(told_by_kernel(), Some(all & !Mode::from_raw_mode(mode)));
        assert_eq!(umask().as_raw_mode(), 0o777 & !mode);
    }
}
