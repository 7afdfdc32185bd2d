//! The state of a copy: options, callbacks, cancellation, and what came of the last one.

use std::ffi::{CString, OsString, c_int, c_void};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haulage::events::words_of_error;
use haulage::options::{Existing, Follow, Options, Reflink};
use haulage::{CancelToken, Control, Copied, Copy, CopyFailed, Error, Report};

use crate::border::c_text;
use crate::interface::{Failure, Progress};

pub(crate) type ProgressCall = unsafe extern "C" fn(*const Progress, *mut c_void) -> c_int;
pub(crate) type ErrorCall = unsafe extern "C" fn(*const Failure, *mut c_void) -> c_int;

/// Options, callbacks and the result of one copy at a time.
#[derive(Default)]
pub struct State {
    pub(crate) cancel: CancelToken,
    busy: AtomicBool,
    pub(crate) setup: Mutex<Setup>,
    last: Mutex<Last>,
}

/// What the caller has set.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) options: Options,
    pub(crate) archive: bool,
    pub(crate) follows: bool,
    pub(crate) progress_per_second: u32,
    pub(crate) counts_first: bool,
    /// Included or not, and the pattern.
    pub(crate) rules: Vec<(bool, OsString)>,
    pub(crate) ignore_files: Vec<PathBuf>,
    pub(crate) on_progress: Option<(ProgressCall, *mut c_void)>,
    pub(crate) on_error: Option<(ErrorCall, *mut c_void)>,
}

/// What came of the last copy.
#[derive(Default)]
pub(crate) struct Last {
    pub(crate) report: Report,
    pub(crate) errno: c_int,
    pub(crate) path: Option<CString>,
    pub(crate) text: Option<CString>,
    pub(crate) engine: Option<CString>,
}

/// The mark that a copy is running, until it is dropped.
pub(crate) struct Running<'s>(&'s State);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

/// A panic while a lock was held leaves values that are whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Marks the state as in use; EBUSY if it is.
    pub(crate) fn begin(&self) -> Result<Running<'_>, c_int> {
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(libc::EBUSY);
        }
        Ok(Running(self))
    }

    pub(crate) fn last(&self) -> MutexGuard<'_, Last> {
        lock(&self.last)
    }

    /// Changes the setup; EBUSY during a copy.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Setup) -> Result<(), c_int>,
    ) -> Result<(), c_int> {
        let _running = self.begin()?;
        change(&mut lock(&self.setup))
    }

    /// Records that what is to be copied was given wrongly; EBUSY during a copy.
    pub(crate) fn refuse(&self, errno: c_int) -> Result<(), c_int> {
        let _running = self.begin()?;
        let text = words_of_error(&io::Error::from_raw_os_error(errno));
        let mut last = self.last();
        *last = Last { errno, text: Some(c_text(text)), ..Last::default() };
        last.report.failure_count = 1;
        Err(errno)
    }

    /// Records what came of the copy of one file.
    pub(crate) fn record_file(&self, result: Result<Copied, Error>) -> Result<(), c_int> {
        let mut last = self.last();
        *last = Last::default();
        let (copied, error) = match result {
            Ok(copied) => (Some(copied), None),
            Err(error) => (error.copied(), Some(error)),
        };
        if let Some(copied) = copied {
            last.report.totals.data_bytes = copied.data_bytes;
            last.engine = copied.engine.map(c_text);
        }
        let Some(error) = error else { return Ok(()) };
        last.report.failure_count = 1;
        last.fail(&error);
        Err(last.errno)
    }

    /// Records what came of a copy.
    pub(crate) fn record(&self, result: Result<Report, CopyFailed>) -> Result<(), c_int> {
        let mut last = self.last();
        *last = Last::default();
        let (report, failed) = match result {
            Ok(report) => (Box::new(report), false),
            Err(CopyFailed { report, .. }) => (report, true),
        };
        last.engine = report.totals.engine().map(c_text);
        if failed {
            match report.failures.first() {
                Some(error) => last.fail(error),
                // It was cancelled between two files.
                None => {
                    last.errno = libc::ECANCELED;
                    last.text = Some(c_text("the copy was cancelled"));
                }
            }
        }
        last.report = *report;
        if failed { Err(last.errno) } else { Ok(()) }
    }
}

impl Last {
    fn fail(&mut self, error: &Error) {
        self.errno = error.errno();
        self.path = error.path().map(c_text);
        self.text = Some(c_text(error.to_string()));
    }
}

impl Setup {
    /// Whether one file is copied without the builder: no callback is called, and there is no pattern that could be
    /// wrong.
    pub(crate) fn is_plain(&self) -> bool {
        let has_callback = self.on_progress.is_some() || self.on_error.is_some();
        !has_callback && self.rules.is_empty() && self.ignore_files.is_empty()
    }

    /// The copy of `src` to the name `dst`.
    pub(crate) fn copy<'c>(&self, src: &Path, dst: &Path, recursive: bool) -> Copy<'c> {
        let mut copy = Copy::new(src, dst).with(|options| *options = self.options.clone());
        if recursive {
            copy = copy.recursive();
        }
        if self.archive {
            copy = copy.archive();
        }
        if self.follows {
            copy = copy.follow(Follow::Always);
        }
        for (include, glob) in &self.rules {
            copy = if *include { copy.include(glob) } else { copy.exclude(glob) };
        }
        for path in &self.ignore_files {
            copy = copy.ignore_file(path);
        }
        self.with_callbacks(copy)
    }

    /// The copy of what is open as `src` to what is open as `dst`.
    pub(crate) fn copy_open<'c>(&self, src: BorrowedFd<'c>, dst: BorrowedFd<'c>) -> Copy<'c> {
        let options = self.file_options();
        self.with_callbacks(Copy::descriptors(src, dst).with(|all| *all = options))
    }

    fn with_callbacks<'c>(&self, mut copy: Copy<'c>) -> Copy<'c> {
        if let Some((callback, context)) = self.on_progress {
            copy = copy.progress(move |progress| call_progress(progress, callback, context));
            if self.progress_per_second > 0 {
                copy = copy.progress_per_second(self.progress_per_second);
            }
            if self.counts_first {
                copy = copy.count_first();
            }
        }
        if let Some((callback, context)) = self.on_error {
            copy = copy.on_error(move |error| call_error(error, callback, context));
        }
        copy
    }

    /// The options of a single file.
    pub(crate) fn file_options(&self) -> Options {
        if !self.archive {
            return self.options.clone();
        }
        let follow = if self.follows { Follow::Always } else { Follow::Never };
        let preserve = Options::archive().preserve;
        Options { preserve, follow, ..self.options.clone() }
    }

    /// Sets an option by the flag of `interface.rs`.
    pub(crate) fn set_flags(&mut self, flags: u64) -> Result<(), c_int> {
        use crate::interface as flag;
        if flags & !flag::ALL_FLAGS != 0 {
            return Err(libc::EINVAL);
        }
        let has = |flag: u64| flags & flag != 0;
        let both = |one: u64, other: u64| has(one) && has(other);
        if both(flag::HAULAGE_EXCL, flag::HAULAGE_KEEP_EXISTING)
            || both(flag::HAULAGE_CLONE_ALWAYS, flag::HAULAGE_CLONE_NEVER)
        {
            return Err(libc::EINVAL);
        }
        self.archive = has(flag::HAULAGE_ARCHIVE);
        self.follows = has(flag::HAULAGE_FOLLOW);
        self.counts_first = has(flag::HAULAGE_COUNT_FIRST);
        let options = &mut self.options;
        options.verify = has(flag::HAULAGE_VERIFY);
        options.atomic = has(flag::HAULAGE_ATOMIC) || has(flag::HAULAGE_RESUME);
        options.durable = has(flag::HAULAGE_DURABLE);
        options.resume = has(flag::HAULAGE_RESUME);
        options.preserve.timestamps = has(flag::HAULAGE_RESUME);
        options.no_cache = has(flag::HAULAGE_NO_CACHE);
        options.one_file_system = has(flag::HAULAGE_ONE_FILE_SYSTEM);
        options.dry_run = has(flag::HAULAGE_DRY_RUN);
        options.sigbus_handler = has(flag::HAULAGE_ALLOW_SIGBUS_HANDLER);
        options.remove_destination = has(flag::HAULAGE_REMOVE_DESTINATION);
        options.existing = match (has(flag::HAULAGE_EXCL), has(flag::HAULAGE_KEEP_EXISTING)) {
            (true, _) => Existing::Fail,
            (_, true) => Existing::Skip,
            _ => Existing::Replace,
        };
        options.reflink = match (has(flag::HAULAGE_CLONE_ALWAYS), has(flag::HAULAGE_CLONE_NEVER)) {
            (true, _) => Reflink::Always,
            (_, true) => Reflink::Never,
            _ => Reflink::Auto,
        };
        Ok(())
    }
}

fn control(answer: c_int) -> Control {
    match answer {
        crate::interface::HAULAGE_CONTINUE => Control::Continue,
        crate::interface::HAULAGE_SKIP => Control::Skip,
        crate::interface::HAULAGE_QUIT => Control::Quit,
        // An answer that is not known ends the copy.
        _ => Control::Quit,
    }
}

fn call_progress(
    progress: &haulage::Progress,
    callback: ProgressCall,
    context: *mut c_void,
) -> Control {
    let total = progress.total.filter(|total| total.all);
    let progress = Progress {
        entries: progress.entries,
        bytes: progress.bytes,
        skipped_bytes: progress.skipped_bytes,
        total_entries: total.map_or(0, |total| total.entries),
        total_bytes: total.map_or(0, |total| total.bytes),
        total_known: c_int::from(total.is_some()),
        elapsed_ns: u64::try_from(progress.elapsed.as_nanos()).unwrap_or(u64::MAX),
        unwritten_bytes: progress.unwritten_bytes,
    };
    // SAFETY: the caller has set this function with this context. The structure lives for the call.
    control(unsafe { callback(&raw const progress, context) })
}

fn call_error(error: &Error, callback: ErrorCall, context: *mut c_void) -> Control {
    let (path, text) = (error.path().map(c_text), c_text(error.to_string()));
    let failure = Failure {
        errnum: error.errno(),
        path: path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()),
        text: text.as_ptr(),
    };
    // SAFETY: as above; the strings live for the call.
    control(unsafe { callback(&raw const failure, context) })
}
