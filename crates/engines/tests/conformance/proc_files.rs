//! Files that report a length of 0 or of a page and contain something else. A chain copies the
//! bytes that `read` returns, whatever its first engine is.

use std::fs::File;

use engines::{Moved, Span, Stop};
use testfs::{each_fs, skip, test_name};

use crate::trial::{chained, empty_dst};
use crate::variants;
use crate::watchdog::watched;

/// Files whose content seldom changes. The second needs several reads; the third reports a length of one
/// page.
const FILES: &[&str] =
    &["/proc/version", "/proc/crypto", "/sys/kernel/mm/transparent_hugepage/enabled"];

#[test]
fn files_of_unknown_length_are_copied_completely() {
    for path in FILES {
        if std::fs::read(path).map_or(true, |bytes| bytes.is_empty()) {
            skip(&test_name(), &format!("there is nothing in {path}"));
            continue;
        }
        each_fs(|kind, dir| {
            for variant in variants::on(kind) {
                for len in [Span::TO_EOF, 1 << 20] {
                    let context = format!("{variant} on {kind}, {path}, {len} bytes");
                    loop {
                        let expected = std::fs::read(path).unwrap();
                        let src = File::open(path).unwrap();
                        let dst = empty_dst(dir.join("dst"));
                        let copy = || chained(&variant, &src, &dst, Span::whole(len));
                        let moved = watched(&context, copy);
                        if std::fs::read(path).unwrap() != expected {
                            // A file system that is mounted meanwhile uses an algorithm of /proc/crypto.
                            continue;
                        }
                        let whole = Moved { bytes: expected.len() as u64, stop: Stop::Eof };
                        assert_eq!(moved, whole, "{context}");
                        let found = std::fs::read(dir.join("dst")).unwrap();
                        assert!(found == expected, "{context}: wrong bytes");
                        break;
                    }
                }
            }
        });
    }
}
