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

#[cfg(test)]
mod tests {
    use testfs::offset_in_page;

    use super::*;
    use crate::Variant;

    #[test]
    fn buffers_start_at_the_offset_of_the_variant() {
        for (text, offset_bytes) in [
            ("read_write", 0),
            ("read_write:1", 0),
            ("read_write:64K", 0),
            ("read_write:256K@2", 0),
            ("read_write:256K,aligned", 0),
            ("read_write:256K,offset=0", 0),
            ("read_write:256K,offset=16", 16),
            ("read_write:1,offset=4095", 4095),
            ("stdio", 0),
            ("stdio:1", 0),
            ("stdio:4K,offset=16", 16),
            ("stdio:64K,setvbuf=64K", 0),
            ("stdio:1,setvbuf=8K,offset=2K", 2048),
            ("direct", 0),
            ("direct:4K", 0),
            ("direct:12345", 0),
            ("dontcache", 0),
            ("dontcache:4K", 0),
            ("dontcache:12345", 0),
        ] {
            let Variant { engine, tuning, .. } = text.parse().expect(text);
            let check = |bytes: &[u8]| assert_eq!(offset_in_page(bytes), offset_bytes, "{text}");
            match engine.name {
                "direct" => {
                    check(direct::Direct::new(&tuning).expect("memory").buffer.as_mut_slice());
                }
                "dontcache" => {
                    check(
                        dontcache::Dontcache::new(&tuning).expect("memory").buffer.as_mut_slice(),
                    );
                }
                "read_write" => {
                    let mut read_write = read_write::ReadWrite::new(&tuning);
                    let bytes = read_write.buffer().expect("memory").as_mut_slice();
                    check(bytes);
                    assert_eq!(bytes.len(), tuning.bytes("buffer"), "{text}");
                }
                _ => {
                    let mut stdio = stdio::Stdio::new(&tuning).expect("memory");
                    check(stdio.item.as_mut_slice());
                    let stream_buffer = stdio.stream_buffer().expect("memory");
                    assert_eq!(stream_buffer.is_some(), text.contains("setvbuf"), "{text}");
                    stream_buffer.into_iter().for_each(|mut it| check(it.as_mut_slice()));
                }
            }
        }
    }
}
