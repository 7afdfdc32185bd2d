//! How many cases were tried, and how they ended.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Context;

/// What cases are counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub(crate) file_system: String,
    /// The options of `cp`.
    pub(crate) options: String,
    /// What was done to the copy, such as the system call that failed.
    pub(crate) kind: String,
}

/// How a case ended.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The copy is as the options demand.
    Right,
    /// The copy is not, and the program said so.
    Loud,
    /// What was planned did not come to pass, for example because the call was not made this time.
    Missed,
    /// Anything else, in words.
    Wrong(String),
}

/// How many cases ended in each way.
#[derive(Clone, Copy, Default)]
struct Tally {
    right: u64,
    loud: u64,
    missed: u64,
    wrong: u64,
}

/// The cases of a run.
#[derive(Default)]
pub(crate) struct Counts {
    by_group: BTreeMap<Group, Tally>,
}

impl Group {
    pub(crate) fn new(file_system: &str, options: &str, kind: &str) -> Group {
        Group { file_system: file_system.into(), options: options.into(), kind: kind.into() }
    }
}

impl Tally {
    fn tried(self) -> u64 {
        self.right + self.loud + self.missed + self.wrong
    }

    fn plus(self, other: Tally) -> Tally {
        Tally {
            right: self.right + other.right,
            loud: self.loud + other.loud,
            missed: self.missed + other.missed,
            wrong: self.wrong + other.wrong,
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, group: &Group, verdict: &Verdict) {
        let tally = self.by_group.entry(group.clone()).or_default();
        *match verdict {
            Verdict::Right => &mut tally.right,
            Verdict::Loud => &mut tally.loud,
            Verdict::Missed => &mut tally.missed,
            Verdict::Wrong(_) => &mut tally.wrong,
        } += 1;
    }

    /// The number of cases.
    pub(super) fn tried(&self) -> u64 {
        self.total().tried()
    }

    /// The number of cases that did not come to pass.
    pub(super) fn missed(&self) -> u64 {
        self.total().missed
    }

    /// Writes a row for each combination of file system, options and kind.
    pub(super) fn write_csv(&self, path: &Path) -> anyhow::Result<()> {
        let mut csv = csv::Writer::from_path(path).with_context(|| path.display().to_string())?;
        csv.write_record([
            "file_system",
            "options",
            "kind",
            "tried",
            "right",
            "loud",
            "missed",
            "findings",
        ])?;
        for (Group { file_system, options, kind }, tally) in &self.by_group {
            let counts = [tally.tried(), tally.right, tally.loud, tally.missed, tally.wrong];
            let texts = [file_system, options, kind].into_iter().cloned();
            csv.write_record(texts.chain(counts.map(|count| count.to_string())))?;
        }
        csv.flush().with_context(|| path.display().to_string())
    }

    fn total(&self) -> Tally {
        self.by_group.values().fold(Tally::default(), |sum, tally| sum.plus(*tally))
    }

    /// The sums of all groups with the same text at `key`.
    fn by(&self, key: impl Fn(&Group) -> &str) -> BTreeMap<&str, Tally> {
        let mut sums: BTreeMap<&str, Tally> = BTreeMap::new();
        for (group, tally) in &self.by_group {
            let sum = sums.entry(key(group)).or_default();
            *sum = sum.plus(*tally);
        }
        sums
    }
}

/// Three tables: by file system, by options and by kind.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = [
            ("file system", self.by(|group| &group.file_system)),
            ("options", self.by(|group| &group.options)),
            ("kind", self.by(|group| &group.kind)),
        ];
        let longest = tables.iter().flat_map(|(_, sums)| sums.keys().map(|text| text.len())).max();
        let width = longest.unwrap_or(0).max("file system".len());
        for (heading, sums) in tables {
            writeln!(
                f,
                "\n{heading:<width$} {:>8} {:>8} {:>8} {:>8} {:>8}",
                "tried", "right", "loud", "missed", "findings"
            )?;
            for (text, tally) in sums {
                let Tally { right, loud, missed, wrong } = tally;
                let tried = tally.tried();
                writeln!(
                    f,
                    "{text:<width$} {tried:>8} {right:>8} {loud:>8} {missed:>8} {wrong:>8}"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_by_each_column() {
        let mut counts = Counts::default();
        for (options, verdict) in [
            ("-a", Verdict::Right),
            ("-a", Verdict::Loud),
            ("-r", Verdict::Wrong("lost".to_owned())),
            ("-r", Verdict::Missed),
        ] {
            counts.add(&Group::new("ext4", options, "read"), &verdict);
        }
        assert_eq!(counts.tried(), 4);
        let text = counts.to_string();
        let row = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start)).expect(start);
            line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(row("ext4"), ["4", "1", "1", "1", "1"]);
        assert_eq!(row("-a"), ["2", "1", "1", "0", "0"]);
        assert_eq!(row("-r"), ["2", "0", "0", "1", "1"]);
        assert_eq!(row("read"), ["4", "1", "1", "1", "1"]);
    }
}
