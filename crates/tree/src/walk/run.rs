//! The calls that copy: a request, what one of several processes has to do, and two open files.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Stat, statat};

use super::contexts::{Outcome, with_context, with_data_context};
use super::operands::{copy_into, copy_to_name, open_directory};
use super::tree::walk_with_partners;
use crate::copy::context::CopyWorker;
use crate::copy::one_file::{copy_open_files, copy_plain, is_plain};
use crate::data::worker::DataWorker;
use crate::destination::context::CopyContext;
use crate::destination::partial::{clear_journal, create_marker, has_marker, remove_partial};
use crate::destination::temporary::{Beside, LeftOver};
use crate::entry::source_name;
use crate::fs::{DisplayPath, Place, Trust, c_name, is_directory, split};
use crate::report::{Action, Diagnostic, Observer};
use crate::request::{Destination, Options, Request};
use crate::shared::PartnerContext;
use crate::shared::partners::Partnership;

/// Copies what `request` names. A failed entry does not stop the others.
pub fn copy(request: &Request, options: &Options, observer: &dyn Observer) -> Outcome {
    copy_plain_file(request, options, observer).unwrap_or_else(|| {
        let alone = Arc::new(PartnerContext::alone());
        with_context(options, observer, &alone, |cx| copy_request(cx, request))
    })
}

/// Copies what `request` names together with other processes. Process 0 has the request. The others,
/// for which there is none, copy what the processes give to each other, until
/// [`Event::End`](crate::Event::End).
pub fn copy_with_partners(
    request: Option<&Request>,
    options: &Options,
    observer: &dyn Observer,
    partnership: Partnership,
) -> Outcome {
    let partners = Arc::new(PartnerContext::new(partnership));
    with_context(options, observer, &partners, |cx| match request {
        _ if !partners.others.start() => cx.report.add_failures(1),
        Some(request) => {
            copy_request(cx, request);
            cx.report.add_failures(partners.finish());
        }
        None => {
            let mut worker = CopyWorker::new(cx);
            walk_with_partners(cx, &mut worker, None);
            worker.data.release(cx.data);
            cx.data.syncer.sync_file_systems();
        }
    })
}

/// Copies one file without attributes to its name. `None` if the request is another one; nothing is
/// changed then.
fn copy_plain_file(
    request: &Request,
    options: &Options,
    observer: &dyn Observer,
) -> Option<Outcome> {
    let Destination::Exact(dst) = &request.destination else { return None };
    let [src] = &request.sources[..] else { return None };
    if !is_plain(options, observer) {
        return None;
    }
    let (src_name, dst_name) = (c_name(src.as_bytes()).ok()?, c_name(dst.as_bytes()).ok()?);
    let place =
        |name, shown| Place::new(CWD, name, DisplayPath::Operand(Path::new(shown)), Trust::Operand);
    with_data_context(options, observer, |cx| {
        let copied = copy_plain(cx, (&place(&src_name, src), &place(&dst_name, dst)))?;
        copied.unwrap_or_else(|diagnostic| cx.report.report(diagnostic));
        Some(Outcome { failures: cx.report.failures() })
    })
}

/// Copies what is open as `src` to what is open as `dst`, without looking up a name. Between regular
/// files the whole file is copied, whatever the offsets of the descriptors are, and replaces the
/// contents of `dst`. Anything else is a stream, from where it is to its end. Both descriptors stay
/// open. Messages name them `/dev/fd/N`. Of the options, those about names have no effect.
pub fn copy_descriptors(
    src: BorrowedFd<'_>,
    dst: BorrowedFd<'_>,
    options: &Options,
    observer: &dyn Observer,
) -> Outcome {
    with_data_context(options, observer, |cx| {
        copy_open_files(cx, &mut DataWorker::of_one_file(cx), src, dst);
        Outcome { failures: cx.report.failures() }
    })
}

fn copy_request(cx: &CopyContext<'_>, request: &Request) {
    match &request.destination {
        Destination::Directory(dir) => copy_into(cx, request, dir, true),
        Destination::Exact(name) => {
            copy_to_name(cx, request, name);
            remove_finished_marker(cx, request, name);
        }
        Destination::Last(last) if cx.options.resume && request.sources.len() == 1 => {
            resume_to_last(cx, request, last);
        }
        Destination::Last(last) => copy_into(cx, request, last, false),
    }
}

// `--resume` of an operand that is a directory: its marker tells whether an earlier run has finished it
// (docs/design/resume.md).

/// Copies the only source to `last` with `--resume`. A marker tells whether a directory `last` is
/// the unfinished copy of an earlier run, or a directory to copy into.
pub(super) fn resume_to_last(cx: &CopyContext<'_>, request: &Request, last: &OsStr) {
    let Some(operands) = Operands::look_up(cx, request, last) else {
        return copy_into(cx, request, last, false);
    };
    let (place, exists) = (operands.src_place(request), open_directory(last).is_ok());
    let beside = operands.beside(cx, &place);
    let marker = if !is_directory(&operands.src) || !cx.options.recursive || cx.options.parents {
        Ok(false)
    } else if exists || cx.options.dry_run {
        let found = has_marker(&beside, &operands.src, cx.options.dry_run);
        Ok(unless_left_over(cx, last, found) == Some(true))
    } else {
        // The marker takes the name of a journal, without which a partial file is not recognised.
        unless_left_over(cx, last, remove_partial(&beside));
        create_marker(&beside, &operands.src)
    };
    match marker {
        Err(errno) => {
            let action = Action::CreateDirectory;
            cx.report.report(Diagnostic::Failed { action, path: last.into(), errno });
        }
        Ok(false) => {
            copy_into(cx, request, last, false);
            if exists && is_complete(cx) {
                unless_left_over(cx, last, remove_partial(&beside));
            }
        }
        Ok(true) => {
            copy_to_name(cx, request, last);
            // What is in the way of the directory may give way to another one later.
            if is_complete(cx) || open_directory(last).is_err() {
                unless_left_over(cx, last, clear_journal((beside.dir, beside.name)));
            }
        }
    }
}

/// Removes the marker of the directory `name`, whose copy may be complete by now.
pub(super) fn remove_finished_marker(cx: &CopyContext<'_>, request: &Request, name: &OsStr) {
    if cx.options.resume
        && is_complete(cx)
        && let Some(operands) = Operands::look_up(cx, request, name)
    {
        let place = operands.src_place(request);
        let beside = operands.beside(cx, &place);
        // A dry run is never complete.
        let found = has_marker(&beside, &operands.src, false);
        if unless_left_over(cx, name, found) == Some(true) {
            unless_left_over(cx, name, clear_journal((beside.dir, beside.name)));
        }
    }
}

/// The result of `done`. A file that could not be removed beside the directory `name` is reported.
fn unless_left_over<T>(cx: &CopyContext<'_>, name: &OsStr, done: Result<T, LeftOver>) -> Option<T> {
    done.map_err(|left_over| left_over.report(cx.report, Path::new(name))).ok()
}

fn is_complete(cx: &CopyContext<'_>) -> bool {
    cx.report.add_failures(cx.partners.finish());
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
        let last = c_name(last.as_bytes()).ok()?;
        let (parent, base) = split(&last);
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
        let (security, dir) = (&cx.security, self.parent.as_fd());
        Beside { security, src, operand: None, dir, name: &self.base }
    }
}
