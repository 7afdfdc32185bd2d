//! The character set of the locale that the environment names.

use std::ffi::CStr;

/// `locale_t newlocale(int category_mask, const char *locale, locale_t base)` and `char
/// *nl_langinfo_l(nl_item item, locale_t locale)`
///
/// The name of the character set, such as `UTF-8`, of the locale that `LC_ALL`, `LC_CTYPE` or
/// `LANG` names. `None` if that locale is not installed; a program then stays in the locale `C`.
/// See newlocale(3) and nl_langinfo(3).
#[must_use]
pub fn codeset() -> Option<String> {
    // SAFETY: the name is a terminated string, and no base locale is modified.
    let locale =
        unsafe { libc::newlocale(libc::LC_CTYPE_MASK, c"".as_ptr(), std::ptr::null_mut()) };
    if locale.is_null() {
        return None;
    }
    // SAFETY: the locale was just created, and is freed below only.
    let name = unsafe { libc::nl_langinfo_l(libc::CODESET, locale) };
    // SAFETY: the pointer is never null, the string ends with a zero byte, and it lives as long as
    // the locale.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    // SAFETY: no reference to the locale remains.
    unsafe { libc::freelocale(locale) };
    Some(name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_locale_has_a_character_set() {
        // The result depends on the environment. The locale `C` has a name too.
        assert!(super::codeset().is_none_or(|name| !name.is_empty()));
    }
}
