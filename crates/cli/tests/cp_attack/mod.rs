//! Copies run as root while an attacker puts symbolic links in the place of entries, at the source
//! and at the destination. They lead to a tree outside, of which nothing may ever change, and
//! nothing may be copied unless the user asked to follow links.
//!
//! `HAULAGE_ATTACK_COPIES=10000` makes so many copies on every file system; without it there are
//! some, on tmpfs. `HAULAGE_ATTACK_SEED=2` attacks other names at other times.
//! `HAULAGE_ATTACKED_PROGRAM=cp` attacks another program, which is to fail. `cargo xtask sweep attack`
//! sets all three.

mod modes;
mod naive;
mod outside;
mod swapper;

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use modes::{Attack, Before, MODES, Mode, Owner, Shape, Side, Sources};
use outside::{DIRECTORIES, SECRET, find_secret, make_tree};
use swapper::Pair;
use testfs::{Aspects, FsKind, Tree, is_root, skip, test_name};

use crate::HAULAGE;
use crate::cp_differential::number_from;

/// Copies of each mode, when nobody asks for a certain number: as many as a mode has attacks.
const COPIES_EACH: usize = 12;

/// In fewer copies of a mode there may be no swap.
const COPIES_FEW: usize = 10;

/// Copies in a directory, with the arguments of a mode. Returns the exit status, and what was said.
type Copier<'c> = &'c dyn Fn(&Path, &[String]) -> (Option<i32>, String);

/// The command `line`, with the arguments behind it.
fn command(line: &str) -> impl Fn(&Path, &[String]) -> (Option<i32>, String) {
    move |dir, args| {
        // A copy that takes longer waits for something.
        let mut command = testfs::command("timeout");
        command.args(["-s", "KILL", "60"]).args(line.split(' ')).args(args).current_dir(dir);
        let output = command.output().expect("timeout ran");
        (output.status.code(), testfs::stderr(&output))
    }
}

/// What came of many copies.
#[derive(Clone, Debug, Default)]
struct Tally {
    copies: usize,
    /// Copies that noticed something and said so.
    complaints: usize,
    swaps: u64,
    /// What must never happen.
    escapes: Vec<String>,
}

/// Makes the copies with these numbers in `mode` below `root`, and adds what came of them; `enough` escapes end it.
fn attack_mode(
    copy: Copier<'_>,
    root: &Path,
    mode: &Mode,
    copies: Range<usize>,
    enough: usize,
    tally: &mut Tally,
) {
    let victim = root.join("victim");
    make_tree(&victim, SECRET, true);
    let attacks = mode.attacks();
    let look = || Tree::read(&victim).expect("nobody changes it now");
    let mut before = look();
    for number in copies {
        let attack = attacks[number % attacks.len()];
        let dir = root.join(number.to_string());
        attack_copy(copy, &dir, &victim, mode, (attack, number), tally);
        let changes = before.differences(&look(), Aspects { inodes: true, ..Aspects::ALL });
        if !changes.is_empty() {
            let changes = changes.join("\n");
            tally.escapes.push(format!("{mode:?}: {attack:?}: changed outside:\n{changes}"));
        }
        if !mode.may_read_outside()
            && let Some(path) = find_secret(&dir)
        {
            let path = path.display();
            tally.escapes.push(format!("{mode:?}: {attack:?}: copied from outside: {path}"));
        }
        fs::remove_dir_all(&dir).expect("the trees of a copy can be removed");
        // What escaped may have been taken away again with the copy.
        before = look();
        if tally.escapes.len() >= enough {
            break;
        }
    }
    fs::remove_dir_all(&victim).expect("the tree outside can be removed");
}

/// One copy in the new directory `dir`.
fn attack_copy(
    copy: Copier<'_>,
    dir: &Path,
    victim: &Path,
    mode: &Mode,
    (attack, number): (Attack, usize),
    tally: &mut Tally,
) {
    let special = mode.sources != Sources::FollowedFiles;
    fs::create_dir(dir).expect("created");
    let old = mode.before == Before::Existing;
    let copied_to = dir.join(if mode.shape == Shape::Parents { "dst/src" } else { "dst" });
    if old {
        make_tree(&copied_to, "older", special);
    } else if mode.shape != Shape::Exact {
        fs::create_dir(dir.join("dst")).expect("created");
    }
    make_tree(&dir.join("src"), "source", special);
    fs::write(dir.join("first"), "source").expect("written");
    let mut pairs = set_traps(dir, victim, mode, attack);
    let seed = number_from("HAULAGE_ATTACK_SEED").unwrap_or(0_u64).wrapping_add(number as u64);
    // The fewer the names, the oftener each of them is hit between a look and a deed.
    let mut random = fastrand::Rng::with_seed(seed);
    random.shuffle(&mut pairs);
    pairs.truncate([2, 5, usize::MAX][random.usize(..3)]);
    let stop = AtomicBool::new(false);
    let args = arguments(dir, mode);
    std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            if mode.waits(attack) {
                swapper::wait_for(&dir.join("dst/first"), &stop);
            }
            swapper::swap(dir, &pairs, attack.tactic, seed, &stop)
        });
        let (status, said) = copy(dir, &args);
        stop.store(true, Ordering::Relaxed);
        tally.swaps += attacker.join().expect("joined");
        tally.copies += 1;
        tally.complaints += usize::from(status == Some(1));
        let ended = matches!(status, Some(0 | 1)) && !said.contains("panicked");
        if !ended {
            tally.escapes.push(format!("{mode:?}: {attack:?}: ended with {status:?}: {said}"));
        }
    });
}

/// Makes the links that are to take the place of entries.
fn set_traps(dir: &Path, victim: &Path, mode: &Mode, attack: Attack) -> Vec<Pair> {
    fs::create_dir(dir.join("traps")).expect("created");
    let mut pairs = Vec::new();
    let mut set = |entry: PathBuf, target: PathBuf| {
        let name = entry.to_string_lossy().replace('/', "-");
        let trap = dir.join("traps").join(&name);
        symlink(target, &trap).expect("linked");
        if attack.owner == Owner::Other {
            lchown(&trap, Some(65_534), Some(65_534)).expect("another owner");
        }
        pairs.push(Pair { entry, trap: name.into() });
    };
    let below = |top: &str| {
        let top = PathBuf::from(top);
        let names = ["f0", "f1", "h0", "l", "p", "n"];
        let files = DIRECTORIES.iter().flat_map(move |d| names.map(|name| format!("{d}/{name}")));
        let names = DIRECTORIES.iter().map(|&d| d.to_owned()).chain(files);
        names.map(move |name| (top.join(&name), victim.join(&name)))
    };
    if attack.side != Side::Src {
        let top = if mode.shape == Shape::Parents { "dst/src" } else { "dst" };
        below(top).for_each(|(entry, target)| set(entry, target));
        // Where nothing is yet, something could be made.
        set(Path::new(top).join("b/f2"), victim.join("new"));
        set(Path::new(top).join("a/f1~"), victim.join("a/f1"));
        if mode.shape == Shape::Parents {
            set(top.into(), victim.to_owned());
        }
    }
    if attack.side != Side::Dst {
        below("src").for_each(|(entry, target)| set(entry, target));
    }
    pairs
}

fn arguments(dir: &Path, mode: &Mode) -> Vec<String> {
    let operands: &[&str] = match mode.shape {
        Shape::Exact => &["-T", "src", "dst"],
        Shape::Into => &["first", "src/.", "dst"],
        Shape::Parents => &["--parents", "first", "src/a", "src/b", "src/a/c/f0", "dst"],
    };
    let operand = |&word: &&str| match mode.sources {
        Sources::Absolute if !word.starts_with('-') => dir.join(word).display().to_string(),
        _ => word.to_owned(),
    };
    mode.args.iter().map(|&word| word.to_owned()).chain(operands.iter().map(operand)).collect()
}

/// The file systems to copy on, and how many copies to make of each mode.
fn extent() -> (&'static [FsKind], usize) {
    match number_from::<usize>("HAULAGE_ATTACK_COPIES") {
        Some(copies) => (&FsKind::ALL, copies.div_ceil(MODES.len())),
        None => (&[FsKind::Tmpfs], COPIES_EACH),
    }
}

/// Attacks all modes on one file system.
fn attack_all(copy: Copier<'_>, root: &Path, copies: Range<usize>) -> Tally {
    let mut all = Tally::default();
    for (number, mode) in MODES.iter().enumerate() {
        let root = root.join(format!("mode-{number}"));
        fs::create_dir(&root).expect("created");
        let before = all.swaps;
        // With few copies, another attack begins in each mode.
        let copies = copies.start + number..copies.end + number;
        attack_mode(copy, &root, mode, copies.clone(), usize::MAX, &mut all);
        // A few copies may be over before a link is in its place.
        let few = copies.len() < COPIES_FEW;
        assert!(few || all.swaps > before, "{mode:?}: nothing was attacked");
    }
    assert!(all.swaps > 0, "nothing was attacked");
    all
}

#[test]
fn nothing_outside_changes_or_is_copied() {
    if !is_root() {
        return skip(&test_name(), "to copy for others, and to be attacked by them, needs root");
    }
    let programs = match std::env::var("HAULAGE_ATTACKED_PROGRAM") {
        Ok(line) => vec![line],
        // As it is, and with workers, whom only who asks for them gets in a tree as small as these.
        Err(_) => vec![format!("{HAULAGE} cp"), format!("{HAULAGE} cp --jobs=4")],
    };
    let (kinds, copies_each) = extent();
    for &kind in kinds {
        let Some(scratch) = testfs::fs(kind) else { continue };
        for (number, program) in programs.iter().enumerate() {
            let start = Instant::now();
            let root = scratch.path().join(format!("program-{number}"));
            fs::create_dir(&root).expect("created");
            // Together they make each attack.
            let share = copies_each.div_ceil(programs.len());
            let tally = attack_all(&command(program), &root, number * share..(number + 1) * share);
            let Tally { copies, complaints, swaps, escapes } = &tally;
            let (modes, escaped, seconds) = (MODES.len(), escapes.len(), start.elapsed().as_secs());
            println!(
                "{kind}: {copies} copies in {modes} modes, {swaps} swaps, {complaints} copies \
                 complained, {escaped} escapes, {seconds} s"
            );
            assert!(escapes.is_empty(), "{kind}: {escaped} escapes:\n{}", escapes.join("\n"));
            assert!(*complaints > 0, "{kind}: no copy noticed that it was attacked");
        }
    }
}

#[test]
fn nothing_escapes_where_the_kernel_lacks_openat2() {
    if !is_root() {
        return skip(&test_name(), "to copy for others, and to be attacked by them, needs root");
    }
    let Some(scratch) = testfs::fs(FsKind::Tmpfs) else { return };
    // Only these calls are traced, so that others are not slowed down.
    let strace = "strace -f -qq --seccomp-bpf -o /dev/null -e trace=openat2 \
                  -e inject=openat2:error=ENOSYS";
    let works = Command::new("sh").args(["-c", &format!("{strace} true")]).status();
    if !works.is_ok_and(|status| status.success()) {
        return skip(&test_name(), "strace cannot be run here");
    }
    let copies_each = extent().1.div_ceil(6);
    let haulage = format!("{strace} {HAULAGE} cp --jobs=4");
    let tally = attack_all(&command(&haulage), scratch.path(), 0..copies_each);
    println!("without openat2: {} copies, {} swaps", tally.copies, tally.swaps);
    assert!(tally.escapes.is_empty(), "{}", tally.escapes.join("\n"));
}

/// What could not catch anybody would prove nothing.
#[test]
fn a_naive_copier_is_caught() {
    if !is_root() {
        return skip(&test_name(), "to copy for others, and to be attacked by them, needs root");
    }
    let dir = tempfile::tempdir().expect("created");
    let (mut changed, mut copied) = (false, false);
    for round in 0..20 {
        let root = dir.path().join(round.to_string());
        fs::create_dir(&root).expect("created");
        let mut tally = Tally::default();
        let naive = |dir: &Path, _: &[String]| {
            let copied = naive::copy(&dir.join("src"), &dir.join("dst"));
            (Some(i32::from(copied.is_err())), String::new())
        };
        attack_mode(&naive, &root, &MODES[0], 0..100, 10, &mut tally);
        changed |= tally.escapes.iter().any(|escape| escape.contains("changed outside"));
        copied |= tally.escapes.iter().any(|escape| escape.contains("copied from outside"));
        if changed && copied {
            return;
        }
    }
    panic!("2000 copies: changed outside: {changed}, copied from outside: {copied}");
}
