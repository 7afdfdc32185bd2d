//! What stands at a destination already, and what is to become of it.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Access, AtFlags, FileType, Mode, Stat, accessat, statat};
use rustix::io::Errno;

use crate::backup::{self, BackedUp, Refused, Way};
use crate::beside::clear_beside;
use crate::diagnostic::{Action, Diagnostic};
use crate::entry::Job;
use crate::identity::{FileId, file_bytes, is_directory, is_regular, is_symlink, kind, mtime};
use crate::observer::{Announcement, Question};
use crate::options::{Backup, BackupKind, Existing, Follow, Make, Options};
use crate::place::Trust;
use crate::receipt::Verified;
use crate::regular::{OpenSource, open_source};
use crate::run::{Run, failed};
use crate::same_file::{Ends, Sameness, judge};
use crate::verify::compare_found;

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
pub(crate) enum Look {
    Nothing,
    /// A symbolic link to nothing, which a file would be written through.
    Dangling,
    Found(Box<Found>),
}

/// Whether the source's data is copied, rather than the entry re-created.
pub(crate) fn copies_data(options: &Options, src: &Stat) -> bool {
    match kind(src) {
        FileType::RegularFile => true,
        FileType::Symlink | FileType::Directory => false,
        _ => !options.recursive || options.copy_contents,
    }
}

/// Looks at the destination of `job`.
pub(crate) fn look(run: &Run<'_>, job: &Job<'_>, src: &Stat) -> Result<Look, Diagnostic> {
    let options = run.options;
    if job.dst.trust == Trust::Made {
        // What this run made is empty but for what this run puts there. Should anything stand in
        // the way after all, making the entry fails.
        return Ok(Look::Nothing);
    }
    let link = match job.dst.stat(false) {
        Ok(link) => link,
        Err(Errno::NOENT) => return Ok(Look::Nothing),
        Err(errno) => return Err(failed(Action::Stat, &job.dst)(errno)),
    };
    if !is_symlink(&link) {
        return Ok(Look::Found(Box::new(Found { link, target: Some(link), through_link: false })));
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
        return Ok(Look::Found(Box::new(Found { link, target: None, through_link: false })));
    }
    match job.dst.stat(true) {
        Ok(target) => {
            // Without a directory behind it the link itself is what is in a directory's way.
            let through_link = through_link && (!is_directory(src) || is_directory(&target));
            Ok(Look::Found(Box::new(Found { link, target: Some(target), through_link })))
        }
        Err(Errno::NOENT) if through_link && !is_directory(src) => {
            refuse_just_created_link(run, job, &link)?;
            Ok(Look::Dangling)
        }
        // Where a circle of links is to be forced out of the way nothing needs to be behind it.
        Err(errno)
            if through_link && !is_directory(src) && !(errno == Errno::LOOP && options.force) =>
        {
            Err(failed(Action::Stat, &job.dst)(errno))
        }
        Err(_) => Ok(Look::Found(Box::new(Found { link, target: None, through_link: false }))),
    }
}

/// What a copy starts from, once what had to get out of its way has.
#[derive(Default)]
pub(crate) struct Ground {
    /// What stands at the destination still.
    pub(crate) found: Option<Box<Found>>,
    /// What stands there is replaced by something new rather than written into. It is there until
    /// then, as `--atomic` has it.
    pub(crate) gives_way: bool,
    /// A symbolic link to nothing stands there.
    pub(crate) dangling: bool,
    /// What stood there.
    pub(crate) backup: Option<BackedUp>,
    /// The source, where it had to prove that it can be read.
    pub(crate) source: Option<Box<OpenSource>>,
    /// The new file, where it has been made already.
    pub(crate) made: Option<OwnedFd>,
}

/// What a new entry meets at its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    Nothing,
    /// Something that only some options replace.
    Stands,
    /// Something that it replaces.
    GivesWay,
}

impl Ground {
    pub(crate) fn old(&self) -> Old {
        match (&self.found, self.gives_way) {
            (None, _) => Old::Nothing,
            (Some(_), false) => Old::Stands,
            (Some(_), true) => Old::GivesWay,
        }
    }
}

/// A link that stands for another operand of this run is not written through, be there nothing
/// behind it.
fn refuse_just_created_link(run: &Run<'_>, job: &Job<'_>, link: &Stat) -> Result<(), Diagnostic> {
    if job.is_top && run.tops.was_made(run, &job.dst, FileId::of(link)) {
        let (src, dst) = (job.src.path(), job.dst.path());
        return Err(Diagnostic::JustCreatedSymlink { src, dst });
    }
    Ok(())
}

/// What is to be done about a destination that exists.
pub(crate) enum Verdict {
    /// Make the copy; the destination may be there still, or be out of the way.
    Proceed(Ground),
    /// Leave everything as it is.
    Leave,
    /// Leave it because it is up to date; with what it proved to be, where it had to.
    UpToDate(Option<Verified>),
}

/// Decides what becomes of `found`, and does what has to be done before the copy.
pub(crate) fn settle(
    run: &Run<'_>,
    job: &Job<'_>,
    src: &Stat,
    found: Box<Found>,
) -> Result<Verdict, Diagnostic> {
    let spares = matches!(run.options.existing, Existing::Skip | Existing::Fail);
    if spares
        && !is_directory(src)
        && let Some(left) = leave_alone(run, job, src, &found)?
    {
        return Ok(left);
    }
    match sameness(run, job, src, &found)? {
        Sameness::Apart => {}
        Sameness::AlreadyDone => {
            if run.options.ask {
                // The answer changes nothing, but the question is expected.
                leave_alone(run, job, src, &found)?;
            }
            return Ok(Verdict::Leave);
        }
        Sameness::Same => {
            return Err(Diagnostic::SameFile { src: job.src.path(), dst: job.dst.path() });
        }
    }
    if !is_directory(src)
        && let Some(left) = leave_alone(run, job, src, &found)?
    {
        return Ok(left);
    }
    if run.options.record == Some(FileId::of(found.effective())) {
        return Err(Diagnostic::Record { src: job.src.path(), dst: job.dst.path() });
    }
    check_kinds(run, job, src, &found)?;
    if is_directory(src) && is_directory(found.effective()) {
        return Ok(Verdict::Proceed(Ground { found: Some(found), ..Ground::default() }));
    }
    make_way(run, job, src, found)
}

/// Compares the two files by identity.
fn sameness(
    run: &Run<'_>,
    job: &Job<'_>,
    src: &Stat,
    found: &Found,
) -> Result<Sameness, Diagnostic> {
    if is_directory(src) {
        let dst = found.target.as_ref().unwrap_or(&found.link);
        let same = FileId::of(src) == FileId::of(dst);
        return Ok(if same { Sameness::Same } else { Sameness::Apart });
    }
    let looked = job.src_through_link.then(|| job.src.stat(false)).transpose();
    let src_link = looked.map_err(failed(Action::Stat, &job.src))?.unwrap_or(*src);
    let src_target = if !is_symlink(src) {
        Some(*src)
    } else if is_symlink(&found.link) {
        // Two links are one only as themselves.
        None
    } else {
        job.src.stat(true).ok()
    };
    let one = |one: &Stat, other: &Stat| FileId::of(one) == FileId::of(other);
    let one_target = match (&src_target, &found.target) {
        (Some(src), Some(dst)) => one(src, dst),
        _ => false,
    };
    if !one_target && !one(&src_link, &found.link) {
        return Ok(Sameness::Apart);
    }
    let ends = Ends {
        src_link: &src_link,
        src_target: src_target.as_ref(),
        dst_link: &found.link,
        dst_target: found.target.as_ref(),
        same_name: is_same_name(job),
        follows: !is_symlink(src) && run.options.follow != Follow::Never,
    };
    Ok(judge(&ends, run.options))
}

/// Whether source and destination are one name in one directory.
fn is_same_name(job: &Job<'_>) -> bool {
    let (src_parent, src_base) = split(job.src.name);
    let (dst_parent, dst_base) = split(job.dst.name);
    if src_base != dst_base {
        return false;
    }
    let at = |dir, name| statat(dir, OsStr::from_bytes(name), AtFlags::empty());
    match (at(job.src.dir, src_parent), at(job.dst.dir, dst_parent)) {
        (Ok(src), Ok(dst)) => FileId::of(&src) == FileId::of(&dst),
        _ => false,
    }
}

/// The directory part of an operand, `.` if there is none, and its last component.
pub(crate) fn split(name: &CStr) -> (&[u8], &[u8]) {
    let bytes = name.to_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let bytes = &bytes[..end];
    match bytes.iter().rposition(|&byte| byte == b'/') {
        None => (b".", bytes),
        Some(at) => (&bytes[..=at], &bytes[at + 1..]),
    }
}

/// The options that spare an existing destination.
fn leave_alone(
    run: &Run<'_>,
    job: &Job<'_>,
    src: &Stat,
    found: &Found,
) -> Result<Option<Verdict>, Diagnostic> {
    let skipped = || {
        if run.options.debug {
            run.announce(|| Announcement::Skipped { dst: job.dst.path() });
        }
    };
    if run.options.resume
        && is_complete(run.options, src, found)
        && let Some(verified) = prove(run, job, src, found)?
    {
        skipped();
        if run.rehearsal.is_none() && src.st_nlink > 1 {
            // It may have become a name of another copy when a run was killed, and becomes one of
            // this now.
            clear_beside(run, &job.src, &job.dst);
        }
        return Ok(Some(Verdict::UpToDate(verified)));
    }
    match run.options.existing {
        Existing::Replace => {}
        Existing::ReplaceOlder => {
            // A directory in the way counts as well: to leave it is what the time says.
            if mtime(found.effective()) >= mtime(src) {
                skipped();
                return Ok(Some(Verdict::UpToDate(None)));
            }
        }
        Existing::Skip => {
            skipped();
            return Ok(Some(Verdict::Leave));
        }
        Existing::Fail => return Err(Diagnostic::NotReplacing { dst: job.dst.path() }),
    }
    let asks = run.options.ask && run.rehearsal.is_none();
    if asks && !run.observer.confirm(question(run, job, found)) {
        skipped();
        run.declined();
        return Ok(Some(Verdict::Leave));
    }
    Ok(None)
}

/// Whether an earlier run has made this copy: a file comes to its name with all its data and the time
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
fn prove(
    run: &Run<'_>,
    job: &Job<'_>,
    src: &Stat,
    found: &Found,
) -> Result<Option<Option<Verified>>, Diagnostic> {
    if !run.options.verify {
        return Ok(Some(None));
    }
    if found.through_link {
        return Ok(None);
    }
    compare_found(run, job, src, &found.link).map(|verified| verified.map(Some))
}

fn question(run: &Run<'_>, job: &Job<'_>, found: &Found) -> Question {
    let dst = job.dst.path();
    let link = is_symlink(found.effective());
    let writable =
        link || accessat(job.dst.dir, job.dst.name, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    if writable {
        return Question::Overwrite { dst };
    }
    Question::OverwriteUnwritable {
        dst,
        mode: Mode::from_raw_mode(found.effective().st_mode & 0o7777),
        removing: run.options.force || run.options.remove_destination,
    }
}

/// Directories replace nothing but directories, and nothing else replaces them.
fn check_kinds(run: &Run<'_>, job: &Job<'_>, src: &Stat, found: &Found) -> Result<(), Diagnostic> {
    let dst = found.effective();
    if is_directory(src) {
        // What is in the way can be kept under another name.
        if !is_directory(dst) && run.options.backup.is_none() {
            let (src, dst) = (job.src.path(), job.dst.path());
            return Err(Diagnostic::NonDirectoryInTheWay { src, dst });
        }
        return Ok(());
    }
    if is_directory(dst) {
        let (src, dst) = (job.src.path(), job.dst.path());
        return Err(Diagnostic::DirectoryInTheWay { src, dst });
    }
    let numbered =
        run.options.backup.as_ref().is_some_and(|backup| backup.kind == BackupKind::Numbered);
    if job.is_top && !numbered && run.tops.was_made(run, &job.dst, FileId::of(&found.link)) {
        let (src, dst) = (job.src.path(), job.dst.path());
        return Err(if is_symlink(&found.link) && found.through_link {
            Diagnostic::JustCreatedSymlink { src, dst }
        } else {
            Diagnostic::JustCreated { src, dst }
        });
    }
    Ok(())
}

/// Makes a backup of the destination, or removes it, where that comes before the copy.
fn make_way(
    run: &Run<'_>,
    job: &Job<'_>,
    src: &Stat,
    found: Box<Found>,
) -> Result<Verdict, Diagnostic> {
    let options = run.options;
    if let Some(backup) = &options.backup {
        refuse_to_destroy_source(job, src, backup)?;
        let source = open_first(run, job, src)?;
        let id = FileId::of(&found.link);
        // A directory can have one name only.
        let keeps_name = options.atomic && !is_directory(src);
        let way = match (run.rehearsal.is_some(), keeps_name) {
            (true, _) => Way::Rehearsed,
            (false, true) => Way::Link,
            (false, false) => Way::Rename,
        };
        let backup = match backup::back_up(run, (&job.src, &job.dst), id, backup, way) {
            Ok(backup) => Some(backup),
            Err(Refused::Errno(Errno::NOENT)) => None,
            Err(refused) => return Err(refused.diagnostic(&job.dst)),
        };
        let found = (keeps_name && backup.is_some()).then(|| itself(found));
        let gives_way = found.is_some();
        return Ok(Verdict::Proceed(Ground {
            found,
            gives_way,
            backup,
            source,
            ..Ground::default()
        }));
    }
    // With -H links are followed on the command line; below that it is as if they never were.
    let below = options.follow == Follow::CommandLine && !job.is_top;
    let follows_none = options.follow == Follow::Never || below;
    // Its other names are to keep what they stand for, and what is no file cannot be written to
    // one; but with attributes alone no data may be lost.
    let gives_way = (options.preserve.links && found.effective().st_nlink > 1)
        || (follows_none && !is_regular(src));
    // What another operand has made of the same source is not to be lost.
    let is_its_copy = || run.links.is_copy(FileId::of(src), FileId::of(&found.link));
    if !options.remove_destination && (!gives_way || options.make == Make::AttributesOnly)
        || is_its_copy()
    {
        return Ok(Verdict::Proceed(Ground { found: Some(found), ..Ground::default() }));
    }
    let source = open_first(run, job, src)?;
    if options.atomic && !is_directory(src) {
        let found = Some(itself(found));
        return Ok(Verdict::Proceed(Ground {
            found,
            gives_way: true,
            source,
            ..Ground::default()
        }));
    }
    remove(run, job)?;
    Ok(Verdict::Proceed(Ground { source, ..Ground::default() }))
}

/// What gives way is the name, and not what a symbolic link there leads to.
fn itself(found: Box<Found>) -> Box<Found> {
    Box::new(Found { through_link: false, ..*found })
}

/// Opens a source whose data is copied: one that cannot be read must not cost the destination.
fn open_first(
    run: &Run<'_>,
    job: &Job<'_>,
    src: &Stat,
) -> Result<Option<Box<OpenSource>>, Diagnostic> {
    let copies = matches!(run.options.make, Make::Copy | Make::AttributesOnly);
    if !copies || !copies_data(run.options, src) {
        return Ok(None);
    }
    // Devices and fifos notice that they are opened.
    if run.rehearsal.is_some() && !is_regular(src) {
        return Ok(None);
    }
    let opened = open_source(job, src).inspect_err(|_| {
        // What was about to be done is said of every file, before what went wrong.
        let (src, dst) = (job.src.path(), job.dst.path());
        run.announce(|| Announcement::Copied { src, dst, backup: None });
    })?;
    Ok(Some(Box::new(opened)))
}

/// Removes the destination's name.
pub(crate) fn remove(run: &Run<'_>, job: &Job<'_>) -> Result<(), Diagnostic> {
    let removed = if run.rehearsal.is_some() { Ok(()) } else { job.dst.unlink() };
    match removed {
        Ok(()) => {
            run.announce(|| Announcement::Removed { dst: job.dst.path() });
            Ok(())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed(Action::Remove, &job.dst)(errno)),
    }
}

/// `cp -b a~ a` would rename `a` over its source.
fn refuse_to_destroy_source(job: &Job<'_>, src: &Stat, backup: &Backup) -> Result<(), Diagnostic> {
    if backup.kind == BackupKind::Numbered
        || split(job.src.name).1 != backup::simple_name(split(job.dst.name).1, backup)
    {
        return Ok(());
    }
    let name = backup::simple_name(job.dst.name.to_bytes(), backup);
    let stands = statat(job.dst.dir, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW);
    match stands {
        Ok(stands) if FileId::of(&stands) == FileId::of(src) => {
            Err(Diagnostic::BackupDestroysSource { src: job.src.path(), dst: job.dst.path() })
        }
        _ => Ok(()),
    }
}
