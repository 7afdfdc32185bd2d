//! The functions of haulage.h.
//!
//! Safety of each: a pointer is null, or that of what its type and the header say: a string, a state of
//! `haulage_state_new` that was not freed, a function that may be called with its context as long as
//! it is set.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use haulage::options::{Location, Options};
use haulage::{CancelToken, Copied, Copy, Error, Kind, Outcome, Variant};

use crate::border::{guarded, path, status, text};
use crate::handle::{free, in_use};
use crate::interface::*;
use crate::state::{Last, Setup, State, lock};

/// A new state with no options; NULL after an error inside the library.
#[unsafe(no_mangle)]
pub extern "C" fn haulage_state_new() -> *mut State {
    guarded(ptr::null_mut(), || Arc::into_raw(Arc::<State>::default()).cast_mut())
}

/// Frees a state. NULL is ignored. A copy that uses it, as in a callback, goes on and frees it at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_state_free(state: *mut State) {
    // SAFETY: the caller's promise.
    guarded((), || unsafe { free(state) });
}

/// Sets the flags HAULAGE_ARCHIVE to HAULAGE_ALLOW_SIGBUS_HANDLER; flags that are missing are cleared.
/// EINVAL for an unknown flag or for two that exclude each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_set_flags(state: *mut State, flags: u64) -> c_int {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    change(state, |setup| setup.set_flags(flags))
}

/// Sets a number: HAULAGE_JOBS, HAULAGE_LIMIT_RATE or HAULAGE_PROGRESS_PER_SECOND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_set_number(state: *mut State, option: c_int, value: u64) -> c_int {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    change(state, |setup| {
        match option {
            HAULAGE_JOBS => {
                let jobs = usize::try_from(value).map_err(|_| libc::EINVAL)?;
                setup.options.jobs = jobs.try_into().ok();
            }
            HAULAGE_LIMIT_RATE => setup.options.limit_rate = value.try_into().ok(),
            HAULAGE_PROGRESS_PER_SECOND => {
                setup.progress_per_second = u32::try_from(value).unwrap_or(u32::MAX);
            }
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    })
}

/// Sets or adds a text: HAULAGE_ENGINE to HAULAGE_IGNORE_FILE. EINVAL for an engine that does not
/// exist. A pattern that cannot be used is an error of the copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_set_text(
    state: *mut State,
    option: c_int,
    value: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    // SAFETY: the caller's promise.
    let value = unsafe { text(value) };
    let Ok(value) = value.map(OsStr::to_owned) else { return status(Err(libc::EINVAL)) };
    change(state, |setup| {
        match option {
            HAULAGE_ENGINE if value.is_empty() => setup.options.engine = None,
            HAULAGE_ENGINE => {
                let variant = value.to_str().and_then(|text| text.parse::<Variant>().ok());
                let variant = variant.filter(Variant::is_copier).ok_or(libc::EINVAL)?;
                setup.options.engine = Some(variant);
            }
            HAULAGE_PROFILE => setup.options.profile = Location::named(&value),
            HAULAGE_EXCLUDE => setup.rules.push((false, value)),
            HAULAGE_INCLUDE => setup.rules.push((true, value)),
            HAULAGE_IGNORE_FILE => setup.ignore_files.push(value.into()),
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    })
}

/// Calls `callback` with the progress of each copy, and once at its end. NULL for no callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_on_progress(
    state: *mut State,
    callback: ProgressFn,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    change(state, |setup| {
        setup.on_progress = callback.map(|callback| (callback, context));
        Ok(())
    })
}

/// Calls `callback` with each error. NULL for no callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_on_error(
    state: *mut State,
    callback: ErrorFn,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    change(state, |setup| {
        setup.on_error = callback.map(|callback| (callback, context));
        Ok(())
    })
}

/// Makes the copy that uses this state stop soon; it fails with ECANCELED. A copy that starts later
/// stops too, until haulage_uncancel is called. May be called from any thread and from a signal
/// handler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_cancel(state: *const State) {
    // SAFETY: the caller's promise.
    if let Some(state) = unsafe { state.as_ref() } {
        state.cancel.cancel();
    }
}

/// Lets copies start again with this state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_uncancel(state: *const State) {
    // SAFETY: the caller's promise.
    if let Some(state) = unsafe { state.as_ref() } {
        state.cancel.reset();
    }
}

/// Copies the file `src` to the name `dst`, as cp(1) does: the data, and the permissions less the
/// umask of a new file; an existing file is replaced. EISDIR for a directory. `state` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_copy_file(
    src: *const c_char,
    dst: *const c_char,
    state: *mut State,
) -> c_int {
    // SAFETY: the caller's promise.
    let src = unsafe { path(src) };
    // SAFETY: the caller's promise.
    let dst = unsafe { path(dst) };
    let names = src.and_then(|src| Ok((src, dst?)));
    // SAFETY: the caller's promise.
    unsafe { copy_with(state, names, copy_file) }
}

/// Copies what is open as `src` to what is open as `dst`. Between regular files the whole file is
/// copied, whatever the offsets are, and replaces the contents of `dst`. Anything else is a stream,
/// from where it is to its end; what a file `dst` has before its offset stays, and the rest is replaced.
/// The descriptors stay open. EBADF also for a file with O_APPEND. `state` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_copy_fds(src: c_int, dst: c_int, state: *mut State) -> c_int {
    let open = if src < 0 || dst < 0 { Err(libc::EBADF) } else { Ok((src, dst)) };
    // SAFETY: the caller's promise.
    unsafe { copy_with(state, open, copy_fds) }
}

/// Copies `src` to the name `dst`, a directory with its entries, as cp -r: symbolic links as links.
/// A directory is merged into an existing directory `dst`. An entry that fails does not stop the
/// others; errno is that of the first error. `state` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_copy_tree(
    src: *const c_char,
    dst: *const c_char,
    state: *mut State,
) -> c_int {
    // SAFETY: the caller's promise.
    let src = unsafe { path(src) };
    // SAFETY: the caller's promise.
    let dst = unsafe { path(dst) };
    let names = src.and_then(|src| Ok((src, dst?)));
    // SAFETY: the caller's promise.
    unsafe { copy_with(state, names, copy_tree) }
}

/// The errno of the last copy with this state; 0 if it succeeded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_last_errno(state: *const State) -> c_int {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    guarded(libc::EIO, || state.map_or(0, |state| state.last().errno))
}

/// The file of the first error of the last copy; NULL if there is none. It is valid until the next copy
/// with this state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_last_path(state: *const State) -> *const c_char {
    // SAFETY: the caller's promise.
    last_text(unsafe { state.as_ref() }, |last| last.path.as_deref())
}

/// The first error of the last copy in one line; NULL if it succeeded. It is valid until the next copy
/// with this state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_last_text(state: *const State) -> *const c_char {
    // SAFETY: the caller's promise.
    last_text(unsafe { state.as_ref() }, |last| last.text.as_deref())
}

/// The name of the engine that moved or shared the most bytes of the last copy; NULL if there was no
/// data. It is valid until the next copy with this state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_engine_used(state: *const State) -> *const c_char {
    // SAFETY: the caller's promise.
    last_text(unsafe { state.as_ref() }, |last| last.engine.as_deref())
}

/// A count of the last copy: HAULAGE_FILES to HAULAGE_UNWRITTEN_BYTES; 0 for an unknown one. Of the copy of
/// a file without callbacks only HAULAGE_DATA_BYTES and HAULAGE_ERRORS are counted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulage_count(state: *const State, what: c_int) -> u64 {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    guarded(0, || state.map_or(0, |state| count(&state.last(), what)))
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn haulage_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Changes the options of a state.
fn change(state: Option<&State>, change: impl FnOnce(&mut Setup) -> Result<(), c_int>) -> c_int {
    guarded(-1, || status(state.ok_or(libc::EINVAL).and_then(|state| state.change(change))))
}

/// Calls `copy` with a state and with what is copied. If that was given wrongly, the state tells so.
///
/// # Safety
/// As for [`in_use`].
unsafe fn copy_with<A>(
    state: *mut State,
    copied: Result<A, c_int>,
    copy: impl FnOnce(A, Option<&State>) -> Result<(), c_int>,
) -> c_int {
    let copy = |state: Option<&Arc<State>>| match copied {
        Ok(copied) => copy(copied, state.map(|state| &**state)),
        Err(errno) => state.map_or(Err(errno), |state| state.refuse(errno)),
    };
    // SAFETY: the caller's promise.
    guarded(-1, || status(unsafe { in_use(state, copy) }))
}

fn copy_tree((src, dst): (&Path, &Path), state: Option<&State>) -> Result<(), c_int> {
    let own = State::default();
    let state = state.unwrap_or(&own);
    let _running = state.begin()?;
    let copy = lock(&state.setup).copy(src, dst, true);
    state.record(copy.cancel(&state.cancel).run())
}

fn copy_file((src, dst): (&Path, &Path), state: Option<&State>) -> Result<(), c_int> {
    copy_one(
        state,
        |options, cancel| haulage::copy_file_with(src, dst, options, cancel),
        |setup| {
            let copy = setup.copy(src, dst, false);
            copy.with(|options| options.recursive = false)
        },
    )
}

fn copy_fds((src, dst): (c_int, c_int), state: Option<&State>) -> Result<(), c_int> {
    // SAFETY: the number is not negative. The caller promises that no other thread closes it. If it is
    // not open, the calls on it return EBADF.
    let src = unsafe { BorrowedFd::borrow_raw(src) };
    // SAFETY: as above.
    let dst = unsafe { BorrowedFd::borrow_raw(dst) };
    copy_one(
        state,
        |options, cancel| haulage::copy_descriptors_with(src, dst, options, cancel),
        |setup| setup.copy_open(src, dst),
    )
}

/// Copies one file with a state, or else with the defaults: by `plain`, which costs less, unless the state needs
/// `whole`.
fn copy_one<'c>(
    state: Option<&State>,
    plain: impl FnOnce(&Options, Option<&CancelToken>) -> Result<Copied, Error>,
    whole: impl FnOnce(&Setup) -> Copy<'c>,
) -> Result<(), c_int> {
    let Some(state) = state else {
        return plain(&Options::default(), None).map(drop).map_err(|error| error.errno());
    };
    let _running = state.begin()?;
    let setup = lock(&state.setup);
    if setup.is_plain() {
        let options = setup.file_options();
        drop(setup);
        return state.record_file(plain(&options, Some(&state.cancel)));
    }
    let copy = whole(&setup);
    drop(setup);
    state.record(copy.cancel(&state.cancel).run())
}

fn last_text(
    state: Option<&State>,
    text: impl FnOnce(&Last) -> Option<&std::ffi::CStr>,
) -> *const c_char {
    guarded(ptr::null(), || {
        state.map_or(ptr::null(), |state| {
            text(&state.last()).map_or(ptr::null(), std::ffi::CStr::as_ptr)
        })
    })
}

fn count(last: &Last, what: c_int) -> u64 {
    let totals = &last.report.totals;
    let copied = |kind| totals.count(kind, Outcome::Copied);
    let all = |outcome| {
        let of = totals.entries.iter().filter(|((_, found), _)| *found == outcome);
        of.map(|(_, count)| count).sum()
    };
    match what {
        HAULAGE_FILES => copied(Kind::File),
        HAULAGE_DIRECTORIES => copied(Kind::Directory),
        HAULAGE_SYMLINKS => copied(Kind::Symlink),
        HAULAGE_SPECIAL => [Kind::Fifo, Kind::Socket, Kind::Device].map(copied).iter().sum(),
        HAULAGE_LINKED => all(Outcome::Linked),
        HAULAGE_SKIPPED => all(Outcome::Skipped),
        HAULAGE_FAILED => all(Outcome::Failed),
        HAULAGE_DATA_BYTES => totals.data_bytes,
        HAULAGE_SHARED_BYTES => totals.shared_bytes,
        HAULAGE_HOLE_BYTES => totals.hole_bytes,
        HAULAGE_ERRORS => last.report.failure_count,
        HAULAGE_UNWRITTEN_BYTES => last.report.unwritten_bytes(),
        HAULAGE_ELAPSED_NS => u64::try_from(last.report.elapsed.as_nanos()).unwrap_or(u64::MAX),
        _ => 0,
    }
}
