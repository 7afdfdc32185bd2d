//! Calls that move bytes move fewer than they were asked for, or are interrupted by a signal before the first.
//!
//! Both are ordinary answers of the kernel, so the copy has to succeed. A shim between the program and the C
//! library makes them: strace can fake a count, but not the transfer that belongs to it. What does not go
//! through the C library's functions is not seen: io_uring's ring, memory that is mapped, and the C library's
//! own reads and writes for fread(3) and fwrite(3).

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::copies::OptionSet;
use super::counts::Verdict;
use super::grid::{self, Cell, Grid, Place, Point};
use super::process::{self, Ended};
use super::run::Sweep;

pub(super) const SWEEP: Sweep = Sweep {
    name: "short",
    about: "reads, writes and kernel copies that are short or interrupted (a shim of libc)",
    try_cases: grid::try_cases::<Shim>,
    repeat: grid::repeat::<Shim>,
};

/// How long a copy may take on a busy machine, with thousands of short calls.
const LIMIT: Duration = Duration::from_secs(60);

const SHIM: &str = include_str!("shim.c");

/// The kinds of call, in the order of the shim's counters.
const KINDS: [&str; 7] =
    ["read", "pread", "write", "pwrite", "splice", "copy_file_range", "sendfile"];

/// Option sets. Those with an engine leave it no reflink to prefer.
const OPTION_SETS: &[OptionSet] = &[
    fresh("-a"),
    fresh("-a --reflink=never"),
    fresh("-a --reflink=never --jobs=4"),
    fresh("-a --reflink=never --no-cache"),
    fresh("-a --reflink=never --sparse=always"),
    fresh("-a --reflink=never --sparse=never"),
    fresh("-a --reflink=never --verify"),
    fresh("-a --reflink=never --atomic --durable"),
    fresh("-a --reflink=never --resume"),
    fresh("-a --reflink=never --limit-rate=1G"),
    fresh("-a --reflink=never --engine=read_write"),
    fresh("-a --reflink=never --engine=stdio"),
    fresh("-a --reflink=never --engine=mmap"),
    fresh("-a --reflink=never --engine=copy_file_range"),
    fresh("-a --reflink=never --engine=sendfile"),
    fresh("-a --reflink=never --engine=splice"),
    fresh("-a --reflink=never --engine=io_uring"),
    fresh("-a --reflink=never --engine=direct"),
    fresh("-a --reflink=never --engine=direct_read"),
    fresh("-a --reflink=never --engine=dontcache"),
    fresh("-a --reflink=never --engine=read_write:64K@2"),
    fresh("-a --reflink=never --engine=splice:1M,pipe=1M"),
];

const fn fresh(text: &'static str) -> OptionSet {
    OptionSet { text, existing: false }
}

/// What the shim does, from the call with the number in the case.
const WAYS: &[Way] = &[
    Way { name: "one", how: "one", until_end: false },
    Way { name: "half", how: "half", until_end: false },
    Way { name: "all half", how: "half", until_end: true },
    Way { name: "all a page", how: "page", until_end: true },
    Way { name: "eintr", how: "eintr", until_end: false },
    Way { name: "every second eintr", how: "odd", until_end: true },
];

struct Way {
    /// The name in the text of a case.
    name: &'static str,
    /// As the shim calls it.
    how: &'static str,
    /// Whether all later calls are changed, too.
    until_end: bool,
}

/// A change of one call, or of those from it on. Its text is these, separated by `; `.
struct Change {
    /// One of `KINDS`.
    call: String,
    /// The number of the call among those of its kind, from 1.
    number: u64,
    /// The name of a way.
    way: String,
}

impl Point for Change {
    fn parts(&self) -> Vec<String> {
        vec![self.call.clone(), self.number.to_string(), self.way.clone()]
    }

    fn of(parts: &[&str]) -> Option<Change> {
        let &[call, number, way] = parts else { return None };
        Some(Change { call: call.to_owned(), number: number.parse().ok()?, way: way.to_owned() })
    }
}

impl Change {
    /// The rule for the shim.
    fn rule(&self) -> anyhow::Result<String> {
        let way = WAYS.iter().find(|way| way.name == self.way);
        let way = way.with_context(|| format!("no way is '{}'", self.way))?;
        let last = if way.until_end { 0 } else { self.number };
        Ok(format!("{} {} {last} {}", self.call, self.number, way.how))
    }
}

/// The compiled shim and the file of its counters.
struct Shim {
    library: PathBuf,
    counts: PathBuf,
    /// Holds both.
    _dir: TempDir,
}

/// How often the shim saw each kind of call, and how many calls it changed.
struct Seen {
    calls: [u64; KINDS.len()],
    changed: u64,
}

impl Seen {
    /// Whether the shim is in the program.
    fn any(&self) -> bool {
        self.calls.iter().any(|&count| count > 0)
    }
}

/// Engines whose calls the shim does not see.
const UNSEEN: [&str; 3] = ["--engine=stdio", "--engine=mmap", "--engine=io_uring"];

/// Whether a copy with `set` may make no call that the shim sees. It may share all data as well.
fn may_make_none(set: &OptionSet) -> bool {
    !set.has("--reflink=never") || UNSEEN.iter().any(|engine| set.has(engine))
}

impl Shim {
    /// Compiles it with `cc`, which Rust needs for linking anyway.
    fn compile() -> anyhow::Result<Shim> {
        let dir = tempfile::tempdir()?;
        let (source, library) = (dir.path().join("shim.c"), dir.path().join("shim.so"));
        std::fs::write(&source, SHIM)?;
        let output = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .context("cc")?;
        ensure!(output.status.success(), "cc: {}", testfs::stderr(&output));
        Ok(Shim { library, counts: dir.path().join("counts"), _dir: dir })
    }

    fn run(&self, command: &mut Command, rule: &str) -> anyhow::Result<(Ended, Seen)> {
        std::fs::write(&self.counts, [0; 4096])?;
        command
            .env("LD_PRELOAD", &self.library)
            .env("HAULAGE_SHORT_COUNTS", &self.counts)
            .env("HAULAGE_SHORT_RULE", rule);
        let ended = process::run(command, LIMIT)?;
        let bytes = std::fs::read(&self.counts)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let counter = |index: usize| u64::from_ne_bytes(numbers[index]);
        let calls = std::array::from_fn(counter);
        Ok((ended, Seen { calls, changed: counter(KINDS.len()) }))
    }
}

impl Grid for Shim {
    type Setting = &'static OptionSet;
    type Point = Change;

    fn new() -> anyhow::Result<Shim> {
        Shim::compile()
    }

    fn settings(_: &str) -> Vec<&'static OptionSet> {
        OPTION_SETS.iter().collect()
    }

    fn points(&self, cell: &mut Cell<'_, Self::Setting>) -> anyhow::Result<Vec<Change>> {
        let Cell { run, place: Place { copies, .. }, setting: set } = cell;
        copies.prepare(set)?;
        let (_, seen) = self.run(&mut copies.command(run.cp(), set), "")?;
        ensure!(
            seen.any() || may_make_none(set),
            "the shim sees no call of cp {}: is the program static?",
            set.text
        );
        let mut changes = Vec::new();
        for (call, &count) in KINDS.iter().zip(&seen.calls) {
            for number in 1..=count {
                // What changes all later calls is tried from the first call and from the middle.
                let from = [1, count.div_ceil(2)].contains(&number);
                for way in WAYS.iter().filter(|way| from || !way.until_end) {
                    let [call, way] = [call, way.name].map(str::to_owned);
                    changes.push(Change { call, number, way });
                }
            }
        }
        Ok(changes)
    }

    fn attempt(
        &self,
        cell: &mut Cell<'_, Self::Setting>,
        change: &Change,
    ) -> anyhow::Result<Verdict> {
        let Cell { run, place: Place { copies, .. }, setting: set } = cell;
        copies.prepare(set)?;
        let (ended, seen) = self.run(&mut copies.command(run.cp(), set), &change.rule()?)?;
        if let Some(crash) = ended.crash() {
            return Ok(Verdict::Wrong(crash));
        }
        if !ended.success() {
            return Ok(Verdict::Wrong(format!("fails: {}", ended.said())));
        }
        let mut found = copies.differences(set, set.aspects())?;
        found.extend(copies.leftovers()?);
        found.extend(copies.damage()?);
        Ok(match found.first() {
            Some(first) => Verdict::Wrong(format!("exit status 0: {first}")),
            None if seen.changed == 0 => Verdict::Missed,
            None => Verdict::Right,
        })
    }

    fn subject(_: Self::Setting, change: &Change) -> String {
        format!("{}, {}", change.call, change.way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        let text = "ext4; -a --reflink=never; pread; 7; all half";
        grid::check_texts::<Shim>(text, "ext4; -a; write; two; eintr");
        let rule = |text: &str| {
            let parts: Vec<&str> = text.split("; ").collect();
            Change::of(&parts).expect("a change").rule()
        };
        assert_eq!(rule("pread; 7; all half").expect("a way"), "pread 7 0 half");
        assert_eq!(rule("write; 2; eintr").expect("a way"), "write 2 2 eintr");
        assert!(rule("write; 2; never").is_err());
    }

    /// A program without the shim fails the sweep: nearly all copies have to make calls that it sees.
    #[test]
    fn few_copies_may_make_no_call() {
        assert!(!Seen { calls: [0; KINDS.len()], changed: 0 }.any());
        assert!(Seen { calls: [0, 0, 1, 0, 0, 0, 0], changed: 0 }.any());
        let silent = OPTION_SETS.iter().filter(|set| may_make_none(set));
        let silent: Vec<&str> = silent.map(|set| set.text).collect();
        let unseen = UNSEEN.map(|engine| format!("-a --reflink=never {engine}"));
        assert_eq!((silent[0], &silent[1..]), ("-a", &unseen.each_ref().map(String::as_str)[..]));
    }

    /// The shim cuts what other programs move, and they see how much that was.
    #[test]
    fn the_shim_shortens_and_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let shim = Shim::compile().expect("a compiler");
        let copy = dir.path().join("copy");
        std::fs::write(dir.path().join("file"), vec![1; 10_000]).expect("a file");
        // One read and one write, however much that is.
        for (rule, bytes, changed) in [
            ("", 10_000, 0),
            ("read 1 1 one", 1, 1),
            ("read 1 0 page", 4096, 1),
            ("write 1 1 half", 5000, 1),
        ] {
            let mut command = Command::new("dd");
            command.args(["if=file", "of=copy", "bs=10000", "count=1", "status=none"]);
            let (_, seen) = shim.run(command.current_dir(dir.path()), rule).expect("it runs");
            let len = std::fs::metadata(&copy).expect("the copy").len();
            // dd writes the rest of a short write.
            let expected = if rule.starts_with("write") { 10_000 } else { bytes };
            assert_eq!((len, seen.changed), (expected, changed), "{rule}");
            assert_eq!(seen.calls[0], 1, "{rule}");
        }
    }
}
