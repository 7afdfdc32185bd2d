//! Runs a copy by the flags of copyfile(3), and tells its stages to the callback.

use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haulage::events::{Diagnostic, DirectoryStage, FileType, Method, Receipt};
use haulage::options::{Make, Options};
use haulage::{Control, Copy, CopyFailed, Error, Operation, Progress, Report};

use super::ends::Ends;
use super::flags::{
    CHECK, CLONE, CLONE_FORCE, EXCL, Flags, MOVE, NOFOLLOW_DST, NOFOLLOW_SRC, RECURSIVE,
};
use super::state::{CopyfileState, UNSET};
use crate::border::{c_text, set_errno};

const RECURSE_ERROR: c_int = 0;
const RECURSE_FILE: c_int = 1;
const RECURSE_DIR: c_int = 2;
const RECURSE_DIR_CLEANUP: c_int = 3;
const COPY_DATA: c_int = 4;

const START: c_int = 1;
const FINISH: c_int = 2;
const ERR: c_int = 3;
const PROGRESS: c_int = 4;

const CONTINUE: c_int = 0;
const SKIP: c_int = 1;

/// Copies `from` to `to`.
pub(super) fn copy(
    from: &Path,
    to: &Path,
    state: &Arc<CopyfileState>,
    flags: Flags,
) -> Result<c_int, Ends> {
    if flags.has(CHECK) {
        return check(from, flags);
    }
    let kind = look(from, !flags.has(NOFOLLOW_SRC))
        .map_err(|error| Ends::Errno(error.raw_os_error().unwrap_or(libc::EIO)))?
        .file_type();
    if !(kind.is_file() || kind.is_dir() || kind.is_symlink() || flags.has(RECURSIVE)) {
        return Err(Ends::Errno(libc::ENOTSUP));
    }
    let is_tree = kind.is_dir() && flags.has(RECURSIVE);
    let to = if is_tree { within(from, to, flags) } else { to.to_owned() };
    // As with O_EXCL of open(2), a symbolic link exists, whatever its target.
    if flags.has(EXCL) && look(&to, false).is_ok() {
        return Err(Ends::Errno(libc::EEXIST));
    }
    let options = Options {
        // Of a directory that is not copied with its entries, the directory itself is copied. And a fifo
        // that takes the place of a file is not waited for.
        recursive: true,
        one_file_system: state.forbids_cross_mount(),
        ..flags.options()
    };
    let is_whole = run((from, &to), state, flags, options, is_tree)?;
    if flags.has(MOVE) && is_whole {
        // As the manual says, a file that cannot be removed is no error.
        let _ = fs::remove_file(from).or_else(|_| fs::remove_dir(from));
    }
    Ok(0)
}

/// What COPYFILE_CHECK returns.
pub(super) fn check(from: &Path, flags: Flags) -> Result<c_int, Ends> {
    let present = flags.present(from)?;
    c_int::try_from(present).map_err(|_| Ends::Errno(libc::ENOTSUP))
}

fn look(path: &Path, follow: bool) -> io::Result<fs::Metadata> {
    if follow { path.metadata() } else { path.symlink_metadata() }
}

/// A directory is copied into an existing one, unless its name ends with a slash.
fn within(from: &Path, to: &Path, flags: Flags) -> PathBuf {
    let ends_with_slash = from.as_os_str().as_encoded_bytes().ends_with(b"/");
    let is_dir = look(to, !flags.has(NOFOLLOW_DST)).is_ok_and(|found| found.is_dir());
    match from.file_name() {
        Some(name) if is_dir && !ends_with_slash => to.join(name),
        _ => to.to_owned(),
    }
}

/// Runs the copy of a tree, or of one file. Returns false if the callback has ended it without an error.
fn run(
    (from, to): (&Path, &Path),
    state: &Arc<CopyfileState>,
    flags: Flags,
    options: Options,
    is_tree: bool,
) -> Result<bool, Ends> {
    let copy = Copy::new(from, to).with(|all| *all = options);
    if is_tree {
        return run_tree(copy, &Names { from, to }, (state, flags), &Answer::default());
    }
    // Of a directory alone nothing below it is copied.
    let copy = copy.select(|_, _| false);
    run_file(copy, (&c_text(from), &c_text(to)), (state, flags), &Answer::default())
}

/// How the callback has ended a copy, if it has: without an error, although not all of the data was copied, or with
/// one. Then it is not called again.
#[derive(Default)]
struct Answer(Cell<Option<Result<(), Ends>>>);

impl Answer {
    fn end(&self, end: Result<(), Ends>) -> Control {
        self.0.set(Some(end));
        Control::Quit
    }

    /// What `told` makes of it, unless the copy ends already.
    fn unless_ended(&self, told: impl FnOnce() -> Control) -> Control {
        if self.0.get().is_some() { Control::Quit } else { told() }
    }

    /// What to do after the answer to the start or the end of an entry.
    fn obey(&self, tell: impl FnOnce() -> Option<c_int>) -> Control {
        self.unless_ended(|| match tell() {
            None | Some(CONTINUE) => Control::Continue,
            Some(SKIP) => Control::Skip,
            Some(_) => self.end(Err(Ends::Quit)),
        })
    }

    /// The report of the copy; `None` if it was ended without an error.
    fn of(&self, result: Result<Report, CopyFailed>) -> Result<Option<Report>, Ends> {
        match (self.0.get(), result) {
            (Some(Ok(())), _) => Ok(None),
            (Some(Err(ends)), _) => Err(ends),
            (None, Ok(report)) => Ok(Some(report)),
            (None, Err(failed)) => {
                Err(Ends::Errno(failed.first().map_or(libc::ECANCELED, Error::errno)))
            }
        }
    }
}

/// Copies a tree. The callback is told of each entry, and of data while it moves.
fn run_tree<'c>(
    mut copy: Copy<'c>,
    names: &'c Names<'c>,
    (state, flags): (&'c Arc<CopyfileState>, Flags),
    answer: &'c Answer,
) -> Result<bool, Ends> {
    if state.callback().0.is_some() {
        // The tree itself is an operand, about which nothing is asked.
        let (src, dst) = (c_text(names.from), c_text(names.to));
        match answer.obey(|| state.call(RECURSE_DIR, START, &src, &dst)) {
            Control::Continue => (),
            Control::Skip => return Ok(false),
            Control::Quit => return Err(Ends::Quit),
        }
        copy = copy
            .select(|src, kind| {
                let what = if kind == FileType::Directory { RECURSE_DIR } else { RECURSE_FILE };
                let (src, dst) = (c_text(src), c_text(names.of(src)));
                answer.obey(|| state.call(what, START, &src, &dst))
            })
            .on_directory(|src, dst, stage| {
                let (what, stage) = match stage {
                    DirectoryStage::Entered => (RECURSE_DIR, FINISH),
                    DirectoryStage::Filled => (RECURSE_DIR_CLEANUP, START),
                };
                answer.obey(|| state.call(what, stage, &c_text(src), &c_text(dst)))
            })
            .on_entry(|receipt| answer.obey(|| finished(state, receipt)));
        if flags.options().make == Make::Copy {
            copy = copy.progress(|progress| {
                answer.unless_ended(|| match progressed_tree(state, progress, names) {
                    true => Control::Continue,
                    false => answer.end(Err(Ends::Errno(libc::ECANCELED))),
                })
            });
        }
    }
    copy = copy.on_error(|error| {
        if matches!(error.diagnostic(), Some(Diagnostic::Incomplete { .. })) {
            // It follows the error, which was told.
            return Control::Skip;
        }
        let path = error.path().map_or_else(|| names.to.to_owned(), Path::to_owned);
        let (src, dst) = names.pair(&path);
        let what = match error.operation() {
            Operation::List => RECURSE_ERROR,
            _ if !names.is_directory(&src) => RECURSE_FILE,
            Operation::SetAttribute => RECURSE_DIR_CLEANUP,
            _ => RECURSE_DIR,
        };
        answer.unless_ended(|| {
            set_errno(error.errno());
            match state.call(what, ERR, &src, &dst) {
                Some(CONTINUE | SKIP) => Control::Skip,
                // Without a callback the first error ends the copy.
                _ => answer.end(Err(Ends::Errno(error.errno()))),
            }
        })
    });
    let result = copy.run();
    finish(&result, state, flags, true);
    let report = answer.of(result)?;
    Ok(report.is_some_and(|report| report.skipped_errors == 0))
}

/// Copies one file. The callback is told of its data while it moves.
fn run_file<'c>(
    mut copy: Copy<'c>,
    (src, dst): (&'c CStr, &'c CStr),
    (state, flags): (&'c Arc<CopyfileState>, Flags),
    answer: &'c Answer,
) -> Result<bool, Ends> {
    if state.callback().0.is_some() && flags.options().make == Make::Copy {
        copy = copy
            .progress(|progress| {
                answer.unless_ended(|| {
                    state.set_copied(progress.bytes);
                    match state.call(COPY_DATA, PROGRESS, src, dst) {
                        None | Some(CONTINUE) => Control::Continue,
                        Some(SKIP) => answer.end(Ok(())),
                        Some(_) => answer.end(Err(Ends::Errno(libc::ECANCELED))),
                    }
                })
            })
            .on_error(|error| {
                let operation = error.operation();
                if !matches!(operation, Operation::Read | Operation::Write | Operation::Copy) {
                    // The callback is not told, and what it answers later does not hide the error.
                    if operation != Operation::Finish && answer.0.get().is_none() {
                        answer.0.set(Some(Err(Ends::Errno(error.errno()))));
                    }
                    return Control::Continue;
                }
                answer.unless_ended(|| {
                    set_errno(error.errno());
                    match state.call(COPY_DATA, ERR, src, dst) {
                        Some(SKIP) => answer.end(Ok(())),
                        _ => answer.end(Err(Ends::Errno(error.errno()))),
                    }
                })
            });
    }
    let result = copy.run();
    finish(&result, state, flags, false);
    Ok(answer.of(result)?.is_some())
}

/// Stores what the state tells after a copy, also after one that failed.
fn finish(result: &Result<Report, CopyFailed>, state: &CopyfileState, flags: Flags, is_tree: bool) {
    let totals = match result {
        Ok(report) => &report.totals,
        Err(failed) => &failed.report.totals,
    };
    let was_cloned = totals.shared_bytes > 0 && totals.shared_bytes == totals.data_bytes;
    state.set_was_cloned(was_cloned);
    if was_cloned && flags.has(CLONE | CLONE_FORCE) {
        state.set_copied(0);
    } else if !is_tree {
        // With holes, as while it runs.
        state.set_copied(totals.data_bytes + totals.hole_bytes);
    }
}

/// The names of source and destination.
struct Names<'n> {
    from: &'n Path,
    to: &'n Path,
}

impl Names<'_> {
    /// The destination of a source.
    fn of(&self, src: &Path) -> PathBuf {
        src.strip_prefix(self.from).map_or_else(
            |_| self.to.to_owned(),
            |below| if below.as_os_str().is_empty() { self.to.into() } else { self.to.join(below) },
        )
    }

    /// Whether a source is a directory. The tree itself is one, perhaps through a symbolic link.
    fn is_directory(&self, src: &CStr) -> bool {
        let src = Path::new(OsStr::from_bytes(src.to_bytes()));
        src == self.from || src.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
    }

    /// Source and destination of a path on either side.
    fn pair(&self, path: &Path) -> (CString, CString) {
        let flipped = Names { from: self.to, to: self.from };
        if path.starts_with(self.to) && !path.starts_with(self.from) {
            (c_text(flipped.of(path)), c_text(path))
        } else if path.starts_with(self.from) {
            (c_text(path), c_text(self.of(path)))
        } else {
            (c_text(self.from), c_text(self.to))
        }
    }
}

fn finished(state: &Arc<CopyfileState>, receipt: &Receipt) -> Option<c_int> {
    if receipt.method == Method::Failed {
        return None;
    }
    let what = match receipt.kind {
        FileType::Directory => RECURSE_DIR_CLEANUP,
        _ => RECURSE_FILE,
    };
    state.call(what, FINISH, &c_text(&receipt.src), &c_text(&receipt.dst))
}

/// Tells of each file whose data moves now. Returns whether to go on. One file of several cannot be
/// skipped.
fn progressed_tree(state: &Arc<CopyfileState>, progress: &Progress, names: &Names<'_>) -> bool {
    progress.current_files().into_iter().all(|file| {
        state.set_copied(file.bytes);
        let (src, dst) = names.pair(&file.dst);
        matches!(state.call(COPY_DATA, PROGRESS, &src, &dst), None | Some(CONTINUE | SKIP))
    })
}

/// Copies between descriptors.
pub(super) fn copy_open(
    (src, dst): (c_int, c_int),
    state: &Arc<CopyfileState>,
    flags: Flags,
) -> Result<c_int, Ends> {
    let flags = flags.of_open();
    if src == UNSET && dst == UNSET {
        return Err(Ends::Errno(libc::EINVAL));
    }
    if src < 0 || (dst < 0 && !flags.has(CHECK)) {
        return Err(Ends::Errno(libc::EBADF));
    }
    if flags.has(CHECK) {
        return check(Path::new(&format!("/proc/self/fd/{src}")), flags).map_err(|end| match end {
            // The name of a descriptor that is not open does not exist.
            Ends::Errno(libc::ENOENT) => Ends::Errno(libc::EBADF),
            end => end,
        });
    }
    let (src_name, dst_name) = state.shown_names((src, dst));
    // SAFETY: the number is not negative. The caller promises that no other thread closes it. If it is
    // not open, the calls on it return EBADF.
    let src = unsafe { BorrowedFd::borrow_raw(src) };
    // SAFETY: as above.
    let dst = unsafe { BorrowedFd::borrow_raw(dst) };
    let copy = Copy::descriptors(src, dst).with(|options| *options = flags.options());
    run_file(copy, (&src_name, &dst_name), (state, flags), &Answer::default())?;
    Ok(0)
}
