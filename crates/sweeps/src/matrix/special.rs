//! Cases of the matrix that are more than one copy.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime};

use testfs::{Aspects, Tree, random_bytes};

use super::cell::{
    Cell, Copied, Ends, LARGE_BYTES, MOUNT, PATIENCE, SERVER, copy, cp, ours, shell,
};
use crate::sweep::copies::remove;
use crate::sweep::process::{self, Ended};

/// All cases with a file system as the destination.
pub(super) fn to(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    kills(cell, ends)?;
    resumption(cell, ends)?;
    letter_case(cell, ends)?;
    full(cell, ends)?;
    read_only(cell, ends)?;
    huge(cell, ends)
}

/// The names with an incomplete file.
fn torn(source: &Tree, copy: &Tree) -> Vec<String> {
    let torn = source.paths().flat_map(|path| source.differences_at(copy, path, Aspects::CONTENT));
    torn.map(|line| format!("incomplete: {line}")).collect()
}

/// A second copy with `-u` copies no more than that of GNU cp, and what was changed in between.
pub(super) fn second_copies(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let [src, gnu, _] = ends.paths("again");
    for (known, sets) in [("-au", "-au/-a --resume/-au --atomic --durable"), ("-rpu", "-rpu")] {
        [&src, &gnu].into_iter().try_for_each(|path| remove(path))?;
        cp("cp", "-a", &ends.src.join("plain"), &src)?;
        // The client of NFS 4.2 in 7.2 may stamp what was written with the time of an unmount.
        cell.remount()?;
        cp("cp", known, &src, &gnu)?;
        for (number, options) in sets.split('/').enumerate() {
            let at = ours(&ends.dst, number);
            remove(&at)?;
            cp("haulage cp", options, &src, &at)?;
        }
        // That may happen to the copies of GNU cp too, which then passes the file over, as it does while the client of SMB
        // shows the old time.
        cell.remount()?;
        std::fs::write(src.join("dir/x"), "changed")?;
        cell.remount()?;
        let theirs = cp("cp", &format!("{known} -v"), &src, &gnu)?;
        let copied = |ended: &Ended, dst: &Path| -> BTreeSet<String> {
            let printed = ended.stdout.replace(&dst.display().to_string(), "");
            printed.lines().map(str::to_owned).collect()
        };
        let once = copied(&theirs, &gnu);
        let mut copies = Vec::new();
        for (number, options) in sets.split('/').enumerate() {
            let at = ours(&ends.dst, number);
            let ended = cp("haulage cp", &format!("{options} -v"), &src, &at)?;
            let again = copied(&ended, &at);
            // Directories are named for more than one reason.
            let is_file = |line: &&String| !line.contains("/dir'") && !line.ends_with("''");
            let more = again.difference(&once).filter(is_file);
            let found = more.map(|line| format!("copied again: {line}")).collect();
            copies.push(Copied { at, options, what: format!("{options} twice"), ended, found });
        }
        cell.judge(ends, [&src, &gnu], &theirs, copies)?;
    }
    Ok(())
}

/// After three kills at random moments no name has another content, and the next run ends as if there had been none.
fn kills(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let [src, gnu, _] = ends.paths("plain");
    remove(&gnu)?;
    let theirs = cp("cp", "-a", &src, &gnu)?;
    let source = Tree::read(&src)?;
    let (mut random, mut copies) = (fastrand::Rng::with_seed(1), Vec::new());
    for (number, options) in ["-a --resume", "-a --atomic"].into_iter().enumerate() {
        let at = ours(&ends.dst, number);
        remove(&at)?;
        let started = Instant::now();
        cp("haulage cp", options, &src, &at)?;
        let (took, mut found) = (started.elapsed(), Vec::new());
        remove(&at)?;
        for _ in 0..3 {
            let mut command = copy("haulage cp", options, &src, &at);
            process::run(&mut command, took.mul_f64(random.f64()))?;
            found.extend(Tree::read(&at).into_iter().flat_map(|copy| torn(&source, &copy)));
        }
        let ended = cp("haulage cp", options, &src, &at)?;
        copies.push(Copied { at, options, what: format!("{options} after kills"), ended, found });
    }
    cell.judge(ends, [&src, &gnu], &theirs, copies)
}

/// `--resume` continues a file of which a killed run has copied a part.
fn resumption(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let (src, dir) = (ends.src.join("plain/large"), ends.dst.join("resumed"));
    std::fs::create_dir_all(&dir)?;
    // A server that takes root for nobody keeps no owner.
    let options = "-r --resume --no-preserve=ownership --receipt=/m/receipt";
    let slowly = format!("{options} --limit-rate=3M");
    let mut command = copy("haulage cp", &slowly, &src, &dir.join("large"));
    let (mut child, mut copied) = (command.stderr(Stdio::null()).spawn()?, 0);
    while copied < LARGE_BYTES as u64 / 2 && child.try_wait()?.is_none() {
        for entry in std::fs::read_dir(&dir)? {
            // A name may be gone again.
            copied = copied.max(entry?.metadata().map_or(0, |entry| entry.len()));
        }
    }
    child.kill()?;
    child.wait()?;
    let ended = cp("haulage cp", options, &src, &dir.join("large"))?;
    let receipt = std::fs::read_to_string("/m/receipt").unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_str(receipt.lines().last().unwrap_or("{}"))?;
    let mut found = Vec::from_iter(ended.unless(0));
    let differs = std::fs::read(dir.join("large"))? != std::fs::read(&src)?;
    found.extend(differs.then(|| "other content".to_owned()));
    if summary["data_bytes"].as_u64().is_none_or(|bytes| bytes >= LARGE_BYTES as u64) {
        found.push(format!("copied from the beginning, though {copied} bytes were there"));
    }
    let names = testfs::names_in(&dir);
    found.extend((names != ["large"]).then(|| format!("left over: {names:?}")));
    cell.report(ends, "--resume continues", found);
    Ok(())
}

/// Where two names that differ in case, also of directories, or in a dot at the end, are one, no copy loses a file; nor
/// onto its own name on the server, which a client with a lease does not ask. Each case has a directory of its own: a
/// server of SMB may keep a removed name for a while.
fn letter_case(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let mut count = 0;
    let mut fresh = || {
        count += 1;
        let dir = ends.dst.join(format!("letter-case-{count}"));
        std::fs::create_dir_all(&dir).map(|()| dir)
    };
    let names = |dir: PathBuf| -> std::io::Result<[PathBuf; 4]> {
        let other = PathBuf::from(dir.to_string_lossy().replace("letter-case", "Letter-Case"));
        let server = PathBuf::from(dir.to_string_lossy().replace(MOUNT, SERVER));
        let names = [dir.join("Name"), dir.join("name"), other.join("Name"), server.join("Name")];
        std::fs::write(&names[0], "content")?;
        // A server has the contents, and the same time, from then on.
        File::options().append(true).open(&names[0])?.set_modified(SystemTime::UNIX_EPOCH)?;
        Ok(names)
    };
    if !names(fresh()?)?[1].exists() {
        return Ok(());
    }
    let sets = "--remove-destination/-a/-f/-b/--backup=numbered/-l/-af --remove-destination";
    for options in sets.split('/') {
        let [upper, lower, ..] = names(fresh()?)?;
        let gnu = cp("cp", options, &upper, &lower)?;
        for (own, at) in [("", 1), (" --atomic", 1), (" --resume", 1), ("", 2), ("", 3)] {
            // With a backup the other name has the file, and this one its copy.
            if at == 3 && (!cell.system.role.has_server() || options.contains('b')) {
                continue;
            }
            let ours = format!("{options}{own}");
            let names = names(fresh()?)?;
            let ended = cp("haulage cp", &ours, &names[0], &names[at])?;
            let kept = &names[if at == 3 { 3 } else { 0 }];
            let is_gone = std::fs::read(kept).ok().as_deref() != Some(b"content");
            let mut found = Vec::from_iter(is_gone.then(|| "the source is gone".to_owned()));
            let is_worse = gnu.code() != 0 && ended.code() == 0;
            found.extend(is_worse.then(|| format!("exit status 0, {} of GNU cp", gnu.code())));
            let other = ["", "name", "DIR/Name", "SERVER/Name"][at];
            cell.report(ends, &format!("{ours} Name {other}"), found);
        }
    }
    let src = ends.src.join("letter-case");
    for name in ["1/File", "2/file", "1/7.", "2/7"] {
        std::fs::create_dir_all(src.join(name).parent().expect("it has one"))?;
        std::fs::write(src.join(name), name)?;
    }
    for own in ["-a", "-au", "--atomic", "-a --resume", "-f"] {
        for names in ["1/File 2/file", "1/7. 2/7"] {
            let (dir, mut found) = (fresh()?, Vec::new());
            // In the second run the copy of the first may be up to date.
            for _ in 0..2 {
                let mut command = Command::new("haulage");
                command.arg("cp").args(own.split(' ')).args(names.split(' ')).arg(&dir);
                let ended = process::run(command.current_dir(&src), PATIENCE)?;
                let lost = ended.code() == 0 && testfs::names_in(&dir).len() < 2;
                found.extend(lost.then(|| "exit status 0, and one file is lost".to_owned()));
            }
            cell.report(ends, &format!("{own} {names} ."), found);
        }
    }
    Ok(())
}

/// Without space a copy says so, with `--atomic` and `--resume` no name has an incomplete file, and `--resume` ends well
/// once there is space.
fn full(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let [src, gnu, ours] = ends.paths("plain");
    [&gnu, &ours].into_iter().try_for_each(|path| remove(path))?;
    let theirs = cp("cp", "-a", &src, &gnu)?;
    let is_behind = cell.system.role.has_server() || cell.system.name.ends_with("-fuse");
    let used_up = Path::new(if is_behind { SERVER } else { MOUNT });
    let (filler, space) = (used_up.join("filler"), rustix::fs::statvfs(used_up)?);
    let bytes = (space.f_bavail * space.f_frsize).saturating_sub(3 << 20);
    let fill = format!("fallocate -l {bytes} $0 || head -c {bytes} /dev/zero >$0; sync -f $0");
    process::run(Command::new("sh").args(["-c", &fill]).arg(&filler), PATIENCE)?;
    let source = Tree::read(&src)?;
    for options in ["-a", "-a --atomic", "-a --resume"] {
        remove(&ours)?;
        let full = cp("haulage cp", options, &src, &ours)?;
        let copy = Tree::read(&ours).ok().filter(|_| options != "-a" || full.code() == 0);
        let mut found = copy.map_or_else(Vec::new, |copy| torn(&source, &copy));
        let is_silent = full.code() != 0 && full.stderr.is_empty();
        found.extend(is_silent.then(|| "no message".to_owned()));
        cell.report(ends, &format!("{options} onto a full disk"), found);
    }
    remove(&filler)?;
    let ended = cp("haulage cp", "-a --resume", &src, &ours)?;
    let what = "--resume after a full disk".to_owned();
    let last = Copied { at: ours, options: "-a", what, ended, found: Vec::new() };
    cell.judge(ends, [&src, &gnu], &theirs, vec![last])
}

/// Nothing changes on a read-only mount, and the copy says so.
fn read_only(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let (src, ours) = (ends.src.join("old"), ends.dst.join("ours"));
    let before = Tree::read(&ours)?;
    if shell(cell.system, "mount -o remount,ro $M").is_err() {
        return Ok(());
    }
    for options in ["-a", "-a --atomic", "-a --resume"] {
        let ended = cp("haulage cp", options, &src, &ours)?;
        let mut found = before.differences(&Tree::read(&ours)?, Aspects::ALL);
        found.extend(ended.unless(1));
        cell.report(ends, &format!("{options} onto a read-only mount"), found);
    }
    shell(cell.system, "mount -o remount,rw $M")
}

/// A sparse file of more than 4 GiB.
fn huge(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let [src, gnu, ours] = ends.paths("huge");
    [&gnu, &ours].into_iter().try_for_each(|path| remove(path))?;
    let (file, end) = (File::create(&src)?, (4 << 30) + 12345);
    for offset in [0, end] {
        file.write_all_at(&random_bytes(8192, offset), offset)?;
    }
    let theirs = cp("cp", "-a", &src, &gnu)?;
    let tail = |path: &Path| {
        let mut bytes = vec![0; 8192];
        File::open(path).and_then(|file| file.read_exact_at(&mut bytes, end)).map(|()| bytes)
    };
    let written = tail(&src)?;
    for options in ["-a", "-a --atomic", "-a --resume"] {
        remove(&ours)?;
        let huge = cp("haulage cp", options, &src, &ours)?;
        let is_lost = huge.code() == 0 && tail(&ours).ok().as_ref() != Some(&written);
        let mut found = Vec::from_iter(huge.unless(0).filter(|_| theirs.code() == 0));
        found.extend(is_lost.then(|| "exit status 0, and the end is lost".to_owned()));
        let own = testfs::names_in(&ends.dst).into_iter().find(|name| name.contains(".haulage-"));
        // A full disk may be less full when the command runs again; no run makes the file fit.
        if let Some(name) = own.filter(|_| !huge.stderr.contains("No space left")) {
            found.push(format!("left over: {name}"));
            remove(&ends.dst.join(name))?;
        }
        cell.report(ends, &format!("{options} of over 4 GiB"), found);
    }
    remove(&src)
}
