//! The trees of a copy, and what lies outside it: made and searched.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::fixture;

/// The directories of every tree.
pub(crate) const DIRECTORIES: [&str; 4] = ["a", "b", "a/c", "a/c/e"];

/// What every file outside begins with.
pub(crate) const SECRET: &str = "SECRET";

/// Makes the tree `root`, whose files begin with `content`. With `special` there are fifos and
/// devices.
pub(crate) fn make_tree(root: &Path, content: &str, special: bool) {
    let outside = content == SECRET;
    let (user, mode) = if outside { (77, "600") } else { (1234, "4755") };
    let marked = format!("user.origin={content}");
    fs::create_dir_all(root).expect("created");
    for d in DIRECTORIES {
        let special = if special { format!("{d}/p|; {d}/n%1:3;") } else { String::new() };
        fixture::add(
            &format!(
                "{d}/f0={content}\\sf0; {d}/f1={content}\\sf1 {marked}; \
                 {d}/f2={content}\\sf2 own={user}:4321 mode={mode}; {d}/h0=={d}/f0; {d}/l->f0; \
                 {special} {d}/ {marked}"
            ),
            root,
        );
    }
    fixture::add(if outside { "a/c/ mode=700" } else { "a/c/ mode=2751" }, root);
}

/// A file below `root` that holds what only files outside do, in its data or its attributes.
pub(crate) fn find_secret(root: &Path) -> Option<PathBuf> {
    let mut found = None;
    each_below(root, &mut |path, metadata| {
        let held = metadata.is_file() && {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(CWD, path, flags, Mode::empty()).expect("a file of the copy");
            io::read_to_string(fs::File::from(file)).is_ok_and(|text| text.starts_with(SECRET))
        };
        let mut value = [0; 64];
        let marked = !metadata.file_type().is_fifo()
            && rustix::fs::lgetxattr(path, c"user.origin", &mut value)
                .is_ok_and(|len| &value[..len] == SECRET.as_bytes());
        if held || marked {
            found = Some(path.to_owned());
        }
    });
    found
}

/// Calls `tell` for `root` and everything below, following no link.
fn each_below(root: &Path, tell: &mut dyn FnMut(&Path, &fs::Metadata)) {
    let metadata = fs::symlink_metadata(root).expect("nobody changes it now");
    tell(root, &metadata);
    if metadata.is_dir() {
        for entry in fs::read_dir(root).expect("listed") {
            each_below(&entry.expect("an entry").path(), tell);
        }
    }
}
