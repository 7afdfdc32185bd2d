//! Runs a copy by the flags of copyfile(3), and tells its stages to the callback.

use std::ffi::{CStr, CString, c_int};
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use haulage::events::{FileType, Method, Receipt};
use haulage::options::{Destination, Make, Options, Request};
use haulage::{Control, Copy, Progress};

use super::ends::Ends;
use super::flags::Flags;
use super::state::CopyfileState;
use crate::border::{c_text, set_errno};

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
    state: &CopyfileState,
    flags: Flags,
) -> Result<c_int, Ends> {
    if flags.only_checks() {
        let present = flags.present(from)?;
        return c_int::try_from(present).map_err(|_| Ends::Errno(libc::ENOTSUP));
    }
    let is_directory = look(from, flags)?.is_dir();
    let to = match is_directory && flags.is_recursive() {
        true => within(from, to),
        false => to.to_owned(),
    };
    if is_directory && flags.excludes_existing() && to.symlink_metadata().is_ok() {
        return Err(Ends::Errno(libc::EEXIST));
    }
    // Of a directory that is not copied recursively, the directory itself is copied.
    let options = Options { recursive: is_directory || flags.is_recursive(), ..flags.options() };
    run(from, &to, state, options, is_directory && flags.is_recursive())?;
    if flags.moves() {
        // As the manual says, a file that cannot be removed is no error.
        let _ = fs::remove_file(from).or_else(|_| fs::remove_dir(from));
    }
    Ok(0)
}

fn look(from: &Path, flags: Flags) -> Result<fs::Metadata, Ends> {
    let looked = if flags.follows_source() { fs::metadata(from) } else { from.symlink_metadata() };
    looked.map_err(|error| Ends::Errno(error.raw_os_error().unwrap_or(libc::EIO)))
}

/// A directory is copied into an existing one, unless its name ends with a slash.
fn within(from: &Path, to: &Path) -> PathBuf {
    let ends_with_slash = from.as_os_str().as_encoded_bytes().ends_with(b"/");
    match from.file_name() {
        Some(name) if to.is_dir() && !ends_with_slash => to.join(name),
        _ => to.to_owned(),
    }
}

/// Runs the copy. The callback is told of each entry of a tree, or of the data of one file.
fn run(
    from: &Path,
    to: &Path,
    state: &CopyfileState,
    options: Options,
    is_tree: bool,
) -> Result<(), Ends> {
    state.set_copied(0);
    state.set_was_cloned(false);
    let moves_data = options.make == Make::Copy;
    let request = Request {
        sources: vec![from.into()],
        destination: Destination::Exact(to.as_os_str().to_owned()),
    };
    let names = Names { from, to };
    let has_callback = state.callback().0.is_some();
    let mut copy = Copy::of(request, options);
    if is_tree && has_callback {
        // The tree itself is an operand, about which nothing is asked.
        let control = state.call(RECURSE_DIR, START, &c_text(from), &c_text(to));
        match control.unwrap_or(CONTINUE) {
            CONTINUE => (),
            SKIP => return Ok(()),
            _ => return Err(Ends::Quit),
        }
        copy = copy
            .select(|src, kind| {
                let what = if kind == FileType::Directory { RECURSE_DIR } else { RECURSE_FILE };
                let (src, dst) = (c_text(src), c_text(names.of(src)));
                control_of(state.call(what, START, &src, &dst))
            })
            .on_entry(|receipt| finished(state, receipt));
    } else if !is_tree {
        // Of a directory alone nothing below it is copied.
        copy = copy.select(|_, _| false);
    }
    if has_callback && moves_data {
        copy = copy.progress(|progress| progressed(state, progress, is_tree, &names));
    }
    copy = copy.on_error(|error| {
        // Without a callback the first error ends the copy.
        if !has_callback {
            return Control::Quit;
        }
        let path = error.path().map_or_else(|| to.to_owned(), Path::to_owned);
        let what = if is_tree { RECURSE_FILE } else { COPY_DATA };
        set_errno(error.errno());
        let (src, dst) = names.pair(&path);
        match state.call(what, ERR, &src, &dst).unwrap_or(SKIP) {
            CONTINUE | SKIP => Control::Skip,
            _ => Control::Quit,
        }
    });
    match copy.run() {
        Ok(report) => {
            if !is_tree {
                state.set_copied(report.data_bytes());
            }
            state.set_was_cloned(
                report.totals.shared_bytes > 0
                    && report.totals.shared_bytes == report.totals.data_bytes,
            );
            Ok(())
        }
        Err(failed) => match failed.first() {
            // The error of a copy without a callback, or one that the callback did not ignore.
            Some(error) => Err(Ends::Errno(error.errno())),
            None => Err(Ends::Quit),
        },
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

fn control_of(answer: Option<c_int>) -> Control {
    match answer {
        None | Some(CONTINUE) => Control::Continue,
        Some(SKIP) => Control::Skip,
        Some(_) => Control::Quit,
    }
}

fn finished(state: &CopyfileState, receipt: &Receipt) -> Control {
    if receipt.method == Method::Failed {
        return Control::Continue;
    }
    let what = match receipt.kind {
        FileType::Directory => RECURSE_DIR_CLEANUP,
        _ => RECURSE_FILE,
    };
    let (src, dst) = (c_text(&receipt.src), c_text(&receipt.dst));
    control_of(state.call(what, FINISH, &src, &dst))
}

fn progressed(
    state: &CopyfileState,
    progress: &Progress,
    is_tree: bool,
    names: &Names<'_>,
) -> Control {
    let call = |src: &CStr, dst: &CStr| control_of(state.call(COPY_DATA, PROGRESS, src, dst));
    if !is_tree {
        state.set_copied(progress.bytes);
        return call(&c_text(names.from), &c_text(names.to));
    }
    for file in progress.current_files() {
        state.set_copied(file.bytes);
        let (src, dst) = names.pair(&file.dst);
        if call(&src, &dst) == Control::Quit {
            return Control::Quit;
        }
    }
    Control::Continue
}

/// Copies between descriptors.
pub(super) fn copy_open(
    (src, dst): (c_int, c_int),
    state: &CopyfileState,
    flags: Flags,
) -> Result<c_int, Ends> {
    if src < 0 || (dst < 0 && !flags.only_checks()) {
        return Err(Ends::Errno(libc::EBADF));
    }
    if flags.only_checks() {
        let path = PathBuf::from(format!("/proc/self/fd/{src}"));
        let present = flags.present(&path)?;
        return c_int::try_from(present).map_err(|_| Ends::Errno(libc::ENOTSUP));
    }
    // SAFETY: the number is not negative. The caller promises that no other thread closes it. If it is
    // not open, the calls on it return EBADF.
    let src = unsafe { BorrowedFd::borrow_raw(src) };
    // SAFETY: as above.
    let dst = unsafe { BorrowedFd::borrow_raw(dst) };
    state.set_copied(0);
    let copied = haulage::copy_descriptors_with(src, dst, &flags.options(), None)
        .map_err(|error| Ends::Errno(error.errno()))?;
    state.set_copied(copied.data_bytes);
    state.set_was_cloned(copied.engine == Some("reflink"));
    Ok(0)
}
