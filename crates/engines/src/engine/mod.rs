//! The engines, one file each, and the table of all of them.

mod copy_file_range;
mod direct;
mod direct_read;
mod dontcache;
mod io_uring;
mod memory;
mod mmap;
pub(crate) mod read_write;
mod reflink;
mod sendfile;
mod splice;
mod stdio;

use crate::contract::Engine;
use copy_file_range::COPY_FILE_RANGE;
use direct::DIRECT;
use direct_read::DIRECT_READ;
use dontcache::DONTCACHE;
use io_uring::IO_URING;
use memory::MEMORY;
use mmap::MMAP;
use read_write::READ_WRITE;
use reflink::REFLINK;
use sendfile::SENDFILE;
use splice::SPLICE;
use stdio::STDIO;

/// All engines. To add one, add a file next to the others and a row here.
pub static ENGINES: &[&Engine] = &[
    &READ_WRITE,
    &STDIO,
    &MMAP,
    &COPY_FILE_RANGE,
    &SENDFILE,
    &SPLICE,
    &IO_URING,
    &DIRECT,
    &DIRECT_READ,
    &DONTCACHE,
    &REFLINK,
    &MEMORY,
];

/// The row called `name`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().copied().find(|engine| engine.name == name)
}
