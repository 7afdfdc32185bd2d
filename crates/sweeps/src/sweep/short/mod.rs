//! Calls that move bytes move fewer than they were asked for, or are interrupted by a signal before the first.
//!
//! Both are ordinary answers of the kernel, so the copy has to succeed. A shim between the program and the C
//! library makes them: strace can fake a count, but not the transfer that belongs to it. What does not go
//! through the C library's functions is not seen: io_uring's ring, memory that is mapped, and the C library's
//! own reads and writes for fread(3) and fwrite(3).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::copies::OptionSet;
use super::counts::Verdict;
use super::process::{self, Ended, PATIENCE};
use super::run::{Cell, Points, Sweep, parts, texts};

pub(super) const SWEEP: Sweep = Sweep {
    name: "short",
    about: "reads, writes and kernel copies that are short or interrupted (a shim of libc)",
    settings: |_| texts(OPTIONS),
    points: Points::Listed(points),
    attempt,
    repeats: 1,
};

const SHIM: &str = include_str!("shim.c");

/// The kinds of call, in the order of the shim's counters.
const KINDS: [&str; 7] =
    ["read", "pread", "write", "pwrite", "splice", "copy_file_range", "sendfile"];

/// Options. Those with an engine leave it no reflink to prefer.
const OPTIONS: &[&str] = &[
    "-a",
    "-a --reflink=never",
    "-a --reflink=never --jobs=4",
    "-a --reflink=never --no-cache",
    "-a --reflink=never --sparse=always",
    "-a --reflink=never --sparse=never",
    "-a --reflink=never --verify",
    "-a --reflink=never --atomic --durable",
    "-a --reflink=never --resume",
    "-a --reflink=never --limit-rate=1G",
    "-a --reflink=never --engine=read_write",
    "-a --reflink=never --engine=stdio",
    "-a --reflink=never --engine=mmap",
    "-a --reflink=never --engine=copy_file_range",
    "-a --reflink=never --engine=sendfile",
    "-a --reflink=never --engine=splice",
    "-a --reflink=never --engine=io_uring",
    "-a --reflink=never --engine=direct",
    "-a --reflink=never --engine=direct_read",
    "-a --reflink=never --engine=dontcache",
    "-a --reflink=never --engine=read_write:64K@2",
    "-a --reflink=never --engine=splice:1M,pipe=1M",
];

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

/// The rule for the shim: a kind of call, the number of the first that is changed, and a way.
fn rule(point: &str) -> anyhow::Result<String> {
    let [call, number, way] = parts(point)?;
    let number: u64 = number.parse().context("the number of a call")?;
    let way = WAYS.iter().find(|known| known.name == way).context("a way")?;
    let last = if way.until_end { 0 } else { number };
    Ok(format!("{call} {number} {last} {}", way.how))
}

/// The compiled shim and the file of its counters.
struct Shim {
    library: PathBuf,
    counts: PathBuf,
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

/// Whether a copy with `options` may make no call that the shim sees. It may share all data as well.
fn may_make_none(options: &str) -> bool {
    !options.contains("--reflink=never") || UNSEEN.iter().any(|engine| options.ends_with(engine))
}

impl Shim {
    /// The shim in `dir`, compiled with `cc`, which Rust needs for linking anyway, unless it is there already.
    fn in_dir(dir: &Path) -> anyhow::Result<Shim> {
        let library = dir.join("shim.so");
        if !library.exists() {
            let source = dir.join("shim.c");
            std::fs::write(&source, SHIM)?;
            let output = Command::new("cc")
                .args(["-std=gnu11", "-O1", "-shared", "-fPIC", "-o"])
                .args([&library, &source])
                .arg("-ldl")
                .output()
                .context("cc")?;
            ensure!(output.status.success(), "cc: {}", testfs::stderr(&output));
        }
        Ok(Shim { library, counts: dir.join("counts") })
    }

    fn run(&self, command: &mut Command, rule: &str) -> anyhow::Result<(Ended, Seen)> {
        std::fs::write(&self.counts, [0; 4096])?;
        command
            .env("LD_PRELOAD", &self.library)
            .env("HAULAGE_SHORT_COUNTS", &self.counts)
            .env("HAULAGE_SHORT_RULE", rule);
        let ended = process::run(command, PATIENCE)?;
        let bytes = std::fs::read(&self.counts)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let counter = |index: usize| u64::from_ne_bytes(numbers[index]);
        let calls = std::array::from_fn(counter);
        Ok((ended, Seen { calls, changed: counter(KINDS.len()) }))
    }
}

/// Copies while `rule` is in force.
fn copied(cell: &Cell<'_>, set: &OptionSet<'_>, rule: &str) -> anyhow::Result<(Ended, Seen)> {
    let copies = &cell.place.copies;
    copies.prepare(set)?;
    let shim = Shim::in_dir(cell.place.path())?;
    shim.run(&mut copies.command(cell.run.cp(), set), rule)
}

/// Each call that the shim sees, in each way.
fn points(cell: &mut Cell<'_>) -> anyhow::Result<Vec<String>> {
    let options = cell.setting;
    let (_, seen) = copied(cell, &OptionSet::new(options), "")?;
    ensure!(
        seen.any() || may_make_none(options),
        "the shim sees no call of cp {options}: is the program static?"
    );
    let mut points = Vec::new();
    for (call, &count) in KINDS.iter().zip(&seen.calls) {
        for number in 1..=count {
            // What changes all later calls is tried from the first call and from the middle.
            let from = [1, count.div_ceil(2)].contains(&number);
            let ways = WAYS.iter().filter(|way| from || !way.until_end);
            points.extend(ways.map(|way| format!("{call}; {number}; {}", way.name)));
        }
    }
    Ok(points)
}

fn attempt(cell: &mut Cell<'_>, point: &str) -> anyhow::Result<()> {
    let [call, _, way] = parts(point)?;
    let set = OptionSet::new(cell.setting);
    let (ended, seen) = copied(cell, &set, &rule(point)?)?;
    let copies = &cell.place.copies;
    let mut found = copies.differences(&set, set.aspects())?;
    found.extend(copies.leftovers()?);
    found.extend(copies.damage()?);
    let verdict = match ended.verdict(&found) {
        Verdict::Loud => Verdict::Wrong(format!("fails: {}", ended.said())),
        Verdict::Right if seen.changed == 0 => Verdict::Missed,
        verdict => verdict,
    };
    cell.record(point, &format!("{call}, {way}"), verdict);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_rule_of_the_shim() {
        assert_eq!(rule("pread; 7; all half").expect("a way"), "pread 7 0 half");
        assert_eq!(rule("write; 2; eintr").expect("a way"), "write 2 2 eintr");
        for wrong in ["write; 2; never", "write; two; eintr", "write; 2"] {
            assert!(rule(wrong).is_err(), "{wrong}");
        }
    }

    /// A program without the shim fails the sweep: nearly all copies have to make calls that it sees.
    #[test]
    fn few_copies_may_make_no_call() {
        assert!(!Seen { calls: [0; KINDS.len()], changed: 0 }.any());
        assert!(Seen { calls: [0, 0, 1, 0, 0, 0, 0], changed: 0 }.any());
        let silent = OPTIONS.iter().copied().filter(|options| may_make_none(options));
        let silent: Vec<&str> = silent.collect();
        let unseen = UNSEEN.map(|engine| format!("-a --reflink=never {engine}"));
        assert_eq!((silent[0], &silent[1..]), ("-a", &unseen.each_ref().map(String::as_str)[..]));
    }

    /// The shim cuts what other programs move, and they see how much that was.
    #[test]
    fn the_shim_shortens_and_counts() {
        let dir = tempfile::tempdir().expect("created");
        let shim = Shim::in_dir(dir.path()).expect("a compiler");
        let copy = dir.path().join("copy");
        std::fs::write(dir.path().join("file"), vec![1; 10_000]).expect("written");
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
            let len = std::fs::metadata(&copy).expect("looked at").len();
            // dd writes the rest of a short write.
            let expected = if rule.starts_with("write") { 10_000 } else { bytes };
            assert_eq!((len, seen.changed), (expected, changed), "{rule}");
            assert_eq!(seen.calls[0], 1, "{rule}");
        }
    }
}
