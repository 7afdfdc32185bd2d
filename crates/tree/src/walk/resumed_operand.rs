//! `--resume` of an operand that is a directory: its marker tells whether an earlier run has finished it
//! (docs/design/resume.md).

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Stat, statat};

use super::operands::{copy_to_last, copy_to_name, open_directory};
use crate::copy::context::CopyContext;
use crate::destination::partial::{DirectoryMarker, remove_partial};
use crate::destination::temporary::Beside;
use crate::entry::source_name;
use crate::fs::{DisplayPath, Place, Trust, c_name, is_directory, trim_slashes};
use crate::report::{Action, Diagnostic};
use crate::request::Request;

/// Copies the only source to `last` with `--resume`. A marker tells whether a directory `last` is
/// the unfinished copy of an earlier run, or a directory to copy into.
pub(super) fn resume_to_last(cx: &CopyContext<'_>, request: &Request, last: &OsStr) {
    let Some(operands) = Operands::look_up(cx, request, last) else {
        return copy_to_last(cx, request, last);
    };
    let (place, exists) = (operands.src_place(request), open_directory(last).is_ok());
    let beside = operands.beside(cx, &place);
    let marker = if !is_directory(&operands.src) || !cx.options.recursive {
        Ok(None)
    } else if exists || cx.options.dry_run {
        Ok(find_marker(cx, &beside, &operands.src, last))
    } else {
        // The marker takes the name of a journal, without which a partial file is not recognised.
        remove_stale_partial(cx, &beside, last);
        DirectoryMarker::create(&beside, &operands.src)
    };
    match marker {
        Err(errno) => {
            let action = Action::CreateDirectory;
            cx.report.report(Diagnostic::Failed { action, path: last.into(), errno });
        }
        Ok(None) => {
            copy_to_last(cx, request, last);
            if exists && is_complete(cx) {
                remove_stale_partial(cx, &beside, last);
            }
        }
        Ok(Some(marker)) => {
            copy_to_name(cx, request, last);
            if is_complete(cx) {
                remove_marker(cx, marker, last);
            }
        }
    }
}

/// Removes the partial file that an earlier run left for a name that is or becomes a directory. The
/// user called it `last`.
fn remove_stale_partial(cx: &CopyContext<'_>, beside: &Beside<'_>, last: &OsStr) {
    if !cx.options.dry_run
        && let Err(left_over) = remove_partial(beside)
    {
        left_over.report(cx.report, Path::new(last));
    }
}

/// Removes the marker of the directory `name`, whose copy may be complete by now.
pub(super) fn remove_finished_marker(cx: &CopyContext<'_>, request: &Request, name: &OsStr) {
    if cx.options.resume
        && is_complete(cx)
        && let Some(operands) = Operands::look_up(cx, request, name)
    {
        let place = operands.src_place(request);
        let found = find_marker(cx, &operands.beside(cx, &place), &operands.src, name);
        found.into_iter().for_each(|marker| remove_marker(cx, marker, name));
    }
}

/// The marker that an earlier run left beside the directory that the user called `name`.
fn find_marker<'m>(
    cx: &CopyContext<'_>,
    beside: &Beside<'m>,
    src: &Stat,
    name: &OsStr,
) -> Option<DirectoryMarker<'m>> {
    DirectoryMarker::find(beside, src, cx.options.dry_run).unwrap_or_else(|left_over| {
        left_over.report(cx.report, Path::new(name));
        None
    })
}

/// Removes the marker of the complete directory that the user called `name`.
fn remove_marker(cx: &CopyContext<'_>, marker: DirectoryMarker<'_>, name: &OsStr) {
    if let Err(left_over) = marker.remove() {
        left_over.report(cx.report, Path::new(name));
    }
}

fn is_complete(cx: &CopyContext<'_>) -> bool {
    cx.report.add_failures(cx.partners().finish());
    cx.report.failures() == 0 && !cx.report.interrupted() && !cx.options.dry_run
}

/// The only source and the destination.
struct Operands {
    src_name: CString,
    src: Stat,
    /// The directory that the destination is in.
    parent: OwnedFd,
    /// The name of the destination there.
    base: CString,
}

impl Operands {
    fn look_up(cx: &CopyContext<'_>, request: &Request, last: &OsStr) -> Option<Operands> {
        let name = trim_slashes(last.as_bytes());
        let (parent, base) = match name.iter().rposition(|&byte| byte == b'/') {
            None => (&b"."[..], name),
            Some(at) => (&name[..=at], &name[at + 1..]),
        };
        let src_name = c_name(source_name(cx.options, &request.sources[0])).ok()?;
        let src = statat(CWD, &*src_name, AtFlags::empty()).ok()?;
        let parent = open_directory(OsStr::from_bytes(parent)).ok()?;
        Some(Operands { src_name, src, parent, base: c_name(base).ok()? })
    }

    fn src_place<'o>(&'o self, request: &'o Request) -> Place<'o> {
        let shown = DisplayPath::Operand(Path::new(&request.sources[0]));
        Place::new(CWD, &self.src_name, shown, Trust::Operand)
    }

    fn beside<'o>(&'o self, cx: &'o CopyContext<'_>, src: &'o Place<'o>) -> Beside<'o> {
        Beside { security: cx.security(), src, dir: self.parent.as_fd(), name: &self.base }
    }
}
