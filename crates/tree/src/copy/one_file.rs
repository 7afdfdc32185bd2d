//! One regular file whose attributes are not kept, to a name that the caller gave: what most calls of a
//! library copy.
//!
//! Such a copy needs no state of a run: no start time, no umask, no directory that stays open. To make
//! these takes longer than to copy a small file (docs/design/start-up.md). The data is copied by the same
//! code as in every copy. Where anything is unusual, [`copy_plain`] has changed nothing, and the general
//! way decides and reports.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fstat, ftruncate, openat};
use rustix::io::{Errno, retry_on_intr};
use sys::close;

use super::context::Made;
use crate::data::context::{DataContext, Files};
use crate::data::copy::{copy_data, verify_copy};
use crate::data::sync::sync_file;
use crate::data::worker::DataWorker;
use crate::destination::alias::{is_alias, is_source};
use crate::destination::open::{NEW, Opened, WRITE, look_at_created};
use crate::entry::{bytes_to_copy, elapsed_ns, open_regular};
use crate::fs::{
    Caller, DisplayPath, FileAt, FileId, FsTypes, Handle, OpenFile, Place, Trust, are_one_file,
    file_bytes, is_directory, is_kept_everywhere, is_regular, is_reliable, kind, open_above,
    open_listed, split,
};
use crate::metadata::{
    MetadataContext, Source, Target, apply, has_default_acl, inherited_acl_matters, new_file_mode,
};
use crate::report::{Action, Diagnostic, Method, Observer, Receipt, Result, failed};
use crate::request::{Make, ModeRule, Options, Preserve, Reflink};

/// Whether the options ask for the data of a file and nothing else, and the observer for no more than
/// failures.
pub(crate) fn is_plain(options: &Options, observer: &dyn Observer) -> bool {
    let Preserve { mode, quiet, .. } = options.preserve;
    // Of all options that are not named here the default is plain.
    let plain = Options {
        // These concern directories, special files and links.
        recursive: options.recursive,
        copy_contents: options.copy_contents,
        strip_trailing_slashes: options.strip_trailing_slashes,
        keep_directory_symlink: options.keep_directory_symlink,
        new_directory: options.new_directory,
        through_dangling_symlink: options.through_dangling_symlink,
        one_file_system: options.one_file_system,
        filter: options.filter.clone(),
        // A destination that cannot be opened is left to the general way.
        force: options.force,
        follow: options.follow,
        // These are for copying the data.
        sparse: options.sparse,
        reflink: options.reflink,
        jobs: options.jobs,
        engine: options.engine.clone(),
        sigbus_handler: options.sigbus_handler,
        profile: options.profile.clone(),
        limit_rate: options.limit_rate,
        preserve: Preserve { mode, quiet, ..Preserve::default() },
        ..Options::default()
    };
    let reports = observer.keeps_receipts() || observer.progress().is_some();
    let is_usual = mode != ModeRule::Preserve && options.reflink != Reflink::Always;
    *options == plain && is_usual && !reports
}

/// Copies `src`, with options that are plain. `None` if this was not possible in the usual order of
/// calls; nothing is changed then.
pub(crate) fn copy_plain(
    cx: &DataContext<'_>,
    (src_place, dst_place): (&Place<'_>, &Place<'_>),
) -> Option<Result<()>> {
    let follows = cx.options.follow.follows(true);
    // Looked at first, because opening a fifo or a device has effects.
    let looked_at = src_place.stat(follows).ok().filter(is_regular)?;
    let mut worker = DataWorker::of_one_file(cx);
    let src = open_regular(&mut worker.fs_types, src_place, follows)?;
    if FileId::of(&src.stat) != FileId::of(&looked_at) {
        return None;
    }
    if !is_kept_everywhere(split(dst_place.name).1) || may_inherit_acl(cx.options, dst_place) {
        return None;
    }
    // The kernel applies the umask, or the default access control list of the directory.
    let mode = new_file_mode(cx.options, &src.stat, Mode::empty(), false).initial;
    let dst = match openat(dst_place.dir, dst_place.name, NEW, mode) {
        Ok(fd) => look_at_created(dst_place, fd, &src.stat),
        Err(Errno::EXIST) => Ok(open_existing(&mut worker.fs_types, dst_place, &src)?),
        Err(_) => return None,
    };
    Some(dst.and_then(|dst| fill(cx, &mut worker, (src_place, src), (dst_place, dst))))
}

/// Whether a new file `dst` may inherit an access control list that the options say to remove.
fn may_inherit_acl(options: &Options, dst: &Place<'_>) -> bool {
    inherited_acl_matters(options)
        && open_above(dst).map_or(true, |(dir, _)| has_default_acl(options, dir.as_fd()))
}

/// Opens the existing regular file `dst`, which is not the file `src` as far as their numbers tell.
fn open_existing(
    fs_types: &mut FsTypes,
    dst: &Place<'_>,
    src: &OpenFile,
) -> Option<Opened<'static>> {
    let looked_at = dst.stat(false).ok().filter(is_regular)?;
    let OpenFile { fd, stat } =
        open_listed(fs_types, None, (dst.dir, dst.name), WRITE | OFlags::NOFOLLOW)?;
    let is_usual = fs_types.of(fd.as_fd(), FileId::of(&stat).dev).is_some_and(is_reliable)
        && FileId::of(&stat) == FileId::of(&looked_at)
        && !is_source((src.fd.as_fd(), &src.stat), (fd.as_fd(), &stat));
    is_usual.then_some(Opened { fd, stat, new: false, atomic: None })
}

/// Copies the data, and closes both files.
fn fill(
    cx: &DataContext<'_>,
    worker: &mut DataWorker,
    (src_place, src): (&Place<'_>, OpenFile),
    (dst_place, dst): (&Place<'_>, Opened<'_>),
) -> Result<()> {
    let dst_at = FileAt { fd: dst.fd.as_fd(), stat: &dst.stat, place: dst_place };
    let files = Files::opened(src.at(src_place), dst_at, dst.new);
    copy_data(cx, worker, &files, None)?;
    close(src.fd).map_err(failed(Action::Close, src_place))?;
    worker.close(cx, (dst.fd, dst_place), None)
}

// Copies between two files that the caller has opened. No name is looked up, and no descriptor is
// closed.

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
    let mut copied = try_copy(cx, worker, (src, dst), places);
    worker.finish_entry();
    worker.drop_pages(cx);
    if cx.report.keeps_receipts() {
        let src_kind = fstat(src).map_or(FileType::Unknown, |stat| kind(&stat));
        let keeps_attributes = fstat(dst).is_ok_and(|stat| is_regular(&stat));
        let (src, dst) = (names[0].clone(), names[1].clone());
        let mut receipt = Receipt::new(src, dst, src_kind, Method::Copied);
        match &mut copied {
            Ok(made) => {
                std::mem::take(made).add_to(&mut receipt, cx.options);
                // A stream has its own attributes.
                if !keeps_attributes {
                    receipt.kept = Vec::new();
                }
            }
            Err(diagnostic) => worker.add_failure(&mut receipt, diagnostic),
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
) -> Result<Made> {
    let src_stat = fstat(src).map_err(failed(Action::Fstat, src_place))?;
    let dst_stat = fstat(dst).map_err(failed(Action::Fstat, dst_place))?;
    let moves_data = cx.options.make != Make::AttributesOnly;
    let files = Files {
        src: FileAt { fd: src, stat: &src_stat, place: src_place },
        dst: FileAt { fd: dst, stat: &dst_stat, place: dst_place },
        // A clone that is required must not truncate the old contents before it is refused.
        new: cx.options.reflink == Reflink::Always,
        atomic: false,
        opened_here: false,
        shared: None,
    };
    check(&files, moves_data)?;
    if cx.options.dry_run {
        return Ok(Made::default());
    }
    if is_regular(&dst_stat)
        && is_alias((Handle::Open(src), &src_stat), (Handle::Open(dst), &dst_stat))
    {
        return Err(Diagnostic::SameFile { src: src_place.path(), dst: dst_place.path() });
    }
    worker.progress.start_entry(bytes_to_copy(cx.options, &src_stat));
    let _shown = worker.progress.show(dst_place, file_bytes(&src_stat), false);
    let mut made = Made::default();
    if moves_data {
        let mut copied = copy_data(cx, worker, &files, None)?;
        let bytes = file_bytes(&src_stat);
        if files.new && is_regular(&dst_stat) && file_bytes(&dst_stat) > bytes {
            retry_on_intr(|| ftruncate(dst, bytes)).map_err(failed(Action::Truncate, dst_place))?;
        }
        verify_copy(cx, worker, &files, &mut copied)?;
        made.data = Some(copied);
    }
    if is_regular(&dst_stat) {
        let source = Source { handle: Some(Handle::Open(src)), stat: &src_stat };
        let target = Target::existing(Handle::Open(dst), dst_place, &dst_stat);
        let caller = Caller::of_process();
        let metadata = MetadataContext { options: cx.options, report: cx.report, caller };
        made.lost = apply(metadata, source, target);
    }
    if cx.options.durable {
        sync_file(dst).map_err(failed(Action::Sync, dst_place))?;
    }
    Ok(made)
}

/// Refuses files that cannot be copied as a whole.
fn check(&Files { src, dst, .. }: &Files<'_>, moves_data: bool) -> Result<()> {
    if is_directory(src.stat) {
        return Err(Diagnostic::OmittingDirectory { src: src.place.path() });
    }
    if is_directory(dst.stat) {
        let (src, dst) = (src.place.path(), dst.place.path());
        return Err(Diagnostic::DirectoryInTheWay { src, dst });
    }
    if !is_regular(dst.stat) {
        return Ok(());
    }
    if are_one_file((src.fd, src.stat), (dst.fd, dst.stat)) {
        return Err(Diagnostic::SameFile { src: src.place.path(), dst: dst.place.path() });
    }
    // Before `dst` is truncated: a source that cannot be read would leave it empty.
    let src_flags = fcntl_getfl(src.fd).map_err(failed(Action::Fstat, src.place))?;
    let is_readable = src_flags & OFlags::RWMODE != OFlags::WRONLY;
    if moves_data && (!is_readable || src_flags.contains(OFlags::PATH)) {
        return Err(failed(Action::Read, src.place)(Errno::BADF));
    }
    let dst_flags = fcntl_getfl(dst.fd).map_err(failed(Action::Fstat, dst.place))?;
    // O_APPEND: each write would go to the end of the file, whatever its offset. Extents after a hole, and
    // parts by several workers, would get the wrong places. copy_file_range(2) returns the same.
    // O_RDONLY: the first call may be ftruncate(2), which returns EINVAL for it.
    let is_read_only = dst_flags & OFlags::RWMODE == OFlags::RDONLY;
    if dst_flags.contains(OFlags::APPEND) || (moves_data && is_read_only) {
        return Err(failed(Action::Write, dst.place)(Errno::BADF));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::{create_dir, hard_link, read, write};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fs::CWD;

    use super::*;
    use crate::fs::{DisplayPath, Trust, c_name};
    use crate::report::{Reporter, Silent};

    #[test]
    fn usual_files_are_copied_here_and_others_are_left_as_they_are() {
        let home = tempfile::tempdir().expect("created");
        let at = |name: &str| home.path().join(name);
        write(at("file"), "new").expect("written");
        symlink("file", at("link")).expect("linked");
        create_dir(at("directory")).expect("created");
        let options = Options::default();
        assert!(is_plain(&options, &Silent));
        for (src, dst, is_copied) in [
            ("file", "absent", true),
            ("file", "old", true),
            ("link", "old", true),
            ("file", "link", false),
            ("file", "dangling", false),
            ("file", "other name", false),
            ("file", "directory", false),
            ("directory", "absent", false),
            ("missing", "absent", false),
            ("file", "missing/absent", false),
        ] {
            write(at("old"), "old").expect("written");
            let _ = std::fs::remove_file(at("absent"));
            let _ = symlink("nowhere", at("dangling"));
            let _ = hard_link(at("file"), at("other name"));
            let path = |name: &str| -> CString {
                c_name(at(name).as_os_str().as_encoded_bytes()).expect("no zero byte")
            };
            let (src_name, dst_name) = (path(src), path(dst));
            let place = |name| {
                let shown = DisplayPath::Operand(Path::new("shown"));
                Place::new(CWD, name, shown, Trust::Operand)
            };
            let never = false.into();
            let report = Reporter::new(&Silent, &options, &never);
            let cx = DataContext::new(&options, &report);
            let copied = copy_plain(&cx, (&place(&src_name), &place(&dst_name)));
            assert_eq!(copied, is_copied.then_some(Ok(())), "{src} to {dst}");
            let found = read(at(dst)).ok();
            let expected = match (is_copied, dst) {
                (true, _) | (_, "link" | "other name") => Some(b"new".to_vec()),
                _ => None,
            };
            assert_eq!(found, expected, "{src} to {dst}");
        }
    }
}
