//! Trees that are generated while they are copied.

use fastrand::Rng;

use super::costs::Costs;

/// Entries of each directory of [`Shape::SmallDirectories`], itself included.
const SMALL: u64 = 100;

/// Entries of a level of [`Shape::Spine`], the next one included: many levels of many files, then
/// many more of few.
const LEVEL: u64 = 10_000;
const LAST_LEVELS_ENTRIES: u64 = 1_000_000;

/// Bytes of a file and of a range in [`Shape::LargeFiles`].
const LARGE_FILE_RANGES: u64 = 1024;
const RANGE_BYTES: u64 = 1 << 30;

/// The most directories in one directory of [`Shape::PowerLaw`].
const POWER_LAW_DIRS: u64 = 10_000;

/// The shape of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One directory of files.
    Flat,
    /// One directory of directories of 99 files.
    SmallDirectories,
    /// Sizes of directories and of the trees below them have a Pareto distribution.
    PowerLaw,
    /// Files of 1 TiB, each of 1,024 ranges. Entries are files and ranges.
    LargeFiles,
    /// Each directory has 9,999 files and one directory; the last million entries are in directories
    /// of 99 files and one directory.
    Spine,
    /// Each directory has one directory and nothing else.
    Chain,
}

/// A directory: enough to generate what is in it. In [`Shape::LargeFiles`] also a file, with
/// ranges in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Dir {
    /// What its random numbers start from. No two directories have the same.
    pub(super) seed: u64,
    /// Entries below it.
    pub(super) entries: u64,
    pub(super) depth: u32,
}

/// What is in a directory.
#[derive(Clone, Debug)]
pub(super) struct Children {
    /// Names, of which directories are spread evenly between files.
    pub(super) names: u64,
    dirs: Dirs,
}

#[derive(Clone, Debug)]
enum Dirs {
    Equal { count: u64, entries: u64 },
    Each(Vec<u64>),
}

impl Shape {
    /// All shapes, and the name of each.
    pub(crate) const ALL: [(&str, Shape); 6] = [
        ("flat", Shape::Flat),
        ("small-directories", Shape::SmallDirectories),
        ("power-law", Shape::PowerLaw),
        ("large-files", Shape::LargeFiles),
        ("spine", Shape::Spine),
        ("chain", Shape::Chain),
    ];

    pub(super) fn root(entries: u64) -> Dir {
        Dir { seed: 0x1234_5678, entries, depth: 0 }
    }

    pub(super) fn range_bytes(self, dir: &Dir) -> Option<u64> {
        (self == Shape::LargeFiles && dir.depth > 0).then_some(RANGE_BYTES)
    }

    /// How many directories one after the other, `dir` included, have only one entry: a directory.
    pub(super) fn straight(self, dir: &Dir) -> u64 {
        if self == Shape::Chain { dir.entries } else { 0 }
    }

    /// How many directories a rank opens to be in `dir`, if it has those of `open` open.
    pub(super) fn levels_to_open<'d>(
        self,
        dir: &Dir,
        open: impl IntoIterator<Item = &'d Dir>,
    ) -> u32 {
        // In other shapes only the same directory is known to be above.
        let is_one_path = matches!(self, Shape::Spine | Shape::Chain);
        let is_above =
            |known: &&Dir| known.seed == dir.seed || is_one_path && known.depth < dir.depth;
        let nearest = open.into_iter().filter(is_above).map(|known| known.depth).max();
        dir.depth - nearest.unwrap_or(0)
    }

    /// The directory `levels` below `dir` in a [`Shape::Chain`].
    pub(super) fn below(dir: &Dir, levels: u64) -> Dir {
        let depth = dir.depth.saturating_add(u32::try_from(levels).unwrap_or(u32::MAX));
        Dir { seed: dir.seed.wrapping_add(levels), entries: dir.entries - levels, depth }
    }

    pub(super) fn children(self, dir: &Dir) -> Children {
        let equal =
            |names, count, entries| Children { names, dirs: Dirs::Equal { count, entries } };
        match self {
            Shape::Flat => equal(dir.entries, 0, 0),
            Shape::Chain => {
                equal(dir.entries.min(1), dir.entries.min(1), dir.entries.saturating_sub(1))
            }
            Shape::Spine if dir.entries < SMALL => equal(dir.entries, 0, 0),
            Shape::Spine => {
                let is_last = dir.entries <= LAST_LEVELS_ENTRIES;
                let names = if is_last { SMALL } else { LEVEL };
                equal(names, 1, dir.entries - names)
            }
            Shape::SmallDirectories | Shape::LargeFiles if dir.depth > 0 => {
                equal(dir.entries, 0, 0)
            }
            Shape::SmallDirectories => several(dir.entries, SMALL),
            Shape::LargeFiles => several(dir.entries, LARGE_FILE_RANGES + 1),
            Shape::PowerLaw => power_law(dir),
        }
    }

    /// The time that the longest sequence of steps takes, each of which needs the one before it: no
    /// number of ranks is faster.
    pub(super) fn critical_ns(self, entries: u64, costs: &Costs) -> u64 {
        let root = Shape::root(entries);
        if self == Shape::Chain {
            return entries * (costs.enter_ns() + costs.list_all_ns(1) + costs.finish_ns());
        }
        // The time until the copy of a directory starts, and the longest until it is finished.
        let mut next = vec![(root, 0)];
        let mut longest = 0;
        while let Some((dir, before)) = next.pop() {
            let children = self.children(&dir);
            let own = costs.enter_ns() + costs.finish_ns();
            let entered = before + own;
            let leaf = costs.leaf_ns(self.range_bytes(&dir)) * u64::from(children.names > 0);
            let listed = match self.range_bytes(&dir) {
                Some(_) => 0,
                None => costs.list_all_ns(children.names),
            };
            longest = longest.max(entered + listed + leaf);
            // The first batch of names may have a directory.
            let first = costs.list_ns(children.names.min(super::costs::LISTED_NAMES));
            let dirs = children.dirs();
            // Of equal ones the last is listed last.
            let from =
                if matches!(children.dirs, Dirs::Equal { .. }) { dirs.max(1) - 1 } else { 0 };
            for index in from..dirs {
                let at = children.names * index / dirs;
                let calls = at / super::costs::LISTED_NAMES;
                let found = first + calls * costs.list_ns(super::costs::LISTED_NAMES);
                next.push((children.dir(&dir, index), entered + found));
            }
        }
        longest
    }
}

fn several(entries: u64, each: u64) -> Children {
    let count = entries / each;
    let names = count + entries % each;
    Children { names, dirs: Dirs::Equal { count, entries: each - 1 } }
}

fn power_law(dir: &Dir) -> Children {
    let mut rng = Rng::with_seed(dir.seed);
    let mut files = pareto(&mut rng, 20.0, 1.1).min(dir.entries);
    let rest = dir.entries - files;
    let count = (1 + pareto(&mut rng, 2.0, 1.5)).min(POWER_LAW_DIRS).min(rest);
    let weights: Vec<u64> = (0..count).map(|_| pareto(&mut rng, 1000.0, 1.2)).collect();
    let sum: u64 = weights.iter().sum();
    let share = |weight: u64| {
        let part = u128::from(rest - count) * u128::from(weight) / u128::from(sum.max(1));
        u64::try_from(part).expect("a part of the rest")
    };
    let below: Vec<u64> = weights.into_iter().map(share).collect();
    // What rounding left over.
    files += rest - count - below.iter().sum::<u64>();
    Children { names: files + count, dirs: Dirs::Each(below) }
}

/// A random number of a Pareto distribution.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and bounded")]
fn pareto(rng: &mut Rng, least: f64, exponent: f64) -> u64 {
    (least / (1.0 - rng.f64()).powf(1.0 / exponent)).min(1e15) as u64
}

impl Children {
    pub(super) fn dirs(&self) -> u64 {
        match &self.dirs {
            Dirs::Equal { count, .. } => *count,
            Dirs::Each(below) => below.len() as u64,
        }
    }

    /// The directory `index` of those in `parent`.
    pub(super) fn dir(&self, parent: &Dir, index: u64) -> Dir {
        let entries = match &self.dirs {
            Dirs::Equal { entries, .. } => *entries,
            Dirs::Each(below) => below[usize::try_from(index).expect("an index")],
        };
        // SplitMix64, as in fastrand, keeps seeds apart.
        let mut rng = Rng::with_seed(parent.seed.wrapping_add(index.wrapping_mul(0x9e37_79b9)));
        Dir { seed: rng.u64(..), entries, depth: parent.depth + 1 }
    }

    /// Which directory the name `at` is; `None` for a file.
    pub(super) fn dir_at(&self, at: u64) -> Option<u64> {
        let dirs = self.dirs();
        let index = (dirs > 0).then(|| self.dirs_before(at))?;
        (index < dirs && self.place(index) == at).then_some(index)
    }

    /// The first name from `at` that is a directory, or the number of names.
    pub(super) fn next_dir(&self, at: u64) -> u64 {
        let dirs = self.dirs();
        if dirs == 0 {
            return self.names;
        }
        let index = self.dirs_before(at);
        if index < dirs { self.place(index) } else { self.names }
    }

    /// How many directories have a place before `at`.
    fn dirs_before(&self, at: u64) -> u64 {
        let product = u128::from(at) * u128::from(self.dirs());
        u64::try_from(product.div_ceil(u128::from(self.names.max(1)))).expect("at most all")
    }

    fn place(&self, index: u64) -> u64 {
        let product = u128::from(self.names) * u128::from(index);
        u64::try_from(product / u128::from(self.dirs())).expect("at most all")
    }
}
