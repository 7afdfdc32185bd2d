//! The version of the C library.

/// `const char *gnu_get_libc_version(void)`
///
/// The version of glibc, such as `2.41`; `None` for another C library, which does not report one.
/// See gnu_get_libc_version(3).
#[must_use]
pub fn libc_version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it takes no arguments and returns a string that is part of the library.
        let version = unsafe { libc::gnu_get_libc_version() };
        // SAFETY: the string ends with a zero byte and is never freed.
        let version = unsafe { std::ffi::CStr::from_ptr(version) };
        Some(version.to_string_lossy().into_owned())
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_version_begins_with_a_number() {
        let digit = |version: String| version.starts_with(|c: char| c.is_ascii_digit());
        assert_eq!(super::libc_version().is_some_and(digit), cfg!(target_env = "gnu"));
    }
}
