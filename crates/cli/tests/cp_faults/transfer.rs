//! Calls that move data, and close(2).

use std::fs::{create_dir, metadata, read, write};

use testfs::{FsKind, each_fs, random_bytes, stderr};

use crate::{calls, strace, with_faults};

/// The engine that copies between network file systems, selected here by option.
const KERNEL_COPY: &str = "--engine=copy_file_range";

#[test]
fn no_fallback_hides_an_error_of_copy_file_range() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), random_bytes(1 << 20, 1)).expect("written");
    for (errno, words) in [
        ("ENOSPC", "No space left on device"),
        ("EDQUOT", "Disk quota exceeded"),
        ("ESTALE", "Stale file handle"),
    ] {
        let inject = format!("inject=copy_file_range:error={errno}");
        let Some(output) = with_faults(dir.path(), &[&inject], &[KERNEL_COPY, "a", "b"]) else {
            return;
        };
        assert_eq!(output.status.code(), Some(1), "{errno}");
        let said = stderr(&output);
        assert!(said.starts_with(&format!("cp: error copying 'a' to 'b': {words}\n")), "{said}");
        assert!(said.contains("cp: 'b' is incomplete: 0 of 1048576 bytes\n"), "{said}");
        assert_eq!(metadata(dir.path().join("b")).expect("b").len(), 0, "{errno}");
        std::fs::remove_file(dir.path().join("b")).expect("removed");
    }
}

#[test]
fn after_a_refusal_the_next_variant_continues_at_that_byte() {
    let dir = tempfile::tempdir().expect("created");
    let bytes = random_bytes(3 << 20, 2);
    write(dir.path().join("a"), &bytes).expect("written");
    // Network and stacked file systems give the last three although reads and writes work.
    for errno in ["EOPNOTSUPP", "EXDEV", "EINVAL", "ENOSYS", "EPERM", "EACCES", "ENOENT", "EIO"] {
        let inject = format!("inject=copy_file_range:error={errno}:when=1");
        let Some(output) = with_faults(dir.path(), &[&inject], &[KERNEL_COPY, "a", "b"]) else {
            return;
        };
        assert!(output.status.success(), "{errno}: {}", stderr(&output));
        assert_eq!(calls(dir.path(), "(INJECTED)"), 1, "{errno}");
        assert!(read(dir.path().join("b")).expect("b") == bytes, "{errno}");
    }
}

#[test]
fn a_refused_clone_is_not_tried_again() {
    let dir = tempfile::tempdir().expect("created");
    create_dir(dir.path().join("s")).expect("created");
    for number in 0..10 {
        write(dir.path().join(format!("s/{number}")), "x").expect("written");
    }
    // Each worker tries it by itself.
    let args = ["-a", "--jobs=1", "s", "t"];
    let Some(output) = with_faults(dir.path(), &["inject=ioctl:error=EOPNOTSUPP"], &args) else {
        return;
    };
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(calls(dir.path(), "FICLONE"), 1);
}

#[test]
fn an_error_at_close_is_reported() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), "content").expect("written");
    write(dir.path().join("b"), "old").expect("written");
    let dst = dir.path().join("b").to_str().expect("a plain name").to_owned();
    let options = ["-P", &dst, "-e", "inject=close:error=EDQUOT"];
    let Some(output) = strace(dir.path(), &options, &["a", &dst]) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("failed to close '"), "{said}");
    assert!(said.contains("Disk quota exceeded"), "{said}");
}

#[test]
fn a_receipt_claims_nothing_that_is_not_on_the_medium() {
    let dir = tempfile::tempdir().expect("created");
    create_dir(dir.path().join("src")).expect("created");
    for name in ["a", "b", "c"] {
        write(dir.path().join("src").join(name), name).expect("written");
    }
    let args = ["-r", "--durable", "--receipt=receipt", "src", "dst"];
    let Some(output) = with_faults(dir.path(), &["inject=fsync:error=EIO"], &args) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let lines = testfs::json_lines(&dir.path().join("receipt"));
    let entries: Vec<_> = lines.iter().filter(|line| line["record"] == "entry").collect();
    assert_eq!(entries.len(), 4, "{lines:?}");
    for entry in entries {
        assert_eq!(entry["method"], "failed", "{entry}");
        assert_eq!(entry["failures"][0]["errno"]["name"], "EIO", "{entry}");
    }
    // The directory above is no entry, and could not be synced either.
    assert_eq!(lines.last().expect("a summary")["failures"], 5, "{lines:?}");
}

#[test]
fn a_kernel_without_memory_for_a_ring_is_not_asked_for_ever() {
    let dir = tempfile::tempdir().expect("created");
    let bytes = random_bytes(3 << 20, 2);
    write(dir.path().join("a"), &bytes).expect("written");
    let inject = "inject=io_uring_enter:error=EAGAIN";
    let args = ["--reflink=never", "--engine=io_uring", "a", "b"];
    let begun = std::time::Instant::now();
    let Some(output) = with_faults(dir.path(), &[inject], &args) else { return };
    assert!(begun.elapsed().as_secs() < 60, "{output:?}");
    if output.status.success() {
        // Where there is no io_uring, or another variant has gone on.
        assert!(read(dir.path().join("b")).expect("read") == bytes);
    } else {
        assert!(stderr(&output).contains("'b'"), "{output:?}");
    }
}

#[test]
fn an_errno_that_is_a_refusal_at_first_is_an_error_later() {
    let dir = tempfile::tempdir().expect("created");
    // Longer than one piece.
    write(dir.path().join("a"), random_bytes(65 << 20, 1)).expect("written");
    let inject = "inject=copy_file_range:error=EIO:when=2+";
    let Some(output) = with_faults(dir.path(), &[inject], &[KERNEL_COPY, "a", "b"]) else {
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("cp: 'b' is incomplete: 67108864 of 68157440 bytes\n"), "{said}");
}

#[test]
fn a_lease_on_either_file_is_waited_for() {
    let dir = tempfile::tempdir().expect("created");
    for leased in ["a", "b"] {
        write(dir.path().join("a"), "new").expect("written");
        write(dir.path().join("b"), "old").expect("written");
        // What open(2) with O_NONBLOCK returns while another process has a lease on the file.
        let options = ["-P", leased, "-e", "inject=openat:error=EAGAIN:when=1"];
        let Some(output) = strace(dir.path(), &options, &["a", "b"]) else { return };
        assert!(output.status.success(), "{leased}: {}", stderr(&output));
        assert_eq!(calls(dir.path(), "(INJECTED)"), 1, "{leased}");
        assert_eq!(read(dir.path().join("b")).expect("read"), b"new", "{leased}");
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
                let inject = ["inject=ftruncate:error=EIO", "inject=ioctl:error=EOPNOTSUPP"];
                let inject = &inject[..1 + usize::from(refused)];
                let Some(output) = with_faults(dir, inject, &["a", "b"]) else { return };
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
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
        write(dir.join("a"), random_bytes(9000, 1)).expect("written");
        write(dir.join("b"), random_bytes(9000, 2)).expect("what was there before");
        let Some(output) = with_faults(dir, &["inject=ftruncate:error=EIO"], &["a", "b"]) else {
            return;
        };
        assert!(!output.status.success(), "{kind}");
        assert!(read(dir.join("b")).expect("read") == random_bytes(9000, 2));
    });
}
