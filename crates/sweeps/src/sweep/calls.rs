//! Every system call of a copy fails once, or from some time on, with many errors.
//!
//! strace makes them fail. It counts the calls of each thread by itself, so with several workers the same case
//! may fail in several of them. Calls of the loader before `main` are left out.

use std::collections::BTreeMap;

use anyhow::Context;
use testfs::Aspects;

use super::copies::{Copies, OptionSet};
use super::counts::Verdict;
use super::process::{self, PATIENCE};
use super::run::{Cell, Points, Sweep, parts};
use super::strace::{self, Numbers};

pub(super) const SWEEP: Sweep = Sweep {
    name: "calls",
    about: "each system call fails once, or from then on, with each of many errors (strace)",
    settings: |_| OPTION_SETS.iter().map(|set| set.text.to_owned()).collect(),
    points: Points::Listed(points),
    attempt: |cell, point| {
        let verdict = judged(cell, point)?;
        let [call, _, _] = parts(point)?;
        cell.record(point, call, verdict);
        Ok(())
    },
    // Several workers make the n-th call at another moment each time.
    repeats: 10,
};

const OPTION_SETS: &[OptionSet<'_>] = &[
    OptionSet { text: "-a", existing: false },
    OptionSet { text: "-a --jobs=1", existing: false },
    OptionSet { text: "-a --jobs=4", existing: true },
    OptionSet { text: "-r", existing: false },
    OptionSet { text: "-r --jobs=4", existing: true },
    OptionSet { text: "-a --atomic", existing: true },
    OptionSet { text: "-a --atomic --jobs=4", existing: true },
    OptionSet { text: "-r --atomic", existing: true },
    OptionSet { text: "-a --durable", existing: false },
    OptionSet { text: "-a --atomic --durable", existing: true },
    OptionSet { text: "-a --verify", existing: true },
    OptionSet { text: "-a --verify --durable --jobs=4", existing: false },
    OptionSet { text: "-a --resume", existing: true },
    OptionSet { text: "-a --resume --durable", existing: false },
    OptionSet { text: "-a --parents", existing: false },
    OptionSet { text: "-a -b", existing: true },
    OptionSet { text: "-a --backup=numbered --atomic", existing: true },
    OptionSet { text: "-a --remove-destination", existing: true },
    OptionSet { text: "-a -f", existing: true },
    OptionSet { text: "-a -u", existing: true },
    OptionSet { text: "-a --no-cache", existing: false },
    OptionSet { text: "-a --reflink=never", existing: false },
    OptionSet { text: "-a --sparse=always", existing: false },
    OptionSet { text: "-a --receipt=receipt", existing: false },
    OptionSet { text: "-a --engine=splice", existing: false },
    OptionSet { text: "-a --engine=io_uring", existing: false },
];

/// The point at which nothing fails.
const NO_CALL: &str = "no call; 0; none";

/// Messages without a file: of a process that has no memory, and that of GNU cp for a destination that cannot
/// be opened as a directory.
const NAMES_NO_FILE: &[&str] =
    &["memory exhausted", "with --parents, the destination must be a directory"];

/// Errors that kernels, file systems and servers return.
const ERRORS: &str = "EIO ENOSPC EDQUOT ENOMEM EACCES EPERM EINTR EAGAIN EMFILE ENFILE EINVAL \
                      EOPNOTSUPP ENOSYS ESTALE EXDEV ENOENT EEXIST EROFS ELOOP EBUSY";

/// Errors that end by themselves. A program that asks again for ever is right.
const PASSING: &str = "EINTR";

/// What the kernel can answer to these calls. Other errors of theirs are no case of this world, and the
/// language's library ends the process at some.
const POSSIBLE: &[(&str, &str)] = &[
    // The kernel's brk returns an address and no error.
    ("brk", ""),
    ("clone3", "EAGAIN ENOMEM EPERM"),
    // A wake-up that fails is a wait without end.
    ("futex", ""),
    ("getegid", ""),
    ("geteuid", ""),
    ("getpid", ""),
    ("gettid", ""),
    ("madvise", "EINVAL ENOMEM EAGAIN"),
    ("mmap", "ENOMEM EACCES ENODEV"),
    ("mprotect", "ENOMEM EACCES"),
    ("munmap", "ENOMEM"),
    ("rseq", "ENOSYS"),
    ("rt_sigaction", "ENOSYS"),
    ("rt_sigprocmask", "ENOSYS"),
    ("set_robust_list", "ENOSYS"),
    ("sigaltstack", "ENOMEM"),
    ("umask", ""),
];

/// The failures of each call. Only that nothing fails if the copy is wrong then.
fn points(cell: &mut Cell<'_>) -> anyhow::Result<Vec<String>> {
    if let Verdict::Wrong(_) = judged(cell, NO_CALL)? {
        return Ok(vec![NO_CALL.to_owned()]);
    }
    let (set, copies) = (set_of(cell.setting)?, &cell.place.copies);
    copies.prepare(set)?;
    Ok(every_case(&strace::calls_of(&copies.command(cell.run.cp(), set))?))
}

fn set_of(setting: &str) -> anyhow::Result<&'static OptionSet<'static>> {
    OPTION_SETS.iter().find(|set| set.text == setting).context("options of this sweep")
}

/// Tries a failure: a call, its number among those of its name, with a `+` for all from there on, and the error.
fn judged(cell: &Cell<'_>, point: &str) -> anyhow::Result<Verdict> {
    let [call, when, error] = parts(point)?;
    let (set, copies) = (set_of(cell.setting)?, &cell.place.copies);
    copies.prepare(set)?;
    let mut command = copies.command(cell.run.cp(), set);
    let (ended, took_effect) = match point {
        NO_CALL => (process::run(&mut command, PATIENCE)?, false),
        _ => strace::inject(&command, call, &format!("error={error}:when={when}"))?,
    };
    let mut found = copies.damage()?;
    found.extend(copies.missing_backups(set)?);
    if ended.success() {
        // As with GNU cp, `-a` loses extended attributes without failing.
        let aspects = set.aspects();
        let aspects = Aspects { xattrs: aspects.xattrs && !call.contains("xattr"), ..aspects };
        found.extend(copies.differences(set, aspects)?);
        found.extend(copies.leftovers()?);
    } else {
        if !took_effect {
            found.push(format!("no fault took effect, and it fails: {}", ended.said()));
        }
        // Messages are written by the same call.
        let can_speak = call != "write" || !when.ends_with('+');
        if can_speak
            && !Copies::is_named_in(&ended.stderr)
            && !NAMES_NO_FILE.iter().any(|words| ended.stderr.contains(words))
        {
            found.push(format!("no file is named: {}", ended.said()));
        }
        if set.is_atomic() && set.existing {
            found.extend(copies.torn()?);
        }
        // --resume keeps what the next run continues.
        if set.is_atomic() && !set.has("--resume") {
            found.extend(copies.leftovers()?);
        }
    }
    // What cannot be removed is left over.
    if call.starts_with("unlink") || call.starts_with("rename") {
        found.retain(|line| !Copies::is_of_leftover(line));
    }
    Ok(match ended.verdict(&found).after(format_args!("{error} {when}")) {
        Verdict::Right | Verdict::Loud if !took_effect => Verdict::Missed,
        verdict => verdict,
    })
}

/// Each call, when it fails, and the error.
fn every_case(calls: &BTreeMap<String, Numbers>) -> Vec<String> {
    let mut points = Vec::new();
    for (call, numbers) in calls {
        let possible = POSSIBLE.iter().find(|(name, _)| name == call);
        let errors = possible.map_or(ERRORS, |(_, errors)| *errors);
        for number in numbers.clone() {
            for error in errors.split_whitespace() {
                points.push(format!("{call}; {number}; {error}"));
                if error != PASSING {
                    points.push(format!("{call}; {number}+; {error}"));
                }
            }
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_loader_do_not_fail() {
        let cases = every_case(&BTreeMap::from([("munmap".to_owned(), 3..=4)]));
        let whens = ["3", "3+", "4", "4+"].map(|when| format!("munmap; {when}; ENOMEM"));
        assert_eq!(cases, whens);
    }
}
