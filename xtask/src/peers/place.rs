//! Where copies are made: a directory for the source and one for the copies.

use std::fs::File;
use std::path::Path;

use anyhow::Context;
use lab::environment::FileSystem;
use lab::page_cache::state::State;
use tempfile::TempDir;

use super::cases::{Case, Sharing};

/// Two fresh directories. Dropping them removes them.
pub(crate) struct Place {
    pub(crate) name: String,
    src: TempDir,
    dst: TempDir,
    /// Whether files of the two can share extents.
    shares_extents: bool,
    /// Whether the source's file system is in memory.
    in_memory: bool,
}

impl Place {
    /// Creates the two in `src` and `dst`, which may be the same directory. The default name is the
    /// kinds of their file systems.
    pub(crate) fn new(name: Option<String>, src: &Path, dst: &Path) -> anyhow::Result<Place> {
        let fs_type = |dir: &Path| FileSystem::of(dir).fs_type.unwrap_or_else(|| "unknown".into());
        let (src_type, dst_type) = (fs_type(src), fs_type(dst));
        let name = name.unwrap_or_else(|| match src == dst {
            true => format!("{src_type} ({})", src.display()),
            false => format!("{src_type} to {dst_type} ({}, {})", src.display(), dst.display()),
        });
        let (src, dst) = (fresh_dir(src)?, fresh_dir(dst)?);
        let shares_extents = shares_extents(src.path(), dst.path())?;
        Ok(Place { name, src, dst, shares_extents, in_memory: src_type == "tmpfs" })
    }

    pub(crate) fn src(&self) -> &Path {
        self.src.path()
    }

    pub(crate) fn dst(&self) -> &Path {
        self.dst.path()
    }

    /// Why the case does not apply here. `None` if it does.
    pub(crate) fn unfit(&self, case: &Case) -> Option<&'static str> {
        if case.state == State::Cold && self.in_memory {
            return Some("a file system in memory cannot be cold");
        }
        match case.sharing {
            sharing if sharing.fits(self.shares_extents) => None,
            Sharing::Needed => Some("extents cannot be shared here"),
            _ => Some("extents are shared here, so no bytes would be moved"),
        }
    }
}

fn fresh_dir(parent: &Path) -> anyhow::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(".haulage-peers-")
        .tempdir_in(parent)
        .with_context(|| parent.display().to_string())
}

/// Tries a reflink: the kind of file system does not decide it, as xfs may be created without
/// reflinks.
fn shares_extents(src: &Path, dst: &Path) -> anyhow::Result<bool> {
    let (src, dst) = (src.join("to-share"), dst.join("shared"));
    std::fs::write(&src, [1; 4096]).with_context(|| src.display().to_string())?;
    let (from, to) = (File::open(&src)?, File::create(&dst)?);
    let shares = rustix::fs::ioctl_ficlone(&to, &from).is_ok();
    std::fs::remove_file(&src)?;
    std::fs::remove_file(&dst)?;
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::super::cases::by_name;
    use super::*;

    #[test]
    fn a_place_knows_what_says_something_there() {
        let home = tempfile::tempdir().expect("a directory");
        let mut place = Place::new(None, home.path(), home.path()).expect("a place");
        assert_ne!(place.src(), place.dst());
        let fits = |place: &Place, name| place.unfit(by_name(name).expect(name)).is_none();
        for (shares_extents, in_memory, expected) in [
            (false, false, [true, true, false, true]),
            (true, false, [true, false, true, false]),
            (false, true, [true, true, false, false]),
        ] {
            (place.shares_extents, place.in_memory) = (shares_extents, in_memory);
            let found = ["tree", "large", "reflink", "large-cold"].map(|name| fits(&place, name));
            assert_eq!(found, expected, "shares {shares_extents}, in memory {in_memory}");
        }
    }
}
