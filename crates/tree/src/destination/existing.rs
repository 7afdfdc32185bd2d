//! What stands at a destination already, and what is to become of it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Access, AtFlags, Mode, OFlags, Stat, accessat, fstat, statat};
use rustix::io::Errno;

use super::backup::{self, BackedUp, BackupError, BackupMethod};
use super::context::DestinationContext;
use super::same_file::{Ends, SameFile, check};
use super::temp_name::remove_stale;
use crate::data::verify::compare_existing;
use crate::entry::{Entry, OpenSource, copies_data, open_source};
use crate::fs::{
    FileId, Trust, file_bytes, is_directory, is_regular, is_symlink, mtime, open_looked_at, split,
};
use crate::report::{Action, Announcement, Diagnostic, Question, Verified, failed};
use crate::request::{Backup, BackupKind, Existing, Follow, Make, Options};

/// A destination that exists.
pub(crate) struct Found {
    /// What the name itself stands for.
    pub(crate) link: Stat,
    /// What it leads to; the same unless it is a symbolic link. `None` where that is nothing, or
    /// does not matter.
    pub(crate) target: Option<Stat>,
    /// The copy goes to what the symbolic link leads to.
    pub(crate) through_link: bool,
}

impl Found {
    /// What the copy would replace.
    pub(crate) fn effective(&self) -> &Stat {
        match &self.target {
            Some(target) if self.through_link => target,
            _ => &self.link,
        }
    }
}

/// What is at a destination.
pub(crate) enum Lookup {
    Absent,
    /// A symbolic link to nothing, which a file would be written through.
    DanglingSymlink,
    Found(Box<Found>),
}

/// Looks at the destination of `entry`.
pub(crate) fn look_up(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    src: &Stat,
) -> Result<Lookup, Diagnostic> {
    let options = cx.options;
    if entry.dst.trust == Trust::Created {
        // What this run created is empty but for what this run puts there. Should anything stand in
        // the way after all, making the entry fails.
        return Ok(Lookup::Absent);
    }
    let link = match entry.dst.stat(false) {
        Ok(link) => link,
        Err(Errno::NOENT) => return Ok(Lookup::Absent),
        Err(errno) => return Err(failed(Action::Stat, &entry.dst)(errno)),
    };
    if !is_symlink(&link) {
        return Ok(Lookup::Found(Box::new(Found {
            link,
            target: Some(link),
            through_link: false,
        })));
    }
    let stays = options.backup.is_none() && !options.remove_destination;
    let through_link = stays
        && if is_directory(src) {
            options.keep_directory_symlink
        } else {
            matches!(options.make, Make::Copy | Make::AttributesOnly) && copies_data(options, src)
        };
    let spared = options.existing == Existing::Skip;
    let compares = stays && is_directory(src) && !spared;
    if !through_link && !compares {
        return Ok(Lookup::Found(Box::new(Found { link, target: None, through_link: false })));
    }
    match entry.dst.stat(true) {
        Ok(target) => {
            // Without a directory behind it the link itself is what is in a directory's way.
            let through_link = through_link && (!is_directory(src) || is_directory(&target));
            Ok(Lookup::Found(Box::new(Found { link, target: Some(target), through_link })))
        }
        Err(Errno::NOENT) if through_link && !is_directory(src) => {
            refuse_just_created_link(cx, entry, &link)?;
            Ok(Lookup::DanglingSymlink)
        }
        // Where a circle of links is to be forced out of the way nothing needs to be behind it.
        Err(errno)
            if through_link && !is_directory(src) && !(errno == Errno::LOOP && options.force) =>
        {
            Err(failed(Action::Stat, &entry.dst)(errno))
        }
        Err(_) => Ok(Lookup::Found(Box::new(Found { link, target: None, through_link: false }))),
    }
}

/// What a copy starts from, once what had to get out of its way has.
#[derive(Default)]
pub(crate) struct DestinationState {
    /// What stands at the destination still.
    pub(crate) found: Option<Box<Found>>,
    /// What stands there is replaced by something new rather than written into. It is there until
    /// then, as `--atomic` has it.
    pub(crate) replace: bool,
    /// A symbolic link to nothing stands there.
    pub(crate) dangling: bool,
    /// What stood there.
    pub(crate) backup: Option<BackedUp>,
    /// The source, where it had to prove that it can be read.
    pub(crate) source: Option<Box<OpenSource>>,
    /// The new file, where it has been created already.
    pub(crate) created: Option<OwnedFd>,
}

/// What a new entry meets at its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameState {
    Vacant,
    /// Something that only some options replace.
    Occupied,
    /// Something that it replaces.
    Replaceable,
}

impl DestinationState {
    pub(crate) fn old(&self) -> NameState {
        match (&self.found, self.replace) {
            (None, _) => NameState::Vacant,
            (Some(_), false) => NameState::Occupied,
            (Some(_), true) => NameState::Replaceable,
        }
    }
}

/// A link that stands for another operand of this run is not written through, be there nothing
/// behind it.
fn refuse_just_created_link(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    link: &Stat,
) -> Result<(), Diagnostic> {
    if entry.is_operand && cx.operands.was_made(&entry.dst, FileId::of(link)) {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(Diagnostic::JustCreatedSymlink { src, dst });
    }
    Ok(())
}

/// What is to be done about a destination that exists.
pub(crate) enum Decision {
    /// Make the copy; the destination may be there still, or be out of the way.
    Proceed(DestinationState),
    /// Leave everything as it is.
    Skip,
    /// Leave it because it is up to date; with what it proved to be, where it had to.
    UpToDate(Option<Verified>),
}

/// Decides what becomes of `found`, and does what has to be done before the copy.
pub(crate) fn decide(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    src: &Stat,
    found: Box<Found>,
) -> Result<Decision, Diagnostic> {
    let spares = matches!(cx.options.existing, Existing::Skip | Existing::Fail);
    if spares
        && !is_directory(src)
        && let Some(left) = check_update_options(cx, entry, src, &found)?
    {
        return Ok(left);
    }
    match check_same_file(cx, entry, src, &found)? {
        SameFile::Different => {}
        SameFile::AlreadyDone => {
            if cx.options.ask {
                // The answer changes nothing, but the question is expected.
                check_update_options(cx, entry, src, &found)?;
            }
            return Ok(Decision::Skip);
        }
        SameFile::Same => {
            return Err(Diagnostic::SameFile { src: entry.src.path(), dst: entry.dst.path() });
        }
    }
    if !is_directory(src)
        && let Some(left) = check_update_options(cx, entry, src, &found)?
    {
        return Ok(left);
    }
    if cx.options.record == Some(FileId::of(found.effective())) {
        return Err(Diagnostic::Record { src: entry.src.path(), dst: entry.dst.path() });
    }
    check_kinds(cx, entry, src, &found)?;
    if is_directory(src) && is_directory(found.effective()) {
        return Ok(Decision::Proceed(DestinationState {
            found: Some(found),
            ..DestinationState::default()
        }));
    }
    remove_or_back_up(cx, entry, src, found)
}

/// Compares the two files by identity.
fn check_same_file(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    src: &Stat,
    found: &Found,
) -> Result<SameFile, Diagnostic> {
    if is_directory(src) {
        let dst = found.target.as_ref().unwrap_or(&found.link);
        let same = FileId::of(src) == FileId::of(dst);
        return Ok(if same { SameFile::Same } else { SameFile::Different });
    }
    let looked = entry.src_through_link.then(|| entry.src.stat(false)).transpose();
    let src_link = looked.map_err(failed(Action::Stat, &entry.src))?.unwrap_or(*src);
    let src_target = if !is_symlink(src) {
        Some(*src)
    } else if is_symlink(&found.link) {
        // Two links are one only as themselves.
        None
    } else {
        entry.src.stat(true).ok()
    };
    let one = |one: &Stat, other: &Stat| FileId::of(one) == FileId::of(other);
    let one_target = match (&src_target, &found.target) {
        (Some(src), Some(dst)) => one(src, dst),
        _ => false,
    };
    if !one_target && !one(&src_link, &found.link) {
        return Ok(SameFile::Different);
    }
    let ends = Ends {
        src_link: &src_link,
        src_target: src_target.as_ref(),
        dst_link: &found.link,
        dst_target: found.target.as_ref(),
        same_name: is_same_name(entry),
        follows: !is_symlink(src) && cx.options.follow != Follow::Never,
    };
    Ok(check(&ends, cx.options))
}

/// Whether source and destination are one name in one directory.
fn is_same_name(entry: &Entry<'_>) -> bool {
    let (src_parent, src_base) = split(entry.src.name);
    let (dst_parent, dst_base) = split(entry.dst.name);
    if src_base != dst_base {
        return false;
    }
    let at = |dir, name| statat(dir, OsStr::from_bytes(name), AtFlags::empty());
    match (at(entry.src.dir, src_parent), at(entry.dst.dir, dst_parent)) {
        (Ok(src), Ok(dst)) => FileId::of(&src) == FileId::of(&dst),
        _ => false,
    }
}

/// The options that spare an existing destination.
fn check_update_options(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    src: &Stat,
    found: &Found,
) -> Result<Option<Decision>, Diagnostic> {
    let skipped = || {
        cx.report.announce_debug(|| Announcement::Skipped { dst: entry.dst.path() });
    };
    if cx.options.resume
        && is_complete(cx.options, src, found)
        && let Some(verified) = verify_existing(cx, entry, src, found)?
    {
        skipped();
        if cx.dry_run.is_none() && src.st_nlink > 1 {
            // It may have become a name of another copy when a run was killed, and becomes one of
            // this now.
            remove_stale(&cx.security, &entry.src, &entry.dst);
        }
        return Ok(Some(Decision::UpToDate(verified)));
    }
    match cx.options.existing {
        Existing::Replace => {}
        Existing::ReplaceOlder => {
            // A directory in the way counts as well: to leave it is what the time says.
            if mtime(found.effective()) >= mtime(src) {
                skipped();
                return Ok(Some(Decision::UpToDate(None)));
            }
        }
        Existing::Skip => {
            skipped();
            return Ok(Some(Decision::Skip));
        }
        Existing::Fail => return Err(Diagnostic::NotReplacing { dst: entry.dst.path() }),
    }
    let asks = cx.options.ask && cx.dry_run.is_none();
    if asks && !cx.report.observer.confirm(question(cx, entry, found)) {
        skipped();
        cx.report.add_failures(1);
        return Ok(Some(Decision::Skip));
    }
    Ok(None)
}

/// Whether an earlier run has created this copy: a file comes to its name with all its data and the time
/// of its source.
fn is_complete(options: &Options, src: &Stat, found: &Found) -> bool {
    options.preserve.timestamps
        && options.make == Make::Copy
        && is_regular(src)
        && is_regular(found.effective())
        && file_bytes(src) == file_bytes(found.effective())
        && mtime(src) == mtime(found.effective())
}

/// Whether it is the same beyond length and time, which is asked of it with `--verify` only. `None`
/// where it is not, or cannot be found out: then it is copied again.
fn verify_existing(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    src: &Stat,
    found: &Found,
) -> Result<Option<Option<Verified>>, Diagnostic> {
    if !cx.options.verify {
        return Ok(Some(None));
    }
    if found.through_link {
        return Ok(None);
    }
    cx.report.deferred_init();
    let src = open_source(entry, src)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(dst) = open_looked_at(entry.dst.dir, entry.dst.name, flags, &found.link) else {
        return Ok(None);
    };
    if fstat(&dst).map_or(true, |now| FileId::of(&now) != FileId::of(&found.link)) {
        return Ok(None);
    }
    let (src, dst) = ((src.fd.as_fd(), &entry.src), (dst.as_fd(), &entry.dst));
    compare_existing(cx.report, src, dst).map(|verified| verified.map(Some))
}

fn question(cx: &DestinationContext<'_>, entry: &Entry<'_>, found: &Found) -> Question {
    let dst = entry.dst.path();
    let link = is_symlink(found.effective());
    let writable =
        link || accessat(entry.dst.dir, entry.dst.name, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    if writable {
        return Question::Overwrite { dst };
    }
    Question::OverwriteUnwritable {
        dst,
        mode: Mode::from_raw_mode(found.effective().st_mode & 0o7777),
        removing: cx.options.force || cx.options.remove_destination,
    }
}

/// Directories replace nothing but directories, and nothing else replaces them.
fn check_kinds(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    src: &Stat,
    found: &Found,
) -> Result<(), Diagnostic> {
    let dst = found.effective();
    if is_directory(src) {
        // What is in the way can be kept under another name.
        if !is_directory(dst) && cx.options.backup.is_none() {
            let (src, dst) = (entry.src.path(), entry.dst.path());
            return Err(Diagnostic::NonDirectoryInTheWay { src, dst });
        }
        return Ok(());
    }
    if is_directory(dst) {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(Diagnostic::DirectoryInTheWay { src, dst });
    }
    let numbered =
        cx.options.backup.as_ref().is_some_and(|backup| backup.kind == BackupKind::Numbered);
    if entry.is_operand && !numbered && cx.operands.was_made(&entry.dst, FileId::of(&found.link)) {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(if is_symlink(&found.link) && found.through_link {
            Diagnostic::JustCreatedSymlink { src, dst }
        } else {
            Diagnostic::JustCreated { src, dst }
        });
    }
    Ok(())
}

/// Makes a backup of the destination, or removes it, where that comes before the copy.
fn remove_or_back_up(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    src: &Stat,
    found: Box<Found>,
) -> Result<Decision, Diagnostic> {
    let options = cx.options;
    if let Some(backup) = &options.backup {
        refuse_to_destroy_source(entry, src, backup)?;
        let source = open_first(cx, entry, src)?;
        let id = FileId::of(&found.link);
        // A directory can have one name only.
        let keeps_name = options.atomic && !is_directory(src);
        let method = match (cx.dry_run.is_some(), keeps_name) {
            (true, _) => BackupMethod::DryRun,
            (false, true) => BackupMethod::Link,
            (false, false) => BackupMethod::Rename,
        };
        let backup = match backup::back_up(cx, (&entry.src, &entry.dst), id, backup, method) {
            Ok(backup) => Some(backup),
            Err(BackupError::Errno(Errno::NOENT)) => None,
            Err(error) => return Err(error.diagnostic(&entry.dst)),
        };
        let found = (keeps_name && backup.is_some()).then(|| the_link_itself(found));
        let replace = found.is_some();
        return Ok(Decision::Proceed(DestinationState {
            found,
            replace,
            backup,
            source,
            ..DestinationState::default()
        }));
    }
    // With -H links are followed on the command line; below that it is as if they never were.
    let below = options.follow == Follow::CommandLine && !entry.is_operand;
    let follows_none = options.follow == Follow::Never || below;
    // Its other names are to keep what they stand for, and what is no file cannot be written to
    // one; but with attributes alone no data may be lost.
    let replace = (options.preserve.links && found.effective().st_nlink > 1)
        || (follows_none && !is_regular(src));
    // What another operand has created of the same source is not to be lost.
    let is_its_copy = || cx.links.is_copy(FileId::of(src), FileId::of(&found.link));
    if !options.remove_destination && (!replace || options.make == Make::AttributesOnly)
        || is_its_copy()
    {
        return Ok(Decision::Proceed(DestinationState {
            found: Some(found),
            ..DestinationState::default()
        }));
    }
    let source = open_first(cx, entry, src)?;
    if options.atomic && !is_directory(src) {
        let found = Some(the_link_itself(found));
        return Ok(Decision::Proceed(DestinationState {
            found,
            replace: true,
            source,
            ..DestinationState::default()
        }));
    }
    remove(cx, entry)?;
    Ok(Decision::Proceed(DestinationState { source, ..DestinationState::default() }))
}

/// What gives way is the name, and not what a symbolic link there leads to.
fn the_link_itself(found: Box<Found>) -> Box<Found> {
    Box::new(Found { through_link: false, ..*found })
}

/// Opens a source whose data is copied: one that cannot be read must not cost the destination.
fn open_first(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    src: &Stat,
) -> Result<Option<Box<OpenSource>>, Diagnostic> {
    let copies = matches!(cx.options.make, Make::Copy | Make::AttributesOnly);
    if !copies || !copies_data(cx.options, src) {
        return Ok(None);
    }
    // Devices and fifos notice that they are opened.
    if cx.dry_run.is_some() && !is_regular(src) {
        return Ok(None);
    }
    let opened = open_source(entry, src).inspect_err(|_| {
        // What was about to be done is said of every file, before what went wrong.
        let (src, dst) = (entry.src.path(), entry.dst.path());
        cx.report.announce(|| Announcement::Copied { src, dst, backup: None });
    })?;
    Ok(Some(Box::new(opened)))
}

/// Removes the destination's name.
pub(crate) fn remove(cx: &DestinationContext<'_>, entry: &Entry<'_>) -> Result<(), Diagnostic> {
    let removed = if cx.dry_run.is_some() { Ok(()) } else { entry.dst.unlink() };
    match removed {
        Ok(()) => {
            cx.report.announce(|| Announcement::Removed { dst: entry.dst.path() });
            Ok(())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed(Action::Remove, &entry.dst)(errno)),
    }
}

/// `cp -b a~ a` would rename `a` over its source.
fn refuse_to_destroy_source(
    entry: &Entry<'_>,
    src: &Stat,
    backup: &Backup,
) -> Result<(), Diagnostic> {
    if backup.kind == BackupKind::Numbered
        || split(entry.src.name).1 != backup::simple_name(split(entry.dst.name).1, backup)
    {
        return Ok(());
    }
    let name = backup::simple_name(entry.dst.name.to_bytes(), backup);
    let stands = statat(entry.dst.dir, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW);
    match stands {
        Ok(stands) if FileId::of(&stands) == FileId::of(src) => {
            Err(Diagnostic::BackupDestroysSource { src: entry.src.path(), dst: entry.dst.path() })
        }
        _ => Ok(()),
    }
}

/// Whether an old destination that could not be opened so may be removed for a new one. For want of
/// descriptors or memory, or on a broken disk, the new one would not come to be either.
pub(crate) fn may_be_removed(errno: Errno) -> bool {
    !matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO)
}

/// A symbolic link inside a directory is written through only where nobody can have put it there to
/// that end.
pub(crate) fn refuse_untrusted_link(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: &Found,
) -> Result<(), Diagnostic> {
    if entry.dst.trust == Trust::Created || cx.security.changed_during_run(&found.link) {
        let (src, dst) = (entry.src.path(), entry.dst.path());
        return Err(Diagnostic::JustCreatedSymlink { src, dst });
    }
    if !cx.security.is_owner_trusted(&found.link) {
        return Err(Diagnostic::ForeignSymlink { dst: entry.dst.path() });
    }
    Ok(())
}
