//! One cell of the matrix, within a guest: a file system as destination and as source of `haulage cp`, beside GNU cp.
//!
//! A finding is where haulage is worse than GNU cp with the same options, or than its `-a` if the options are of
//! haulage alone; and exit status 0 though content is lost.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use testfs::{Aspects, Tree, fixture};

use super::systems::{Role, SCRIPT, System};
use crate::sweep::copies::{each_below, remove};
use crate::sweep::process::{self, Ended};

/// The file system under test, its second mount, one with everything that `cp -a` keeps, and the server's side of the
/// first.
pub(super) const MOUNT: &str = "/m/t";
pub(super) const SECOND: &str = "/m/second";
pub(super) const LOCAL: &str = "/m/local";
pub(super) const SERVER: &str = "/m/server";

/// A copy that takes longer hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// The only user besides root.
const USER: u32 = 1234;

/// The source, and what is at the destination before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ground {
    /// Files and directories.
    Plain,
    /// Entries of every kind, with all attributes.
    Rich,
    /// Plain, onto other contents.
    Over,
    /// Plain, as an ordinary user.
    User,
    /// Rich, from the file system under test to itself.
    Within,
}

/// Options of GNU cp, and those of haulage whose copies are compared with it, separated by a slash.
type Group = (Ground, &'static str, &'static str);

const GROUPS: &[Group] = &[
    (
        Ground::Plain,
        "-a",
        "-a/-a --atomic/-a --durable --verify/-a --atomic --durable --verify/-a --resume/\
            -a --resume --durable --verify",
    ),
    (Ground::Plain, "-r", "-r"),
    (Ground::Rich, "-a", "-a/-a --atomic/-a --resume --verify"),
    (Ground::Rich, "-rp", "-rp"),
    (Ground::Rich, "-r", "-r --atomic"),
    (Ground::User, "-a", "-a/-a --atomic/-a --resume"),
    (Ground::Over, "-a", "-a/-a --atomic --durable/-a --resume"),
    (Ground::Over, "-a --remove-destination", "-a --remove-destination"),
    (Ground::Over, "-ab", "-ab/-ab --atomic"),
    (Ground::Over, "-a --backup=numbered", "-a --backup=numbered --resume"),
    (Ground::Within, "-a", "-a/-a --atomic"),
    (Ground::Within, "-al", "-al"),
];

/// Where sources and copies are.
pub(super) struct Ends {
    /// In the output.
    pub(super) direction: &'static str,
    pub(super) src: PathBuf,
    pub(super) dst: PathBuf,
}

impl Ends {
    /// The source `name`, and the copies of GNU cp and of haulage.
    pub(super) fn paths(&self, name: &str) -> [PathBuf; 3] {
        [self.src.join(name), self.dst.join("gnu"), self.dst.join("ours")]
    }
}

/// The copy with this number in `dst`.
pub(super) fn ours(dst: &Path, number: usize) -> PathBuf {
    dst.join(format!("ours-{number}"))
}

/// A copy by haulage, and what is wrong with it.
pub(super) struct Copied<'a> {
    pub(super) at: PathBuf,
    pub(super) options: &'a str,
    /// What a finding says of it.
    pub(super) what: String,
    pub(super) ended: Ended,
    pub(super) found: Vec<String>,
}

pub(super) struct Cell {
    pub(super) system: System,
    pub(super) cases: usize,
}

impl Cell {
    /// Tries the copies with `ends`, or with `quick` a few of them.
    pub(super) fn try_copies(&mut self, ends: &Ends, quick: bool) -> anyhow::Result<()> {
        let are_quick = [Ground::Plain, Ground::Over];
        let is_tried = |group: &&Group| !quick || group.1 == "-a" && are_quick.contains(&group.0);
        GROUPS.iter().filter(is_tried).try_for_each(|group| self.try_group(ends, group))
    }

    fn try_group(&mut self, ends: &Ends, &(ground, known, options): &Group) -> anyhow::Result<()> {
        let system = self.system;
        let tree = if matches!(ground, Ground::Rich | Ground::Within) { "rich" } else { "plain" };
        let src = ends.src.join(tree);
        let is_within = ground == Ground::Within;
        let has_within = ends.direction == "from" && system.role != Role::Source;
        if !src.exists() || (is_within && !has_within) {
            return Ok(());
        }
        let dst = if is_within { Path::new(MOUNT).join("within") } else { ends.dst.clone() };
        std::fs::create_dir_all(&dst)?;
        // Where modes are those of the mount, an ordinary user can write nothing.
        let _ = std::fs::set_permissions(&dst, PermissionsExt::from_mode(0o777));
        let run = |program, options: &str, at: &Path| {
            remove(at)?;
            if ground == Ground::Over {
                cp("cp", "-a", &ends.src.join("old"), at)?;
                let _ = shell(system, &format!("T={}; prepare", at.display()));
            }
            let mut command = copy(program, options, &src, at);
            if ground == Ground::User {
                command.uid(USER).gid(USER);
            }
            process::run(&mut command, PATIENCE)
        };
        let gnu = dst.join("gnu");
        let theirs = run("cp", known, &gnu)?;
        let copied = |(number, options)| {
            let at = ours(&dst, number);
            let ended = run("haulage cp", options, &at)?;
            let what = format!("{options} ({ground:?})");
            anyhow::Ok(Copied { at, options, what, ended, found: Vec::new() })
        };
        let copies: anyhow::Result<_> = options.split('/').enumerate().map(copied).collect();
        self.judge(ends, [&src, &gnu], &theirs, copies?)
    }

    /// Reports each copy, with what is worse in it than in that of GNU cp, now, after a remount and on the server.
    pub(super) fn judge(
        &mut self,
        ends: &Ends,
        [src, gnu]: [&Path; 2],
        theirs: &Ended,
        mut copies: Vec<Copied<'_>>,
    ) -> anyhow::Result<()> {
        // Of the kernel's own files times change, and lengths are not those of what can be read.
        let is_kernels = ["proc", "sysfs", "cgroup"].contains(&self.system.name);
        let source = Tree::read(src).ok().filter(|_| !is_kernels);
        let lost = |copy: &Tree| {
            let lines = source.as_ref().map(|it| it.differences(copy, Aspects::CONTENT));
            lines.unwrap_or_default().into_iter().filter(|line| !line.ends_with("only right"))
        };
        // GNU cp says nothing of a name that UDF stores as another one.
        let lacks_name = |tree: Tree| lost(&tree).any(|line| line.ends_with("only left"));
        let renamed = theirs.code() == 0 && Tree::read(gnu).is_ok_and(lacks_name);
        let fails = renamed || theirs.code() != 0;
        copies.iter_mut().for_each(|copy| copy.found.extend(self.worse_end(fails, &copy.ended)));
        let is_kept = gnu.starts_with(MOUNT);
        let views = [
            ("", MOUNT, true),
            (" after a remount", MOUNT, is_kept),
            (" through the other mount", SECOND, is_kept && self.system.role == Role::Twice),
            (" on the server", SERVER, is_kept && self.system.role.has_server()),
        ];
        for (view, root, _) in views.into_iter().filter(|(_, _, is_there)| *is_there) {
            if view == " after a remount" {
                self.remount()?;
            }
            let in_view = |below: &Path| Path::new(root).join(below);
            let read = |at: &Path| Tree::read(&at.strip_prefix(MOUNT).map_or(at.into(), in_view));
            let tree = read(gnu).ok();
            for Copied { at, options, ended, found, .. } in &mut copies {
                let copy = match read(at) {
                    Ok(copy) => copy,
                    // What is unreadable has no copies.
                    Err(_) if ended.code() != 0 && tree.is_none() => continue,
                    Err(error) => {
                        found.push(format!("the copy cannot be read{view}: {error}"));
                        continue;
                    }
                };
                // A cache may still have times that the file system cannot hold.
                let mut aspects = if is_kernels { Aspects::CONTENT } else { aspects(options) };
                aspects.mtimes &= !is_kept || !view.is_empty();
                if let Some(tree) = &tree {
                    let mut worse = worse(source.as_ref(), tree, &copy, aspects);
                    worse.retain(|line| {
                        let entry = line.split(": ").next().unwrap_or_default();
                        let is_said = is_kernels && ended.stderr.contains(entry);
                        // Where it cannot keep an owner, GNU cp puts the old file back.
                        let is_backup = fails && line.contains("~: only right");
                        !(is_said || is_backup)
                    });
                    found.extend(worse.into_iter().map(|line| format!("{line}{view}")));
                }
                if ended.code() == 0 {
                    let lost = lost(&copy).map(|line| format!("exit status 0, but {line}{view}"));
                    found.extend(lost);
                }
            }
        }
        copies.into_iter().for_each(|copy| self.report(ends, &copy.what, copy.found));
        Ok(())
    }

    /// What is wrong with how haulage ended.
    fn worse_end(&self, fails: bool, ours: &Ended) -> Option<String> {
        // GNU cp 9.1 is silent about lists of NFS 4 that a mode cannot say. 9.11 is not.
        let is_nfs_acl = |line: &str| {
            line.contains("preserving permissions") && line.ends_with("Operation not supported")
        };
        let is_said = self.system.name.starts_with("nfs-4") && ours.stderr.lines().all(is_nfs_acl);
        let worse = ours.unless(0).filter(|_| !fails && !is_said);
        ours.crash().or(worse)
    }

    /// Counts a case, and prints what was found in it.
    pub(super) fn report(&mut self, ends: &Ends, what: &str, found: Vec<String>) {
        self.cases += 1;
        if let Some(first) = found.first() {
            let more = found.len() - 1;
            println!("finding {} {what}: {first} (and {more} more)", ends.direction);
            found.iter().skip(1).take(4).for_each(|line| println!("more {line}"));
        }
    }

    /// Unmounts and mounts again, so that nothing comes from a cache.
    pub(super) fn remount(&self) -> anyhow::Result<()> {
        shell(self.system, "remount").context("the remount")
    }
}

/// The command that runs `program` on two operands.
pub(super) fn copy(program: &str, options: &str, src: &Path, dst: &Path) -> Command {
    let mut words = program.split(' ').chain(options.split(' '));
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).arg("-T").args([src, dst]);
    command
}

/// Runs `program` on two operands.
pub(super) fn cp(program: &str, options: &str, src: &Path, dst: &Path) -> anyhow::Result<Ended> {
    process::run(&mut copy(program, options, src, dst), PATIENCE)
}

/// Runs commands of `systems.sh`. The error is what they wrote to standard error.
pub(super) fn shell(system: System, commands: &str) -> anyhow::Result<()> {
    // Daemons keep standard output open.
    let script = format!("set -e\n{SCRIPT}\n{{ {commands}; }} >/dev/null 2>/m/said");
    let status = Command::new("bash")
        .args(["-c", &script])
        .envs([("FS", system.name), ("D", "/dev/vda"), ("S", SERVER), ("M", MOUNT), ("N", SECOND)])
        .stdin(Stdio::null())
        .status()?;
    ensure!(status.success(), "{commands}: {}", std::fs::read_to_string("/m/said")?.trim());
    Ok(())
}

/// Where the copy `ours` is worse than that of GNU cp: they differ, and in the same `ours` differs from the source, or
/// the source has no such entry. A time counts if GNU's is that of the source, but for the two seconds of FAT.
fn worse(source: Option<&Tree>, gnu: &Tree, ours: &Tree, aspects: Aspects) -> Vec<String> {
    // The first word that is no number.
    let subject =
        |what: &str| what.split(' ').find(|it| it.parse::<u64>().is_err()).map(str::to_owned);
    let numbers = |what: &str, start: &str, radix| {
        let (left, right) = what.strip_prefix(start)?.split_once(", ")?;
        let number = |text: &str| i128::from_str_radix(text.trim_end_matches(" ns"), radix).ok();
        Some([number(left)?, number(right)?])
    };
    let time = |what: &str, side: usize| Some(numbers(what, "mtime ", 10)?[side]);
    let wrong = source.map(|source| source.differences(ours, aspects));
    let is_worse = |line: &String| {
        let (Some(wrong), Some((entry, what))) = (&wrong, line.split_once(": ")) else {
            return true;
        };
        let gnu = time(what, 0);
        let is_near = |other: Option<i128>| {
            gnu.zip(other).is_some_and(|(gnu, other)| gnu.abs_diff(other) <= 2_000_000_000)
        };
        // Bits that are not the source's, but are in GNU's copy.
        let has_other_bits = |it: &str| {
            let bits = numbers(it, "mode ", 8).zip(numbers(what, "mode ", 8));
            bits.is_none_or(|([source, ours], [gnu, _])| (ours ^ source) & !(gnu ^ source) != 0)
        };
        let is_wrong = |it: &str| {
            let is_time_too = gnu.is_none() || is_near(time(it, 0));
            subject(it) == subject(what) && has_other_bits(it) && is_time_too
        };
        // NFS may lose the time of a file before a copy makes it a backup: then GNU cp keeps none that was given.
        let is_as_good = gnu.is_some_and(|gnu| gnu > LATEST_TIME_NS) || is_near(time(what, 1));
        let mut wrong = wrong.iter().filter_map(|it| it.strip_prefix(entry)?.strip_prefix(": "));
        match what {
            "only left" => wrong.all(|it| it == what),
            _ => wrong.any(|it| is_wrong(it) || it == "only right" && !is_as_good),
        }
    };
    let lines = gnu.differences(ours, aspects).into_iter().filter(is_worse);
    lines.map(|line| format!("{line} (GNU cp, haulage)")).collect()
}

/// What the options keep.
fn aspects(options: &str) -> Aspects {
    if options.starts_with("-a") {
        return Aspects::ALL;
    }
    let keeps = options.starts_with("-rp");
    Aspects { modes: true, mtimes: keeps, owners: keeps, ..Aspects::CONTENT }
}

/// The length of the file `large`, which takes many calls.
pub(super) const LARGE_BYTES: usize = 5 << 20;

/// No file of these trees is given a later modification time.
const LATEST_TIME_NS: i128 = 1_000_010_000 * 1_000_000_000;

/// A tree that every file system can hold, but for the precision of its times.
pub(super) fn create_plain(root: &Path, seed: u64) -> anyhow::Result<()> {
    let data_at = (1 << 19) + seed * 8192;
    let entries = format!(
        "small#5000:{seed}; middle#300000:{seed}; large#{LARGE_BYTES}:{seed}; none=; \
         dir/x#1:{seed}; dir/empty/; sparse~1M@{data_at}"
    );
    fixture::add(&entries, root);
    // Trees of two seeds have no time in common, not even where only even seconds are kept.
    let mut second = 1_000_000_000 + 1000 * i64::try_from(seed)?;
    each_below(root, &mut |path| {
        second += 7;
        let time = rustix::fs::Timespec { tv_sec: second, tv_nsec: 123_456_789 };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755))?;
        Ok(rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::empty())?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_is_what_gnu_cp_keeps_and_the_copy_has_not() {
        let dir = tempfile::tempdir().unwrap();
        let tree = |name: &str, entries: &[(&str, &str)]| {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            for (entry, content) in entries {
                std::fs::write(dir.path().join(name).join(entry), content).unwrap();
            }
            Tree::read(&dir.path().join(name)).unwrap()
        };
        let source = tree("source", &[("a", "1"), ("b", "2"), ("c", "3")]);
        let gnu = tree("gnu", &[("a", "1"), ("b", "-"), ("d", "4")]);
        let lines = |name, entries: &[_]| {
            worse(Some(&source), &gnu, &tree(name, entries), Aspects::CONTENT)
        };
        assert!(lines("same", &[("a", "1"), ("b", "-"), ("d", "4")]).is_empty());
        assert!(lines("better", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]).is_empty());
        for (name, entries) in [
            ("wrong", &[("a", "x"), ("b", "2"), ("d", "4")][..]),
            ("missing", &[("b", "2"), ("d", "4")]),
            ("no backup", &[("a", "1"), ("b", "2")]),
            ("another backup", &[("a", "1"), ("b", "2"), ("d", "5")]),
            ("left-over", &[("a", "1"), ("b", "2"), ("d", "4"), (".haulage-x", "")]),
        ] {
            assert_eq!(lines(name, entries).len(), 1, "{name}");
        }
    }

    #[test]
    fn the_time_of_a_backup_counts_where_gnu_cp_keeps_one_that_was_given() {
        let dir = tempfile::tempdir().unwrap();
        let tree = |name: &str, second: Option<u64>| {
            let root = dir.path().join(name);
            std::fs::create_dir(&root).unwrap();
            let time = |second| std::time::UNIX_EPOCH + Duration::from_secs(second);
            if let Some(second) = second {
                let backup = std::fs::File::create(root.join("a~")).unwrap();
                backup.set_modified(time(second)).unwrap();
            }
            std::fs::File::open(&root).unwrap().set_modified(time(1)).unwrap();
            Tree::read(&root).unwrap()
        };
        let source = tree("source", None);
        let (given, copied) = (1_000_000_007, 1_790_000_000);
        let times =
            [(given, given, 0), (given, given + 2, 0), (given, copied, 1), (copied, copied + 9, 0)];
        for (number, (gnu, ours, expected)) in times.into_iter().enumerate() {
            let [gnu, ours] = [("gnu", gnu), ("ours", ours)]
                .map(|(name, second)| tree(&format!("{name}-{number}"), Some(second)));
            let aspects = Aspects { mtimes: true, ..Aspects::CONTENT };
            assert_eq!(worse(Some(&source), &gnu, &ours, aspects).len(), expected, "{number}");
        }
    }
}
