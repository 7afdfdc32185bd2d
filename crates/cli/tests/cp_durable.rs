//! `cp --durable`: what was copied is on the medium when the copy ends well.

use std::fs::{File, create_dir, read, write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testfs::{
    Aspects, FsKind, Scratch, fs, is_root, random_bytes, skip, test_name, tree_differences,
};

use crate::{HAULAGE, strace, with_faults};

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(format!("{command:?}: {said}"))
}

/// A file system of its own in an image, which can be looked at as it would be after a loss of power.
struct Crashable {
    image: PathBuf,
    mounted: PathBuf,
}

impl Crashable {
    /// Makes an image of `kind` in `dir` and mounts it.
    fn new(kind: FsKind, dir: &Path) -> Result<Crashable, String> {
        Crashable::made_with(kind, 400 << 20, &[], dir)
    }

    /// Makes an image of this length in `dir`, with these options of mkfs, and mounts it.
    fn made_with(
        kind: FsKind,
        bytes: u64,
        options: &[&str],
        dir: &Path,
    ) -> Result<Crashable, String> {
        let image = dir.join("image");
        let file = File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(bytes).map_err(|error| error.to_string())?;
        let force = if kind == FsKind::Ext4 { "-F" } else { "-f" };
        done(Command::new(format!("mkfs.{kind}")).args(["-q", force]).args(options).arg(&image))?;
        let mounted = dir.join("mounted");
        create_dir(&mounted).map_err(|error| error.to_string())?;
        done(Command::new("mount").args(["-o", "loop"]).args([&image, &mounted]))?;
        Ok(Crashable { image, mounted })
    }

    fn join(&self, name: &str) -> PathBuf {
        self.mounted.join(name)
    }

    /// What is on the medium at this instant, mounted in place of what the kernel has in memory.
    fn lose_power(&self) {
        let then = self.image.with_extension("then");
        // A clone is of one instant. While an image is copied, the kernel may write to it.
        let (now, clone) = (File::open(&self.image), File::create(&then));
        rustix::fs::ioctl_ficlone(clone.expect("a file"), now.expect("the image"))
            .expect("a clone of the image");
        // Two with one identity cannot be mounted at once.
        done(Command::new("umount").arg(&self.mounted)).expect("unmounted");
        let command = &mut Command::new("mount");
        done(command.args(["-o", "loop"]).args([&then, &self.mounted])).expect("mounted again");
    }
}

impl Drop for Crashable {
    fn drop(&mut self) {
        let unmounted = done(Command::new("umount").arg(&self.mounted));
        if let Err(error) = unmounted {
            eprintln!("{error}");
        }
    }
}

/// A tree with small and large files, links, and `twigs` deep directories.
fn make_tree(root: &Path, twigs: u64) {
    create_dir(root).expect("created");
    for number in 0..twigs {
        let dir = root.join(format!("d{number}/e"));
        std::fs::create_dir_all(&dir).expect("created");
        for size in [0, 1, 5000] {
            write(dir.join(size.to_string()), random_bytes(size, number)).expect("written");
        }
        symlink("5000", dir.join("link")).expect("linked");
    }
    write(root.join("large"), random_bytes(20 << 20, 99)).expect("written");
    std::fs::hard_link(root.join("large"), root.join("again")).expect("linked");
}

/// A file system of its own, in an image on xfs, which can clone it; `None` after a skip that said so.
fn crashable(kind: FsKind) -> Option<(Scratch, Crashable)> {
    let images = fs(FsKind::Xfs)?;
    if !is_root() {
        skip(&test_name(), "to mount an image needs root");
        return None;
    }
    match Crashable::new(kind, images.path()) {
        Ok(disk) => Some((images, disk)),
        Err(why) => {
            skip(&test_name(), &why);
            None
        }
    }
}

/// How what `lines` made of a tree differs from it after a loss of power; `None` after a skip that
/// said so.
fn crash(kind: FsKind, twigs: u64, lines: &[&str]) -> Option<Vec<String>> {
    let scratch = fs(FsKind::Tmpfs)?;
    let (_images, disk) = crashable(kind)?;
    let src = scratch.join("src");
    make_tree(&src, twigs);
    create_dir(disk.join("old")).expect("created");
    write(disk.join("old/large"), random_bytes(1 << 20, 98)).expect("written");
    // Only what the copy does is in question.
    rustix::fs::syncfs(File::open(disk.join("old")).expect("opened")).expect("synced");
    for line in lines {
        let mut command = testfs::command(HAULAGE);
        command.arg("cp").args(line.split(' ')).arg(&src).arg(disk.join("old"));
        done(&mut command).expect("copied");
    }
    disk.lose_power();
    let aspects = Aspects { xattrs: false, ..Aspects::ALL };
    Some(match tree_differences(&src, &disk.join("old"), aspects) {
        Ok(differences) => differences,
        Err(error) => vec![error.to_string()],
    })
}

#[test]
fn after_a_loss_of_power_all_is_there() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        for line in ["--durable -aT", "--durable --atomic -aT", "--durable --jobs=1 -aT"] {
            let Some(differences) = crash(kind, 40, &[line]) else { return };
            assert_eq!(differences, [""; 0], "{kind} {line}");
        }
    }
}

/// An earlier run may have had other options, or have been killed before it synced. The few directories are
/// synced one by one.
#[test]
fn what_stays_is_there_after_a_loss_of_power_too() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        for line in ["--durable -auT", "--durable --resume -aT", "--durable -anT"] {
            let Some(differences) = crash(kind, 2, &["-aT", line]) else { return };
            assert_eq!(differences, [""; 0], "{kind} {line}");
        }
    }
}

/// A new file has no blocks yet where it gets another name, or becomes a backup.
#[test]
fn what_is_linked_or_backed_up_is_there_after_a_loss_of_power() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        for (line, name) in [("-l a b", "b"), ("-b other a", "a~"), ("-b --atomic other a", "a~")] {
            let Some((_images, disk)) = crashable(kind) else { return };
            write(disk.join("a"), "content").expect("written");
            write(disk.join("other"), "other content").expect("written");
            let mut command = testfs::command(HAULAGE);
            command.args(["cp", "--durable"]).args(line.split(' ')).current_dir(&disk.mounted);
            done(&mut command).expect("copied");
            disk.lose_power();
            let kept = read(disk.join(name)).ok();
            assert_eq!(kept.as_deref(), Some(&b"content"[..]), "{kind} {line}");
        }
    }
}

/// Else the tests above would prove nothing.
/// Without a journal the name of a symbolic link reaches the medium by a sync of the file system alone.
#[test]
fn links_are_there_after_a_loss_of_power_of_a_file_system_without_a_journal() {
    let Some(images) = fs(FsKind::Xfs) else { return };
    if !is_root() {
        return skip(&test_name(), "to mount an image needs root");
    }
    for options in ["-r", "-a"] {
        let dir = images.join(options);
        create_dir(&dir).expect("created");
        let mkfs = &["-O", "^has_journal"];
        let disk = match Crashable::made_with(FsKind::Ext4, 100 << 20, mkfs, &dir) {
            Ok(disk) => disk,
            Err(why) => return skip(&test_name(), &why),
        };
        let src = dir.join("src");
        create_dir(&src).expect("created");
        for number in 0..40 {
            symlink("target", src.join(number.to_string())).expect("linked");
        }
        let mut command = testfs::command(HAULAGE);
        command.args(["cp", "--durable", options]).arg(&src).arg(disk.join("dst"));
        done(&mut command).expect("copied");
        disk.lose_power();
        let found = disk.join("dst").read_dir().expect("listed").count();
        assert_eq!(found, 40, "{options}");
    }
}

#[test]
fn without_the_option_a_loss_of_power_shows() {
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        // The kernel may write everything by chance.
        let lost = (0..5).any(|_| crash(kind, 40, &["-aT"]).is_none_or(|lost| !lost.is_empty()));
        assert!(lost, "{kind}");
    }
}

/// The lines of the trace that have `text`.
fn lines_with(trace: &str, text: &str) -> Vec<usize> {
    let lines = trace.lines().enumerate().filter(|(_, line)| line.contains(text));
    lines.map(|(number, _)| number).collect()
}

/// Copies to a new name and over an old file in `dir`, with `options`. Hands each trace to `check`, with the
/// line that gives the name.
fn each_naming(dir: &Path, options: &[&str], check: impl Fn(&str, usize, &str)) {
    write(dir.join("a"), "new").expect("written");
    for dst in ["old", "new"] {
        write(dir.join("old"), "of another length").expect("written");
        let _ = std::fs::remove_file(dir.join("new"));
        let args = [options, &["a", dst]].concat();
        let Some(output) = strace(dir, &[""; 0], &args) else { return };
        assert!(output.status.success(), "{output:?}");
        let trace = std::fs::read_to_string(dir.join("trace")).expect("a trace");
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
            each_naming(scratch.path(), &["--durable", option], |dst, named, trace| {
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
        each_naming(scratch.path(), &["--atomic"], |dst, named, trace| {
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
        write(scratch.join("a"), "new").expect("written");
        let inject = ["inject=fsync:error=EIO:when=1"];
        let args = ["--durable", "--atomic", "--receipt=r", "a", "b"];
        let Some(output) = with_faults(scratch.path(), &inject, &args) else { return };
        let all = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(all, "cp: error syncing 'b': Input/output error\n", "{kind}");
        assert_eq!(output.status.code(), Some(1), "{kind}");
        assert_eq!(read(scratch.join("b")).expect("read"), b"new", "{kind}");
        let receipt = std::fs::read_to_string(scratch.join("r")).expect("a receipt");
        assert!(receipt.contains("error syncing"), "{kind}: {receipt}");
    }
}

#[test]
fn what_cannot_be_synced_is_named() {
    let dir = tempfile::tempdir().expect("created");
    let words = |name: &str| format!("cp: error syncing '{name}': Input/output error\n");
    create_dir(dir.path().join("s")).expect("created");
    for name in ["a", "s/1", "s/2"] {
        write(dir.path().join(name), "new").expect("written");
    }
    write(dir.path().join("old"), "old").expect("written");
    for (args, number, said) in [
        (&["--durable", "a", "b"][..], 1, words("b")),
        // The third is that of the directory, which was open for search only.
        (&["--durable", "a", "b"], 3, words(".")),
        // The directory comes after its files.
        (&["--durable", "--jobs=1", "-r", "s", "t"], 3, words("t")),
    ] {
        let inject = format!("inject=fsync:error=EIO:when={number}");
        let Some(output) = with_faults(dir.path(), &[&inject], args) else { return };
        let all = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(all, said, "{args:?}");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
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
        write(scratch.join("a"), "new").expect("written");
        write(scratch.join("old"), "old").expect("written");
        let inject = format!("inject={call}:error=EIO:when=1");
        for (option, dst) in [("--durable", "old"), ("--durable", "new"), ("--no-clobber", "new")] {
            let args = [option, "--atomic", "a", dst];
            let Some(output) = with_faults(scratch.path(), &[&inject], &args) else { return };
            let all = String::from_utf8_lossy(&output.stderr).into_owned();
            let due = format!("cp: error syncing '{dst}': Input/output error\n");
            assert_eq!(all, due, "{kind} {option}");
            assert_eq!(output.status.code(), Some(1), "{kind} {option}");
        }
        assert_eq!(read(scratch.join("old")).expect("old"), b"old", "{kind}");
        assert_eq!(testfs::names_in(scratch.path()), ["a", "old", "trace"], "{kind}");
    }
}

/// Several workers sync what they have written when it has become many, and at the end.
#[test]
fn what_cannot_be_synced_is_named_in_the_order_of_the_operands() {
    let dir = tempfile::tempdir().expect("created");
    let names: Vec<String> = (0..400).map(|number| format!("f{number}")).collect();
    for name in &names {
        write(dir.path().join(name), "new").expect("written");
    }
    let mut args = vec!["--durable", "--stats", "--jobs=4", "-t", "t"];
    args.extend(names.iter().map(String::as_str));
    for inject in [
        // Files are asked for their errors after syncfs(2).
        &["inject=sync_file_range:error=EIO", "inject=fsync:error=EIO"][..],
        // After an error of the file system each file is synced.
        &["inject=syncfs:error=EIO", "inject=fsync:error=EIO"],
    ] {
        let _ = std::fs::remove_dir_all(dir.path().join("t"));
        create_dir(dir.path().join("t")).expect("created");
        let Some(output) = with_faults(dir.path(), inject, &args) else { return };
        check_names(&output, &names);
    }
}

/// Whether all of the 400 operands are named in their order, and the directory last.
fn check_names(output: &Output, names: &[String]) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let words = |name: &str| format!("cp: error syncing '{name}': Input/output error");
    let of_files = names.iter().map(|name| words(&format!("t/{name}")));
    let due: Vec<String> = of_files.chain([words("t")]).collect();
    let (complaints, summary): (Vec<&str>, Vec<&str>) =
        said.lines().partition(|line| line.contains("syncing"));
    assert_eq!(complaints, due);
    assert!(!summary.is_empty() && said.ends_with(&(summary.join("\n") + "\n")), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

/// A disk that has no room for what the file system on it was promised, as thin storage may.
#[test]
fn a_file_whose_writeback_failed_is_named() {
    let Some(scratch) = fs(FsKind::Tmpfs) else { return };
    if !is_root() {
        return skip(&test_name(), "to mount an image needs root");
    }
    let small = scratch.join("small");
    create_dir(&small).expect("created");
    let size = ["-t", "tmpfs", "-o", "size=60m", "tmpfs"];
    done(Command::new("mount").args(size).arg(&small)).expect("mounted");
    let unmount = UnmountOnDrop(small.clone());
    let disk = match Crashable::new(FsKind::Ext4, &small) {
        Ok(disk) => disk,
        Err(why) => return skip(&test_name(), &why),
    };
    let src = scratch.join("src");
    create_dir(&src).expect("created");
    for number in 0..120 {
        write(src.join(format!("f{number}")), random_bytes(1 << 20, number)).expect("written");
    }
    let mut command = testfs::command(HAULAGE);
    let output = command.args(["cp", "-r", "--durable"]).arg(&src).arg(disk.join("t")).output();
    let output = output.expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    // 60 MiB have room for at most 60 of the 120. Where the space ends, the loop device writes a part of a
    // request, and ends it without an error (lo_complete_rq() in drivers/block/loop.c): the kernel knows
    // of no error of these few files.
    // Once a sync has failed, the file system may take nothing more.
    let is_named = |number: &u64| said.contains(&format!("/t/f{number}'"));
    let named = (0..120).filter(is_named).count();
    assert!(named >= 60 - 4, "{named}: {said}");
    assert!(said.contains("cp: error syncing '"), "{said}");
    drop(disk);
    drop(unmount);
}

/// ext4 returns an error of the allocation of blocks to the call that starts the writeback, and to
/// none after it.
#[test]
fn a_file_whose_blocks_cannot_be_allocated_is_named() {
    let Some(scratch) = fs(FsKind::Tmpfs) else { return };
    if !is_root() {
        return skip(&test_name(), "to mount an image needs root");
    }
    for (files, bytes) in [(200, 20_000), (1, 2 << 20)] {
        let dir = scratch.join(files.to_string());
        create_dir(&dir).expect("created");
        // One group of blocks, so that there is no other one to go on with.
        let made = Crashable::made_with(FsKind::Ext4, 100 << 20, &["-b", "4096"], &dir);
        let disk = match made {
            Ok(disk) => disk,
            Err(why) => return skip(&test_name(), &why),
        };
        create_dir(disk.join("t")).expect("created");
        done(Command::new("umount").arg(&disk.mounted)).expect("unmounted");
        if let Err(why) = damage_block_bitmaps(&disk.image) {
            return skip(&test_name(), &why);
        }
        let options = ["-o", "loop,errors=continue"];
        done(Command::new("mount").args(options).args([&disk.image, &disk.mounted]))
            .expect("mounted");
        let src = dir.join("src");
        create_dir(&src).expect("created");
        for number in 0..files {
            write(src.join(format!("f{number}")), random_bytes(bytes, number)).expect("written");
        }
        let mut command = testfs::command(HAULAGE);
        let output =
            command.args(["cp", "-r", "--durable"]).arg(src.join(".")).arg(disk.join("t")).output();
        let output = output.expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{files}: {said}");
        assert!(said.contains("/t/./f"), "{files}: {said}");
    }
}

/// Overwrites the block bitmaps of an ext4 image by other bytes.
fn damage_block_bitmaps(image: &Path) -> Result<(), String> {
    let output = Command::new("dumpe2fs").arg(image).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |line: &str| line.split_whitespace().next()?.parse::<u64>().ok();
    let block_bytes = text.lines().find_map(|line| number(line.strip_prefix("Block size:")?));
    let block_bytes = block_bytes.ok_or("dumpe2fs tells no block size")?;
    let bitmaps =
        text.lines().filter_map(|line| number(line.trim().strip_prefix("Block bitmap at ")?));
    let file = std::fs::OpenOptions::new().write(true).open(image).map_err(|e| e.to_string())?;
    for block in bitmaps {
        let other = random_bytes(usize::try_from(block_bytes).expect("a block"), block);
        std::os::unix::fs::FileExt::write_all_at(&file, &other, block * block_bytes)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

struct UnmountOnDrop(PathBuf);

impl Drop for UnmountOnDrop {
    fn drop(&mut self) {
        let _ = done(Command::new("umount").arg("-l").arg(&self.0));
    }
}
