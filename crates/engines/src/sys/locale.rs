//! What the C library makes of the variables that name a locale.

use std::ffi::CStr;

/// `locale_t newlocale(int category_mask, const char *locale, locale_t base)` and
/// `char *nl_langinfo_l(nl_item item, locale_t locale)`: the name of the character set, such as
/// `UTF-8`, of the locale that `LC_ALL`, `LC_CTYPE` or `LANG` names; `None` where it is not
/// installed, which leaves a program in the locale `C`. See newlocale(3) and nl_langinfo(3).
#[must_use]
pub fn codeset() -> Option<String> {
    // SAFETY: the name is a string with its end, and there is no locale to be changed.
    let locale =
        unsafe { libc::newlocale(libc::LC_CTYPE_MASK, c"".as_ptr(), std::ptr::null_mut()) };
    if locale.is_null() {
        return None;
    }
    // SAFETY: the locale was just made, and is freed below only.
    let name = unsafe { libc::nl_langinfo_l(libc::CODESET, locale) };
    // SAFETY: it is never null, ends with a zero byte, and lives as long as the locale.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    // SAFETY: nothing refers to the locale any more.
    unsafe { libc::freelocale(locale) };
    Some(name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_locale_has_a_character_set() {
        // Which one hangs on the environment; that of C has a name too.
        assert!(super::codeset().is_none_or(|name| !name.is_empty()));
    }
}
