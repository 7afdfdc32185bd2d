//! Copies between two files that the caller has opened. No name is looked up, and no descriptor is
//! closed.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::{CWD, FileType, OFlags, Stat, fcntl_getfl, fstat, fsync, ftruncate};
use rustix::io::{Errno, retry_on_intr};

use crate::data::context::DataContext;
use crate::data::context::Files;
use crate::data::copy::copy_data;
use crate::data::verify::verify;
use crate::data::worker::DataWorker;
use crate::entry::{bytes_to_copy, elapsed_ns};
use crate::fs::{
    Caller, DisplayPath, Handle, Place, Trust, are_one_file, file_bytes, is_directory, is_regular,
    kind,
};
use crate::metadata::{MetadataContext, Source, Target, apply, kept};
use crate::report::{Action, DataReport, Diagnostic, Loss, Method, Receipt, Result, failed};
use crate::request::{Make, Reflink};

/// Copies what is open as `src` to what is open as `dst`. Between regular files the whole file is
/// copied, whatever the offsets of the descriptors are, and replaces the contents of `dst`.
/// Anything else is a stream, from where it is to its end.
pub(crate) fn copy_open_files(
    cx: &DataContext<'_>,
    worker: &mut DataWorker,
    src: BorrowedFd<'_>,
    dst: BorrowedFd<'_>,
) {
    let started = cx.report.keeps_receipts().then(Instant::now);
    let names = [src, dst].map(|fd| PathBuf::from(format!("/dev/fd/{}", fd.as_raw_fd())));
    let place = |at: usize| {
        let shown = DisplayPath::Operand(&names[at]);
        // The name is not looked up.
        Place { dir: CWD, name: c"", shown, trust: Trust::Operand }
    };
    let places = (&place(0), &place(1));
    let copied = try_copy(cx, worker, (src, dst), places);
    worker.finish_entry();
    worker.drop_pages(cx);
    if cx.report.keeps_receipts() {
        let src_kind = fstat(src).map_or(FileType::Unknown, |stat| kind(&stat));
        let (src, dst) = (names[0].clone(), names[1].clone());
        let mut receipt = Receipt::new(src, dst, src_kind, Method::Copied);
        match &copied {
            Ok((data, lost)) => {
                receipt.kept = kept(cx.options, src_kind, lost);
                receipt.lost.clone_from(lost);
                data.iter().for_each(|data| receipt.add_data(data.clone()));
            }
            Err(diagnostic) => {
                if let Some(failed) = worker.failed_data.take() {
                    receipt.add_data(failed.data);
                    receipt = receipt.failed_by(vec![failed.diagnostic]);
                }
                receipt = receipt.failed_by(vec![diagnostic.clone()]);
            }
        }
        receipt.elapsed_ns = elapsed_ns(started);
        cx.report.observer.finished(receipt);
    }
    if let Err(diagnostic) = copied {
        cx.report.report(diagnostic);
    }
}

/// Copies data and attributes, and syncs with `--durable`.
fn try_copy(
    cx: &DataContext<'_>,
    worker: &mut DataWorker,
    (src, dst): (BorrowedFd<'_>, BorrowedFd<'_>),
    (src_place, dst_place): (&Place<'_>, &Place<'_>),
) -> Result<(Option<DataReport>, Vec<Loss>)> {
    let src_stat = fstat(src).map_err(failed(Action::Fstat, src_place))?;
    let dst_stat = fstat(dst).map_err(failed(Action::Fstat, dst_place))?;
    let moves_data = cx.options.make != Make::AttributesOnly;
    check((src, src_place, &src_stat), (dst, dst_place, &dst_stat), moves_data)?;
    worker.progress.start_entry(bytes_to_copy(cx.options, &src_stat));
    let _shown = worker.progress.show(dst_place, file_bytes(&src_stat), false);
    let mut data = None;
    if moves_data {
        let files = Files {
            src,
            src_stat: &src_stat,
            src_place,
            dst,
            dst_stat: &dst_stat,
            dst_place,
            // A clone that is required must not truncate the old contents before it is refused.
            new: cx.options.reflink == Reflink::Always,
            atomic: false,
            opened_here: false,
            shared: None,
        };
        let mut copied = copy_data(cx, worker, &files, None)?;
        let bytes = file_bytes(&src_stat);
        if files.new && is_regular(&dst_stat) && file_bytes(&dst_stat) > bytes {
            retry_on_intr(|| ftruncate(dst, bytes)).map_err(failed(Action::Truncate, dst_place))?;
        }
        if cx.options.verify {
            let counters = worker.progress.counters();
            copied.verified = verify(cx.report, &files, counters.as_deref())?;
        }
        data = Some(copied);
    }
    let mut lost = Vec::new();
    if is_regular(&dst_stat) {
        let source = Source { handle: Some(Handle::Open(src)), stat: &src_stat };
        let target = Target {
            handle: Handle::Open(dst),
            place: dst_place,
            stat: &dst_stat,
            new: false,
            inherits_acl: false,
            mode: None,
        };
        let caller = Caller::of_process();
        let metadata = MetadataContext { options: cx.options, report: cx.report, caller };
        lost = apply(metadata, source, target);
        if cx.options.durable {
            retry_on_intr(|| fsync(dst)).map_err(failed(Action::Sync, dst_place))?;
        }
    }
    Ok((data, lost))
}

/// Refuses files that cannot be copied as a whole.
fn check(
    (src, src_place, src_stat): (BorrowedFd<'_>, &Place<'_>, &Stat),
    (dst, dst_place, dst_stat): (BorrowedFd<'_>, &Place<'_>, &Stat),
    moves_data: bool,
) -> Result<()> {
    let (src_path, dst_path) = (|| src_place.path(), || dst_place.path());
    if is_directory(src_stat) {
        return Err(Diagnostic::OmittingDirectory { src: src_path() });
    }
    if is_directory(dst_stat) {
        return Err(Diagnostic::DirectoryInTheWay { src: src_path(), dst: dst_path() });
    }
    if !is_regular(dst_stat) {
        return Ok(());
    }
    if are_one_file((src, src_stat), (dst, dst_stat)) {
        return Err(Diagnostic::SameFile { src: src_path(), dst: dst_path() });
    }
    // Before `dst` is truncated: a source that cannot be read would leave it empty.
    let src_flags = fcntl_getfl(src).map_err(failed(Action::Fstat, src_place))?;
    let is_readable = src_flags & OFlags::RWMODE != OFlags::WRONLY;
    if moves_data && (!is_readable || src_flags.contains(OFlags::PATH)) {
        return Err(failed(Action::Read, src_place)(Errno::BADF));
    }
    let dst_flags = fcntl_getfl(dst).map_err(failed(Action::Fstat, dst_place))?;
    // O_APPEND: each write would go to the end of the file, whatever its offset. Extents after a hole, and
    // parts by several workers, would get the wrong places. copy_file_range(2) returns the same.
    // O_RDONLY: the first call may be ftruncate(2), which returns EINVAL for it.
    let is_read_only = dst_flags & OFlags::RWMODE == OFlags::RDONLY;
    if dst_flags.contains(OFlags::APPEND) || (moves_data && is_read_only) {
        return Err(failed(Action::Write, dst_place)(Errno::BADF));
    }
    Ok(())
}
