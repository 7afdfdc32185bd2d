//! What exists at a destination: nothing, a file, or a dangling symbolic link. [`look_up`] tells
//! whether a symbolic link is written through; [`refuse_untrusted_link`] whether it is trusted.

use std::os::fd::OwnedFd;

use rustix::fs::{Stat, fstat};
use rustix::io::Errno;

use super::context::Job;
use super::dry_run::OperandCopy;
use crate::entry::copies_data;
use crate::fs::{
    FileId, Trust, are_one_name, are_one_name_where, is_directory, is_still, is_symlink,
    may_be_one_name, may_number_spellings, split,
};
use crate::report::{Action, Diagnostic, Result, failed};
use crate::request::{Existing, Follow, Make};

/// A destination that exists.
pub(crate) struct Found {
    /// lstat(2) of the name.
    pub(crate) link: Stat,
    /// stat(2) of the name; `None` if the target does not exist or does not matter.
    pub(crate) target: Option<Stat>,
    /// The copy is written to the target of the symbolic link.
    pub(crate) through_link: bool,
}

impl Found {
    /// The file that the copy would replace.
    pub(crate) fn effective(&self) -> &Stat {
        match &self.target {
            Some(target) if self.through_link => target,
            _ => &self.link,
        }
    }
}

/// Looks at the destination of `entry`; `None` if nothing has its name.
pub(crate) fn look_up(job: Job<'_>) -> Result<Option<Box<Found>>> {
    let Job { cx, entry } = job;
    let options = cx.options;
    if entry.dst.trust == Trust::Created {
        // A directory that this run created holds only entries of this run. If a name exists after
        // all, creating the entry fails.
        return Ok(None);
    }
    let looked = entry.dst.stat(false);
    // What a dry run has not created, and directories that would be merged.
    let is_missing = |copy: &OperandCopy| {
        let is_there = matches!(looked, Ok(link) if FileId::of(&link) == FileId::of(&copy.stat));
        let is_merged = is_directory(&copy.stat) && is_directory(&entry.src_stat);
        !is_there && !is_merged
    };
    let copy = cx.dry_run.as_ref().filter(|_| !options.parents);
    let copy = copy.and_then(|dry_run| dry_run.copy_at_destination(entry)).filter(is_missing);
    let link = match (&copy, looked) {
        (Some(copy), _) => copy.stat,
        (None, Ok(link)) => link,
        (None, Err(Errno::NOENT)) => return Ok(None),
        (None, Err(errno)) => return Err(failed(Action::Stat, &entry.dst)(errno)),
    };
    let found = |target, through_link| Ok(Some(Box::new(Found { link, target, through_link })));
    if !is_symlink(&link) {
        return found(Some(link), false);
    }
    let stays = options.backup.is_none() && !options.remove_destination;
    let through_link = stays
        && if is_directory(&entry.src_stat) {
            options.keep_directory_symlink
        } else {
            matches!(options.make, Make::Copy | Make::AttributesOnly)
                && copies_data(options, &entry.src_stat)
        };
    let is_kept = options.existing == Existing::Skip;
    let compares = stays && is_directory(&entry.src_stat) && !is_kept;
    if !through_link && !compares {
        return found(None, false);
    }
    let target = copy.map_or_else(|| entry.dst.stat(true), |copy| copy.target_in(entry.dst.dir));
    match target {
        Ok(target) => {
            // A directory is not copied through a link to something else.
            let through_link =
                through_link && (!is_directory(&entry.src_stat) || is_directory(&target));
            found(Some(target), through_link)
        }
        Err(Errno::NOENT) if through_link && !is_directory(&entry.src_stat) => {
            // This run may have created the link for another operand.
            if entry.is_operand && cx.operands.was_made(&entry.dst, FileId::of(&link)) {
                let (src, dst) = (entry.src.path(), entry.dst.path());
                return Err(Diagnostic::JustCreatedSymlink { src, dst });
            }
            found(None, true)
        }
        // With `--force` a loop of links is removed, and needs no target.
        Err(errno)
            if through_link
                && !is_directory(&entry.src_stat)
                && !(errno == Errno::LOOP && options.force) =>
        {
            Err(failed(Action::Stat, &entry.dst)(errno))
        }
        Err(_) => found(None, false),
    }
}

/// The attributes of the open destination `fd`, which must be the one that was `found`. If it has another number by
/// now, it must not be that of the source, which may have another one too.
pub(crate) fn stat_found(Job { entry, .. }: Job<'_>, fd: &OwnedFd, found: &Found) -> Result<Stat> {
    let stat = fstat(fd).map_err(failed(Action::Fstat, &entry.dst))?;
    let is_source = || {
        let src = entry.src.stat(entry.src_through_link);
        src.is_ok_and(|src| FileId::of(&src) == FileId::of(&stat))
    };
    let is_same_number = FileId::of(&stat) == FileId::of(found.effective());
    let look = || entry.dst.stat(found.through_link);
    match is_still(fd, &stat, found.effective(), look) && (is_same_number || !is_source()) {
        true => Ok(stat),
        false => Err(Diagnostic::DestinationReplaced { dst: entry.dst.path() }),
    }
}

/// Refuses to write through a symbolic link in a directory unless it existed before the run and its
/// owner is trusted.
pub(crate) fn refuse_untrusted_link(Job { cx, entry }: Job<'_>, found: &Found) -> Result<()> {
    if entry.dst.trust == Trust::Created || cx.security.changed_during_run(&found.link) {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(Diagnostic::JustCreatedSymlink { src, dst });
    }
    if !cx.security.is_owner_trusted(&found.link) {
        return Err(Diagnostic::ForeignSymlink { dst: entry.dst.path() });
    }
    Ok(())
}

// Whether source and destination are one file, and which copies make sense then.

/// How source and destination are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SameFile {
    /// Source and destination are different files, or the copy does not destroy its source.
    Different,
    /// The destination is the copy already.
    AlreadyDone,
    /// A copy would destroy its source.
    Same,
}

/// Compares source and destination by device and inode number, before anything is changed.
pub(super) fn check_same_file(job: Job<'_>, found: &Found) -> Result<SameFile> {
    let Job { cx, entry } = job;
    if is_directory(&entry.src_stat) {
        let dst = found.target.as_ref().unwrap_or(&found.link);
        let same = FileId::of(&entry.src_stat) == FileId::of(dst) || is_other_spelling(job);
        let spares = cx.options.make == Make::HardLink || cx.options.existing == Existing::Skip;
        return Ok(match same {
            true if spares => SameFile::AlreadyDone,
            true => SameFile::Same,
            false => SameFile::Different,
        });
    }
    let looked = entry.src_through_link.then(|| entry.src.stat(false)).transpose();
    let src_link = looked.map_err(failed(Action::Stat, &entry.src))?.unwrap_or(entry.src_stat);
    let src_target = if !is_symlink(&entry.src_stat) {
        Some(entry.src_stat)
    } else if is_symlink(&found.link) {
        // Two symbolic links are the same file only as links.
        None
    } else {
        entry.src.stat(true).ok()
    };
    let is_other_spelling =
        FileId::of(&src_link) != FileId::of(&found.link) && is_other_spelling(job);
    Ok(decide(&Ends { job, src_link, src_target, found, is_other_spelling }))
}

/// Source and destination, each as itself and as the target of a symbolic link.
struct Ends<'s> {
    job: Job<'s>,
    /// The source itself.
    src_link: Stat,
    /// `None` for a dangling link.
    src_target: Option<Stat>,
    found: &'s Found,
    /// They have two numbers, but are one name.
    is_other_spelling: bool,
}

impl Ends<'_> {
    /// Whether source and destination are one name of one directory, perhaps in two spellings.
    fn is_same_name(&self) -> bool {
        let (src, dst) = (&self.job.entry.src, &self.job.entry.dst);
        let (src_base, dst_base) = (split(src.name).1, split(dst.name).1);
        let is_exact = src_base == dst_base;
        // A file with several names may have two that are alike.
        let may_be_one = || {
            let dst_link = &self.found.link;
            let is_one_inode = FileId::of(&self.src_link) == FileId::of(dst_link);
            may_be_one_name(src_base, dst_base) || is_one_inode && dst_link.st_nlink == 1
        };
        self.is_other_spelling
            || (is_exact || may_be_one()) && are_one_name(src, dst).unwrap_or(true)
    }
}

/// Whether source and destination are one name in two spellings, which may have two numbers. Below operands whose
/// directories are two, all are.
fn is_other_spelling(Job { cx, entry }: Job<'_>) -> bool {
    let (src, dst) = (&entry.src, &entry.dst);
    let (src_base, dst_base) = (split(src.name).1, split(dst.name).1);
    if !may_be_one_name(src_base, dst_base)
        || src_base == dst_base && !entry.is_operand
        || !may_number_spellings(dst)
    {
        return false;
    }
    // A dry run makes no file, by which such directories are told apart.
    let is_one_directory = |dirs| {
        let is_looked_at = entry.is_operand && cx.dry_run.is_none() && may_number_spellings(src);
        is_looked_at && cx.operands.are_one_directory(dirs, src, dst)
    };
    are_one_name_where(src, dst, is_one_directory) == Ok(true)
}

fn decide(ends: &Ends<'_>) -> SameFile {
    let Ends { job: Job { cx, entry }, src_link, src_target, found, is_other_spelling } = ends;
    let options = cx.options;
    let is_one_inode = FileId::of(src_link) == FileId::of(&found.link) || *is_other_spelling;
    let is_one_target = match (src_target, &found.target) {
        (Some(src), Some(dst)) => FileId::of(src) == FileId::of(dst),
        _ => false,
    };
    if !is_one_inode && !is_one_target {
        return SameFile::Different;
    }
    let links = options.make == Make::HardLink;
    let makes_link = links || options.make == Make::SymbolicLink;
    let removes = options.backup.is_some() || options.remove_destination;
    // Else the target of the source is copied, not the link.
    let follows = !is_symlink(&entry.src_stat) && options.follow != Follow::Never;
    let copies_link = is_symlink(src_link) && !follows;
    match (copies_link, is_symlink(&found.link)) {
        (true, true) if !is_one_inode => SameFile::Different,
        (true, true) if links => SameFile::AlreadyDone,
        (true, true) if ends.is_same_name() => SameFile::Same,
        (true, true) if removes => SameFile::Different,
        (true, true) => SameFile::AlreadyDone,
        // The source is a link to the destination, and would replace its own target.
        (true, false) if options.backup.is_some() => SameFile::Different,
        (true, false) if links => SameFile::AlreadyDone,
        (true, false) => SameFile::Same,
        // The destination is a link to the source. Replacing the link is safe, writing through it
        // is not.
        (false, true) if !ends.is_same_name() && (makes_link || removes) => SameFile::Different,
        (false, true) if !ends.is_same_name() => SameFile::Same,
        // If both are the same link, replacing it would remove the source. As long as nothing is
        // removed, creating a link of an existing name only fails.
        (false, true) if makes_link && !removes && !options.force && !options.ask => {
            SameFile::Different
        }
        (false, true) => SameFile::Same,
        (false, false) if links => SameFile::AlreadyDone,
        // Two hard links of one file: the destination's name can be given to a new file. But if the
        // source is a symbolic link, it may lead to that name.
        (false, false) if removes && !is_symlink(src_link) && !ends.is_same_name() => {
            SameFile::Different
        }
        (false, false) => SameFile::Same,
    }
}
