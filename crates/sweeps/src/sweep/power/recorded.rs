//! One copy on a disk whose writes are logged.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use fastrand::Rng;
use testfs::{Content, Event, LoggedDisk, Tree};

use super::disk::{self, Mounted};
use super::source::{self, Shape};
use crate::sweep::copies::OptionSet;
use crate::sweep::process::{self, PATIENCE};
use crate::sweep::run::Run;

/// The name of the destination in the root of the disk.
pub(super) const DST: &str = "dst";

/// A copy, and what reached the disk.
pub(super) struct Recorded {
    /// The disk before.
    pub(super) base: Content,
    /// What reached it until it was unmounted.
    pub(super) log: Vec<Event>,
    /// Number of events before the copier's exit.
    pub(super) exit: usize,
    /// The destination before, if it existed.
    pub(super) old: Option<Tree>,
    /// The destination at the exit.
    pub(super) new: Tree,
    /// The source: in the root of the disk if it is relative.
    pub(super) src: PathBuf,
    /// The options and one that limits the rate.
    pub(super) options: Vec<String>,
    /// Why its states need not be tried.
    pub(super) wrong: Option<String>,
}

impl Recorded {
    /// Makes a copy with `set` on a new disk.
    pub(super) fn new(
        run: &Run,
        kind: &str,
        set: &OptionSet<'_>,
        dir: &Path,
        rng: &mut Rng,
    ) -> anyhow::Result<Recorded> {
        let resumes = set.has("--resume");
        // Fewer than 16 files are synced one by one, others as a group.
        let files = [3, 12, 40][rng.usize(..3)];
        let shape = Shape { files, large_files: if resumes { 2 } else { 0 } };
        // A journal names the device of its source, and a state is mounted on another one.
        let src = if resumes || rng.bool() { dir.join("src") } else { PathBuf::from("src") };
        let (image, at) = (dir.join("base"), dir.join("mounted"));
        disk::make(kind, &image)?;
        let mounted = Mounted::new(kind, &image, &at)?;
        source::make(&at.join(&src), shape, rng).context("a source")?;
        if rng.bool() {
            source::make_older(&at.join(DST), shape, rng).context("an older copy")?;
        }
        mounted.unmount()?;
        let base = Content::read(&image).context("an image")?;

        let disk = LoggedDisk::serve(base.clone()).context("a disk with a log")?;
        let mounted = Mounted::new(kind, disk.device(), &at)?;
        let old = at.join(DST).exists().then(|| Tree::read(&at.join(DST))).transpose()?;
        let mut options: Vec<String> = set.text.split(' ').map(str::to_owned).collect();
        if resumes || rng.bool() {
            // The slower the copy, the more of its moments reach the disk.
            let rate = if resumes { 40 << rng.u8(..2) } else { 1 << rng.u8(..4) };
            options.push(format!("--limit-rate={rate}M"));
        }
        let mut command = copy(run, &options, &src, &at);
        // What is synced by the way hides that the copy did not sync it.
        let is_noisy = !set.has("--durable") || rng.u8(..4) == 0;
        let noise_seed = rng.u64(..);
        let stop = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            if is_noisy {
                scope.spawn(|| make_noise(&at, noise_seed, &stop));
            }
            let ended = process::run(&mut command, PATIENCE);
            // Before anything else that is written.
            let exit = disk.logged();
            stop.store(true, Ordering::Relaxed);
            ended.map(|ended| (ended, exit))
        });
        let (ended, exit) = ended?;
        let mut wrong = ended.crash();
        if !ended.success() {
            wrong = wrong.or(Some(format!("it failed: {}", ended.said())));
        }
        let new = match Tree::read(&at.join(DST)) {
            Ok(new) => new,
            Err(error) => {
                wrong = wrong.or(Some(format!("there is no copy: {error}")));
                Tree::read(&at)?
            }
        };
        mounted.unmount()?;
        let log = disk.log();
        Ok(Recorded { base, log, exit, old, new, src, options, wrong })
    }
}

/// The command that copies where the disk is mounted at `root`.
pub(super) fn copy(run: &Run, options: &[String], src: &Path, root: &Path) -> Command {
    let mut command = run.cp();
    command.args(options).arg("-T").arg(root.join(src)).arg(root.join(DST));
    command
}

/// Syncs a file of its own again and again, which commits what the copy did to names and attributes so
/// far and none of its data, or everything.
fn make_noise(root: &Path, seed: u64, stop: &AtomicBool) {
    let mut rng = Rng::with_seed(seed);
    let sync = |everything: bool| -> std::io::Result<()> {
        let mut file = File::create(root.join("noise"))?;
        file.write_all(b"noise")?;
        if everything { Ok(rustix::fs::syncfs(&file)?) } else { file.sync_all() }
    };
    let pause_us = 1 << rng.u32(8..15);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_micros(rng.u64(..pause_us)));
        // What it writes is not looked at. A full disk makes the copy fail as well.
        let _ = sync(rng.u8(..8) == 0);
    }
    let _ = fs::remove_file(root.join("noise"));
}
