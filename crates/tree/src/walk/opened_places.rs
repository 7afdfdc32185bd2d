//! Directories that other ranks of a job have entered, opened here for names that they give.
//!
//! The receiver opens one directory after the other without following symbolic links, and takes
//! nothing if one is another directory than the sender had open.

use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, openat};
use rustix::io::{self, Errno};

use super::share_message::{self, Facts, Work, decode_below, decode_operand};
use super::work_pool::{Incoming, WorkShare};
use crate::copy::context::CopyContext;
use crate::copy::directory_pair::DirectoryPair;
use crate::entry::Operand;
use crate::fs::fs_type::is_on_fs_of_one_host;
use crate::fs::{
    DIRECTORY, Dir, DirPath, FileId, SEARCH, c_name, enter, enter_destination, enter_for_search,
    open_for_search,
};
use crate::lock::lock;
use crate::report::{Action, Diagnostic};
use crate::shared::wire::Reader;
use crate::shared::{
    CreationLock, LOCAL, RankContext, ReceivedShare, Sender, TopMessage, open_top,
};

/// Directories that stay open for further names of them.
const KEPT_OPEN: usize = 8;

/// What this rank has open for other ranks.
#[derive(Default)]
pub(super) struct OpenedPlaces(Mutex<VecDeque<(Vec<u8>, Arc<OpenedPlace>)>>);

/// A directory below an operand: its name, and the identities of source and destination.
type Level = (CString, FileId, FileId);

/// A directory that another rank entered, opened here.
pub(super) struct OpenedPlace {
    pub(super) src: OwnedFd,
    pub(super) dst: OwnedFd,
    src_stat: Stat,
    dst_stat: Stat,
    pub(super) src_path: DirPath,
    pub(super) dst_path: DirPath,
    operand: Arc<Operand>,
    facts: Facts,
    /// What the message said of its operand and the directories from there.
    described_top: Vec<u8>,
    levels: Vec<Level>,
}

/// How long an operand may be missing that another rank has open: a network file system may not
/// show at once what another host has made.
const APPEARS_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Failures in a row that may pass, before one counts as for good.
const PASSING_MAX: u32 = 4;

/// Why a share was not opened.
pub(super) enum Refused {
    /// What the operands name is not there, so that nothing can be copied here.
    Operand(Diagnostic),
    /// The directory.
    Directory,
    /// It may be possible later.
    ForNow,
}

impl OpenedPlaces {
    /// Opens the directory of names that another rank has given.
    ///
    /// # Errors
    /// Then nothing was taken.
    pub(super) fn open_share(
        &self,
        cx: &CopyContext<'_>,
        rank: &RankContext,
        incoming: &Incoming,
    ) -> Result<WorkShare, Refused> {
        let Some(Work::Names(message)) = share_message::decode(&incoming.work) else {
            return Err(Refused::Directory);
        };
        let opened = self.open(cx, rank, message.place)?;
        let Directories { src, dst, .. } = opened.duplicate().map_err(|_| Refused::Directory)?;
        // From here on it is not handed back any more.
        let (ranks, share, home) = (rank.ranks.clone(), incoming.share, incoming.home);
        let pair = opened.pair(cx, (src, dst), ReceivedShare { ranks, share, home });
        let share_message::Names { names, is_large_file, .. } = message;
        Ok(WorkShare { pair: Arc::new(pair), names, is_large_file })
    }

    /// Opens what [`encode_place`](share_message::encode_place) described, unless it is open.
    pub(super) fn open(
        &self,
        cx: &CopyContext<'_>,
        rank: &RankContext,
        place: &[u8],
    ) -> Result<Arc<OpenedPlace>, Refused> {
        if let Some((_, opened)) = lock(&self.0).iter().find(|(known, _)| known == place) {
            return Ok(opened.clone());
        }
        let opened = Arc::new(open_place(cx, rank, place, |top, levels| {
            let kept = lock(&self.0);
            let above = kept.iter().map(|(_, opened)| opened).filter(|it| it.is_above(top, levels));
            above.max_by_key(|opened| opened.levels.len()).cloned()
        })?);
        let mut kept = lock(&self.0);
        if kept.len() == KEPT_OPEN {
            kept.pop_front();
        }
        kept.push_back((place.into(), opened.clone()));
        Ok(opened)
    }
}

/// `above` returns the nearest directory above that is open.
fn open_place(
    cx: &CopyContext<'_>,
    rank: &RankContext,
    place: &[u8],
    above: impl FnOnce(&[u8], &[Level]) -> Option<Arc<OpenedPlace>>,
) -> Result<OpenedPlace, Refused> {
    let reader = &mut Reader::new(place);
    let sender = rank.decode_host(reader).ok_or(Refused::Directory)?;
    let (operand, is_created_root, src_id) = decode_operand(reader).ok_or(Refused::Directory)?;
    let top = TopMessage::read(reader).ok_or(Refused::Directory)?;
    let described_top = place[..place.len() - reader.bytes_left()].to_vec();
    let below = decode_below(reader).ok_or(Refused::Directory)?;
    let above = above(&described_top, &below.levels);
    let opened = match &above {
        Some(above) => above.duplicate().map_err(|_| Refused::Directory)?,
        None => open_operand(cx, (rank, sender), (&operand, src_id), (&top, is_created_root))?,
    };
    let Directories { mut src, mut dst, mut src_path, mut dst_path } = opened;
    let levels = below.levels.len();
    let known = above.map_or(0, |above| above.levels.len());
    for (index, (name, src_id, dst_id)) in below.levels.iter().enumerate().skip(known) {
        // Only the last one is listed, or has its attributes read.
        let is_last = index + 1 == levels;
        let next =
            if is_last { enter(src.as_fd(), name) } else { enter_for_search(src.as_fd(), name) };
        src = checked((rank, sender), next, *src_id).map_err(|_| Refused::Directory)?;
        let next = if is_last {
            enter_destination(dst.as_fd(), name)
        } else {
            enter_for_search(dst.as_fd(), name)
        };
        dst = checked((rank, sender), next, *dst_id).map_err(|_| Refused::Directory)?;
        let stats = fstat(&src).and_then(|src| Ok((FileId::of(&src), FileId::of(&fstat(&dst)?))));
        let (src_id, dst_id) = stats.map_err(|_| Refused::Directory)?;
        src_path = src_path.child(name, Some(src_id));
        dst_path = dst_path.child(name, Some(dst_id));
    }
    if levels == 0 {
        let opened = open_again(&src, &dst);
        (src, dst) = opened.map_err(|_| Refused::Directory)?;
    }
    let stats = fstat(&src).and_then(|src| Ok((src, fstat(&dst)?)));
    let (src_stat, dst_stat) = stats.map_err(|_| Refused::Directory)?;
    let dst_id = FileId::of(&dst_stat);
    if !below.facts.new && cx.options.may_write_through() {
        let links = below.links.map(|links| {
            let links = links.into_iter();
            links.filter_map(|link| rank.devices.own(link)).collect()
        });
        cx.security().preexisting.take_over(dst_id, links);
    }
    if !below.facts.new && cx.options.resume {
        cx.destination.stale.scan(dst.as_fd());
    }
    let (operand, facts, levels) = (Arc::new(operand), below.facts, below.levels);
    Ok(OpenedPlace {
        src,
        dst,
        src_stat,
        dst_stat,
        src_path,
        dst_path,
        operand,
        facts,
        described_top,
        levels,
    })
}

/// Source and destination of a directory.
struct Directories {
    src: OwnedFd,
    dst: OwnedFd,
    src_path: DirPath,
    dst_path: DirPath,
}

/// Opens what the operands name, with O_PATH.
fn open_operand(
    cx: &CopyContext<'_>,
    (rank, sender): (&RankContext, Sender),
    (operand, src_id): (&Operand, FileId),
    (top, is_created_root): (&TopMessage<'_>, bool),
) -> Result<Directories, Refused> {
    let refused = |action, path: &Path| {
        let path = path.to_owned();
        move |errno| {
            if is_passing(errno) && rank.passing_failures() < PASSING_MAX {
                return Refused::ForNow;
            }
            Refused::Operand(match errno {
                LOCAL => Diagnostic::LocalToHost { path },
                errno => Diagnostic::Failed { action, path, errno },
            })
        }
    };
    let found = until_it_appears(cx, || open_source_operand(cx, (rank, sender), operand, src_id));
    let (src, src_found) = found.map_err(refused(Action::EnterDirectory, &operand.src))?;
    let src_path = DirPath::source(&operand.src, src_found);
    let dst_path = until_it_appears(cx, || rank.top_of_destination(top, sender))
        .map_err(refused(Action::EnterDestination, &operand.dst))?;
    rank.forget_passing_failures();
    if is_created_root && let Some(id) = dst_path.id() {
        cx.destination.operands.record_root(id);
    }
    let dst = open_top(&dst_path).map_err(|errno| match errno {
        errno if is_passing(errno) => Refused::ForNow,
        _ => Refused::Directory,
    })?;
    Ok(Directories { src, dst, src_path, dst_path })
}

/// Whether a later attempt may succeed: another host has made the file a moment ago, or this process
/// lacks descriptors or memory.
fn is_passing(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::STALE | Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// `open`, again and again while it fails in a way that may pass.
fn until_it_appears<T>(cx: &CopyContext<'_>, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + APPEARS_WITHIN;
    loop {
        match open() {
            Err(errno) if is_passing(errno) => {
                if Instant::now() >= deadline || cx.report.interrupted() {
                    return Err(errno);
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            result => return result,
        }
    }
}

/// Opens two directories, open with O_PATH, as those that a walk is in.
fn open_again(src: &OwnedFd, dst: &OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let src = openat(src, c".", DIRECTORY, Mode::empty())?;
    let dst = match openat(dst, c".", DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => open_for_search(dst.as_fd(), c".")?,
        result => result?,
    };
    Ok((src, dst))
}

fn open_source_operand(
    cx: &CopyContext<'_>,
    from: (&RankContext, Sender),
    operand: &Operand,
    id: FileId,
) -> io::Result<(OwnedFd, FileId)> {
    let follows = cx.options.follow.follows(true);
    let flags = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    let name = c_name(operand.src.as_os_str().as_bytes())?;
    let fd = checked(from, openat(CWD, &*name, SEARCH | flags, Mode::empty()), id)?;
    let found = FileId::of(&fstat(&fd)?);
    Ok((fd, found))
}

/// The directory that was opened, if it is `wanted`.
fn checked(
    (rank, sender): (&RankContext, Sender),
    opened: io::Result<OwnedFd>,
    wanted: FileId,
) -> io::Result<OwnedFd> {
    let fd = opened?;
    let found = FileId::of(&fstat(&fd)?);
    rank.devices.check(found, wanted, sender, || is_on_fs_of_one_host(fd.as_fd()))?;
    Ok(fd)
}

impl OpenedPlace {
    fn duplicate(&self) -> std::io::Result<Directories> {
        let (src, dst) = (self.src.try_clone()?, self.dst.try_clone()?);
        let (src_path, dst_path) = (self.src_path.clone(), self.dst_path.clone());
        Ok(Directories { src, dst, src_path, dst_path })
    }

    /// Whether it is above the last of `levels` below an operand.
    fn is_above(&self, described_top: &[u8], levels: &[Level]) -> bool {
        self.levels.len() < levels.len()
            && self.described_top == described_top
            && levels.starts_with(&self.levels)
    }

    /// The directory, for names of which this rank tells the other when they are copied.
    fn pair(
        &self,
        cx: &CopyContext<'_>,
        (src, dst): (OwnedFd, OwnedFd),
        received: ReceivedShare,
    ) -> DirectoryPair {
        let Facts { new, private, children_inherit_acl, one_file_system } = self.facts;
        let src_id = FileId::of(&self.src_stat);
        let (src_creation_lock, dst_creation_lock) = match private {
            true => (
                cx.creation_locks.of(dst.as_fd(), src_id),
                cx.creation_locks.of(dst.as_fd(), FileId::of(&self.dst_stat)),
            ),
            false => (CreationLock::default(), CreationLock::default()),
        };
        DirectoryPair {
            src: Dir::new(Some(src), &self.src_stat, self.src_path.clone(), false),
            dst: Dir::new(Some(dst), &self.dst_stat, self.dst_path.clone(), false),
            src_stat: self.src_stat,
            dst_stat: self.dst_stat,
            new,
            private,
            // The rank that entered the directory sets its attributes.
            mode: None,
            inherits_acl: false,
            children_inherit_acl,
            started: None,
            failures: Mutex::default(),
            src_creation_lock,
            dst_creation_lock,
            operand: self.operand.clone(),
            device: one_file_system.then_some(src_id.dev),
            received: Some(received),
            returned: AtomicBool::new(false),
        }
    }
}
