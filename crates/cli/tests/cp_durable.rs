//! `cp --durable`: what was copied is on the medium when the copy ends well.

use std::fs::{File, create_dir};
use std::path::Path;
use std::process::Command;

use testfs::{Aspects, FsKind, Scratch, fs, skip, stderr, test_name, tree_differences};

use crate::image::{Image, done};
use crate::{
    check, check_content, check_failed, check_success, copy, cp, dir_with, fixture, strace,
    with_faults,
};

const LOOP: &str = "mount -o loop";

/// A file system of its own, in an image on xfs, which can clone it; `None` after a skip that said so.
fn crashable(kind: FsKind) -> Option<(Scratch, Image)> {
    let images = fs(FsKind::Xfs)?;
    let force = if kind == FsKind::Ext4 { "-F" } else { "-f" };
    let disk = Image::new(&format!("mkfs.{kind} -q {force}"), LOOP, 400, images.path())?;
    Some((images, disk))
}

/// How what `lines` made of a tree with small and large files, links, and `twigs` deep directories differs from
/// it after a loss of power; `None` after a skip that said so.
fn crash(kind: FsKind, twigs: u64, lines: &[&str]) -> Option<Vec<String>> {
    let scratch = fs(FsKind::Tmpfs)?;
    let (_images, disk) = crashable(kind)?;
    for number in 0..twigs {
        let (dir, files) = (format!("src/d{number}/e"), [0, 1, 5000]);
        let files = files.map(|len| format!("{dir}/{len}#{len}:{number}")).join("; ");
        fixture::add(&format!("{files}; {dir}/link->5000"), scratch.path());
    }
    fixture::add("src/large#20M:99; src/again==src/large", scratch.path());
    fixture::add("old/large#1M:98", &disk.mounted);
    // Only what the copy does is in question.
    rustix::fs::syncfs(File::open(disk.join("old")).expect("opened")).expect("synced");
    for line in lines {
        copy(scratch.path(), &format!("{line} src {}", disk.join("old").display()));
    }
    disk.lose_power();
    let aspects = Aspects { xattrs: false, ..Aspects::ALL };
    let found = tree_differences(&scratch.join("src"), &disk.join("old"), aspects);
    Some(found.unwrap_or_else(|error| vec![error.to_string()]))
}

/// An earlier run may have had other options, or have been killed before it synced. The few directories are
/// synced one by one.
#[test]
fn after_a_loss_of_power_all_is_there() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        for (twigs, lines) in [
            (40, &["--durable -aT"][..]),
            (40, &["--durable --atomic -aT"]),
            (40, &["--durable --jobs=1 -aT"]),
            (2, &["-aT", "--durable -auT"]),
            (2, &["-aT", "--durable --resume -aT"]),
            (2, &["-aT", "--durable -anT"]),
        ] {
            let Some(differences) = crash(kind, twigs, lines) else { return };
            assert_eq!(differences, [""; 0], "{kind} {lines:?}");
        }
    }
}

/// A new file has no blocks yet where it gets another name, or becomes a backup.
#[test]
fn what_is_linked_or_backed_up_is_there_after_a_loss_of_power() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        for (line, name) in [("-l a b", "b"), ("-b other a", "a~"), ("-b --atomic other a", "a~")] {
            let Some((_images, disk)) = crashable(kind) else { return };
            fixture::add("a=content; other=other\\scontent", &disk.mounted);
            copy(&disk.mounted, &format!("--durable {line}"));
            disk.lose_power();
            check_content(disk.join(name), "content", format_args!("{kind} {line}"));
        }
    }
}

/// Without a journal the name of a symbolic link reaches the medium by a sync of the file system alone.
#[test]
fn links_are_there_after_a_loss_of_power_of_a_file_system_without_a_journal() {
    let Some(images) = fs(FsKind::Xfs) else { return };
    for options in ["-r", "-a"] {
        let dir = images.join(options);
        create_dir(&dir).expect("created");
        let mkfs = "mkfs.ext4 -q -F -O ^has_journal";
        let Some(disk) = Image::new(mkfs, LOOP, 100, &dir) else { return };
        for number in 0..40 {
            fixture::add(&format!("src/{number}->target"), &dir);
        }
        copy(&dir, &format!("--durable {options} src {}", disk.join("dst").display()));
        disk.lose_power();
        let found = disk.join("dst").read_dir().expect("listed").count();
        assert_eq!(found, 40, "{options}");
    }
}

/// Else the tests above would prove nothing.
#[test]
fn without_the_option_a_loss_of_power_shows() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        // The kernel may write everything by chance.
        let lost = (0..5).any(|_| crash(kind, 40, &["-aT"]).is_none_or(|lost| !lost.is_empty()));
        assert!(lost, "{kind}");
    }
}

#[test]
fn the_name_of_a_new_directory_is_synced_if_it_ends_in_a_slash() {
    let dir = dir_with("src/a=data");
    let Some(output) = strace(&dir, "-y -e trace=fsync", "-r --durable src new/") else { return };
    check_success(&output, "new/");
    let trace = std::fs::read_to_string(dir.path().join("trace")).expect("read");
    let parent = dir.path().canonicalize().expect("resolved");
    let synced = lines_with(&trace, &format!("<{}>)", parent.display()));
    assert!(
        synced.iter().any(|&at| trace.lines().nth(at).is_some_and(|line| line.ends_with("= 0")))
    );
}

/// The lines of the trace that have `text`.
fn lines_with(trace: &str, text: &str) -> Vec<usize> {
    let lines = trace.lines().enumerate().filter(|(_, line)| line.contains(text));
    lines.map(|(number, _)| number).collect()
}

/// Copies to a new name and over an old file in `dir`, with `options`. Hands each trace to `check`, with the
/// line that gives the name.
fn each_naming(dir: &Path, options: &str, check: impl Fn(&str, usize, &str)) {
    for dst in ["old", "new"] {
        fixture::add("a=new; old=of\\sanother\\slength", dir);
        let _ = std::fs::remove_file(dir.join("new"));
        let Some(output) = strace(dir, "", &format!("{options} a {dst}")) else { return };
        check_success(&output, dst);
        let trace = std::fs::read_to_string(dir.join("trace")).expect("read");
        let named = format!("\"{dst}\"");
        let gives_name = |line: &str| {
            line.contains(&named) && (line.contains("rename") || line.contains("linkat("))
        };
        let named = trace.lines().position(gives_name).unwrap_or_else(|| panic!("{dst}: {trace}"));
        check(dst, named, &trace);
    }
}

/// FAT writes the length of a file with its name only after that, and btrfs records in its log which name has
/// the data.
#[test]
fn a_file_is_synced_after_it_has_got_its_name_and_its_directory_too() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        let Some(scratch) = fs(kind) else { continue };
        for option in ["--atomic", "--resume"] {
            each_naming(scratch.path(), &format!("--durable {option}"), |dst, named, trace| {
                let after = trace.lines().skip(named);
                let synced = |line: &&str| line.contains(" fsync(") && line.ends_with("= 0");
                assert_eq!(after.filter(synced).count(), 2, "{kind} {option} {dst}: {trace}");
            });
        }
    }
}

/// Without `--durable` too: the old file must not be replaced by one that may be empty after a loss of
/// power.
#[test]
fn data_is_written_before_a_file_gets_its_name() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        let Some(scratch) = fs(kind) else { continue };
        each_naming(scratch.path(), "--atomic", |dst, named, trace| {
            let is_btrfs = kind == FsKind::Btrfs;
            let call = if is_btrfs { " fsync(" } else { "|SYNC_FILE_RANGE_WAIT_AFTER" };
            let written = lines_with(trace, call);
            assert!(written.iter().any(|&line| line < named), "{kind} {dst}: {trace}");
            // The log of btrfs has no data of a file without a name.
            let temporary = lines_with(trace, "haulage-new\", AT_SYMLINK_FOLLOW");
            let is_named_first = temporary.iter().any(|&line| line < written[0]);
            assert!(!is_btrfs || is_named_first, "{kind} {dst}: {trace}");
        });
    }
}

/// By then it has its name. The receipt waits for the sync.
#[test]
fn a_file_that_cannot_be_synced_under_its_name_is_named_in_message_and_receipt() {
    for kind in [FsKind::Ext4, FsKind::Xfs] {
        let Some(scratch) = fs(kind) else { continue };
        fixture::add("a=new", scratch.path());
        let (fault, line) = ("fsync:error=EIO:when=1", "--durable --atomic --receipt=r a b");
        let Some(output) = with_faults(scratch.path(), fault, line) else { return };
        check(&output, 1, "cp: error syncing 'b': Input/output error\n", kind);
        check_content(scratch.join("b"), "new", kind);
        let receipt = std::fs::read_to_string(scratch.join("r")).expect("read");
        assert!(receipt.contains("error syncing"), "{kind}: {receipt}");
    }
}

#[test]
fn what_cannot_be_synced_is_named() {
    let dir = dir_with("a=new; s/1=new; s/2=new");
    for (line, number, name) in [
        ("--durable a b", 1, "b"),
        // The third is that of the directory, which was open for search only.
        ("--durable a b", 3, "."),
        // The directory comes after its files.
        ("--durable --jobs=1 -r s t", 3, "t"),
    ] {
        let fault = format!("fsync:error=EIO:when={number}");
        let Some(output) = with_faults(&dir, &fault, line) else { return };
        check(&output, 1, &format!("cp: error syncing '{name}': Input/output error\n"), line);
    }
}

#[test]
fn a_file_that_cannot_be_written_does_not_get_its_name() {
    for (kind, call) in [
        (FsKind::Ext4, "sync_file_range"),
        (FsKind::Xfs, "sync_file_range"),
        (FsKind::Btrfs, "fsync"),
    ] {
        let Some(scratch) = fs(kind) else { continue };
        fixture::add("a=new; old=old", scratch.path());
        let fault = format!("{call}:error=EIO:when=1");
        for (option, dst) in [("--durable", "old"), ("--durable", "new"), ("--no-clobber", "new")] {
            let line = format!("{option} --atomic a {dst}");
            let Some(output) = with_faults(scratch.path(), &fault, &line) else { return };
            let due = format!("cp: error syncing '{dst}': Input/output error\n");
            check(&output, 1, &due, format_args!("{kind} {line}"));
        }
        check_content(scratch.join("old"), "old", kind);
        assert_eq!(testfs::names_in(scratch.path()), ["a", "old", "trace"], "{kind}");
    }
}

/// Several workers sync what they have written when it has become many, and at the end. All operands are named
/// in their order, and the directory last.
#[test]
fn what_cannot_be_synced_is_named_in_the_order_of_the_operands() {
    let dir = tempfile::tempdir().expect("created");
    let names: Vec<String> = (0..400).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| fixture::add(&format!("{name}=new"), &dir));
    let line = format!("--durable --stats --jobs=4 -t t {}", names.join(" "));
    let words = |name: &str| format!("cp: error syncing '{name}': Input/output error");
    let of_files = names.iter().map(|name| words(&format!("t/{name}")));
    let due: Vec<String> = of_files.chain([words("t")]).collect();
    for faults in [
        // Files are asked for their errors after syncfs(2).
        "sync_file_range:error=EIO fsync:error=EIO",
        // After an error of the file system each file is synced.
        "syncfs:error=EIO fsync:error=EIO",
    ] {
        let _ = std::fs::remove_dir_all(dir.path().join("t"));
        fixture::add("t/", &dir);
        let Some(output) = with_faults(&dir, faults, &line) else { return };
        let said = stderr(&output);
        let (complaints, summary): (Vec<&str>, Vec<&str>) =
            said.lines().partition(|line| line.contains("syncing"));
        assert_eq!(complaints, due, "{faults}");
        assert!(!summary.is_empty() && said.ends_with(&(summary.join("\n") + "\n")), "{said}");
        assert_eq!(output.status.code(), Some(1), "{faults}");
    }
}

/// A disk that has no room for what the file system on it was promised, as thin storage may.
#[test]
fn a_file_whose_writeback_failed_is_named() {
    let Some(scratch) = fs(FsKind::Tmpfs) else { return };
    let small = "mount -t tmpfs -o size=60m";
    let Some(small) = Image::new("true", small, 0, scratch.path()) else { return };
    let Some(disk) = Image::new("mkfs.ext4 -q -F", LOOP, 400, &small.mounted) else { return };
    for number in 0..120 {
        fixture::add(&format!("src/f{number}#1M:{number}"), scratch.path());
    }
    let line = format!("-r --durable src {}", disk.join("t").display());
    let output = cp(scratch.path(), &line);
    check_failed(&output, "cp: error syncing '", "");
    let said = stderr(&output);
    // 60 MiB have room for at most 60 of the 120. Where the space ends, the loop device writes a part of a
    // request, and ends it without an error (lo_complete_rq() in drivers/block/loop.c): the kernel knows
    // of no error of these few files.
    // Once a sync has failed, the file system may take nothing more.
    let is_named = |number: &u64| said.contains(&format!("/t/f{number}'"));
    let named = (0..120).filter(is_named).count();
    assert!(named >= 60 - 4, "{named}: {said}");
}

/// ext4 returns an error of the allocation of blocks to the call that starts the writeback, and to
/// none after it.
#[test]
fn a_file_whose_blocks_cannot_be_allocated_is_named() {
    let Some(scratch) = fs(FsKind::Tmpfs) else { return };
    for (files, bytes) in [(200, 20_000), (1, 2 << 20)] {
        let dir = scratch.join(files.to_string());
        create_dir(&dir).expect("created");
        // One group of blocks, so that there is no other one to go on with.
        let mkfs = "mkfs.ext4 -q -F -b 4096";
        let Some(disk) = Image::new(mkfs, LOOP, 100, &dir) else { return };
        create_dir(disk.join("t")).expect("created");
        done(Command::new("umount").arg(&disk.mounted)).expect("unmounted");
        if let Err(why) = damage_block_bitmaps(&disk.image) {
            return skip(&test_name(), &why);
        }
        let options = ["-o", "loop,errors=continue"];
        done(Command::new("mount").args(options).args([&disk.image, &disk.mounted]))
            .expect("mounted");
        for number in 0..files {
            fixture::add(&format!("src/f{number}#{bytes}:{number}"), &dir);
        }
        let line = format!("-r --durable src/. {}", disk.join("t").display());
        check_failed(&cp(&dir, &line), "/t/./f", files);
    }
}

/// Overwrites the block bitmaps of an ext4 image, whose blocks are of 4096 bytes, by other bytes.
fn damage_block_bitmaps(image: &Path) -> Result<(), String> {
    let script = r#"set -o pipefail
        dumpe2fs "$0" | sed -n 's/.*Block bitmap at \([0-9]*\).*/\1/p' | while read -r block; do
            dd if=/dev/urandom of="$0" bs=4096 seek="$block" count=1 conv=notrunc
        done"#;
    done(Command::new("bash").args(["-c", script]).arg(image))
}
