//! Files that report a length of 0 or of a page and contain something else. A chain copies the
//! bytes that `read` returns, whatever its first engine is.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use engines::{Chain, Pair, Span, Stop};
use testfs::{each_fs, skip, test_name};

use crate::trial::empty_dst;
use crate::variants;
use crate::watchdog::watched;

/// Files whose content is the same on every read. The second needs several reads; the third reports
/// a length of one page.
const FILES: &[&str] =
    &["/proc/version", "/proc/crypto", "/sys/kernel/mm/transparent_hugepage/enabled"];

#[test]
fn files_of_unknown_length_are_copied_completely() {
    for path in FILES {
        let Some(expected) = std::fs::read(path).ok().filter(|bytes| !bytes.is_empty()) else {
            skip(&test_name(), &format!("there is nothing in {path}"));
            continue;
        };
        each_fs(|kind, dir| {
            for variant in variants::on(kind) {
                for len in [Span::TO_EOF, 1 << 20] {
                    let context = format!("{variant} on {kind}, {path}, {len} bytes");
                    let mut chain = Chain::with_last_resort([variant.clone()]);
                    let stop = copy(&mut chain, Path::new(path), &dir.join("dst"), len, &context);
                    assert_eq!(stop, (Stop::Eof, expected.len() as u64), "{context}");
                    let found = std::fs::read(dir.join("dst")).unwrap();
                    assert!(found == expected, "{context}: wrong bytes");
                }
            }
        });
    }
}

fn copy(chain: &mut Chain, src: &Path, dst: &Path, len: u64, context: &str) -> (Stop, u64) {
    let src = File::open(src).unwrap();
    let dst = empty_dst(dst);
    let pair = Pair::new(src.as_fd(), dst.as_fd());
    let moved = watched(context, || chain.file(pair).copy(Span::whole(len), &mut |_, _, _| {}));
    (moved.stop, moved.bytes)
}
