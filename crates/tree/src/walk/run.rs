//! The calls that copy: a request, what one of several processes has to do, and two open files.

use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::CWD;

use super::contexts::Worker;
use super::contexts::{Outcome, with_context, with_data_context};
use super::operands::{copy_into, copy_to_last, copy_to_name};
use super::resumed_operand::{remove_finished_marker, resume_to_last};
use super::tree::walk_with_partners;
use crate::copy::context::CopyContext;
use crate::copy::descriptors::copy_open_files;
use crate::copy::plain::{copy_plain, is_plain};
use crate::data::worker::DataWorker;
use crate::fs::{DisplayPath, Place, Trust, c_name};
use crate::report::Observer;
use crate::request::{Destination, Options, Request};
use crate::shared::PartnerContext;
use crate::shared::partners::Partnership;

/// Copies what `request` names. A failed entry does not stop the others.
pub fn copy(request: &Request, options: &Options, observer: &dyn Observer) -> Outcome {
    copy_plain_file(request, options, observer)
        .unwrap_or_else(|| copy_in_general(request, options, observer))
}

fn copy_in_general(request: &Request, options: &Options, observer: &dyn Observer) -> Outcome {
    let alone = Arc::new(PartnerContext::alone());
    with_context(options, observer, &alone, |cx| copy_request(cx, request))
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
            let mut worker = Worker::new(cx);
            walk_with_partners(cx, &mut worker, None);
            worker.copy.data.release(cx.data);
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
        Destination::Directory(dir) => copy_into(cx, request, dir),
        Destination::Exact(name) => {
            copy_to_name(cx, request, name);
            remove_finished_marker(cx, request, name);
        }
        Destination::Last(last) if cx.options.resume && request.sources.len() == 1 => {
            resume_to_last(cx, request, last);
        }
        Destination::Last(last) => copy_to_last(cx, request, last),
    }
}
