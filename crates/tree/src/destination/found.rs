//! What exists at a destination: nothing, a file, or a dangling symbolic link. [`look_up`] tells
//! whether a symbolic link is written through; [`refuse_untrusted_link`] whether it is trusted.

use rustix::fs::Stat;
use rustix::io::Errno;

use super::context::DestinationContext;
use crate::entry::{Entry, copies_data};
use crate::fs::{FileId, Trust, is_directory, is_symlink};
use crate::report::{Action, Diagnostic, Result, failed};
use crate::request::{Existing, Make};

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

/// The result of a look at a destination.
pub(crate) enum Lookup {
    Absent,
    /// A dangling symbolic link through which a file would be written.
    DanglingSymlink,
    Found(Box<Found>),
}

/// Looks at the destination of `entry`.
pub(crate) fn look_up(cx: &DestinationContext<'_>, entry: &Entry<'_>) -> Result<Lookup> {
    let options = cx.options;
    if entry.dst.trust == Trust::Created {
        // A directory that this run created holds only entries of this run. If a name exists after
        // all, creating the entry fails.
        return Ok(Lookup::Absent);
    }
    let link = match entry.dst.stat(false) {
        Ok(link) => link,
        Err(Errno::NOENT) => return Ok(Lookup::Absent),
        Err(errno) => return Err(failed(Action::Stat, &entry.dst)(errno)),
    };
    if !is_symlink(&link) {
        let found = Found { link, target: Some(link), through_link: false };
        return Ok(Lookup::Found(Box::new(found)));
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
        return Ok(Lookup::Found(Box::new(Found { link, target: None, through_link: false })));
    }
    match entry.dst.stat(true) {
        Ok(target) => {
            // A directory is not copied through a link to something else.
            let through_link =
                through_link && (!is_directory(&entry.src_stat) || is_directory(&target));
            Ok(Lookup::Found(Box::new(Found { link, target: Some(target), through_link })))
        }
        Err(Errno::NOENT) if through_link && !is_directory(&entry.src_stat) => {
            refuse_just_created_link(cx, entry, &link)?;
            Ok(Lookup::DanglingSymlink)
        }
        // With `--force` a loop of links is removed, and needs no target.
        Err(errno)
            if through_link
                && !is_directory(&entry.src_stat)
                && !(errno == Errno::LOOP && options.force) =>
        {
            Err(failed(Action::Stat, &entry.dst)(errno))
        }
        Err(_) => Ok(Lookup::Found(Box::new(Found { link, target: None, through_link: false }))),
    }
}

/// Refuses to write through a dangling link that this run created for another operand.
fn refuse_just_created_link(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    link: &Stat,
) -> Result<()> {
    if entry.is_operand && cx.operands.was_made(&entry.dst, FileId::of(link)) {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(Diagnostic::JustCreatedSymlink { src, dst });
    }
    Ok(())
}

/// Refuses to write through a symbolic link in a directory unless it existed before the run and its
/// owner is trusted.
pub(crate) fn refuse_untrusted_link(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: &Found,
) -> Result<()> {
    if entry.dst.trust == Trust::Created || cx.security.changed_during_run(&found.link) {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(Diagnostic::JustCreatedSymlink { src, dst });
    }
    if !cx.security.is_owner_trusted(&found.link) {
        return Err(Diagnostic::ForeignSymlink { dst: entry.dst.path() });
    }
    Ok(())
}
