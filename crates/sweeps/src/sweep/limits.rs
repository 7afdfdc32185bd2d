//! Little of everything: memory, descriptors, processes, space, names of files, and an environment with parts
//! missing.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::fs::{Mode, OFlags};
use testfs::{Aspects, tree_differences};

use super::copies::{self, Copies, OptionSet};
use super::counts::Verdict;
use super::grid::{self, Cell, Grid, Place, Point, Setting};
use super::process::{self, Ended};
use super::run::{Run, Sweep};

pub(super) const SWEEP: Sweep = Sweep {
    name: "limits",
    about: "little memory, few descriptors, full disks, missing parts of the system, huge trees",
    try_cases: grid::try_cases::<Limits>,
    repeat: grid::repeat::<Limits>,
};

/// How long a copy may take on a busy machine. It takes a fraction of a second alone.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a copy of a tree of a million names may take on a busy machine.
const LONG_LIMIT: Duration = Duration::from_secs(1800);

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
    attempt: fn(&Run<'_>, &mut Place, &OptionSet, u64) -> anyhow::Result<Verdict>,
}

impl Scarcity {
    /// Whether `set` reads what makes the case large: `--verify` reads holes of many TiB.
    fn is_too_long_for(&self, set: &OptionSet) -> bool {
        self.name == SPARSE && set.has("--verify")
    }
}

const fn scarcity(
    name: &'static str,
    values: &'static [u64],
    attempt: fn(&Run<'_>, &mut Place, &OptionSet, u64) -> anyhow::Result<Verdict>,
) -> Scarcity {
    Scarcity { name, values, long_values: &[], kinds: &[], attempt }
}

const SCARCITIES: &[Scarcity] = &[
    scarcity("RLIMIT_NOFILE", &steps::<67>(10, 1), few_descriptors),
    // From the least with which the program starts.
    scarcity("RLIMIT_AS, MiB over the start", &steps::<64>(0, 1), little_address_space),
    scarcity("RLIMIT_FSIZE", FILE_SIZES, small_files_only),
    scarcity("RLIMIT_NPROC", &[1, 2, 3, 4, 5, 6, 8, 10], few_processes),
    // A bit each for standard input, output and error.
    scarcity("closed streams", &[1, 2, 3, 4, 5, 6, 7], closed_streams),
    scarcity("closed streams without /dev", &[1, 2, 3, 4, 5, 6, 7], closed_streams_without_dev),
    scarcity("/dev/full", &[1, 2, 3], full_streams),
    scarcity("no /proc", &[0], no_proc),
    scarcity("HOME", &[0, 1, 2, 3, 4], odd_home),
    scarcity("free KiB", FREE_KIB, little_space),
    Scarcity { kinds: &["tmpfs"], ..scarcity("free inodes", &steps::<26>(1, 1), few_inodes) },
    Scarcity { long_values: &[5_000], ..scarcity("levels", &[50, 300, 1_000], deep_tree) },
    Scarcity {
        long_values: &[200_000, 1_000_000],
        ..scarcity("names", &[1_000, 20_000], many_names)
    },
    Scarcity { kinds: &["xfs", "btrfs"], ..scarcity(SPARSE, &[1, 4, 8], large_sparse_file) },
];

/// The limit of large sparse files.
const SPARSE: &str = "sparse TiB";

/// Around the sizes of the files that are copied. Less would cut the messages, too.
const FILE_SIZES: &[u64] =
    &[4095, 4096, 4999, 5000, 70_000, 299_999, 300_000, MIB, 3 * MIB, 8 * MIB, 9 * MIB - 1];

const FREE_KIB: &[u64] =
    &[0, 4, 8, 16, 64, 128, 256, 384, 512, 1024, 2048, 4096, 8192, 9000, 9300, 9500, 9800, 10_240];

/// `from`, `from + by` and so on.
const fn steps<const N: usize>(from: u64, by: u64) -> [u64; N] {
    let mut values = [0; N];
    let mut index = 0;
    while index < N {
        values[index] = from + index as u64 * by;
        index += 1;
    }
    values
}

const OPTION_SETS: &[OptionSet] = &[
    OptionSet { text: "-a", existing: false },
    OptionSet { text: "-a --jobs=3", existing: false },
    OptionSet { text: "-a --reflink=never --jobs=4", existing: false },
    OptionSet { text: "-a --atomic --durable", existing: false },
    OptionSet { text: "-a --resume", existing: false },
    OptionSet { text: "-a --verify --no-cache", existing: false },
    OptionSet { text: "-r -v", existing: false },
];

/// A limit with options of `cp`.
#[derive(Clone, Copy)]
struct Limited {
    set: &'static OptionSet,
    scarcity: &'static Scarcity,
}

impl Setting for Limited {
    fn text(&self) -> String {
        format!("{}; {}", self.set.text, self.scarcity.name)
    }

    fn options(&self) -> String {
        self.set.text.to_owned()
    }
}

/// The value of a limit.
impl Point for u64 {
    fn parts(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn of(parts: &[&str]) -> Option<u64> {
        let &[value] = parts else { return None };
        value.parse().ok()
    }
}

struct Limits;

impl Grid for Limits {
    type Setting = Limited;
    type Point = u64;

    fn new() -> anyhow::Result<Limits> {
        Ok(Limits)
    }

    fn settings(kind: &str) -> Vec<Limited> {
        let applies = |it: &&Scarcity| it.kinds.is_empty() || it.kinds.contains(&kind);
        let settings = SCARCITIES.iter().filter(applies).flat_map(|scarcity| {
            let sets = OPTION_SETS.iter().filter(|set| !scarcity.is_too_long_for(set));
            sets.map(move |set| Limited { set, scarcity })
        });
        settings.collect()
    }

    fn points(&self, cell: &mut Cell<'_, Self::Setting>) -> anyhow::Result<Vec<u64>> {
        let Scarcity { values, long_values, .. } = cell.setting.scarcity;
        let long: &[u64] = if cell.run.tries_all() { long_values } else { &[] };
        Ok(values.iter().chain(long).copied().collect())
    }

    fn attempt(&self, cell: &mut Cell<'_, Self::Setting>, &value: &u64) -> anyhow::Result<Verdict> {
        let Limited { set, scarcity } = cell.setting;
        (scarcity.attempt)(cell.run, cell.place, set, value)
            .with_context(|| format!("{}; {}; {value}", cell.place.kind, cell.setting.text()))
    }

    fn subject(limited: Self::Setting, _: &u64) -> String {
        limited.scarcity.name.to_owned()
    }
}

/// `program ARGS... haulage cp`, with the environment of `cp`.
fn through(cp: &Command, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).arg(cp.get_program()).args(cp.get_args());
    for (name, value) in cp.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(dir) = cp.get_current_dir() {
        command.current_dir(dir);
    }
    command
}

/// Runs `cp` of the copies' source through another program, and judges it.
fn copy_through(
    run: &Run<'_>,
    place: &Place,
    set: &OptionSet,
    (program, args): (&str, &[&str]),
    is_heard: bool,
) -> anyhow::Result<Verdict> {
    place.copies.prepare(set)?;
    let cp = place.copies.command(run.cp(), set);
    let ended = process::run(&mut through(&cp, program, args), LIMIT)?;
    judge(&ended, place, set, is_heard)
}

/// Right, or loud. `is_heard` tells whether standard error was there to be written to.
fn judge(ended: &Ended, place: &Place, set: &OptionSet, is_heard: bool) -> anyhow::Result<Verdict> {
    if let Some(crash) = ended.crash() {
        return Ok(Verdict::Wrong(crash));
    }
    let mut found = place.copies.damage()?;
    if ended.success() {
        found.extend(place.copies.leftovers()?);
        found.extend(place.copies.differences(set, set.aspects())?);
    } else if is_heard && !is_explained(&ended.stderr) {
        found.push(format!("neither a file nor a limit is named: {}", ended.said()));
    } else if set.has("--atomic") {
        found.extend(place.copies.leftovers()?);
    }
    Ok(match found.first() {
        Some(first) if ended.success() => Verdict::Wrong(format!("exit status 0: {first}")),
        Some(first) => Verdict::Wrong(first.clone()),
        None if ended.success() => Verdict::Right,
        None => Verdict::Loud,
    })
}

/// Whether `words` name a file, or the memory or output that is missing. The loader speaks for itself.
fn is_explained(words: &str) -> bool {
    Copies::is_named_in(words)
        || ["memory exhausted", "standard output", "write error", "error while loading shared"]
            .iter()
            .any(|said| words.contains(said))
}

fn few_descriptors(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let limit = format!("--nofile={value}");
    copy_through(run, place, set, ("prlimit", &[&limit]), true)
}

fn little_address_space(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let limit = format!("--as={}", (start_mib(run)? + value) * MIB);
    copy_through(run, place, set, ("prlimit", &[&limit]), true)
}

/// The address space in MiB within which the program can print its version.
fn start_mib(run: &Run<'_>) -> anyhow::Result<u64> {
    let starts = |mib: u64| {
        let mut cp = run.cp();
        let limit = format!("--as={}", mib * MIB);
        let ended = process::run(&mut through(cp.arg("--version"), "prlimit", &[&limit]), LIMIT)?;
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

fn small_files_only(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    // With the signal of the limit ignored, the call fails. Otherwise the signal ends the process, as it
    // ends GNU cp.
    let script = format!("trap '' XFSZ; exec prlimit --fsize={value} \"$@\"");
    copy_through(run, place, set, ("sh", &["-c", &script, "sh"]), true)
}

/// As an ordinary user, since root has no such limit.
fn few_processes(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let home = place.dir.join("user");
    copies::remove(&home)?;
    std::fs::create_dir_all(home.join("src/d"))?;
    for number in 0..200 {
        std::fs::write(home.join(format!("src/d/{number}")), number.to_string())?;
    }
    for name in ["src/large1", "src/large2"] {
        std::fs::write(home.join(name), testfs::random_bytes(9 << 20, value))?;
    }
    // Where the program lies the user may not go.
    let program = home.join("haulage");
    std::fs::copy(run.program(), &program)?;
    std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    for name in ["", "src", "src/d"] {
        chown(home.join(name), Some(USER), Some(USER))?;
    }
    std::fs::set_permissions(&place.dir, Permissions::from_mode(0o755))?;
    let user = USER.to_string();
    let mut cp = testfs::command(&program);
    cp.arg("cp").args(set.text.split_whitespace()).args(["-T", "src", "dst"]).current_dir(&home);
    let limit = format!("--nproc={value}");
    let ids = [&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"];
    let ended = process::run(
        &mut through(&cp, "setpriv", &[ids[0], ids[1], ids[2], "prlimit", &limit]),
        LIMIT,
    )?;
    let verdict = judge_trees(&ended, &home.join("src"), &home.join("dst"), Aspects::CONTENT);
    copies::remove(&home)?;
    verdict
}

/// Right, or loud, for a source of its own.
fn judge_trees(ended: &Ended, src: &Path, dst: &Path, aspects: Aspects) -> anyhow::Result<Verdict> {
    if let Some(crash) = ended.crash() {
        return Ok(Verdict::Wrong(crash));
    }
    if !ended.success() {
        let named = is_explained(&ended.stderr);
        let said = ended.said();
        return Ok(if named {
            Verdict::Loud
        } else {
            Verdict::Wrong(format!("no file is named: {said}"))
        });
    }
    let found = tree_differences(src, dst, aspects)?;
    Ok(found
        .first()
        .map_or(Verdict::Right, |first| Verdict::Wrong(format!("exit status 0: {first}"))))
}

fn closed_streams(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let script = format!("exec \"$@\"{}", closings(value));
    copy_through(run, place, set, ("sh", &["-c", &script, "sh"]), value & 4 == 0)
}

fn closed_streams_without_dev(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let script = format!("mount -t tmpfs none /dev && exec \"$@\"{}", closings(value));
    let args = ["--mount", "--propagation", "private", "sh", "-c", &script, "sh"];
    copy_through(run, place, set, ("unshare", &args), value & 4 == 0)
}

/// The words of a shell that close the streams of the bits of `value`.
fn closings(value: u64) -> String {
    let closings = [" 0<&-", " 1>&-", " 2>&-"].iter().enumerate();
    closings.filter(|(bit, _)| value >> bit & 1 == 1).map(|(_, words)| *words).collect()
}

fn full_streams(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let words = [" > /dev/full", " 2> /dev/full"].iter().enumerate();
    let chosen: String =
        words.filter(|(bit, _)| value >> bit & 1 == 1).map(|(_, words)| *words).collect();
    copy_through(
        run,
        place,
        set,
        ("sh", &["-c", &format!("exec \"$@\"{chosen}"), "sh"]),
        value & 2 == 0,
    )
}

fn no_proc(run: &Run<'_>, place: &mut Place, set: &OptionSet, _: u64) -> anyhow::Result<Verdict> {
    let script = "mount -t tmpfs none /proc && exec \"$@\"";
    let args = ["--mount", "--propagation", "private", "sh", "-c", script, "sh"];
    copy_through(run, place, set, ("unshare", &args), true)
}

/// The profile of the user is looked for, where there is no home or none that can be used.
fn odd_home(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    place.copies.prepare(set)?;
    let mut cp = place.copies.command(run.cp(), set);
    for name in ["HAULAGE_PROFILE", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        cp.env_remove(name);
    }
    let home = ["", "/nonexistent", "/dev/null", "/proc", "not absolute"];
    let index = usize::try_from(value)?;
    if index > 0 {
        cp.env("HOME", home[index]);
    }
    let ended = process::run(&mut cp, LIMIT)?;
    judge(&ended, place, set, true)
}

/// A destination of another file system that becomes full.
fn little_space(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let root = run
        .file_systems
        .small_dir(place.kind)
        .with_context(|| format!("no small {}", place.kind))?;
    let small = testfs::small_fs_at(testfs::FsKind::of_name(place.kind).context("a kind")?, root);
    small.leave_room(value << 10);
    copy_elsewhere(run, place, set, &small.join("dst"))
}

fn few_inodes(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let mount = place.dir.join("few");
    std::fs::create_dir_all(&mount)?;
    // The root is one.
    let options = format!("nr_inodes={}", value + 1);
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&mount).output()?;
    ensure!(mounted.status.success(), "mount: {}", testfs::stderr(&mounted));
    let verdict = copy_elsewhere(run, place, set, &mount.join("dst"));
    let unmounted = Command::new("umount").arg(&mount).output()?;
    ensure!(unmounted.status.success(), "umount: {}", testfs::stderr(&unmounted));
    verdict
}

fn copy_elsewhere(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    destination: &Path,
) -> anyhow::Result<Verdict> {
    let before = place.copies.copy_to(destination.to_owned());
    let cp = place.copies.command(run.cp(), set);
    let verdict =
        process::run(&mut { cp }, LIMIT).and_then(|ended| judge(&ended, place, set, true));
    place.copies.copy_to(before);
    verdict
}

/// `value` directories within each other, with a file in each tenth.
fn deep_tree(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let home = fresh(&place.dir, "deep")?;
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
    own_source(run, set, &home)
}

/// One directory with `value` names: files, a directory for every hundredth.
fn many_names(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let home = fresh(&place.dir, "names")?;
    let src = home.join("src");
    std::fs::create_dir(&src)?;
    for number in 0..value {
        let path = src.join(format!("name {number}"));
        if number % 100 == 0 { std::fs::create_dir(path)? } else { File::create(path).map(drop)? }
    }
    own_source(run, set, &home)
}

/// Copies `home/src` and compares all of it.
fn own_source(run: &Run<'_>, set: &OptionSet, home: &Path) -> anyhow::Result<Verdict> {
    let mut cp = run.cp();
    cp.args(set.text.split_whitespace()).args(["-T", "src", "dst"]).current_dir(home);
    let ended = process::run(&mut cp, LONG_LIMIT)?;
    let verdict = judge_trees(&ended, &home.join("src"), &home.join("dst"), set.aspects())?;
    // remove_dir_all needs a descriptor for each level.
    let removed = Command::new("rm").arg("-rf").arg(home).output()?;
    ensure!(removed.status.success(), "rm: {}", testfs::stderr(&removed));
    Ok(verdict)
}

/// A file of many TiB with some data, which must stay where it is, and few blocks.
fn large_sparse_file(
    run: &Run<'_>,
    place: &mut Place,
    set: &OptionSet,
    value: u64,
) -> anyhow::Result<Verdict> {
    let home = fresh(&place.dir, "sparse")?;
    let bytes = (value << 40) - 5;
    let places = [0, 12_345, bytes / 3, bytes / 2 + 1, bytes - 4096];
    let data = testfs::random_bytes(4096, value);
    let file = File::create(home.join("src"))?;
    file.set_len(bytes)?;
    for &at in &places {
        file.write_all_at(&data, at)?;
    }
    let mut cp = run.cp();
    cp.args(set.text.split_whitespace()).args(["-T", "src", "dst"]).current_dir(&home);
    let ended = process::run(&mut cp, LIMIT)?;
    let mut verdict = match ended.crash() {
        Some(crash) => Verdict::Wrong(crash),
        None if ended.success() => Verdict::Right,
        None if Copies::is_named_in(&ended.stderr) => Verdict::Loud,
        None => Verdict::Wrong(format!("no file is named: {}", ended.said())),
    };
    if ended.success() {
        let copy = File::open(home.join("dst"))?;
        let metadata = copy.metadata()?;
        let mut buffer = vec![0; data.len()];
        for &at in &places {
            copy.read_exact_at(&mut buffer, at)?;
            if buffer != data {
                verdict = Verdict::Wrong(format!("exit status 0: the data at {at} differ"));
            }
        }
        if metadata.len() != bytes || metadata.blocks() > 4096 {
            let (len, blocks) = (metadata.len(), metadata.blocks());
            verdict = Verdict::Wrong(format!("{bytes} bytes became {len}, in {blocks} blocks"));
        }
    }
    copies::remove(&home)?;
    Ok(verdict)
}

/// An empty directory `name` in `parent`.
fn fresh(parent: &Path, name: &str) -> anyhow::Result<std::path::PathBuf> {
    let dir = parent.join(name);
    copies::remove(&dir)?;
    std::fs::create_dir(&dir)?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        let text = "tmpfs; -a --jobs=3; RLIMIT_AS, MiB over the start; 12";
        grid::check_texts::<Limits>(text, "tmpfs; -a; RLIMIT_NOFILE; much");
    }

    #[test]
    fn streams_are_closed_by_bits() {
        assert_eq!(closings(0), "");
        assert_eq!(closings(5), " 0<&- 2>&-");
    }
}
