//! Whether the filter or the observer leaves an entry out.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::ListedEntry;
use crate::fs::{DisplayPath, is_directory};
use crate::report::{Announcement, Reporter};
use crate::request::Options;

/// Whether `entry` is left out, which is announced with `--debug`.
pub(crate) fn is_left_out(
    options: &Options,
    report: &Reporter<'_>,
    entry: &ListedEntry<'_>,
) -> bool {
    let filter = &options.filter;
    let DisplayPath::In(dir_path) = entry.src.shown else { return false };
    let is_selected = || {
        !report.observer.is_selective()
            || report.observer.selects(&entry.src.path(), entry.listed_as)
    };
    if filter.is_empty() {
        return !is_selected();
    }
    // Patterns that end in a slash match directories. A link counts if it is followed.
    let is_directory = match entry.listed_as {
        FileType::Directory => true,
        FileType::Unknown | FileType::Symlink => {
            entry.src.stat(entry.src_through_link).is_ok_and(|stat| is_directory(&stat))
        }
        _ => false,
    };
    let below = dir_path.below_operand(entry.src.name);
    let left_out = filter.leaves_out(&below, is_directory) || !is_selected();
    if left_out {
        report.announce_debug(|| Announcement::LeftOut { src: entry.src.path() });
    }
    left_out
}

/// Whether any directory on `path`, which starts below the directory of `entry`, is left out.
pub(crate) fn is_path_left_out(options: &Options, entry: &ListedEntry<'_>, path: &Path) -> bool {
    let top = match entry.src.shown {
        DisplayPath::In(dir_path) => {
            PathBuf::from(OsString::from_vec(dir_path.below_operand(entry.src.name)))
        }
        DisplayPath::Operand(_) | DisplayPath::Directory(_) => PathBuf::new(),
    };
    let ends = path.ancestors().filter(|end| !end.as_os_str().is_empty());
    ends.map(|end| top.join(end))
        .any(|path| options.filter.leaves_out(path.as_os_str().as_bytes(), true))
}
