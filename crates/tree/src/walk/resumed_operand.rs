//! `--resume` of an operand that is a directory: its marker tells whether an earlier run has finished it
//! (docs/design/resume.md).

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Stat, statat};

use super::operands::{copy_to_last, copy_to_name, open_directory};
use crate::copy::context::CopyContext;
use crate::destination::partial::DirectoryMarker;
use crate::destination::stale_files;
use crate::entry::source_name;
use crate::fs::{DisplayPath, Place, Trust, c_name, is_directory, trim_slashes};
use crate::report::{Action, Diagnostic};
use crate::request::Request;

/// Copies the only source to `last` with `--resume`. A marker tells whether a directory `last` is
/// the unfinished copy of an earlier run, or a directory to copy into.
pub(super) fn resume_to_last(cx: &CopyContext<'_>, request: &Request, last: &OsStr) {
    let Some((src, parent, base)) = look_up_operands(cx, request, last) else {
        return copy_to_last(cx, request, last);
    };
    let exists = open_directory(last).is_ok();
    let euid = cx.security().caller.euid;
    let marker = if !is_directory(&src) || !cx.options.recursive {
        Ok(None)
    } else if exists || cx.options.dry_run {
        Ok(DirectoryMarker::find(parent.as_fd(), &base, &src, euid))
    } else {
        // The marker takes the name of a journal, without which a partial file is not recognised.
        remove_stale_partial(cx, request, last, (parent.as_fd(), &base));
        DirectoryMarker::create(parent.as_fd(), &base, &src, euid)
    };
    match marker {
        Err(errno) => {
            let action = Action::CreateDirectory;
            cx.report.report(Diagnostic::Failed { action, path: last.into(), errno });
        }
        Ok(None) => {
            copy_to_last(cx, request, last);
            if exists && is_complete(cx) {
                remove_stale_partial(cx, request, last, (parent.as_fd(), &base));
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

/// Removes the partial file that an earlier run left for `name`, which is or becomes a directory. The
/// user called it `last`.
fn remove_stale_partial(
    cx: &CopyContext<'_>,
    request: &Request,
    last: &OsStr,
    (dir, name): (BorrowedFd<'_>, &CStr),
) {
    let Ok(source) = c_name(source_name(cx.options, &request.sources[0])) else { return };
    let path = Path::new(&request.sources[0]);
    if !cx.options.dry_run {
        let src = Place::new(CWD, &source, DisplayPath::Operand(path), Trust::Operand);
        if let Err(left_over) = stale_files::remove_partial(cx.security(), &src, (dir, name)) {
            left_over.report(cx.report, Path::new(last));
        }
    }
}

/// Removes the marker of the directory `name`, whose copy may be complete by now.
pub(super) fn remove_finished_marker(cx: &CopyContext<'_>, request: &Request, name: &OsStr) {
    if cx.options.resume
        && is_complete(cx)
        && let Some((src, parent, base)) = look_up_operands(cx, request, name)
        && let Some(marker) =
            DirectoryMarker::find(parent.as_fd(), &base, &src, cx.security().caller.euid)
    {
        remove_marker(cx, marker, name);
    }
}

/// Removes the marker of the complete directory that the user called `name`.
fn remove_marker(cx: &CopyContext<'_>, marker: DirectoryMarker<'_>, name: &OsStr) {
    if let Err(left_over) = marker.remove() {
        left_over.report(cx.report, Path::new(name));
    }
}

fn is_complete(cx: &CopyContext<'_>) -> bool {
    finish_ranks(cx);
    cx.report.failures() == 0 && !cx.report.interrupted() && !cx.options.dry_run
}

/// The attributes of the only source, the directory that the destination `last` is in, and its name
/// there.
fn look_up_operands(
    cx: &CopyContext<'_>,
    request: &Request,
    last: &OsStr,
) -> Option<(Stat, OwnedFd, CString)> {
    let name = trim_slashes(last.as_bytes());
    let (parent, base) = match name.iter().rposition(|&byte| byte == b'/') {
        None => (&b"."[..], name),
        Some(at) => (&name[..=at], &name[at + 1..]),
    };
    let src = c_name(source_name(cx.options, &request.sources[0])).ok()?;
    let src = statat(CWD, &*src, AtFlags::empty()).ok()?;
    Some((src, open_directory(OsStr::from_bytes(parent)).ok()?, c_name(base).ok()?))
}

/// Waits until the other ranks have ended, and adds their failures, unless that was done.
pub(super) fn finish_ranks(cx: &CopyContext<'_>) {
    if let Some(rank) = cx.rank()
        && let Some(failures) = rank.finish()
    {
        cx.report.add_failures(failures);
    }
}
