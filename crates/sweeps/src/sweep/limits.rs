//! Little of everything: memory, descriptors, processes, space, names of files, and an environment with parts
//! missing.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::fs::{Mode, OFlags};
use testfs::{Aspects, fixture, tree_differences};

use super::copies::{self, Copies, OptionSet};
use super::counts::Verdict;
use super::process::{self, Ended, PATIENCE, through};
use super::run::{Cell, Points, Run, Sweep};
use xtask::command::quietly;

pub(super) const SWEEP: Sweep = Sweep {
    name: "limits",
    about: "little memory, few descriptors, full disks, missing parts of the system, huge trees",
    settings,
    points: Points::Listed(points),
    attempt,
    repeats: 1,
};

/// How long a copy of a tree of a million names may take on a busy machine.
const LONG_PATIENCE: Duration = Duration::from_secs(1800);

/// An ordinary user that has no other process.
const USER: u32 = 61_234;

const MIB: u64 = 1 << 20;

/// One limit, with the values that are tried.
struct Scarcity {
    /// The name of the limit in the text of a case.
    name: &'static str,
    values: &'static [u64],
    /// Values that take minutes, for `--all`.
    long_values: &'static [u64],
    /// Kinds of file system that it applies to; none for all.
    kinds: &'static [&'static str],
    attempt: Attempt,
}

/// Copies with these options while the limit has this value.
type Attempt = fn(&mut Cell<'_>, &OptionSet<'_>, u64) -> anyhow::Result<Verdict>;

const fn scarcity(name: &'static str, values: &'static [u64], attempt: Attempt) -> Scarcity {
    Scarcity { name, values, long_values: &[], kinds: &[], attempt }
}

const SCARCITIES: &[Scarcity] = &[
    scarcity("RLIMIT_NOFILE", &from::<67>(10), |cell, set, value| {
        copy_by(cell, set, &format!("exec prlimit --nofile={value} \"$@\""), true)
    }),
    // From the least with which the program starts.
    scarcity("RLIMIT_AS, MiB over the start", &from::<64>(0), little_address_space),
    // With the signal of the limit ignored, the call fails. Otherwise the signal ends the process, as it
    // ends GNU cp.
    scarcity("RLIMIT_FSIZE", FILE_SIZES, |cell, set, value| {
        copy_by(cell, set, &format!("trap '' XFSZ; exec prlimit --fsize={value} \"$@\""), true)
    }),
    scarcity("RLIMIT_NPROC", &[1, 2, 3, 4, 5, 6, 8, 10], few_processes),
    // A bit each for standard input, output and error.
    scarcity("closed streams", &[1, 2, 3, 4, 5, 6, 7], |cell, set, value| {
        copy_by(cell, set, &closings(value), value & 4 == 0)
    }),
    scarcity("closed streams without /dev", &[1, 2, 3, 4, 5, 6, 7], |cell, set, value| {
        copy_by(cell, set, &without("/dev", &closings(value)), value & 4 == 0)
    }),
    scarcity("/dev/full", &[1, 2, 3], |cell, set, value| {
        let script = format!("exec \"$@\"{}", chosen(value, &[" > /dev/full", " 2> /dev/full"]));
        copy_by(cell, set, &script, value & 2 == 0)
    }),
    scarcity("no /proc", &[0], |cell, set, _| {
        copy_by(cell, set, &without("/proc", "exec \"$@\""), true)
    }),
    // The profile of the user is looked for, where there is no home or none that can be used.
    scarcity("HOME", &[0, 1, 2, 3, 4], |cell, set, value| {
        let homes =
            ["", "HOME=/nonexistent", "HOME=/dev/null", "HOME=/proc", "HOME='not absolute'"];
        let home = homes[usize::try_from(value)?];
        let unset = "-u HAULAGE_PROFILE -u HOME -u XDG_CONFIG_HOME -u XDG_STATE_HOME";
        copy_by(cell, set, &format!("exec env {unset} {home} \"$@\""), true)
    }),
    scarcity("free KiB", FREE_KIB, little_space),
    Scarcity { kinds: &["tmpfs"], ..scarcity("free inodes", &from::<26>(1), few_inodes) },
    Scarcity { long_values: &[5_000], ..scarcity("levels", &[50, 300, 1_000], deep_tree) },
    Scarcity {
        long_values: &[200_000, 1_000_000],
        ..scarcity("names", &[1_000, 20_000], many_names)
    },
    Scarcity { kinds: &["xfs", "btrfs"], ..scarcity("sparse TiB", &[1, 4, 8], large_sparse_file) },
];

/// Around the sizes of the files that are copied. Less would cut the messages, too.
const FILE_SIZES: &[u64] =
    &[4095, 4096, 4999, 5000, 70_000, 299_999, 300_000, MIB, 3 * MIB, 8 * MIB, 9 * MIB - 1];

const FREE_KIB: &[u64] =
    &[0, 4, 8, 16, 64, 128, 256, 384, 512, 1024, 2048, 4096, 8192, 9000, 9300, 9500, 9800, 10_240];

/// `N` numbers from `first` on.
const fn from<const N: usize>(first: u64) -> [u64; N] {
    let mut values = [first; N];
    let mut index = 1;
    while index < N {
        values[index] = values[index - 1] + 1;
        index += 1;
    }
    values
}

const OPTIONS: &[&str] = &[
    "-a",
    "-a --jobs=3",
    "-a --reflink=never --jobs=4",
    "-a --atomic --durable",
    "-a --resume",
    "-a --verify --no-cache",
    "-r -v",
];

/// Options, and after a `; ` the name of a limit.
fn settings(kind: &str) -> Vec<String> {
    let applies = |it: &&Scarcity| it.kinds.is_empty() || it.kinds.contains(&kind);
    let settings = SCARCITIES.iter().filter(applies).flat_map(|Scarcity { name, .. }| {
        // `--verify` reads holes of many TiB.
        let is_too_long = |options: &str| *name == "sparse TiB" && options.contains("--verify");
        let options = OPTIONS.iter().filter(move |options| !is_too_long(options));
        options.map(move |options| format!("{options}; {name}"))
    });
    settings.collect()
}

fn parsed(setting: &str) -> anyhow::Result<(OptionSet<'_>, &'static Scarcity)> {
    let (options, name) = setting.split_once("; ").context("options and a limit")?;
    let scarcity = SCARCITIES.iter().find(|known| known.name == name).context("a limit")?;
    Ok((OptionSet::new(options), scarcity))
}

/// The values of the limit.
fn points(cell: &mut Cell<'_>) -> anyhow::Result<Vec<String>> {
    let (_, Scarcity { values, long_values, .. }) = parsed(cell.setting)?;
    let long: &[u64] = if cell.run.settings.all { long_values } else { &[] };
    Ok(values.iter().chain(long).map(u64::to_string).collect())
}

fn attempt(cell: &mut Cell<'_>, point: &str) -> anyhow::Result<()> {
    let value = point.parse().with_context(|| format!("'{point}' is no value"))?;
    let (set, scarcity) = parsed(cell.setting)?;
    let verdict = (scarcity.attempt)(cell, &set, value)?;
    cell.record(point, scarcity.name, verdict);
    Ok(())
}

/// Copies by a script of the shell, in which `"$@"` is the command. `is_heard` tells whether standard error is there to
/// be written to.
fn copy_by(
    cell: &Cell<'_>,
    set: &OptionSet<'_>,
    script: &str,
    is_heard: bool,
) -> anyhow::Result<Verdict> {
    let copies = &cell.place.copies;
    copies.prepare(set)?;
    let cp = copies.command(cell.run.cp(), set);
    let ended = process::run(&mut through(&cp, "sh", &["-c", script, "sh"]), PATIENCE)?;
    judge(&ended, copies, set, is_heard)
}

/// A script that runs another one where an empty tmpfs hides `dir`.
fn without(dir: &str, script: &str) -> String {
    let script = shell_words::quote(&format!("mount -t tmpfs none {dir} && {script}")).into_owned();
    format!("exec unshare --mount --propagation private sh -c {script} sh \"$@\"")
}

/// A script in which the streams of the bits of `value` are closed.
fn closings(value: u64) -> String {
    format!("exec \"$@\"{}", chosen(value, &[" 0<&-", " 1>&-", " 2>&-"]))
}

/// The words at the bits of `value`.
fn chosen(value: u64, words: &[&str]) -> String {
    let chosen = words.iter().enumerate().filter(|(bit, _)| value >> bit & 1 == 1);
    chosen.map(|(_, words)| *words).collect()
}

/// Right, or loud, of a copy among `copies`.
fn judge(
    ended: &Ended,
    copies: &Copies,
    set: &OptionSet<'_>,
    is_heard: bool,
) -> anyhow::Result<Verdict> {
    let mut found = copies.damage()?;
    if ended.success() {
        found.extend(copies.differences(set, set.aspects())?);
    } else if is_heard {
        found.extend(unexplained(ended));
    }
    if ended.success() || set.has("--atomic") {
        found.extend(copies.leftovers()?);
    }
    Ok(ended.verdict(&found))
}

/// What is wrong with a message that names neither a file nor the memory or output that is missing. The loader speaks for
/// itself.
fn unexplained(ended: &Ended) -> Option<String> {
    let missing =
        ["memory exhausted", "standard output", "write error", "error while loading shared"];
    let is_explained = Copies::is_named_in(&ended.stderr)
        || missing.iter().any(|words| ended.stderr.contains(words));
    (!is_explained).then(|| format!("neither a file nor a limit is named: {}", ended.said()))
}

fn little_address_space(
    cell: &mut Cell<'_>,
    set: &OptionSet<'_>,
    value: u64,
) -> anyhow::Result<Verdict> {
    let bytes = (start_mib(cell.run)? + value) * MIB;
    copy_by(cell, set, &format!("exec prlimit --as={bytes} \"$@\""), true)
}

/// The address space in MiB within which the program can print its version.
fn start_mib(run: &Run) -> anyhow::Result<u64> {
    let starts = |mib: u64| {
        let mut cp = run.cp();
        let limit = format!("--as={}", mib * MIB);
        let ended =
            process::run(&mut through(cp.arg("--version"), "prlimit", &[&limit]), PATIENCE)?;
        anyhow::Ok(ended.success())
    };
    let (mut too_few, mut enough) = (1, 4096);
    ensure!(starts(enough)?, "it does not start within {enough} MiB");
    while enough - too_few > 1 {
        let middle = u64::midpoint(too_few, enough);
        match starts(middle)? {
            true => enough = middle,
            false => too_few = middle,
        }
    }
    Ok(enough)
}

/// As an ordinary user, since root has no such limit.
fn few_processes(cell: &mut Cell<'_>, set: &OptionSet<'_>, value: u64) -> anyhow::Result<Verdict> {
    let home = fresh(cell, "user")?;
    fixture::add(&format!("src/large1#9M:{value}; src/large2#9M:{value}"), &home);
    for number in 0..200 {
        fixture::add(&format!("src/d/{number}={number}"), &home);
    }
    // Where the program lies the user may not go.
    let program = home.join("haulage");
    std::fs::copy(&cell.run.program, &program)?;
    for name in ["", "src", "src/d"] {
        chown(home.join(name), Some(USER), Some(USER))?;
    }
    for path in [&*program, cell.place.path()] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755))?;
    }
    let mut cp = testfs::command(&program);
    let [user, group] = ["--reuid", "--regid"].map(|option| format!("{option}={USER}"));
    let limit = format!("--nproc={value}");
    let args = [&user, &group, "--clear-groups", "prlimit", &limit];
    let mut cp = through(own_copy(cp.arg("cp"), set, &home), "setpriv", &args);
    let ended = process::run(&mut cp, PATIENCE)?;
    judge_own(&ended, &home, |src, dst| tree_differences(src, dst, Aspects::CONTENT))
}

/// A destination of another file system that becomes full.
fn little_space(cell: &mut Cell<'_>, set: &OptionSet<'_>, value: u64) -> anyhow::Result<Verdict> {
    let kind = cell.place.kind;
    let root = cell.run.file_systems.small_dir(kind);
    let root = root.with_context(|| format!("no small {kind}"))?;
    let small = testfs::small_fs_at(testfs::FsKind::of_name(kind).context("a kind")?, root);
    small.leave_room(value << 10);
    copy_elsewhere(cell, set, &small.join("dst"))
}

fn few_inodes(cell: &mut Cell<'_>, set: &OptionSet<'_>, value: u64) -> anyhow::Result<Verdict> {
    let mount = fresh(cell, "few")?;
    // The root is one.
    let options = format!("nr_inodes={}", value + 1);
    quietly(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&mount))?;
    let verdict = copy_elsewhere(cell, set, &mount.join("dst"));
    quietly(Command::new("umount").arg(&mount))?;
    verdict
}

fn copy_elsewhere(
    cell: &mut Cell<'_>,
    set: &OptionSet<'_>,
    destination: &Path,
) -> anyhow::Result<Verdict> {
    let copies = &mut cell.place.copies;
    let before = copies.copy_to(destination.to_owned());
    let ended = process::run(&mut copies.command(cell.run.cp(), set), PATIENCE);
    let verdict = ended.and_then(|ended| judge(&ended, copies, set, true));
    copies.copy_to(before);
    verdict
}

/// `value` directories within each other, with a file in each tenth.
fn deep_tree(cell: &mut Cell<'_>, set: &OptionSet<'_>, value: u64) -> anyhow::Result<Verdict> {
    let home = fresh(cell, "deep")?;
    // A path of all names would be too long.
    let mut dir = rustix::fs::open(&home, OFlags::DIRECTORY | OFlags::PATH, Mode::empty())?;
    for level in 0..=value {
        let name = if level == 0 { "src" } else { "d" };
        rustix::fs::mkdirat(&dir, name, Mode::from(0o755))?;
        dir = rustix::fs::openat(&dir, name, OFlags::DIRECTORY | OFlags::PATH, Mode::empty())?;
        if level % 10 == 0 {
            let flags = OFlags::CREATE | OFlags::WRONLY;
            let file = rustix::fs::openat(&dir, "file", flags, Mode::from(0o644))?;
            rustix::io::write(&file, level.to_string().as_bytes())?;
        }
    }
    own_tree(cell, set, &home)
}

/// One directory with `value` names: files, a directory for every hundredth.
fn many_names(cell: &mut Cell<'_>, set: &OptionSet<'_>, value: u64) -> anyhow::Result<Verdict> {
    let home = fresh(cell, "names")?;
    let src = home.join("src");
    std::fs::create_dir(&src)?;
    for number in 0..value {
        let path = src.join(format!("name {number}"));
        if number % 100 == 0 { std::fs::create_dir(path)? } else { File::create(path).map(drop)? }
    }
    own_tree(cell, set, &home)
}

/// Copies `home/src` and compares all of it.
fn own_tree(cell: &Cell<'_>, set: &OptionSet<'_>, home: &Path) -> anyhow::Result<Verdict> {
    let mut cp = cell.run.cp();
    let ended = process::run(own_copy(&mut cp, set, home), LONG_PATIENCE)?;
    judge_own(&ended, home, |src, dst| tree_differences(src, dst, set.aspects()))
}

/// Adds to `cp` that it copies `home/src`, a source of its own.
fn own_copy<'c>(cp: &'c mut Command, set: &OptionSet<'_>, home: &Path) -> &'c mut Command {
    cp.args(set.text.split_whitespace()).args(["-T", "src", "dst"]).current_dir(home)
}

/// Right, or loud, for a source of its own, which `differences` compares with its copy. Removes both.
fn judge_own(
    ended: &Ended,
    home: &Path,
    differences: impl FnOnce(&Path, &Path) -> std::io::Result<Vec<String>>,
) -> anyhow::Result<Verdict> {
    let found = match ended.success() {
        true => differences(&home.join("src"), &home.join("dst"))?,
        false => unexplained(ended).into_iter().collect(),
    };
    // remove_dir_all needs a descriptor for each level.
    quietly(Command::new("rm").arg("-rf").arg(home))?;
    Ok(ended.verdict(&found))
}

/// A file of many TiB with some data, which must stay where it is, and few blocks.
fn large_sparse_file(
    cell: &mut Cell<'_>,
    set: &OptionSet<'_>,
    value: u64,
) -> anyhow::Result<Verdict> {
    let home = fresh(cell, "sparse")?;
    let bytes = (value << 40) - 5;
    let places = [0, 12_345, bytes / 3, bytes / 2 + 1, bytes - 4096];
    let data = testfs::random_bytes(4096, value);
    let file = File::create(home.join("src"))?;
    file.set_len(bytes)?;
    for &at in &places {
        file.write_all_at(&data, at)?;
    }
    let mut cp = cell.run.cp();
    let ended = process::run(own_copy(&mut cp, set, &home), PATIENCE)?;
    judge_own(&ended, &home, |_, dst| {
        let copy = File::open(dst)?;
        let mut found = Vec::new();
        let mut buffer = vec![0; data.len()];
        for &at in &places {
            copy.read_exact_at(&mut buffer, at)?;
            if buffer != data {
                found.push(format!("the data at {at} differ"));
            }
        }
        let metadata = copy.metadata()?;
        if metadata.len() != bytes || metadata.blocks() > 4096 {
            let (len, blocks) = (metadata.len(), metadata.blocks());
            found.push(format!("{bytes} bytes became {len}, in {blocks} blocks"));
        }
        Ok(found)
    })
}

/// An empty directory `name` beside the copies.
fn fresh(cell: &Cell<'_>, name: &str) -> anyhow::Result<PathBuf> {
    let dir = cell.place.path().join(name);
    copies::remove(&dir)?;
    std::fs::create_dir(&dir)?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_closed_by_bits() {
        assert_eq!(closings(0), "exec \"$@\"");
        assert_eq!(closings(5), "exec \"$@\" 0<&- 2>&-");
    }
}
