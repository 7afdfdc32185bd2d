//! Calls that move data, and close(2).

use std::fs::{metadata, read, remove_file, write};

use testfs::{FsKind, each_fs, random_bytes, stderr};

use crate::{
    calls, check_content, check_failed, check_success, dir_with, fixture, strace, with_faults,
};

/// The engine that copies between network file systems, selected here by option.
const KERNEL_COPY: &str = "--engine=copy_file_range a b";

#[test]
fn no_fallback_hides_an_error_of_copy_file_range() {
    let dir = dir_with("a#65M:1");
    // Longer than one piece: before the second one the last of these is a refusal.
    for (fault, words, done) in [
        ("ENOSPC", "cp: error copying 'a' to 'b': No space left on device\n", 0),
        ("EDQUOT", "cp: error copying 'a' to 'b': Disk quota exceeded\n", 0),
        ("ESTALE", "cp: error copying 'a' to 'b': Stale file handle\n", 0),
        ("EIO:when=2+", "cp: error copying 'a' to 'b': Input/output error\n", 64 << 20),
    ] {
        let fault = format!("copy_file_range:error={fault}");
        let Some(output) = with_faults(&dir, &fault, KERNEL_COPY) else { return };
        check_failed(&output, words, &fault);
        assert!(stderr(&output).starts_with(words), "{fault}: {}", stderr(&output));
        let incomplete = format!("cp: 'b' is incomplete: {done} of 68157440 bytes\n");
        check_failed(&output, &incomplete, &fault);
        assert_eq!(metadata(dir.path().join("b")).expect("looked at").len(), done, "{fault}");
        remove_file(dir.path().join("b")).expect("removed");
    }
}

#[test]
fn after_a_refusal_the_next_variant_continues_at_that_byte() {
    let dir = dir_with("a#3M:2");
    // Network and stacked file systems give the last three although reads and writes work.
    for errno in ["EOPNOTSUPP", "EXDEV", "EINVAL", "ENOSYS", "EPERM", "EACCES", "ENOENT", "EIO"] {
        let fault = format!("copy_file_range:error={errno}:when=1");
        let Some(output) = with_faults(&dir, &fault, KERNEL_COPY) else { return };
        check_success(&output, errno);
        assert_eq!(calls(&dir, "(INJECTED)"), 1, "{errno}");
        check_content(dir.path().join("b"), random_bytes(3 << 20, 2), errno);
    }
}

#[test]
fn a_refused_clone_is_not_tried_again() {
    let dir = dir_with("s/1=x; s/2=x; s/3=x");
    // Each worker tries it by itself.
    let line = "-a --jobs=1 s t";
    let Some(output) = with_faults(&dir, "ioctl:error=EOPNOTSUPP", line) else { return };
    check_success(&output, line);
    assert_eq!(calls(&dir, "FICLONE"), 1);
}

#[test]
fn a_receipt_claims_nothing_that_is_not_on_the_medium() {
    let dir = dir_with("src/a=a; src/b=b; src/c=c");
    let line = "-r --durable --receipt=receipt src dst";
    let Some(output) = with_faults(&dir, "fsync:error=EIO", line) else { return };
    check_failed(&output, "", line);
    let lines = testfs::json_lines(&dir.path().join("receipt"));
    let entries: Vec<_> = lines.iter().filter(|line| line["record"] == "entry").collect();
    assert_eq!(entries.len(), 4, "{lines:?}");
    for entry in entries {
        assert_eq!(entry["method"], "failed", "{entry}");
        assert_eq!(entry["failures"][0]["errno"]["name"], "EIO", "{entry}");
    }
    // The directory above is no entry, and could not be synced either.
    assert_eq!(lines.last().expect("found")["failures"], 5, "{lines:?}");
}

#[test]
fn a_kernel_without_memory_for_a_ring_is_not_asked_for_ever() {
    let dir = dir_with("a#3M:2");
    let line = "--reflink=never --engine=io_uring a b";
    let begun = std::time::Instant::now();
    let fault = "io_uring_enter:error=EAGAIN";
    let Some(output) = with_faults(&dir, fault, line) else { return };
    assert!(begun.elapsed().as_secs() < 60, "{output:?}");
    if output.status.success() {
        // Where there is no io_uring, or another variant has gone on.
        check_content(dir.path().join("b"), random_bytes(3 << 20, 2), line);
    } else {
        check_failed(&output, "'b'", line);
    }
}

#[test]
fn a_lease_on_either_file_is_waited_for() {
    for leased in ["a", "b"] {
        let dir = dir_with("a=new; b=old");
        // What open(2) with O_NONBLOCK returns while another process has a lease on the file.
        let options = format!("-P {leased} -e inject=openat:error=EAGAIN:when=1");
        let Some(output) = strace(&dir, &options, "a b") else { return };
        check_success(&output, leased);
        assert_eq!(calls(&dir, "(INJECTED)"), 1, "{leased}");
        check_content(dir.path().join("b"), "new", leased);
    }
}

/// On xfs and btrfs a block comes straight in the place of an old one, and on a tmpfs a page: what is
/// there is not emptied before, and where nothing can be shared and nothing emptied it is left as it was.
#[test]
fn a_small_file_is_cloned_over_or_left_alone() {
    each_fs(|kind, dir| {
        for (len, old_len) in [(3000, 2000), (3000, 3000), (10, 0)] {
            for refused in [false, true] {
                let said = format!("{kind}: {len} over {old_len}, refused {refused}");
                let (new, old) = (random_bytes(len, 1), random_bytes(old_len, 2));
                write(dir.join("a"), &new).expect("written");
                write(dir.join("b"), &old).expect("what was there before");
                let no_clone = if refused { "ioctl:error=EOPNOTSUPP" } else { "" };
                let faults = format!("ftruncate:error=EIO {no_clone}");
                let Some(output) = with_faults(dir, &faults, "a b") else { return };
                let stderr = stderr(&output);
                let copy = read(dir.join("b")).expect("read");
                let is_page = kind == FsKind::Tmpfs && old_len > 0;
                if is_page || kind.reflinks() && !refused {
                    assert!(output.status.success() && copy == new, "{said}: {stderr}");
                } else {
                    assert_eq!(stderr, "cp: cannot truncate 'b': Input/output error\n", "{said}");
                    assert!(copy == old, "{said}");
                }
            }
        }
        // Of more than a block only a part might come before the run is killed.
        fixture::add("a#9000:1; b#9000:2", dir);
        let Some(output) = with_faults(dir, "ftruncate:error=EIO", "a b") else { return };
        assert!(!output.status.success(), "{kind}");
        check_content(dir.join("b"), random_bytes(9000, 2), kind);
    });
}
