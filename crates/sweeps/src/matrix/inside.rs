//! All that is tried on one file system, within a guest.

use std::path::Path;

use super::cell::{Cell, Ends, LOCAL, MOUNT, SECOND, SERVER, cp, create_plain, shell};
use super::systems::{Role, System};
use super::{faults, special};
use crate::sweep::copies::create_source;

/// Tries `system` and prints lines `finding DIRECTION TEXT` and `cases DIRECTION NUMBER`; or `unsupported WHY` if the
/// kernel has no such file system, or `broken WHY`. With `quick`, only copies in the direction to it.
pub(super) fn run(system: System, quick: bool) -> anyhow::Result<()> {
    [LOCAL, MOUNT, SECOND, SERVER].iter().try_for_each(std::fs::create_dir_all)?;
    shell(system, "mkfs.ext4 -q -I 256 /dev/vdb; mount /dev/vdb /m/local")?;
    let local = Path::new(LOCAL);
    create_source(&local.join("rich"))?;
    create_plain(&local.join("plain"), 1)?;
    create_plain(&local.join("old"), 2)?;
    for (verdict, commands) in [("unsupported", "need"), ("broken", "make; mount_it")] {
        if let Err(why) = shell(system, commands) {
            let why = why.to_string();
            let why = why.lines().rfind(|line| !line.contains("dmesg")).unwrap_or_default();
            println!("{verdict} {why}");
            return Ok(());
        }
    }
    let mut cell = Cell { system, cases: 0 };
    let (mount, copies) = (Path::new(MOUNT), local.join("copies"));
    let src = if system.role == Role::Twice { Path::new(SECOND) } else { local };
    let to = Ends { direction: "to", src: src.to_owned(), dst: mount.join("to") };
    let from = Ends { direction: "from", src: mount.to_owned(), dst: copies };
    if system.role != Role::Source {
        std::fs::create_dir_all(&to.dst)?;
        for tree in ["rich", "plain", "old"] {
            let dst = mount.join(tree);
            cp("cp", "-a", &local.join(tree), &dst)?;
            shell(system, &format!("T={}; prepare", dst.display()))?;
        }
        cell.remount()?;
    }
    let directions = match system.role {
        Role::Faulty => return faults::run(&mut cell, &to, &Ends { direction: "to", ..from }),
        Role::Source => vec![from],
        Role::Twice => vec![to],
        _ if quick => vec![to],
        _ => vec![to, from],
    };
    directions.iter().try_for_each(|ends| direction(&mut cell, ends, quick))
}

/// Tries all that is tried with `ends`.
fn direction(cell: &mut Cell, ends: &Ends, quick: bool) -> anyhow::Result<()> {
    cell.cases = 0;
    std::fs::create_dir_all(&ends.dst)?;
    cell.try_copies(ends, quick)?;
    if cell.system.role != Role::Source && !quick {
        special::second_copies(cell, ends)?;
    }
    if ends.direction == "to" && !quick {
        special::to(cell, ends)?;
    }
    println!("cases {} {}", ends.direction, cell.cases);
    Ok(())
}
