//! System calls and raw memory, each behind a safe type. No other crate of the workspace may be
//! unsafe, except the bindings for other languages.
#![allow(unsafe_code)]

mod allocator;
mod buffer;
mod cachestat;
mod chmod;
mod clone_range;
mod close;
mod environment;
mod fiemap;
mod fs_uuid;
mod guarded;
mod hypervisor;
mod initial_state;
#[doc(hidden)]
pub mod interruption;
mod leased;
mod libc_version;
mod list_xattr;
mod locale;
mod map;
pub mod math;
mod mincore;
mod perf;
mod process_random;
mod program_entry;
mod resource_limit;
pub mod ring;
mod signal_mask;
pub mod stream;
mod sync_range;
mod uname;
mod usage;
mod window;
mod xfs_geometry;

pub use allocator::{Allocator, use_one_arena, when_memory_is_exhausted};
pub use buffer::{Buffer, PAGE_BYTES, Page};
pub use cachestat::{Cachestat, cachestat};
pub use chmod::chmod_path_fd;
pub use clone_range::clone_range;
pub use close::{close, flush_as_close};
pub use environment::set_variable;
pub use fiemap::{Fiemap, fiemap};
pub use fs_uuid::fs_uuid;
pub use guarded::{Guard, Missing, copy_guarded};
pub use hypervisor::hypervisor;
pub use initial_state::{is_ignored, sigpipe_was_ignored, stdout_was_closed};
pub use leased::{Leased, LeasedMap};
pub use libc_version::libc_version;
pub use list_xattr::xattr_names_len;
pub use locale::codeset;
pub use map::Map;
pub use mincore::mincore;
pub use perf::{Event as PerfEvent, PerfCount, PerfCounter};
pub use process_random::process_random;
pub use program_entry::enter;
pub use resource_limit::resource_limit;
pub use signal_mask::{block_signal, unblock_signal};
pub use sync_range::{begin_writing_back, wait_for_writeback, write_back};
pub use uname::{Uname, uname};
pub use usage::{Usage, Whose, usage};
pub use window::Window;
pub use xfs_geometry::{XfsGeometry, xfs_geometry};

/// The error of the C call that just failed on this thread.
fn last_errno() -> rustix::io::Errno {
    let error = std::io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).expect("an OS error has a number")
}
