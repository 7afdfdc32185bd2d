//! The commands on a file system without room: they say what to do, and leave nothing behind.

use std::path::Path;
use std::process::Output;

use testfs::{FsKind, names_in, stderr};

/// Runs haulage in `dir`, with its profile and its state in `home`.
fn haulage(args: &[&str], dir: &Path, home: &Path) -> Output {
    let mut command = testfs::measuring(env!("CARGO_BIN_EXE_haulage"), args, dir);
    command.env_remove("HAULAGE_PROFILE");
    command.env("XDG_STATE_HOME", home).env("XDG_CONFIG_HOME", home);
    command.output().expect("haulage ran")
}

#[test]
fn a_full_file_system_is_named_with_a_way_out() {
    let home = tempfile::tempdir().expect("created");
    for kind in FsKind::ALL {
        let Some(fs) = testfs::small_fs(kind) else { continue };
        let dir = fs.join("");
        std::fs::write(fs.join("haulage-cp.1"), "an old page").expect("written");
        fs.leave_nothing();
        let before = names_in(&dir);
        for (line, way_out) in [
            ("race", "make room"),
            ("tune . --time 5", "make room"),
            ("bench engines --time 5", "make room"),
            (
                "certify --time 5",
                "make room, or name a directory on another file system; --max-size",
            ),
            ("engines", "name a directory that takes new files; haulage doctor needs none"),
        ] {
            let args: Vec<&str> = line.split(' ').collect();
            let output = haulage(&args, &dir, home.path());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{kind}: {line}: {output:?}");
            assert!(said.contains(way_out), "{kind}: {line}: {said}");
            assert_eq!(said.lines().count(), 1, "{kind}: {line}: {said}");
            assert_eq!(names_in(&dir), before, "{kind}: {line}");
        }
        no_manual_page_is_cut(&dir, home.path(), &before);
    }
}

/// Writes all manual pages into the full `dir`, whose names were `names`: the old page stays, and a
/// page that found a last free block is whole.
fn no_manual_page_is_cut(dir: &Path, home: &Path, names: &[String]) {
    let output = haulage(&["man", "--all", "."], dir, home);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{}: {output:?}", dir.display());
    assert!(said.contains("cannot write './haulage"), "{}: {said}", dir.display());
    assert_eq!(said.lines().count(), 1, "{}: {said}", dir.display());
    for name in names_in(dir).iter().filter(|name| !names.contains(name)) {
        let command = name.strip_prefix("haulage").and_then(|rest| rest.strip_suffix(".1"));
        let command = command.unwrap_or_else(|| panic!("{}: {name} was left", dir.display()));
        let mut args = vec!["man"];
        args.extend(command.strip_prefix('-'));
        let whole = haulage(&args, dir, home).stdout;
        assert_eq!(std::fs::read(dir.join(name)).expect("read"), whole, "{name}");
    }
    let page = std::fs::read_to_string(dir.join("haulage-cp.1")).expect("read");
    assert_eq!(page, "an old page", "{}", dir.display());
}
