//! The state of copyfile(3): what a program sets and gets.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use crate::state::lock;

const SRC_FD: u32 = 1;
const SRC_FILENAME: u32 = 2;
const DST_FD: u32 = 3;
const DST_FILENAME: u32 = 4;
const QUARANTINE: u32 = 5;
const STATUS_CB: u32 = 6;
const STATUS_CTX: u32 = 7;
const COPIED: u32 = 8;
const XATTRNAME: u32 = 9;
const WAS_CLONED: u32 = 10;
const FORBID_CROSS_MOUNT: u32 = 14;
const LAST: u32 = 18;

/// The descriptors of a state in which none is set.
pub(super) const UNSET: c_int = -2;

/// Is told of each stage, and returns whether to continue, skip or quit.
pub(super) type StatusFn = unsafe extern "C" fn(
    what: c_int,
    stage: c_int,
    state: *mut CopyfileState,
    src: *const c_char,
    dst: *const c_char,
    context: *mut c_void,
) -> c_int;

/// Where a program wants a value.
pub(super) struct Place(*mut c_void);

impl Place {
    /// # Safety
    /// `value` points to a variable of the type that the flag beside it names.
    pub(super) unsafe fn new(value: *mut c_void) -> Place {
        Place(value)
    }

    fn put<T>(self, value: T) {
        // SAFETY: the promise of `new`. Each flag has one type, which its manual page names.
        unsafe { self.0.cast::<T>().write(value) };
    }
}

/// The name of a source or a destination.
struct Name {
    text: CString,
    /// It is of a call of copyfile(3). Else the program has set it.
    is_of_call: bool,
}

/// The state of copyfile(3). A callback may read it while the copy runs.
pub struct CopyfileState {
    names: Mutex<[Option<Name>; 2]>,
    fds: Mutex<(c_int, c_int)>,
    callback: Mutex<(Option<StatusFn>, *mut c_void)>,
    copied: AtomicI64,
    was_cloned: AtomicBool,
    forbids_cross_mount: AtomicBool,
}

impl Default for CopyfileState {
    fn default() -> CopyfileState {
        CopyfileState {
            names: Mutex::default(),
            fds: Mutex::new((UNSET, UNSET)),
            callback: Mutex::new((None, std::ptr::null_mut())),
            copied: AtomicI64::new(0),
            was_cloned: AtomicBool::new(false),
            forbids_cross_mount: AtomicBool::new(false),
        }
    }
}

impl CopyfileState {
    /// Stores a value in `place`.
    pub(super) fn get(&self, flag: u32, place: Place) -> Result<(), c_int> {
        match flag {
            SRC_FD => place.put::<c_int>(self.fds().0),
            DST_FD => place.put::<c_int>(self.fds().1),
            SRC_FILENAME => place.put::<*const c_char>(address(&lock(&self.names)[0])),
            DST_FILENAME => place.put::<*const c_char>(address(&lock(&self.names)[1])),
            STATUS_CB => place.put::<Option<StatusFn>>(self.callback().0),
            STATUS_CTX => place.put::<*mut c_void>(self.callback().1),
            COPIED => place.put::<i64>(self.copied.load(Ordering::Relaxed)),
            WAS_CLONED => place.put::<bool>(self.was_cloned.load(Ordering::Relaxed)),
            FORBID_CROSS_MOUNT => place.put::<bool>(self.forbids_cross_mount()),
            _ => return Err(unknown(flag)),
        }
        Ok(())
    }

    /// # Safety
    /// `value` is what `flag` names, or points to it.
    pub(super) unsafe fn set(&self, flag: u32, value: *const c_void) -> Result<(), c_int> {
        let is_pointer = matches!(flag, STATUS_CB | STATUS_CTX);
        if value.is_null() && !is_pointer {
            return Err(libc::EINVAL);
        }
        // SAFETY: the value is not null, and the caller's promise.
        let number = || unsafe { value.cast::<c_int>().read() };
        // As a byte: a program may have stored more than a bool, and any but 0 means true.
        // SAFETY: as above.
        let truth = || unsafe { value.cast::<u8>().read() } != 0;
        // SAFETY: as above.
        let text = || unsafe { CStr::from_ptr(value.cast()) }.to_owned();
        let name = || Some(Name { text: text(), is_of_call: false });
        match flag {
            SRC_FD => lock(&self.fds).0 = number(),
            DST_FD => lock(&self.fds).1 = number(),
            SRC_FILENAME => lock(&self.names)[0] = name(),
            DST_FILENAME => lock(&self.names)[1] = name(),
            STATUS_CB => {
                // SAFETY: a null pointer is no function, and the caller passes no other one.
                let callback =
                    unsafe { std::mem::transmute::<*const c_void, Option<StatusFn>>(value) };
                lock(&self.callback).0 = callback;
            }
            STATUS_CTX => lock(&self.callback).1 = value.cast_mut(),
            FORBID_CROSS_MOUNT => self.forbids_cross_mount.store(truth(), Ordering::Relaxed),
            // These are told, not set.
            COPIED | WAS_CLONED => return Err(libc::EINVAL),
            _ => return Err(unknown(flag)),
        }
        Ok(())
    }

    /// Forgets what came of the last copy.
    pub(super) fn start(&self) {
        self.set_copied(0);
        self.set_was_cloned(false);
    }

    /// Whether other file systems are not entered.
    pub(super) fn forbids_cross_mount(&self) -> bool {
        self.forbids_cross_mount.load(Ordering::Relaxed)
    }

    pub(super) fn fds(&self) -> (c_int, c_int) {
        *lock(&self.fds)
    }

    /// Descriptors of a call, which have no names of an older call.
    pub(super) fn set_fds(&self, src: c_int, dst: c_int) {
        *lock(&self.fds) = (src, dst);
        for kept in &mut *lock(&self.names) {
            kept.take_if(|kept| kept.is_of_call);
        }
    }

    pub(super) fn names(&self) -> [Option<CString>; 2] {
        lock(&self.names).each_ref().map(|name| name.as_ref().map(|name| name.text.clone()))
    }

    /// Names of a call, which has no descriptors of an older call. Those that are the same stay where they are: a
    /// program may have their addresses.
    pub(super) fn set_names(&self, names: [&CStr; 2]) {
        *lock(&self.fds) = (UNSET, UNSET);
        for (kept, given) in lock(&self.names).iter_mut().zip(names) {
            if kept.as_ref().is_none_or(|kept| *kept.text != *given) {
                *kept = Some(Name { text: given.to_owned(), is_of_call: true });
            }
        }
    }

    pub(super) fn callback(&self) -> (Option<StatusFn>, *mut c_void) {
        *lock(&self.callback)
    }

    pub(super) fn set_copied(&self, bytes: u64) {
        self.copied.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(super) fn set_was_cloned(&self, was_cloned: bool) {
        self.was_cloned.store(was_cloned, Ordering::Relaxed);
    }

    /// What a callback is called with for the descriptors: their names, or those in /dev/fd.
    pub(super) fn shown_names(&self, (src, dst): (c_int, c_int)) -> (CString, CString) {
        let of_fd = |fd: c_int| crate::border::c_text(format!("/dev/fd/{fd}"));
        let [src_name, dst_name] = self.names();
        (src_name.unwrap_or_else(|| of_fd(src)), dst_name.unwrap_or_else(|| of_fd(dst)))
    }

    /// Calls the callback, if there is one.
    pub(super) fn call(
        self: &Arc<Self>,
        what: c_int,
        stage: c_int,
        src: &CStr,
        dst: &CStr,
    ) -> Option<c_int> {
        let (callback, context) = self.callback();
        let state = Arc::as_ptr(self).cast_mut();
        // SAFETY: the program has set this function with this context. It may use the state, whose
        // fields are locked or atomic, and gets strings that live for the call.
        callback.map(|callback| unsafe {
            callback(what, stage, state, src.as_ptr(), dst.as_ptr(), context)
        })
    }
}

fn address(name: &Option<Name>) -> *const c_char {
    name.as_ref().map_or(std::ptr::null(), |name| name.text.as_ptr())
}

/// ENOTSUP for a value that macOS has and that has no meaning here; EINVAL for any other.
fn unknown(flag: u32) -> c_int {
    let has_no_meaning =
        matches!(flag, QUARANTINE | XATTRNAME) || (WAS_CLONED..=LAST).contains(&flag);
    if has_no_meaning { libc::ENOTSUP } else { libc::EINVAL }
}
