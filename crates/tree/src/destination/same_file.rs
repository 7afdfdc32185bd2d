//! Source and destination that are one file under two names: which of these copies make sense.

use rustix::fs::Stat;

use crate::fs::{FileId, is_symlink};
use crate::request::{Follow, Make, Options};

/// The two files, each as itself and as what it leads to.
pub(crate) struct Ends<'s> {
    /// The source itself.
    pub(crate) src_link: &'s Stat,
    /// What the source leads to; `None` for a dangling link.
    pub(crate) src_target: Option<&'s Stat>,
    pub(crate) dst_link: &'s Stat,
    pub(crate) dst_target: Option<&'s Stat>,
    /// Both names are the same name in the same directory.
    pub(crate) same_name: bool,
    /// Whether the source stands for what it leads to.
    pub(crate) follows: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SameFile {
    /// They do not get in each other's way.
    Different,
    /// The copy is already there.
    AlreadyDone,
    /// A copy would destroy its source.
    Same,
}

/// Decides by identity alone, before anything is touched.
pub(crate) fn check(ends: &Ends<'_>, options: &Options) -> SameFile {
    let one_inode = FileId::of(ends.src_link) == FileId::of(ends.dst_link);
    let one_target = match (ends.src_target, ends.dst_target) {
        (Some(src), Some(dst)) => FileId::of(src) == FileId::of(dst),
        _ => false,
    };
    if !one_inode && !one_target {
        return SameFile::Different;
    }
    let backup = options.backup.is_some();
    let links = options.make == Make::HardLink;
    if is_symlink(ends.src_link) && !ends.follows {
        return of_link_itself(ends, one_inode, links, backup, options);
    }
    if is_symlink(ends.dst_link) {
        // The destination leads to the source. To replace the link is sound, to write through it
        // is not; and where both are one link, replacing it would leave nothing to copy.
        let replaces =
            links || options.make == Make::SymbolicLink || backup || options.remove_destination;
        // A new link beside an old one of that name only fails, as long as nothing is removed.
        let harmless = (links || options.make == Make::SymbolicLink)
            && !options.force
            && !options.ask
            && !backup
            && !options.remove_destination;
        let sound = if ends.same_name { harmless } else { replaces };
        return if sound { SameFile::Different } else { SameFile::Same };
    }
    if links {
        return SameFile::AlreadyDone;
    }
    // Two hard links of one file: the destination's name can be given to a new file. But when the
    // source is a symbolic link, it may lead to that very name.
    let parts = backup || options.remove_destination;
    let sound = parts && !ends.same_name && !is_symlink(ends.src_link);
    if sound { SameFile::Different } else { SameFile::Same }
}

/// The source is a symbolic link that is copied as one.
fn of_link_itself(
    ends: &Ends<'_>,
    one_inode: bool,
    links: bool,
    backup: bool,
    options: &Options,
) -> SameFile {
    debug_assert!(options.follow != Follow::Always);
    if is_symlink(ends.dst_link) {
        return match (one_inode, links) {
            (false, _) => SameFile::Different,
            (true, true) => SameFile::AlreadyDone,
            (true, false) if ends.same_name => SameFile::Same,
            (true, false) if backup || options.remove_destination => SameFile::Different,
            (true, false) => SameFile::AlreadyDone,
        };
    }
    // The link leads to the destination, which it would replace by itself.
    match (backup, links) {
        (true, _) => SameFile::Different,
        (false, true) => SameFile::AlreadyDone,
        (false, false) => SameFile::Same,
    }
}
