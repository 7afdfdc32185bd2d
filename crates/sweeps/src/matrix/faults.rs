//! Faults of a disk below a file system: a loss of power, sectors that cannot be read, writes that fail.

use std::path::Path;

use testfs::{Aspects, Tree};

use super::cell::{Cell, Copied, Ends, cp, shell};
use crate::sweep::copies::remove;

/// All cases. The last leaves the file system broken.
pub(super) fn run(cell: &mut Cell, to: &Ends, from: &Ends) -> anyhow::Result<()> {
    std::fs::create_dir_all(&from.dst)?;
    unreadable(cell, from)?;
    power_cuts(cell, to)?;
    failing_writes(cell, to)?;
    println!("cases to {}", cell.cases);
    Ok(())
}

/// What a copy with `--durable` has copied is there after a loss of power.
fn power_cuts(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let [src, gnu, ours] = ends.paths("plain");
    for before in ["nothing", "old", "plain"] {
        for options in ["-a --durable", "-a --durable --atomic", "-a --durable --resume"] {
            fresh(cell, ends)?;
            let theirs = cp("cp", "-a", &src, &gnu)?;
            cell.remount()?;
            cp("cp", "-a", &ends.src.join(before), &ours)?;
            // All is on the disk, but for what is up to date.
            if before == "old" {
                cell.remount()?;
            }
            let ended = cp("haulage cp", options, &src, &ours)?;
            shell(cell.system, "lose_power")?;
            let what = format!("{options} onto {before}, then no power");
            let copy = Copied { at: ours.clone(), options: "-a", what, ended, found: Vec::new() };
            cell.judge(ends, [&src, &gnu], &theirs, vec![copy])?;
        }
    }
    Ok(())
}

/// A file in which sectors cannot be read is named, all others are copied, and once it can be read `--resume` ends well.
fn unreadable(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let (src, ours) = (ends.src.join("plain"), ends.dst.join("ours"));
    let source = Tree::read(&src)?;
    // btrfs has addresses of its own, and FAT does not say where a file is.
    if ["faults-btrfs", "faults-vfat"].contains(&cell.system.name) {
        return Ok(());
    }
    shell(cell.system, "bad_sectors $M/plain/large")?;
    for options in ["-a", "-a --atomic", "-a --verify", "-a --resume"] {
        remove(&ours)?;
        let ended = cp("haulage cp", options, &src, &ours)?;
        let mut found = Vec::new();
        if ended.code() != 1 || !ended.stderr.contains("large") {
            found.push(format!("exit status {}: {}", ended.code(), ended.stderr));
        }
        let copy = Tree::read(&ours)?;
        let mut lines = source.differences(&copy, Aspects::CONTENT);
        lines.retain(|line| !line.starts_with("large: ") && !line.contains(".haulage-"));
        found.extend(lines);
        if options != "-a" && options != "-a --verify" && copy.has(Path::new("large")) {
            found.push("the incomplete file has its name".to_owned());
        }
        cell.report(ends, &format!("{options} of sectors that cannot be read"), found);
    }
    shell(cell.system, "mapped 'linear /dev/vda 0'")?;
    let ended = cp("haulage cp", "-a --resume", &src, &ours)?;
    let mut found = source.differences(&Tree::read(&ours)?, Aspects::ALL);
    found.extend(ended.unless(0));
    cell.report(ends, "--resume once they can be read", found);
    Ok(())
}

/// An error that comes with fsync(2) is one of the copy.
fn failing_writes(cell: &mut Cell, ends: &Ends) -> anyhow::Result<()> {
    let (src, ours) = (ends.src.join("plain"), ends.dst.join("ours"));
    for options in ["-a --durable", "-a --durable --atomic", "-a --durable --resume"] {
        fresh(cell, ends)?;
        shell(cell.system, "mapped 'flakey /dev/vda 0 0 600 1 error_writes'")?;
        let ended = cp("haulage cp", options, &src, &ours)?;
        let found = Vec::from_iter(ended.unless(1));
        cell.report(ends, &format!("{options} with writes that fail"), found);
    }
    Ok(())
}

/// Makes the file system again.
fn fresh(cell: &Cell, ends: &Ends) -> anyhow::Result<()> {
    shell(cell.system, "unmount; mapped 'linear /dev/vda 0'; make_faulty; mount_it")?;
    std::fs::create_dir_all(&ends.dst)?;
    cell.remount()
}
