//! All that is tried on one file system, within a guest.

use std::path::Path;

use super::cell::{Cell, Ends, LOCAL, MOUNT, SERVER, cp, create_plain, shell};
use super::systems::{Role, System};
use super::{faults, special};
use crate::sweep::copies::create_source;

/// Tries `system` and prints lines `finding DIRECTION TEXT` and `cases DIRECTION NUMBER`, or `unsupported WHY`. With
/// `quick`, only copies in the direction to it.
pub(super) fn run(system: System, quick: bool) -> anyhow::Result<()> {
    [LOCAL, MOUNT, SERVER].iter().try_for_each(std::fs::create_dir_all)?;
    shell(system, "mkfs.ext4 -q -I 256 /dev/vdb; mount /dev/vdb /m/local")
        .map_err(anyhow::Error::msg)?;
    let local = Path::new(LOCAL);
    create_source(&local.join("rich"))?;
    create_plain(&local.join("plain"), 1)?;
    create_plain(&local.join("old"), 2)?;
    if let Err(why) = shell(system, "make; mount_it") {
        println!(
            "unsupported {}",
            why.lines().rfind(|line| !line.contains("dmesg(1)")).unwrap_or_default()
        );
        return Ok(());
    }
    let mut cell = Cell { system, gnu: None, cases: 0 };
    let (mount, copies) = (Path::new(MOUNT), local.join("copies"));
    let to = Ends { direction: "to", src: local.to_owned(), dst: mount.join("to") };
    let is_faulty = system.role == Role::Faulty;
    let from = Ends {
        direction: if is_faulty { "to" } else { "from" },
        src: mount.to_owned(),
        dst: copies,
    };
    if system.role != Role::Source {
        std::fs::create_dir_all(&to.dst)?;
        for tree in ["rich", "plain", "old"] {
            let dst = mount.join(tree);
            cp("cp", "-a", &local.join(tree), &dst, false)?;
            shell(system, &format!("T={}; prepare", dst.display())).map_err(anyhow::Error::msg)?;
        }
        cell.remount()?;
    }
    if is_faulty {
        std::fs::create_dir_all(&from.dst)?;
        faults::run(&mut cell, &to, &from)?;
        println!("cases to {}", cell.cases);
        return Ok(());
    }
    if system.role != Role::Source {
        direction(&mut cell, &to, quick)?;
    }
    if !quick {
        direction(&mut cell, &from, false)?;
    }
    Ok(())
}

/// Tries all that is tried with `ends`.
fn direction(cell: &mut Cell, ends: &Ends, quick: bool) -> anyhow::Result<()> {
    (cell.cases, cell.gnu) = (0, None);
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
