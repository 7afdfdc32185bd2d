//! `--reflink=never`: no byte of the copy is shared, whatever engine is asked for.

use std::fs::{File, read, remove_file, write};
use std::os::fd::AsFd;

use sys::fiemap;
use testfs::{each_fs, random_bytes};
use tree::{Options, Reflink};

use crate::recorder::copy_ok;

#[test]
fn no_engine_shares_blocks_if_that_is_forbidden() {
    let content = random_bytes(1 << 20, 1);
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        write(&src, &content).expect("written");
        for engine in ["copy_file_range", "copy_file_range:256K@2", "splice"] {
            let engine = Some(engine.parse().expect("parsed"));
            let options = Options { engine, reflink: Reflink::Never, ..Options::default() };
            let receipts = copy_ok(&src, &dst, &options);
            let text = format!("{kind}: {:?}", receipts[0].attempts);
            assert!(read(&dst).expect("read") == content, "{text}");
            // tmpfs has no extents to ask for, and shares none.
            let file = File::open(&dst).expect("opened");
            let shares = fiemap(file.as_fd(), true).is_ok_and(|extents| extents.is_shared());
            assert!(!shares, "{text}");
            remove_file(&dst).expect("removed");
        }
        // The check sees what is shared.
        let options = Options { reflink: Reflink::Auto, ..Options::default() };
        copy_ok(&src, &dst, &options);
        let file = File::open(&dst).expect("opened");
        let shares = fiemap(file.as_fd(), true).is_ok_and(|extents| extents.is_shared());
        assert_eq!(shares, kind.reflinks(), "{kind}");
    });
}
