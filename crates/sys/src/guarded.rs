//! A memory copy between two mapped files that survives their truncation.
//!
//! An access to a mapped page beyond the end of the file (or to a page for which the disk has no
//! space) raises SIGBUS. While a guarded copy runs, the handler maps zero pages in place of the
//! missing pages, records the address, and lets the copy finish. The caller gets the number of
//! bytes before the first missing page. Any other SIGBUS is passed to the previous handler.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

use super::map::Map;

/// Where a guarded copy accessed a missing page: so many bytes of the range lie before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The source has no such page.
    Src(usize),
    /// The destination has no such page.
    Dst(usize),
}

/// Bytes that [`Guard::fill`] stores at once.
const WORD_BYTES: usize = size_of::<u64>();

/// One guarded range.
#[derive(Clone, Copy)]
struct Range {
    start: usize,
    len: usize,
    /// The first address without a page, or `usize::MAX`.
    missing: usize,
}

impl Range {
    fn of(start: *const c_void, len: usize) -> Range {
        Range { start: start as usize, len, missing: usize::MAX }
    }

    const fn none() -> Range {
        Range { start: 0, len: 0, missing: usize::MAX }
    }

    /// Bytes before the first missing page, if a page is missing.
    fn reached(&self) -> Option<usize> {
        (self.missing != usize::MAX).then(|| self.missing.saturating_sub(self.start))
    }

    fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.len
    }
}

thread_local! {
    // Constant and without a destructor, so that the handler's access is a plain load. Nothing is
    // allocated or registered in signal context.
    static SRC: Cell<Range> = const { Cell::new(Range::none()) };
    static DST: Cell<Range> = const { Cell::new(Range::none()) };
}

/// The previous action of SIGBUS; `None` if our handler could not be installed.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// SIGBUS is handled, and this thread does not block it: a fault whose signal is blocked ends the
/// process even if it has a handler. The signal mask is restored when the guard is dropped.
pub struct Guard {
    mask: libc::sigset_t,
    /// The mask belongs to this thread.
    bound: PhantomData<*const ()>,
}

impl Guard {
    /// Installs the handler and unblocks SIGBUS in this thread.
    ///
    /// # Panics
    /// If SIGBUS cannot be handled.
    #[must_use]
    pub fn new() -> Guard {
        let before = BEFORE.get_or_init(install);
        assert!(before.is_some(), "sigaction takes a handler for SIGBUS");
        let mask = blocking(libc::SIG_UNBLOCK, &only_sigbus());
        Guard { mask, bound: PhantomData }
    }

    /// Runs `work`, which accesses these ranges, and reports the first missing page of either.
    fn watch(&self, src: Range, dst: Range, work: impl FnOnce()) -> Result<(), Missing> {
        let watched = Watched::begin(src, dst);
        work();
        let (src, dst) = watched.end();
        match (src.reached(), dst.reached()) {
            (None, None) => Ok(()),
            (Some(reached), None) => Err(Missing::Src(reached)),
            // Both ranges began with the same byte, so the nearer missing page limits what was
            // copied.
            (Some(reached), Some(lost_from)) if reached <= lost_from => Err(Missing::Src(reached)),
            (_, Some(reached)) => Err(Missing::Dst(reached)),
        }
    }

    /// Stores words from `dst[from..]` until `len` bytes are full. Word 0 is `word(0)`, in native
    /// byte order. Only the part of the last word that fits is stored.
    ///
    /// # Errors
    /// The bytes before the first page that the file does not have, or for which it has no space.
    /// Bytes stored from there on are lost.
    ///
    /// # Panics
    /// If the range lies outside the mapping.
    pub fn fill(
        &self,
        dst: &mut Map,
        from: usize,
        len: usize,
        word: impl Fn(usize) -> u64,
    ) -> Result<(), usize> {
        let to = dst.at(from, len);
        let filled = self.watch(Range::none(), Range::of(to, len), || {
            let words = len / WORD_BYTES;
            for index in 0..words {
                // SAFETY: the word lies in the range that `at` checked.
                let place = unsafe { to.cast::<u64>().add(index) };
                // SAFETY: as above. The range may change concurrently, so no reference to it is
                // created. The handler replaces missing pages.
                unsafe { place.write_unaligned(word(index)) };
            }
            let rest = word(words).to_ne_bytes();
            // SAFETY: the rest is less than a word, and ends where the range ends.
            let place = unsafe { to.cast::<u8>().add(words * WORD_BYTES) };
            // SAFETY: as above.
            unsafe { place.copy_from_nonoverlapping(rest.as_ptr(), len % WORD_BYTES) };
        });
        filled.map_err(|(Missing::Src(reached) | Missing::Dst(reached))| reached)
    }
}

impl Default for Guard {
    fn default() -> Guard {
        Guard::new()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        blocking(libc::SIG_SETMASK, &self.mask);
    }
}

/// The two ranges are stored in this thread's cells, which the handler reads.
struct Watched;

impl Watched {
    fn begin(src: Range, dst: Range) -> Watched {
        SRC.set(src);
        DST.set(dst);
        // The optimiser knows that the work does not access the cells, but not that the handler
        // does.
        compiler_fence(Ordering::SeqCst);
        Watched
    }

    fn end(self) -> (Range, Range) {
        compiler_fence(Ordering::SeqCst);
        (SRC.get(), DST.get())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // A panic in the work also clears the ranges.
        SRC.set(Range::none());
        DST.set(Range::none());
    }
}

/// Copies `len` bytes from `src[src_from..]` to `dst[dst_from..]`.
///
/// # Errors
/// The first missing page; that of the source if both sides lack it. Bytes beyond it are zeros
/// (source) or lost (destination).
///
/// # Panics
/// If a range lies outside its mapping, or SIGBUS cannot be handled.
pub fn copy_guarded(
    dst: &mut Map,
    dst_from: usize,
    src: &Map,
    src_from: usize,
    len: usize,
) -> Result<(), Missing> {
    let (to, from) = (dst.at(dst_from, len), src.at(src_from, len));
    Guard::new().watch(Range::of(from, len), Range::of(to, len), || {
        // SAFETY: `at` checked both ranges, and they are distinct mappings. They may change
        // concurrently, so no reference to them is created. The handler replaces pages that vanish.
        unsafe { libc::memcpy(to, from, len) };
    })
}

/// Changes the signals that this thread blocks, and returns those that it blocked before;
/// pthread_sigmask(3).
fn blocking(how: c_int, set: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: all zeros is a valid, empty set.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are valid.
    let result = unsafe { libc::pthread_sigmask(how, set, &raw mut before) };
    assert_eq!(result, 0, "the way to change the mask is a known one");
    before
}

fn only_sigbus() -> libc::sigset_t {
    // SAFETY: all zeros is a valid, empty set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is valid, and SIGBUS is a signal.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGBUS) };
    set
}

fn install() -> Option<libc::sigaction> {
    // SAFETY: all zeros is a valid sigaction: no flags, an empty mask, the default action.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_sigbus as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: as above.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both structures are valid, and the handler has the signature that SA_SIGINFO
    // requires.
    let result = unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut before) };
    (result == 0).then_some(before)
}

/// The SIGBUS handler. It makes one system call and accesses thread-local cells only.
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

/// Maps zero pages from the faulting page to the end of the range, if the address lies in the
/// range.
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
    // SAFETY: the pages replaced all belong to the guarded mapping. The mapping keeps its length,
    // so its owner unmaps the same addresses.
    let zeros = unsafe { libc::mmap(page as *mut c_void, len, prot, flags, -1, 0) };
    if zeros == libc::MAP_FAILED {
        return false;
    }
    range.missing = range.missing.min(page);
    cell.set(range);
    true
}

/// Passes a SIGBUS that is not ours to the previous handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(Some(before)) = BEFORE.get() else { return };
    let handler = before.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: `before` came from sigaction. The return raises the fault again, now with the
        // default action: an ignored SIGBUS also ends the process (signal(7)).
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
    } else if before.sa_flags & libc::SA_SIGINFO != 0 {
        type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
        // SAFETY: a handler installed with SA_SIGINFO has this signature.
        let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: a handler installed without SA_SIGINFO takes only the signal's number.
        let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    /// Maps four pages of each file, truncates the files to these numbers of pages, and copies.
    fn copy_of_four(src_pages: u64, dst_pages: u64) -> (Result<(), Missing>, File) {
        let page_bytes = rustix::param::page_size();
        let file_of = |byte: u8| {
            let file = tempfile::tempfile().unwrap();
            let bytes = vec![byte; 4 * page_bytes];
            std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
            file
        };
        let (src, dst) = (file_of(1), file_of(2));
        let from = Map::readable(src.as_fd(), 0, 4 * page_bytes, false).unwrap();
        let mut to = Map::writable(dst.as_fd(), 0, 4 * page_bytes, false).unwrap();
        src.set_len(src_pages * page_bytes as u64).unwrap();
        dst.set_len(dst_pages * page_bytes as u64).unwrap();
        (copy_guarded(&mut to, 0, &from, 0, 4 * page_bytes), dst)
    }

    #[test]
    fn the_first_missing_page_counts() {
        let page_bytes = rustix::param::page_size();
        let missing = |side: fn(usize) -> Missing, pages| Err(side(pages * page_bytes));
        for (src_pages, dst_pages, expected) in [
            (4, 4, Ok(())),
            (3, 4, missing(Missing::Src, 3)),
            (0, 4, missing(Missing::Src, 0)),
            (4, 1, missing(Missing::Dst, 1)),
            (1, 3, missing(Missing::Src, 1)),
            (3, 1, missing(Missing::Dst, 1)),
            (2, 2, missing(Missing::Src, 2)),
        ] {
            let (copied, dst) = copy_of_four(src_pages, dst_pages);
            assert_eq!(copied, expected, "{src_pages} pages to {dst_pages}");
            let whole_pages = usize::try_from(src_pages.min(dst_pages)).unwrap();
            let mut found = vec![0; whole_pages * rustix::param::page_size()];
            std::os::unix::fs::FileExt::read_exact_at(&dst, &mut found, 0).unwrap();
            assert!(found.iter().all(|&byte| byte == 1), "{src_pages} pages to {dst_pages}");
        }
    }

    #[test]
    fn a_fill_counts_up_to_the_first_missing_page() {
        let page_bytes = rustix::param::page_size();
        for (pages, expected) in [(3, Ok(())), (2, Err(2 * page_bytes)), (0, Err(0))] {
            let file = tempfile::tempfile().unwrap();
            file.set_len(3 * page_bytes as u64).unwrap();
            let mut map = Map::writable(file.as_fd(), 0, 3 * page_bytes, false).unwrap();
            file.set_len(pages * page_bytes as u64).unwrap();
            let len = 3 * page_bytes - 3;
            let word = |index: usize| (index as u64).wrapping_mul(0x0123_4567_89ab_cdef);
            assert_eq!(Guard::new().fill(&mut map, 0, len, word), expected, "{pages} pages");
            drop(map);
            let mut found = vec![9; usize::try_from(pages).unwrap() * page_bytes];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 0).unwrap();
            for (at, byte) in found.iter().enumerate() {
                let right = if at < len { word(at / 8).to_ne_bytes()[at % 8] } else { 0 };
                assert_eq!(*byte, right, "byte {at} of {pages} pages");
            }
        }
    }

    #[test]
    fn a_thread_that_blocks_the_signal_survives() {
        std::thread::spawn(|| {
            let before = blocking(libc::SIG_BLOCK, &only_sigbus());
            assert_eq!(copy_of_four(0, 4).0, Err(Missing::Src(0)));
            // SAFETY: both sets are valid.
            let blocked = unsafe { libc::sigismember(&raw const before, libc::SIGBUS) };
            assert_eq!(blocked, 0);
            let after = blocking(libc::SIG_SETMASK, &before);
            // SAFETY: the set is valid.
            let blocked = unsafe { libc::sigismember(&raw const after, libc::SIGBUS) };
            assert_eq!(blocked, 1, "the mask is as it was");
        })
        .join()
        .unwrap();
    }
}
