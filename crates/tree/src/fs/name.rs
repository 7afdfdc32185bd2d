//! Names as operands have them: several components, and slashes at the end.

use std::ffi::{CStr, CString};

use rustix::io::Errno;

/// `name` without the slashes at its end; the root keeps one.
pub(crate) fn trim_slashes(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|&byte| byte != b'/') {
        Some(last) => &name[..=last],
        None => &name[..name.len().min(1)],
    }
}

/// The last component of a source's name, which is its name in the target directory. For the root
/// and for a parent directory that is the target itself.
pub(crate) fn last_component(source: &[u8]) -> &[u8] {
    match last_component_verbatim(source) {
        b".." | b"/" => b".",
        name => name,
    }
}

/// The last component as it is written.
pub(crate) fn last_component_verbatim(source: &[u8]) -> &[u8] {
    let trimmed = trim_slashes(source);
    if trimmed == b"/" {
        return trimmed;
    }
    &trimmed[trimmed.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1)..]
}

/// The directory part of a name, `.` if there is none, and its last component. Slashes at the end
/// do not count.
pub(crate) fn split(name: &CStr) -> (&[u8], &[u8]) {
    let bytes = name.to_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let bytes = &bytes[..end];
    match bytes.iter().rposition(|&byte| byte == b'/') {
        None => (b".", bytes),
        Some(at) => (&bytes[..=at], &bytes[at + 1..]),
    }
}

/// `bytes` as a name for system calls.
///
/// # Errors
/// EINVAL when they hold a zero: arguments of a process do not, but those of a library call may.
pub(crate) fn c_name(bytes: &[u8]) -> rustix::io::Result<CString> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_go_to_their_last_component() {
        for (source, name) in [
            ("a", "a"),
            ("a/", "a"),
            ("d//a//", "a"),
            ("d/.", "."),
            ("d/..", "."),
            ("/", "."),
            ("//", "."),
            ("/a", "a"),
        ] {
            assert_eq!(last_component(source.as_bytes()), name.as_bytes(), "{source}");
        }
    }
}
