//! Every system call of a copy fails once, or from some time on, with many errors.
//!
//! strace makes them fail. It counts the calls of each thread by itself, so with several workers the same case
//! may fail in several of them. Calls of the loader before `main` are left out.

use std::collections::BTreeMap;
use std::time::Duration;

use testfs::Aspects;

use super::copies::{Copies, OptionSet};
use super::counts::Verdict;
use super::grid::{self, Cell, Grid, Place, Point};
use super::process;
use super::run::Sweep;
use super::strace::{self, Injection, Occurrences};

pub(super) const SWEEP: Sweep = Sweep {
    name: "calls",
    about: "each system call fails once, or from then on, with each of many errors (strace)",
    try_cases: grid::try_cases::<Calls>,
    repeat: grid::repeat::<Calls>,
};

/// How long a copy may take under strace, on a busy machine. It takes a fraction of a second alone.
const LIMIT: Duration = Duration::from_secs(30);

const OPTION_SETS: &[OptionSet] = &[
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

/// In place of a call: nothing fails.
const NO_CALL: &str = "no call";

/// Messages without a file: of a process that has no memory, and that of GNU cp for a destination that cannot
/// be opened as a directory.
const NAMES_NO_FILE: &[&str] =
    &["memory exhausted", "with --parents, the destination must be a directory"];

/// Errors that kernels, file systems and servers return.
const ERRORS: &[&str] = &[
    "EIO",
    "ENOSPC",
    "EDQUOT",
    "ENOMEM",
    "EACCES",
    "EPERM",
    "EINTR",
    "EAGAIN",
    "EMFILE",
    "ENFILE",
    "EINVAL",
    "EOPNOTSUPP",
    "ENOSYS",
    "ESTALE",
    "EXDEV",
    "ENOENT",
    "EEXIST",
    "EROFS",
    "ELOOP",
    "EBUSY",
];

/// Errors that end by themselves. A program that asks again for ever is right.
const PASSING: &[&str] = &["EINTR"];

/// What the kernel can answer to these calls. Other errors of theirs are no case of this world, and the
/// language's library ends the process at some.
const POSSIBLE: &[(&str, &[&str])] = &[
    // The kernel's brk returns an address and no error.
    ("brk", &[]),
    ("clone3", &["EAGAIN", "ENOMEM", "EPERM"]),
    // A wake-up that fails is a wait without end.
    ("futex", &[]),
    ("getegid", &[]),
    ("geteuid", &[]),
    ("getpid", &[]),
    ("gettid", &[]),
    ("madvise", &["EINVAL", "ENOMEM", "EAGAIN"]),
    ("mmap", &["ENOMEM", "EACCES", "ENODEV"]),
    ("mprotect", &["ENOMEM", "EACCES"]),
    ("munmap", &["ENOMEM"]),
    ("rseq", &["ENOSYS"]),
    ("rt_sigaction", &["ENOSYS"]),
    ("rt_sigprocmask", &["ENOSYS"]),
    ("set_robust_list", &["ENOSYS"]),
    ("sigaltstack", &["ENOMEM"]),
    ("umask", &[]),
];

/// One failure. Its text is these, separated by `; `.
struct Failure {
    call: String,
    /// `3`, or `3+` for the third call and all after it.
    when: String,
    error: String,
}

impl Point for Failure {
    fn parts(&self) -> Vec<String> {
        [&self.call, &self.when, &self.error].map(String::clone).to_vec()
    }

    fn of(parts: &[&str]) -> Option<Failure> {
        let &[call, when, error] = parts else { return None };
        let [call, when, error] = [call, when, error].map(str::to_owned);
        Some(Failure { call, when, error })
    }
}

struct Calls;

impl Grid for Calls {
    type Setting = &'static OptionSet;
    type Point = Failure;

    // Several workers make the n-th call at another moment each time.
    const REPEATS: u32 = 10;

    fn new() -> anyhow::Result<Calls> {
        Ok(Calls)
    }

    fn settings(_: &str) -> Vec<&'static OptionSet> {
        OPTION_SETS.iter().collect()
    }

    /// Only that nothing fails if the copy is wrong then.
    fn points(&self, cell: &mut Cell<'_, Self::Setting>) -> anyhow::Result<Vec<Failure>> {
        let failure = |call: &str, when: String, error: &str| Failure {
            call: call.to_owned(),
            when,
            error: error.to_owned(),
        };
        let none = failure(NO_CALL, "0".to_owned(), "none");
        if let Verdict::Wrong(_) = self.attempt(cell, &none)? {
            return Ok(vec![none]);
        }
        let Cell { run, place: Place { copies, .. }, setting: set } = cell;
        copies.prepare(set)?;
        let trace = strace::trace_in(copies.dir());
        let calls = strace::occurrences(&copies.command(run.cp(), set), &trace, LIMIT)?;
        Ok(every_case(&calls).map(|(call, when, error)| failure(call, when, error)).collect())
    }

    fn attempt(
        &self,
        cell: &mut Cell<'_, Self::Setting>,
        failure: &Failure,
    ) -> anyhow::Result<Verdict> {
        let Cell { run, place: Place { copies, .. }, setting: set } = cell;
        copies.prepare(set)?;
        let command = copies.command(run.cp(), set);
        let (ended, took_effect) = if failure.call == NO_CALL {
            (process::run(&mut { command }, LIMIT)?, false)
        } else {
            let rule = format!("error={}:when={}", failure.error, failure.when);
            let trace = strace::trace_in(copies.dir());
            strace::inject(&command, &Injection { call: &failure.call, rule }, &trace, LIMIT)?
        };
        if let Some(crash) = ended.crash() {
            return Ok(Verdict::Wrong(crash));
        }
        let mut found = copies.damage()?;
        if ended.success() {
            found.extend(copies.differences(set, demanded(set, failure))?);
            found.extend(copies.missing_backups(set)?);
            found.extend(copies.leftovers()?);
        } else {
            if !took_effect {
                found.push(format!("no fault took effect, and it fails: {}", ended.said()));
            }
            // Messages are written by the same call.
            let can_speak = failure.call != "write" || !failure.when.ends_with('+');
            if can_speak
                && !Copies::is_named_in(&ended.stderr)
                && !NAMES_NO_FILE.iter().any(|words| ended.stderr.contains(words))
            {
                found.push(format!("no file is named: {}", ended.said()));
            }
            if set.is_atomic() && set.existing {
                found.extend(copies.torn()?);
            }
            found.extend(copies.missing_backups(set)?);
            // --resume keeps what the next run continues.
            if set.is_atomic() && !set.has("--resume") {
                found.extend(copies.leftovers()?);
            }
        }
        // What cannot be removed is left over.
        if is_removal(&failure.call) {
            found.retain(|line| !Copies::is_of_leftover(line));
        }
        Ok(match found.first() {
            Some(first) => {
                let more = if found.len() > 1 {
                    format!(" and {} more", found.len() - 1)
                } else {
                    String::new()
                };
                let status = ended.status.map(|status| status.to_string()).unwrap_or_default();
                Verdict::Wrong(format!(
                    "{} {}: {status}: {first}{more}",
                    failure.error, failure.when
                ))
            }
            None if !took_effect => Verdict::Missed,
            None if ended.success() => Verdict::Right,
            None => Verdict::Loud,
        })
    }

    fn subject(_: Self::Setting, failure: &Failure) -> String {
        failure.call.clone()
    }
}

/// Each call, when it fails, and the error.
fn every_case(
    calls: &BTreeMap<String, Occurrences>,
) -> impl Iterator<Item = (&str, String, &'static str)> {
    calls.iter().flat_map(|(call, occurrences)| {
        let possible = POSSIBLE.iter().find(|(name, _)| name == call);
        let errors = possible.map_or(ERRORS, |(_, errors)| *errors);
        (occurrences.before_main + 1..=occurrences.most).flat_map(move |number| {
            errors.iter().flat_map(move |&error| {
                let once = Some(number.to_string());
                let from_then_on = (!PASSING.contains(&error)).then(|| format!("{number}+"));
                let whens = [once, from_then_on].into_iter().flatten();
                whens.map(move |when| (call.as_str(), when, error))
            })
        })
    })
}

/// What a successful copy must have kept. As with GNU cp, `-a` loses extended attributes without failing.
fn demanded(set: &OptionSet, case: &Failure) -> Aspects {
    let aspects = set.aspects();
    Aspects { xattrs: aspects.xattrs && !case.call.contains("xattr"), ..aspects }
}

/// Whether the call removes or renames a name.
fn is_removal(call: &str) -> bool {
    call.starts_with("unlink") || call.starts_with("rename")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        grid::check_texts::<Calls>("ext4; -a --atomic; openat; 12+; EIO", "ext4; -a; openat");
    }

    #[test]
    fn calls_of_the_loader_do_not_fail() {
        let known = Occurrences { before_main: 2, most: 4 };
        let calls = BTreeMap::from([("munmap".to_owned(), known)]);
        let cases: Vec<_> = every_case(&calls).collect();
        let whens: Vec<&str> = cases.iter().map(|(_, when, _)| when.as_str()).collect();
        assert_eq!(whens, ["3", "3+", "4", "4+"]);
        assert!(cases.iter().all(|(_, _, error)| *error == "ENOMEM"));
    }
}
