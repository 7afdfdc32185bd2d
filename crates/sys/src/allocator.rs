//! The allocator of a program, which ends the program in order where there is no memory. The standard
//! library would abort it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The allocator of the C library. Give it the attribute `global_allocator`.
pub struct Allocator;

/// Called once when memory is exhausted, before the process exits with status 1.
static LAST_WORDS: OnceLock<fn()> = OnceLock::new();

/// Memory that is freed for the last words.
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// The last words need some paths. Less than the C library would map by itself, so that its heap
/// keeps the memory.
const RESERVE_LAYOUT: Layout = Layout::new::<[u8; 64 << 10]>();

/// `last_words` is called when memory is exhausted, by the thread that needs some, which may hold
/// any lock. It may allocate a few kilobytes. The process ends when it returns, or when it needs
/// more.
pub fn when_memory_is_exhausted(last_words: fn()) {
    if LAST_WORDS.set(last_words).is_ok() {
        // SAFETY: the layout has a length. A null pointer is no reserve.
        let reserve = unsafe { System.alloc(RESERVE_LAYOUT) };
        RESERVE.store(reserve, Ordering::Relaxed);
    }
}

/// `int mallopt(int, int)`
///
/// Makes all threads allocate from one arena, see mallopt(3). Every other one reserves 64 MiB of
/// address space. Without glibc there is one arena anyway.
pub fn use_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call changes a number under the lock of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1)
    };
}

/// Ends the process after the last words. Returns if there are none.
#[cold]
fn exhausted() {
    static ENDING: AtomicBool = AtomicBool::new(false);
    thread_local! {
        static IS_ENDING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    let Some(last_words) = LAST_WORDS.get() else { return };
    if !ENDING.swap(true, Ordering::SeqCst) {
        IS_ENDING.set(true);
        let reserve = RESERVE.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if !reserve.is_null() {
            // SAFETY: it was allocated with this layout, and the swap took the only pointer to it.
            unsafe { System.dealloc(reserve, RESERVE_LAYOUT) };
        }
        last_words();
    } else if !IS_ENDING.get() {
        // Another thread is about to end the process.
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }
    // SAFETY: ends the process at once. Other threads may be in any call.
    unsafe { libc::_exit(1) }
}

/// `block`, unless it is null and there are last words.
fn checked(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        exhausted();
    }
    block
}

// SAFETY: all calls are passed on to the allocator of the system, which keeps the contract.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this function, which is the same.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(block, layout, new_size) })
    }
}
