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

impl Verdict {
    /// `otherwise`, unless something wrong was found.
    pub(crate) fn unless(found: &[String], otherwise: Verdict) -> Verdict {
        match found {
            [] => otherwise,
            [only] => Verdict::Wrong(only.clone()),
            [first, more @ ..] => Verdict::Wrong(format!("{first} and {} more", more.len())),
        }
    }

    /// What is wrong, with when that was before it.
    pub(crate) fn after(self, when: impl fmt::Display) -> Verdict {
        match self {
            Verdict::Wrong(what) => Verdict::Wrong(format!("{when}: {what}")),
            other => other,
        }
    }
}

/// How many cases ended in each way, in the order of `COLUMNS`.
type Tally = [u64; 4];

const COLUMNS: [&str; 4] = ["right", "loud", "missed", "findings"];

/// The cases of a run.
#[derive(Default)]
pub(crate) struct Counts {
    by_group: BTreeMap<Group, Tally>,
}

impl Counts {
    pub(super) fn add(&mut self, group: &Group, verdict: &Verdict) {
        let column = match verdict {
            Verdict::Right => 0,
            Verdict::Loud => 1,
            Verdict::Missed => 2,
            Verdict::Wrong(_) => 3,
        };
        self.by_group.entry(group.clone()).or_default()[column] += 1;
    }

    /// The number of cases.
    pub(super) fn tried(&self) -> u64 {
        self.by_group.values().flatten().sum()
    }

    /// The number of cases that did not come to pass.
    pub(super) fn missed(&self) -> u64 {
        self.by_group.values().map(|[_, _, missed, _]| missed).sum()
    }

    /// Writes a row for each combination of file system, options and kind.
    pub(super) fn write_csv(&self, path: &Path) -> anyhow::Result<()> {
        let mut csv = csv::Writer::from_path(path).with_context(|| path.display().to_string())?;
        csv.write_record(["file_system", "options", "kind", "tried"].iter().chain(&COLUMNS))?;
        for (Group { file_system, options, kind }, tally) in &self.by_group {
            let counts = std::iter::once(tally.iter().sum()).chain(*tally);
            let texts = [file_system, options, kind].into_iter().cloned();
            csv.write_record(texts.chain(counts.map(|count: u64| count.to_string())))?;
        }
        csv.flush().with_context(|| path.display().to_string())
    }
}

/// A heading, and the text of a group that stands below it.
type Column = (&'static str, fn(&Group) -> &str);

/// Three tables: by file system, by options and by kind.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: [Column; 3] = [
            ("file system", |group| &group.file_system),
            ("options", |group| &group.options),
            ("kind", |group| &group.kind),
        ];
        let texts = self.by_group.keys().flat_map(|group| keys.map(|(_, key)| key(group).len()));
        let width = texts.max().unwrap_or(0).max("file system".len());
        for (heading, key) in keys {
            let mut sums: BTreeMap<&str, Tally> = BTreeMap::new();
            for (group, tally) in &self.by_group {
                let sum = sums.entry(key(group)).or_default();
                *sum = std::array::from_fn(|column| sum[column] + tally[column]);
            }
            let [right, loud, missed, findings] = COLUMNS;
            writeln!(
                f,
                "\n{heading:<width$} {:>8} {right:>8} {loud:>8} {missed:>8} {findings:>8}",
                "tried"
            )?;
            for (text, tally) in sums {
                let (tried, [right, loud, missed, found]) = (tally.iter().sum::<u64>(), tally);
                writeln!(
                    f,
                    "{text:<width$} {tried:>8} {right:>8} {loud:>8} {missed:>8} {found:>8}"
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
            let [file_system, options, kind] = ["ext4", options, "read"].map(str::to_owned);
            counts.add(&Group { file_system, options, kind }, &verdict);
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
