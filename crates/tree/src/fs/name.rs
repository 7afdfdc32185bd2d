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

/// The name of a source in the target directory: its last component, or `.` for the root and for
/// `..`.
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

/// The directory part of a name, `.` if there is none, and its last component. Trailing slashes do
/// not count.
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
/// EINVAL when they contain a zero byte.
pub(crate) fn c_name(bytes: &[u8]) -> rustix::io::Result<CString> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_the_name_of_its_last_component() {
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
