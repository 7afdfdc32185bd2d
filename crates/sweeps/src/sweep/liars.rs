//! Copies from and to a file system that lies: the copy is right, or the program says what is wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use fastrand::Rng;
use testfs::{Costs, FuseFs, LengthChange, Lies, WrongSize};

use super::copies::each_below;
use super::counts::Verdict;
use super::process::{self, Ended, PATIENCE};
use super::run::{Cell, Points, Sweep, seed, texts};

pub(super) const SWEEP: Sweep = Sweep {
    name: "liars",
    about: "a file system that lies, as source and as destination",
    settings: |_| texts(&["-a", "-r"]),
    points: Points::Seeds,
    attempt,
    repeats: 1,
};

/// What the kernel asks of one read at most. A slow read of so many bytes takes its full time.
const READ_BYTES: u32 = 128 << 10;

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
}

/// A lie, or a failure.
struct Lie {
    name: &'static str,
    side: Side,
    tell: fn(&mut Lies, &mut Rng),
}

const fn lie(name: &'static str, side: Side, tell: fn(&mut Lies, &mut Rng)) -> Lie {
    Lie { name, side, tell }
}

use Side::{Destination, Source};

const LIES: &[Lie] = &[
    lie("size zero", Source, |lies, _| lies.size = Some(WrongSize::Is(0))),
    lie("size too small", Source, |lies, rng| {
        lies.size = Some(WrongSize::Short([1, 4096, 1 << 20][rng.usize(..3)]));
    }),
    lie("size too large", Source, |lies, rng| {
        lies.size = Some(WrongSize::Long([1, 4096, 1 << 30][rng.usize(..3)]));
    }),
    lie("all hole", Source, |lies, _| (lies.all_hole, lies.no_blocks) = (true, true)),
    lie("wrong types", Source, |lies, _| lies.wrong_types = true),
    lie("changing inodes", Source, |lies, _| lies.changing_inodes = true),
    lie("one inode", Source, |lies, _| lies.one_inode = true),
    lie("names twice", Source, |lies, _| lies.names_twice = true),
    lie("time backward", Source, |lies, _| lies.time_backward = true),
    lie("slow reads", Source, |lies, _| lies.read_time = Duration::from_millis(5)),
    lie("short reads", Source, |lies, rng| {
        lies.read_bytes_max = Some([1000, 4096, 65_537][rng.usize(..3)]);
    }),
    lie("read error", Source, |lies, rng| lies.read_error_at = Some(rng.u64(..300_000))),
    lie("truncated", Source, |lies, rng| {
        lies.changes_at_read = Some((rng.u64(1..12), LengthChange::Truncated));
    }),
    lie("grown", Source, |lies, rng| {
        lies.changes_at_read = Some((rng.u64(1..12), LengthChange::Grown));
    }),
    lie("size zero", Destination, |lies, _| lies.size = Some(WrongSize::Is(0))),
    lie("size too large", Destination, |lies, _| lies.size = Some(WrongSize::Long(4096))),
    lie("wrong types", Destination, |lies, _| lies.wrong_types = true),
    lie("changing inodes", Destination, |lies, _| lies.changing_inodes = true),
    lie("one inode", Destination, |lies, _| lies.one_inode = true),
    lie("time backward", Destination, |lies, _| lies.time_backward = true),
    lie("short writes", Destination, |lies, rng| {
        lies.write_bytes_max = Some([1000, 4096, 65_537][rng.usize(..3)]);
    }),
    lie("full", Destination, |lies, rng| lies.full_at_write = Some(rng.u64(1..12))),
    lie("wrong byte", Destination, |lies, rng| lies.wrong_byte_at = Some(rng.u64(..300_000))),
    lie("fsync error", Destination, |lies, _| lies.fsync_error = true),
    lie("close error", Destination, |lies, _| lies.close_error = Some(rustix::io::Errno::IO)),
    lie("attributes refused", Destination, |lies, _| lies.refuses_attributes = true),
];

/// Options that are combined at random.
const OPTIONS: &str = "--atomic --durable --verify --resume --sparse=always --sparse=never \
                       --reflink=never --no-cache --jobs=1 --jobs=4 --remove-destination -u";

/// One copy.
#[derive(Debug)]
struct Case {
    side: Side,
    lies: Lies,
    /// The lies, in words.
    told: String,
    /// Whether reads and writes bypass the page cache.
    direct_io: bool,
    options: Vec<String>,
    /// Seed of the tree.
    tree_seed: u64,
}

impl Case {
    fn new(option: &str, seed: u64) -> Case {
        let mut rng = Rng::with_seed(seed);
        let side = if rng.bool() { Source } else { Destination };
        let of_side: Vec<&Lie> = LIES.iter().filter(|lie| lie.side == side).collect();
        let mut lies = Lies::default();
        let chosen = [1, 1, 2, 3][rng.usize(..4)];
        let chosen = rng.choose_multiple(of_side, chosen);
        chosen.iter().for_each(|lie| (lie.tell)(&mut lies, &mut rng));
        // Thousands of reads that are both short and slow would take minutes.
        if let Some(bytes) = lies.read_bytes_max.and_then(|bytes| u32::try_from(bytes).ok()) {
            lies.read_time = lies.read_time * bytes.min(READ_BYTES) / READ_BYTES;
        }
        let mut options = vec![option.to_owned()];
        for option in OPTIONS.split(' ') {
            if rng.u8(..4) == 0 {
                options.push(option.to_owned());
            }
        }
        // Nobody can see what was stored without looking.
        if lies.wrong_byte_at.is_some() && !options.iter().any(|option| option == "--verify") {
            options.push("--verify".to_owned());
        }
        // With the page cache the kernel fills up what a read did not return, and looks at no file beyond
        // its size, before any program can see it. A mapping always goes through it.
        let kernel_hides = lies.size.is_some()
            || lies.read_bytes_max.is_some()
            || lies.write_bytes_max.is_some()
            || lies.changes_at_read.is_some();
        if rng.bool() {
            let engines = engines::ENGINES.iter().map(|engine| engine.name);
            let never = options.iter().any(|option| option == "--reflink=never");
            let is_usable = |name: &&str| match *name {
                "memory" => false,
                "mmap" => !kernel_hides,
                "reflink" => !never,
                _ => true,
            };
            let named: Vec<&str> = engines.filter(is_usable).collect();
            options.push(format!("--engine={}", named[rng.usize(..named.len())]));
        }
        let mut told: Vec<&str> = chosen.iter().map(|lie| lie.name).collect();
        told.sort_unstable();
        let told = format!("{side:?}: {}", told.join(", ")).to_lowercase();
        let direct_io = kernel_hides || rng.bool();
        Case { side, lies, told, direct_io, options, tree_seed: rng.u64(..) }
    }

    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }
}

/// Copies from the file system that lies to that of the cell, or the other way.
fn attempt(cell: &mut Cell<'_>, point: &str) -> anyhow::Result<()> {
    let case = Case::new(cell.setting, seed(point)?);
    let dir = tempfile::tempdir_in(cell.place.path()).context("a directory")?;
    let costs = Costs { direct_io: case.direct_io, ..Costs::default() };
    let served = FuseFs::mount(costs).context("no FUSE file system can be mounted")?;
    let (src, dst) = match case.side {
        Source => (served.path().join("src"), dir.path().join("dst")),
        Destination => (dir.path().join("src"), served.path().join("dst")),
    };
    let before = make_tree(&src, case.tree_seed)?;
    served.lie(case.lies.clone());
    let mut command = cell.run.cp();
    command.args(&case.options).arg("-T").args([&src, &dst]);
    let ended = process::run(&mut command, PATIENCE)?;
    served.lie(Lies::default());
    let copied = match case.side {
        Source => read_tree(&dst)?,
        Destination => served.contents_below("dst"),
    };
    // What was truncated or grown while it was copied may be copied as it was or as it is.
    let after = match case.side {
        Source => served.contents_below("src"),
        Destination => before.clone(),
    };
    let verdict = judge(&case, &ended, (&before, &after), &copied);
    cell.record(point, &case.told, verdict.after(format_args!("cp {}", case.options.join(" "))));
    Ok(())
}

/// Files by path, and `None` for directories.
type Contents = BTreeMap<PathBuf, Option<Vec<u8>>>;

fn judge(
    case: &Case,
    ended: &Ended,
    (before, after): (&Contents, &Contents),
    copied: &Contents,
) -> Verdict {
    let mut found = Vec::new();
    if !ended.success() {
        // Every name of the tree is in its own path and in no other word.
        let names = before.keys().filter_map(|path| path.file_name()?.to_str());
        if !names.chain(["dst", "src"]).any(|name| ended.stderr.contains(name)) {
            found.push(format!("it failed and named no file: {}", ended.said()));
        }
        return ended.verdict(&found);
    }
    if case.side == Destination {
        for (is_told, what) in [
            (case.lies.close_error.is_some(), "no file could be closed"),
            (case.lies.fsync_error && case.has("--durable"), "nothing could be synced"),
            (case.lies.refuses_attributes && case.has("-a"), "no attribute could be set"),
        ] {
            if is_told {
                found.push(format!("success, though {what}"));
            }
        }
    }
    let is_warned = ended.stderr.contains("changed while being copied");
    let wrong = |path: &&PathBuf| {
        let found = copied.get(*path);
        let is_right = [before, after].iter().any(|tree| tree.get(*path) == found);
        // The program says which file changed.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !(is_right || is_warned && ended.stderr.contains(&*name))
    };
    for path in before.keys().chain(copied.keys()).filter(wrong) {
        let shown = |tree: &Contents| match tree.get(path) {
            None => "absent".to_owned(),
            Some(None) => "a directory".to_owned(),
            Some(Some(bytes)) => format!("{} bytes", bytes.len()),
        };
        let (before, copied) = (shown(before), shown(copied));
        found.push(format!("silently wrong: {}: {before}, copied as {copied}", path.display()));
    }
    ended.verdict(&found)
}

/// Makes a tree of some files in the new directory `root`, and returns what is in it.
fn make_tree(root: &Path, seed: u64) -> anyhow::Result<Contents> {
    let mut rng = Rng::with_seed(seed);
    let mut made = Contents::new();
    made.insert(PathBuf::new(), None);
    for dir in ["dir1", "dir1/dir2"] {
        made.insert(dir.into(), None);
    }
    for (number, dir) in ["", "", "dir1", "dir1/dir2", "dir1/dir2"].iter().enumerate() {
        let len = [0, 1, 4096, 5000, 70_000, 300_000, 1_500_000][rng.usize(..7)];
        let content = testfs::random_bytes(len, rng.u64(..));
        made.insert(Path::new(dir).join(format!("file{number}")), Some(content));
    }
    if rng.u8(..6) == 0 {
        // The least size of which `--resume` keeps a journal.
        made.insert("large".into(), Some(testfs::random_bytes((4 << 20) + 7, rng.u64(..))));
    }
    for (path, content) in &made {
        let path = root.join(path);
        let result = match content {
            Some(content) => std::fs::write(&path, content),
            None => std::fs::create_dir(&path),
        };
        result.with_context(|| path.display().to_string())?;
    }
    Ok(made)
}

/// What is in the tree at `root`; nothing if there is none.
fn read_tree(root: &Path) -> anyhow::Result<Contents> {
    let mut found = Contents::new();
    each_below(root, &mut |path| {
        let content = if path.is_dir() { None } else { Some(std::fs::read(path)?) };
        found.insert(path.strip_prefix(root).unwrap_or(path).to_owned(), content);
        Ok(())
    })?;
    Ok(found)
}
