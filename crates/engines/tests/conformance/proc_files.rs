//! Files that report a length of 0 or of a page and contain something else. A chain copies the
//! bytes that `read` returns, whatever its first engine is.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use engines::{Moved, Span, Stop};
use testfs::{each_fs, skip, test_name};

use crate::trial::{chained, empty_dst};
use crate::variants;
use crate::watchdog::watched;

/// A process whose list of mappings is longer than one read(2) returns, and does not change.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        let names = ["m", "resolv", "util", "dl", "rt", "pthread", "anl", "thread_db", "mvec"];
        let versions = [6, 2, 1, 2, 1, 0, 1, 1, 1];
        let libraries =
            names.into_iter().zip(versions).map(|(name, it)| format!("lib{name}.so.{it}"));
        let mut command = Command::new("sleep");
        command.arg("600").env("LD_PRELOAD", libraries.collect::<Vec<_>>().join(":"));
        // The loader says which of them are missing.
        Sleeper(command.stderr(Stdio::null()).spawn().expect("sleep started"))
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn files_of_unknown_length_are_copied_completely() {
    let sleeper = Sleeper::start();
    let mappings = format!("/proc/{}/maps", sleeper.0.id());
    // The last reports a length of one page.
    for path in ["/proc/version", &*mappings, "/sys/kernel/mm/transparent_hugepage/enabled"] {
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
                            // The process was starting.
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
