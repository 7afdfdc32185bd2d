//! One cell of the matrix, within a guest: a file system as destination and as source of `haulage cp`, beside GNU cp.
//!
//! A finding is where haulage is worse than GNU cp with the same options, or than its `-a` if the options are of
//! haulage alone; and exit status 0 though content is lost.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, ensure};
use testfs::{Aspects, Tree, random_bytes};

use super::systems::{Role, SCRIPT, System};
use crate::sweep::copies::{each_below, remove};

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
struct Group {
    ground: Ground,
    gnu: &'static str,
    ours: &'static str,
}

const fn group(ground: Ground, gnu: &'static str, ours: &'static str) -> Group {
    Group { ground, gnu, ours }
}

const GROUPS: &[Group] = &[
    group(
        Ground::Plain,
        "-a",
        "-a/-a --atomic/-a --durable --verify/-a --atomic --durable --verify/-a --resume/\
            -a --resume --durable --verify",
    ),
    group(Ground::Plain, "-r", "-r"),
    group(Ground::Rich, "-a", "-a/-a --atomic/-a --resume --verify"),
    group(Ground::Rich, "-rp", "-rp"),
    group(Ground::Rich, "-r", "-r --atomic"),
    group(Ground::User, "-a", "-a/-a --atomic/-a --resume"),
    group(Ground::Over, "-a", "-a/-a --atomic --durable/-a --resume"),
    group(Ground::Over, "-a --remove-destination", "-a --remove-destination"),
    group(Ground::Over, "-ab", "-ab/-ab --atomic"),
    group(Ground::Over, "-a --backup=numbered", "-a --backup=numbered --resume"),
    group(Ground::Within, "-a", "-a/-a --atomic"),
    group(Ground::Within, "-al", "-al"),
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

/// How a program ended.
pub(super) struct Ended {
    /// -1 after a signal.
    pub(super) status: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ended {
    /// What is wrong if it should end with `status`, and with a message unless that is 0.
    pub(super) fn unless(&self, status: i32) -> Option<String> {
        let is_silent = status != 0 && self.stderr.is_empty();
        let is_right = self.status == status && !is_silent;
        (!is_right).then(|| format!("exit status {}: {}", self.status, self.stderr.trim()))
    }
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
        let is_quick =
            |it: &Group| it.gnu == "-a" && matches!(it.ground, Ground::Plain | Ground::Over);
        let mut groups = GROUPS.iter().filter(|group| !quick || is_quick(group));
        groups.try_for_each(|group| self.try_group(ends, group))
    }

    fn try_group(&mut self, ends: &Ends, group: &Group) -> anyhow::Result<()> {
        let (system, ground) = (self.system, group.ground);
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
        let copy = |program, options: &str, at: &Path| {
            remove(at)?;
            if ground == Ground::Over {
                cp("cp", "-a", &ends.src.join("old"), at, false)?;
                let _ = shell(system, &format!("T={}; prepare", at.display()));
            }
            cp(program, options, &src, at, ground == Ground::User)
        };
        let gnu = dst.join("gnu");
        let theirs = copy("cp", group.gnu, &gnu)?;
        let copied = |(number, options)| {
            let at = dst.join(format!("ours-{number}"));
            let ended = copy("haulage cp", options, &at)?;
            let what = format!("{options} ({ground:?})");
            anyhow::Ok(Copied { at, options, what, ended, found: Vec::new() })
        };
        let copies: anyhow::Result<_> = group.ours.split('/').enumerate().map(copied).collect();
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
        copies.iter_mut().for_each(|copy| copy.found.extend(self.worse_end(theirs, &copy.ended)));
        let source = Tree::read(src).ok();
        let mut views = vec![("", MOUNT)];
        let is_kept = gnu.starts_with(MOUNT) && self.system.role != Role::Memory;
        if is_kept {
            views.push((" after a remount", MOUNT));
            if self.system.role == Role::Twice {
                views.push((" through the other mount", SECOND));
            }
            if self.system.role.has_server() {
                views.push((" on the server", SERVER));
            }
        }
        for (view, root) in views {
            if view == " after a remount" {
                self.remount()?;
            }
            let read = |path: &Path| match path.strip_prefix(MOUNT) {
                Ok(below) => Tree::read(&Path::new(root).join(below)),
                Err(_) => Tree::read(path),
            };
            let theirs = read(gnu).ok();
            for Copied { at, options, ended, found, .. } in &mut copies {
                let copy = match read(at) {
                    Ok(copy) => copy,
                    // What is unreadable has no copies.
                    Err(_) if ended.status != 0 && theirs.is_none() => continue,
                    Err(error) => {
                        found.push(format!("the copy cannot be read{view}: {error}"));
                        continue;
                    }
                };
                // A cache may still have times that the file system cannot hold.
                let aspects = aspects(options);
                let mtimes = aspects.mtimes && (!is_kept || !view.is_empty());
                if let Some(theirs) = &theirs {
                    let aspects = Aspects { mtimes, ..aspects };
                    let worse = worse(source.as_ref(), theirs, &copy, aspects);
                    found.extend(worse.into_iter().map(|line| format!("{line}{view}")));
                }
                if let Some(source) = source.as_ref().filter(|_| ended.status == 0) {
                    let lost = source.differences(&copy, Aspects::CONTENT);
                    let lost = lost.into_iter().filter(|line| !line.ends_with("only right"));
                    found.extend(lost.map(|line| format!("exit status 0, but {line}{view}")));
                }
            }
        }
        copies.into_iter().for_each(|copy| self.report(ends, &copy.what, copy.found));
        Ok(())
    }

    /// What is wrong with how haulage ended.
    fn worse_end(&self, gnu: &Ended, ours: &Ended) -> Option<String> {
        // GNU cp 9.1 is silent about lists of NFS 4 that a mode cannot say. 9.11 is not.
        let is_nfs_acl = |line: &str| {
            line.contains("preserving permissions") && line.ends_with("Operation not supported")
        };
        let is_said = self.system.name.starts_with("nfs-4") && ours.stderr.lines().all(is_nfs_acl);
        let is_worse = gnu.status == 0 && ours.status != 0 && !is_said;
        let said = ours.stderr.lines().next().unwrap_or_default();
        (is_worse || !(0..=1).contains(&ours.status))
            .then(|| format!("exit status {}, {} of GNU cp: {said}", ours.status, gnu.status))
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
        if self.system.role == Role::Memory {
            return Ok(());
        }
        shell(self.system, "unmount; mount_it").context("the remount")
    }

    /// Where the space of the file system is used up.
    pub(super) fn backing(&self) -> &'static Path {
        let is_behind = self.system.role.has_server() || self.system.name.ends_with("-fuse");
        Path::new(if is_behind { SERVER } else { MOUNT })
    }
}

/// Runs `program` on two operands.
pub(super) fn cp(
    program: &str,
    options: &str,
    src: &Path,
    dst: &Path,
    is_user: bool,
) -> anyhow::Result<Ended> {
    let mut words = program.split(' ').chain(options.split(' '));
    let mut command = Command::new(words.next().expect("a program"));
    if is_user {
        command.uid(USER).gid(USER);
    }
    ended(command.args(words).arg("-T").args([src, dst]), PATIENCE)
}

/// Runs `command`, and kills it after `limit`.
pub(super) fn ended(command: &mut Command, limit: Duration) -> anyhow::Result<Ended> {
    command.env("HAULAGE_PROFILE", "").stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let process = rustix::process::Pid::from_child(&child);
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let output = match receive.recv_timeout(limit) {
        Ok(output) => output?,
        Err(_) => {
            // It may have ended since.
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            receive.recv()??
        }
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let status = output.status.code().unwrap_or(-1);
    Ok(Ended { status, stdout: text(output.stdout), stderr: text(output.stderr) })
}

/// Runs commands of `systems.sh`. The error is what they wrote to standard error.
pub(super) fn shell(system: System, commands: &str) -> anyhow::Result<()> {
    // Daemons keep standard output open.
    let script = format!("set -e\n{SCRIPT}\n{{ {commands}; }} >/dev/null 2>/m/said");
    let status = Command::new("bash")
        .args(["-c", &script])
        .envs([("FS", system.name), ("D", "/dev/vda"), ("S", SERVER)])
        .envs([("M", MOUNT), ("N", SECOND)])
        .stdin(Stdio::null())
        .status()?;
    ensure!(status.success(), "{commands}: {}", std::fs::read_to_string("/m/said")?.trim());
    Ok(())
}

/// Where the copy `ours` is worse than that of GNU cp: they differ, `ours` differs from the source too, and GNU's time
/// is that of the source, if the file system's precision is at least two seconds.
fn worse(source: Option<&Tree>, gnu: &Tree, ours: &Tree, aspects: Aspects) -> Vec<String> {
    let entry = |line: &str| line.split(": ").next().unwrap_or_default().to_owned();
    let time = |line: &str| line.split_once(": mtime ")?.1.split(' ').next()?.parse::<i128>().ok();
    let wrong = source.map(|source| source.differences(ours, aspects));
    let is_worse = |line: &String| {
        let Some(wrong) = &wrong else { return true };
        let mut wrong = wrong.iter().filter(|wrong| entry(wrong) == entry(line));
        match time(line) {
            None => wrong.next().is_some(),
            Some(gnu) => {
                wrong.filter_map(|line| time(line)).any(|src| (gnu - src).abs() <= 2_000_000_000)
            }
        }
    };
    let lines = gnu.differences(ours, aspects).into_iter().filter(is_worse);
    lines.map(|line| format!("{line} (GNU cp, haulage)")).collect()
}

/// What the options keep.
fn aspects(options: &str) -> Aspects {
    match options {
        _ if options.starts_with("-a") => Aspects::ALL,
        _ if options.starts_with("-rp") => {
            Aspects { mtimes: true, owners: true, modes: true, ..Aspects::CONTENT }
        }
        _ => Aspects { modes: true, ..Aspects::CONTENT },
    }
}

/// The length of the file `large`, which takes many calls.
pub(super) const LARGE_BYTES: usize = 5 << 20;

/// A tree that every file system can hold, but for the precision of its times.
pub(super) fn create_plain(root: &Path, seed: u64) -> anyhow::Result<()> {
    std::fs::create_dir_all(root.join("dir/empty"))?;
    let files =
        [("small", 5000), ("middle", 300_000), ("large", LARGE_BYTES), ("none", 0), ("dir/x", 1)];
    for (name, bytes) in files {
        std::fs::write(root.join(name), random_bytes(bytes, seed))?;
    }
    let sparse = std::fs::File::create(root.join("sparse"))?;
    sparse.set_len(1 << 20)?;
    sparse.write_all_at(&random_bytes(8192, seed), 1 << 19)?;
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
            ("left-over", &[("a", "1"), ("b", "2"), ("d", "4"), (".haulage-x", "")]),
        ] {
            assert_eq!(lines(name, entries).len(), 1, "{name}");
        }
    }
}
