//! Directories that partners have entered, opened here for names that they give.
//!
//! The receiver opens one directory after the other without following symbolic links, and takes
//! nothing if one is another directory than the sender had open.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec};

use super::work_pool::{Incoming, WorkShare};
use crate::copy::directory_pair::DirectoryPair;
use crate::destination::context::CopyContext;
use crate::entry::Operand;
use crate::fs::{
    Dir, DirPath, FileId, SEARCH, c_name, enter, enter_destination, enter_for_search,
    open_destination, retry_for,
};
use crate::lock::lock;
use crate::report::{Action, Diagnostic};
use crate::shared::messages::{DirectoryMessage, Names, OperandMessage};
use crate::shared::{LOCAL, ReceivedShare, Sender, open_top};

/// Directories that stay open for further names of them.
const KEPT_OPEN: usize = 8;

/// What this process has open for partners.
#[derive(Default)]
pub(super) struct OpenedPlaces(Mutex<VecDeque<Arc<OpenedPlace>>>);

/// A directory that a partner entered, opened here.
pub(super) struct OpenedPlace {
    pub(super) src: Dir,
    pub(super) dst: Dir,
    operand: Arc<Operand>,
    /// What it was opened by.
    message: DirectoryMessage,
}

/// How long an operand may be missing that a partner has open: a network file system may not
/// show at once what another host has made.
const APPEARS_WITHIN: Duration = Duration::from_secs(2);

/// Failures in a row that may pass, before one counts as for good.
const PASSING_MAX: u32 = 4;

/// Why a share was not opened.
pub(super) enum Refused {
    /// What the operands name is not there, so that nothing can be copied here.
    Operand(Diagnostic),
    /// The directory.
    Directory,
    /// The share cannot be opened now, and may be later.
    ForNow,
}

impl From<Errno> for Refused {
    fn from(_: Errno) -> Refused {
        Refused::Directory
    }
}

impl OpenedPlaces {
    /// Opens the directory of names that a partner has given.
    ///
    /// # Errors
    /// Then nothing was taken.
    pub(super) fn open_share(
        &self,
        cx: &CopyContext<'_>,
        incoming: &Incoming,
        names: &Names,
    ) -> Result<WorkShare, Refused> {
        let opened = self.open(cx, &names.place)?;
        let (src, dst) = (opened.src.duplicate()?, opened.dst.duplicate()?);
        let facts = opened.message.facts;
        let creation_lock = cx.creation_locks.of(dst.fd(), dst.id(), facts.private);
        // From here on it is not handed back any more.
        let Incoming { share, home, .. } = *incoming;
        let received = ReceivedShare { partners: cx.partners.others.clone(), share, home };
        let pair = Arc::new(DirectoryPair {
            src,
            dst,
            facts,
            // The process that entered the directory sets its attributes.
            mode: None,
            inherits_acl: false,
            started: None,
            failures: Mutex::default(),
            creation_lock,
            operand: opened.operand.clone(),
            // It is told when the names are copied.
            received: Some(received),
            returned: AtomicBool::new(false),
        });
        Ok(WorkShare { pair, names: names.listing(), is_large_file: names.is_large_file })
    }

    /// Opens the directory of `message`, unless it is open.
    pub(super) fn open(
        &self,
        cx: &CopyContext<'_>,
        message: &DirectoryMessage,
    ) -> Result<Arc<OpenedPlace>, Refused> {
        let above = {
            let kept = lock(&self.0);
            if let Some(opened) = kept.iter().find(|opened| opened.message == *message) {
                return Ok(opened.clone());
            }
            let above = kept.iter().filter(|opened| opened.is_above(message));
            above.max_by_key(|opened| opened.message.levels.len()).cloned()
        };
        let opened = Arc::new(open_place(cx, message, above)?);
        let mut kept = lock(&self.0);
        if kept.len() == KEPT_OPEN {
            kept.pop_front();
        }
        kept.push_back(opened.clone());
        Ok(opened)
    }
}

/// `above` is the nearest directory above that is open.
fn open_place(
    cx: &CopyContext<'_>,
    message: &DirectoryMessage,
    above: Option<Arc<OpenedPlace>>,
) -> Result<OpenedPlace, Refused> {
    let DirectoryMessage { operand: described, facts, levels, links } = message;
    let partners = &cx.partners;
    let sender = partners.sender(&described.boot_id);
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let operand = Arc::new(Operand {
        src: path(&described.src),
        dst: path(&described.dst),
        merged: described.merged.iter().map(|src| path(src)).collect(),
        into_directory: described.into_directory,
        into_itself: AtomicBool::new(false),
        shareable: AtomicBool::new(true),
    });
    let duplicate =
        |dir: &Dir| io::Result::Ok((fcntl_dupfd_cloexec(dir.fd(), 0)?, dir.dir_path.clone()));
    let [(mut src, mut src_path), (mut dst, mut dst_path)] = match &above {
        Some(above) => [duplicate(&above.src)?, duplicate(&above.dst)?],
        None => open_operand(cx, sender, &operand, described)?,
    };
    let known = above.map_or(0, |above| above.message.levels.len());
    for (index, (component, src_id, dst_id)) in levels.iter().enumerate().skip(known) {
        let name = component.name();
        // Only the last one is listed, or has its attributes read.
        let is_last = index + 1 == levels.len();
        (src, dst) = match is_last {
            true => (enter(src.as_fd(), name)?, enter_destination(dst.as_fd(), name)?),
            false => (enter_for_search(src.as_fd(), name)?, enter_for_search(dst.as_fd(), name)?),
        };
        src_path = src_path.child(name, Some(partners.check(src.as_fd(), *src_id, sender)?));
        dst_path = dst_path.child(name, Some(partners.check(dst.as_fd(), *dst_id, sender)?));
    }
    if levels.is_empty() {
        // They are open with O_PATH.
        src = crate::fs::open_operand(src.as_fd(), c".")?;
        dst = open_destination(dst.as_fd(), c".", OFlags::empty())?;
    }
    let (src_stat, dst_stat) = (fstat(&src)?, fstat(&dst)?);
    if !facts.new && cx.options.may_write_through() {
        let links = links
            .as_ref()
            .map(|links| links.iter().filter_map(|link| partners.own(*link)).collect());
        cx.security.take_over(FileId::of(&dst_stat), links);
    }
    if !facts.new && cx.options.resume {
        cx.stale.scan(dst.as_fd());
    }
    let src = Dir::new(Some(src), &src_stat, src_path, false);
    let dst = Dir::new(Some(dst), &dst_stat, dst_path, false);
    Ok(OpenedPlace { src, dst, operand, message: message.clone() })
}

/// Opens what the operands name, source and destination, with O_PATH.
fn open_operand(
    cx: &CopyContext<'_>,
    sender: Sender,
    operand: &Operand,
    described: &OperandMessage,
) -> Result<[(OwnedFd, DirPath); 2], Refused> {
    let partners = &cx.partners;
    let refused = |action, path: &Path| {
        let path = path.to_owned();
        move |errno| {
            let may_pass =
                || partners.passing_failures.fetch_add(1, Ordering::Relaxed) < PASSING_MAX;
            if is_passing(errno) && may_pass() {
                return Refused::ForNow;
            }
            Refused::Operand(match errno {
                LOCAL => Diagnostic::LocalToHost { path },
                errno => Diagnostic::Failed { action, path, errno },
            })
        }
    };
    let follows = cx.options.follow.follows(true);
    let flags = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    let open_source = || {
        let src = openat(CWD, &*c_name(&described.src)?, SEARCH | flags, Mode::empty())?;
        let found = partners.check(src.as_fd(), described.src_id, sender)?;
        Ok((src, found))
    };
    let (src, src_found) =
        until_it_appears(cx, open_source).map_err(refused(Action::EnterDirectory, &operand.src))?;
    let src_path = DirPath::top(&operand.src, None, Some(src_found));
    let dst_path = until_it_appears(cx, || partners.top_of_destination(&described.top, sender))
        .map_err(refused(Action::EnterDestination, &operand.dst))?;
    partners.passing_failures.store(0, Ordering::Relaxed);
    if described.is_created_root
        && let Some(id) = dst_path.id()
    {
        cx.operands.record_root(id);
    }
    let dst = open_top(&dst_path).map_err(|errno| match errno {
        errno if is_passing(errno) => Refused::ForNow,
        _ => Refused::Directory,
    })?;
    Ok([(src, src_path), (dst, dst_path)])
}

/// Whether a later attempt may succeed: another host has made the file a moment ago, or this process
/// lacks descriptors or memory.
fn is_passing(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::STALE | Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// `open`, again and again while it fails in a way that may pass.
fn until_it_appears<T>(cx: &CopyContext<'_>, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let is_passing = |errno| is_passing(errno) && !cx.report.interrupted();
    retry_for(APPEARS_WITHIN, is_passing, open)
}

impl OpenedPlace {
    /// Whether the directory is above that of `message`.
    fn is_above(&self, message: &DirectoryMessage) -> bool {
        let levels = &self.message.levels;
        levels.len() < message.levels.len()
            && self.message.operand == message.operand
            && message.levels.starts_with(levels)
    }
}
