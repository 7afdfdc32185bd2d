//! A memory copy between two mapped files that survives the files' being cut short.
//!
//! Touching a mapped page that the file no longer has (or a page for which the disk has no room)
//! raises SIGBUS. While a guarded copy runs, the handler puts zero pages in place of what is
//! missing, notes where, and lets the copy run to its end; the caller learns how far the files
//! really reached. Any other SIGBUS goes to the handler that was there before.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use super::map::Map;
use crate::Side;

/// Where a guarded copy met a page that was not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The side whose page it was.
    pub(crate) side: Side,
    /// Bytes of the range before the missing page.
    pub(crate) reached: usize,
}

/// One range under guard.
#[derive(Clone, Copy)]
struct Range {
    start: usize,
    len: usize,
    /// The first address that had no page, or `usize::MAX`.
    missing: usize,
}

impl Range {
    const fn none() -> Range {
        Range { start: 0, len: 0, missing: usize::MAX }
    }

    fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.len
    }
}

thread_local! {
    // Constant and without a destructor, so the handler's access is a plain load: nothing is
    // allocated or registered in signal context.
    static SRC: Cell<Range> = const { Cell::new(Range::none()) };
    static DST: Cell<Range> = const { Cell::new(Range::none()) };
}

/// What handled SIGBUS before us; `None` when our handler could not be installed.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// Copies `len` bytes from `src[src_from..]` to `dst[dst_from..]`.
///
/// # Errors
/// The first missing page, source before destination. Bytes beyond it are zeros (source) or lost
/// (destination).
///
/// # Panics
/// When a range lies outside its mapping, or SIGBUS cannot be handled.
pub(crate) fn copy(
    dst: &mut Map,
    dst_from: usize,
    src: &Map,
    src_from: usize,
    len: usize,
) -> Result<(), Missing> {
    let before = BEFORE.get_or_init(install);
    assert!(before.is_some(), "sigaction takes a handler for SIGBUS");
    let (to, from) = (dst.at(dst_from, len), src.at(src_from, len));
    SRC.set(Range { start: from as usize, len, missing: usize::MAX });
    DST.set(Range { start: to as usize, len, missing: usize::MAX });
    // SAFETY: `at` checked both ranges; they are distinct mappings. They may change under us, which
    // is why no reference is made of them, and pages that vanish are dealt with by the handler. The
    // call is to memcpy itself, opaque to the optimiser.
    unsafe { libc::memcpy(to, from, len) };
    let (src, dst) = (SRC.replace(Range::none()), DST.replace(Range::none()));
    if src.missing != usize::MAX {
        return Err(Missing { side: Side::Src, reached: src.missing.saturating_sub(src.start) });
    }
    if dst.missing != usize::MAX {
        return Err(Missing { side: Side::Dst, reached: dst.missing.saturating_sub(dst.start) });
    }
    Ok(())
}

fn install() -> Option<libc::sigaction> {
    // SAFETY: all zeros is a valid sigaction: no flags, an empty mask, the default action.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_sigbus as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: as above.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both structures are valid, and the handler has the signature that SA_SIGINFO asks for.
    let result = unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut before) };
    (result == 0).then_some(before)
}

/// The SIGBUS handler. It makes one system call and touches thread-local cells, nothing else.
extern "C" fn on_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let info_ref = unsafe { &*info };
    // SAFETY: SIGBUS carries a fault address.
    let address = unsafe { info_ref.si_addr() } as usize;
    let mended = SRC.with(|range| mend(range, address)) || DST.with(|range| mend(range, address));
    if !mended {
        pass_on(signal, info, context);
    }
}

/// Puts zero pages from the faulting page to the end of the range, if the fault is the range's.
fn mend(cell: &Cell<Range>, address: usize) -> bool {
    let mut range = cell.get();
    if !range.contains(address) {
        return false;
    }
    let page_bytes = rustix::param::page_size();
    let page = address - address % page_bytes;
    let len = (range.start + range.len - page).next_multiple_of(page_bytes);
    let (prot, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
    );
    // SAFETY: the pages replaced all belong to the mapping under guard, which stays as long as it
    // was, so that its owner unmaps the same addresses.
    let zeros = unsafe { libc::mmap(page as *mut c_void, len, prot, flags, -1, 0) };
    if zeros == libc::MAP_FAILED {
        return false;
    }
    range.missing = range.missing.min(page);
    cell.set(range);
    true
}

/// Hands a SIGBUS that is not ours to whoever had it before.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(Some(before)) = BEFORE.get() else { return };
    let handler = before.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: `before` came from sigaction. Returning raises the fault again, now with the
        // default action: an ignored SIGBUS ends the process all the same (signal(7)).
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
    } else if before.sa_flags & libc::SA_SIGINFO != 0 {
        type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
        // SAFETY: a handler installed with SA_SIGINFO has this signature.
        let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: a handler installed without SA_SIGINFO takes the signal's number alone.
        let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
        handler(signal);
    }
}
