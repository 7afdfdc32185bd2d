//! The table of all engines.

use crate::copy_file_range::COPY_FILE_RANGE;
use crate::direct::DIRECT;
use crate::direct_read::DIRECT_READ;
use crate::dontcache::DONTCACHE;
use crate::engine::Engine;
use crate::io_uring::IO_URING;
use crate::memory::MEMORY;
use crate::mmap::MMAP;
use crate::read_write::READ_WRITE;
use crate::reflink::REFLINK;
use crate::sendfile::SENDFILE;
use crate::splice::SPLICE;
use crate::stdio::STDIO;

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
