//! The names of the files that haulage makes beside a destination: temporaries, partial files and their journals.

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_128;

use crate::entry::Entry;
use crate::fs::{Trust, each_name};

/// The suffix of temporary names.
pub(super) const SUFFIX: &[u8] = b".haulage-new";

/// The names of the partial file and the journal of `name`; `None` for a path of several components.
pub(crate) fn names(name: &CStr) -> Option<(CString, CString)> {
    Some((temp_name(name, PART)?, temp_name(name, JOURNAL)?))
}

const PART: &[u8] = b".haulage-part";
const JOURNAL: &[u8] = b".haulage-journal";

/// Whether `name` has the form of a partial file, a journal or a temporary of another name.
pub(crate) fn is_own_name(name: &[u8]) -> bool {
    let is_partial = name.ends_with(PART) || name.ends_with(JOURNAL);
    name.starts_with(b".") && is_partial || is_temporary_name(name)
}

/// Whether `name` has the form of a temporary of another name.
pub(super) fn is_temporary_name(name: &[u8]) -> bool {
    name.starts_with(b".") && name.ends_with(SUFFIX)
}

/// `.NAME` with the suffix. A hash stands for a name that would become too long, or is not UTF-8: a file system that
/// stores names as text, such as UDF, does not find the file by those bytes again. `None` for a path of several
/// components.
pub(crate) fn temp_name(name: &CStr, suffix: &[u8]) -> Option<CString> {
    const NAME_BYTES_MAX: usize = 255;
    let name = name.to_bytes();
    if name.contains(&b'/') {
        return None;
    }
    let whole = [b".", name, suffix].concat();
    let bytes = match whole.len() <= NAME_BYTES_MAX && std::str::from_utf8(name).is_ok() {
        true => whole,
        false => [format!(".{:032x}", xxh3_128(name)).as_bytes(), suffix].concat(),
    };
    CString::new(bytes).ok()
}

/// Whether a pre-existing directory has a name of a partial file, a journal or a temporary. That is
/// rare; otherwise no name has to be looked up.
#[derive(Default)]
pub(crate) struct StaleFiles {
    seen: AtomicBool,
}

impl StaleFiles {
    /// Looks for such names in the pre-existing directory `dir`, before anything is created there.
    pub(crate) fn scan(&self, dir: BorrowedFd<'_>) {
        let listed = each_name(dir, |name, _kind| {
            if is_own_name(name.to_bytes()) {
                self.seen.store(true, Ordering::Relaxed);
            }
        });
        if listed.is_err() {
            // A directory that cannot be listed may have such names.
            self.seen.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there may be any beside the destination of `entry`.
    pub(crate) fn may_exist_for(&self, entry: &Entry<'_>) -> bool {
        match entry.dst.trust {
            // A directory that this run created was empty.
            Trust::Created => false,
            Trust::Operand | Trust::PreExisting => {
                entry.is_operand || self.seen.load(Ordering::Relaxed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_others_for_its_files_that_are_short_enough_and_its_own() {
        let name = |len| CString::new(vec![b'n'; len]).expect("no zero");
        let mut seen = std::collections::HashSet::new();
        for len in [1, 200, 238, 239, 241, 242, 254, 255] {
            let (partial, journal) = names(&name(len)).expect("names");
            for own in [partial, journal] {
                assert!(
                    own.to_bytes().len() <= 255 && is_own_name(own.to_bytes()),
                    "{len}: {own:?}"
                );
                assert!(seen.insert(own), "{len}");
            }
        }
        assert!(names(c"a/b").is_none());
    }
}
