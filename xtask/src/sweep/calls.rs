//! Every system call of a copy fails once, or from some time on, with many errors.
//!
//! strace makes them fail. It counts the calls of each thread by itself, so with several workers the same case
//! may fail in several of them. Calls of the loader before `main` are left out.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use testfs::Aspects;

use super::copies::{self, Copies, OptionSet};
use super::counts::{Group, Verdict};
use super::process;
use super::run::{Run, Sweep};
use super::strace::{self, Injection, Occurrences};
use super::turns::in_turns;

pub(super) const SWEEP: Sweep = Sweep {
    name: "calls",
    about: "each system call fails once, or from then on, with each of many errors (strace)",
    try_cases,
    repeat,
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

/// One case. Its text is these, separated by `; `.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Case {
    kind: String,
    options: String,
    call: String,
    /// `3`, or `3+` for the third call and all after it.
    when: String,
    error: String,
}

impl Case {
    fn text(&self) -> String {
        let Case { kind, options, call, when, error } = self;
        [kind, options, call, when, error].map(String::as_str).join("; ")
    }

    fn parse(text: &str) -> anyhow::Result<Case> {
        let parts: Vec<&str> = text.split("; ").collect();
        let [kind, options, call, when, error] = parts[..] else {
            bail!("'{text}' is not of the form FILE-SYSTEM; OPTIONS; CALL; WHEN; ERROR");
        };
        let [kind, options, call, when, error] =
            [kind, options, call, when, error].map(str::to_owned);
        Ok(Case { kind, options, call, when, error })
    }

    fn group(&self) -> Group {
        Group::new(&self.kind, &self.options, &self.call)
    }
}

fn try_cases(run: &mut Run<'_>) -> anyhow::Result<()> {
    let places = copies::on_each(run)?;
    let groups =
        places.iter().flat_map(|place| OPTION_SETS.iter().map(move |set| (place, set))).collect();
    in_turns(
        run,
        groups,
        |run, ((kind, copies), set)| cases_of(run, kind, copies, set),
        |run, ((_, copies), set), case| {
            let verdict = attempt(run, copies, set, case)?;
            run.record(&case.text(), case.group(), verdict);
            Ok(())
        },
    )
}

fn repeat(run: &mut Run<'_>, text: &str) -> anyhow::Result<()> {
    let case = Case::parse(text)?;
    let set = OptionSet::named(OPTION_SETS, &case.options)?;
    let copies = Copies::new(run.place(&case.kind)?.path())?;
    let verdict = attempt(run, &copies, set, &case)?;
    run.record(text, case.group(), verdict);
    Ok(())
}

/// Every case of one file system and one option set. None, after it is recorded, if the copy is wrong without a fault.
fn cases_of(
    run: &mut Run<'_>,
    kind: &str,
    copies: &Copies,
    set: &OptionSet,
) -> anyhow::Result<Vec<Case>> {
    let case = |call: &str, when: String, error: &str| {
        let [kind, options, call, error] = [kind, set.text, call, error].map(str::to_owned);
        Case { kind, options, call, when, error }
    };
    let faultless = case(NO_CALL, "0".to_owned(), "none");
    let verdict = attempt(run, copies, set, &faultless)?;
    if let Verdict::Wrong(_) = verdict {
        run.record(&faultless.text(), faultless.group(), verdict);
        return Ok(Vec::new());
    }
    copies.prepare(set)?;
    let trace = strace::trace_in(copies.dir());
    let calls = strace::occurrences(&copies.command(run.cp(), set), &trace, LIMIT)?;
    Ok(every_case(&calls).map(|(call, when, error)| case(call, when, error)).collect())
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

fn attempt(
    run: &Run<'_>,
    copies: &Copies,
    set: &OptionSet,
    case: &Case,
) -> anyhow::Result<Verdict> {
    copies.prepare(set)?;
    let command = copies.command(run.cp(), set);
    let (ended, took_effect) = if case.call == NO_CALL {
        (process::run(&mut { command }, LIMIT)?, false)
    } else {
        let rule = format!("error={}:when={}", case.error, case.when);
        let trace = strace::trace_in(copies.dir());
        strace::inject(&command, &Injection { call: &case.call, rule }, &trace, LIMIT)?
    };
    if let Some(crash) = ended.crash() {
        return Ok(Verdict::Wrong(crash));
    }
    let mut found = copies.damage()?;
    if ended.success() {
        found.extend(copies.differences(set, demanded(set, case))?);
        found.extend(copies.missing_backups(set)?);
        found.extend(copies.leftovers()?);
    } else {
        if !took_effect {
            found.push(format!("no fault took effect, and it fails: {}", ended.said()));
        }
        if !Copies::is_named_in(&ended.stderr) && !ended.stderr.contains("memory exhausted") {
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
    if is_removal(&case.call) {
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
            Verdict::Wrong(format!("{} {}: {status}: {first}{more}", case.error, case.when))
        }
        None if !took_effect => Verdict::Missed,
        None if ended.success() => Verdict::Right,
        None => Verdict::Loud,
    })
}

/// What a successful copy must have kept. As with GNU cp, `-a` loses extended attributes without failing.
fn demanded(set: &OptionSet, case: &Case) -> Aspects {
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
        let text = "ext4; -a --atomic; openat; 12+; EIO";
        let case = Case::parse(text).expect("a case");
        assert_eq!((case.options.as_str(), case.when.as_str()), ("-a --atomic", "12+"));
        assert_eq!(case.text(), text);
        assert!(Case::parse("ext4; -a; openat").is_err());
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
