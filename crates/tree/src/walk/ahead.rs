//! Regular files that are made some at a time, and then filled one by one.
//!
//! While a name is made in a directory the kernel lets nobody else make one there, and some file
//! systems let nobody make one anywhere near. Workers who made a name, filled the file, and made
//! the next would meet at that lock for each file, and to go to sleep there and to be woken takes
//! longer than a small file does. So one of them makes some files in a row while the others fill
//! theirs. And what a file system changes for one new name it changes for the next as well, and
//! still has it at hand.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Stat, fstat};

use super::{DirTask, Frame, Walk, in_order};
use crate::entry::{Job, Next, has_several_names};
use crate::filter;
use crate::identity::file_bytes;
use crate::options::{Make, Options, Reflink};
use crate::regular::{OpenSource, make_ahead, open_listed_source};
use crate::run::{Run, Worker};

/// Files at once, at most. Each takes two descriptors, and stands empty for as long as those before
/// it take: as many are left empty by a worker that is killed.
pub(crate) const FILES_AHEAD_MAX: usize = 16;

/// A file over this is not made ahead: others would stand empty for its sake.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of all files that are made at once, but for the last of them.
const BATCH_BYTES_MAX: u64 = 4 << 20;

/// How long that may take. Where one file takes longer no other is made before it is whole: the
/// user has time to interrupt, and other workers to ask for it.
const BATCH_NANOS_MAX: usize = 1_000_000;

/// Files that share blocks are copied in less. Where one takes longer it waits, as for a source
/// that has to be written back first, and others should not wait with it.
const SHARING_TIME_MAX: Duration = Duration::from_micros(60);

/// What was seen of a source may be out of date after this time.
const SEEN_TIME: Duration = Duration::from_micros(200);

/// A source that has been opened, and the file for its copy, unless that is yet to be made.
pub(crate) struct Ahead {
    pub(crate) source: OpenSource,
    pub(crate) made: Option<OwnedFd>,
}

/// A name, what its directory says it is, and what has been done for it.
struct Entry {
    name: CString,
    kind: FileType,
    ahead: Option<Ahead>,
}

/// Whether a run with such options makes files before they are filled.
fn makes_ahead(run: &Run<'_>) -> bool {
    let Options { make, atomic, limit_rate, record, .. } = run.options;
    *make == Make::Copy
        && run.rehearsal.is_none()
        // A receipt says how long each file took.
        && !run.observer.keeps_receipts()
        // Nothing is to stand under its name before it is whole, or empty for long.
        && !atomic
        && limit_rate.is_none()
        && record.is_none()
        && !in_order(run.options)
}

impl Walk<'_> {
    /// Whether the entry may be made together with those after it: its directory calls it a regular
    /// file, and nobody but this run has to do with the one that it goes to.
    pub(super) fn goes_ahead(&self, worker: &Worker, job: &Job<'_>) -> bool {
        self.files_ahead > 1
            && job.listed_as == FileType::RegularFile
            && job.private
            && !worker.links_again
            && makes_ahead(self.run)
    }

    /// Copies an entry, whose turn it is, and regular files that are listed after it.
    pub(super) fn copy_some(
        &self,
        worker: &mut Worker,
        frame: &mut Frame<'_>,
        first: (CString, FileType),
    ) -> Next {
        let begun = Instant::now();
        let mut entries = self.open_some(worker, frame, first);
        let files = entries.len();
        worker.turn.goes_on(files - 1);
        let task = &*frame.task;
        let mut waited = self.make_some(worker, task, &mut entries);
        let asked = Instant::now();
        let mut sharing = None;
        if worker.shares_at_once && self.shares_blocks() {
            sharing = task.src_region.share();
        }
        let (filling, moved_before) = (Instant::now(), worker.moved_bytes);
        waited += filling - asked;
        let mut next = Next::Done;
        for (at, Entry { name, kind, mut ahead }) in entries.into_iter().enumerate() {
            let job = self.child(task, &name, kind);
            if self.run.observer.interrupted() {
                if let Some(ahead) = ahead {
                    ahead.undo(&job);
                }
                continue;
            }
            if begun.elapsed() > SEEN_TIME {
                ahead = ahead.and_then(|ahead| ahead.look_again(self.run, &job));
            }
            let is_last = at == files - 1;
            if is_last && at > 0 {
                let time = filling.elapsed() / u32::try_from(at).unwrap_or(u32::MAX);
                let moved = worker.moved_bytes > moved_before;
                worker.shares_at_once = !moved && time < SHARING_TIME_MAX;
            }
            let is_made = ahead.as_ref().is_some_and(|ahead| ahead.made.is_some());
            if !is_made || files == 1 || !worker.shares_at_once {
                // It may be large, or wait for another worker, or for its source to be written; of
                // one alone nothing is seen.
                sharing = None;
            }
            next = self.copy_one(worker, &job, ahead);
        }
        drop(sharing);
        worker.files_at_once =
            files_at_once(worker.files_at_once, files, begun.elapsed().saturating_sub(waited));
        next
    }

    /// Whether files of this run may share blocks.
    fn shares_blocks(&self) -> bool {
        let Options { reflink, verify, durable, .. } = self.run.options;
        *reflink != Reflink::Never && !verify && !durable
    }

    /// Makes the files for copies, as soon as nobody else makes any there. Returns how long that
    /// took to come. What cannot be made is tried again in its turn, and then told of.
    fn make_some(&self, worker: &Worker, task: &DirTask, entries: &mut [Entry]) -> Duration {
        let begun = Instant::now();
        let making = task.dst_region.make();
        let waited = begun.elapsed();
        let mut made = 0;
        let mut can = true;
        for Entry { name, kind, ahead } in entries {
            let job = self.child(task, name, *kind);
            if !can {
                // For want of descriptors, perhaps, of which it has one.
                *ahead = None;
            } else if let Some(Ahead { source, made: file }) = ahead
                && may_be_made(self.run, &job, &source.stat)
            {
                *file = make_ahead(self.run, &job, &source.stat);
                can = file.is_some();
                made += u64::from(can);
            }
        }
        drop(making);
        worker.turn.count_made(made);
        waited
    }

    /// Opens regular files, beginning with `first`. Only the last of what is returned may be
    /// something else, a directory even, that has taken the file's place.
    fn open_some(
        &self,
        worker: &mut Worker,
        frame: &mut Frame<'_>,
        first: (CString, FileType),
    ) -> Vec<Entry> {
        let in_hand = frame.listing.in_hand() + 1;
        let is_wanted = self.pool.is_some_and(|pool| pool.hungry() > 0);
        let entries_max =
            worker.files_at_once.min(if is_wanted { in_hand.div_ceil(2) } else { in_hand });
        let entries_max = entries_max.min(self.files_ahead);
        let mut entries = Vec::with_capacity(entries_max);
        let mut bytes = 0;
        let mut following = Some(first);
        while let Some((name, kind)) = following.take() {
            let job = self.child(&frame.task, &name, kind);
            let source = open_listed_source(worker, &job);
            let file_bytes = source.as_ref().map_or(u64::MAX, |source| file_bytes(&source.stat));
            let ahead = source.map(|source| Ahead { source, made: None });
            entries.push(Entry { name, kind, ahead });
            bytes += file_bytes.min(BATCH_BYTES_MAX);
            if entries.len() < entries_max
                && file_bytes <= FILE_BYTES_MAX
                && bytes < BATCH_BYTES_MAX
            {
                following = self.next_regular(frame);
            }
        }
        entries
    }

    /// The next name in hand, if it is called a regular file.
    fn next_regular(&self, frame: &mut Frame<'_>) -> Option<(CString, FileType)> {
        while let Some((name, kind)) = frame.listing.next_in_hand(FileType::RegularFile) {
            if !filter::leaves_out(self.run, &self.child(&frame.task, &name, kind)) {
                return Some((name, kind));
            }
        }
        None
    }
}

impl Ahead {
    /// Takes the file away: it is not going to be filled.
    fn undo(&self, job: &Job<'_>) {
        if self.made.is_some() {
            // Nobody else can have put anything there.
            let _ = job.dst.unlink();
        }
    }

    /// Looks at the source anew, now that its turn has come. If the file would be made otherwise by
    /// now, it is made otherwise.
    fn look_again(mut self, run: &Run<'_>, job: &Job<'_>) -> Option<Ahead> {
        let before = self.source.stat;
        let Ok(now) = fstat(&self.source.fd) else {
            self.undo(job);
            return None;
        };
        self.source.stat = now;
        let of = |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid);
        if of(&now) != of(&before) || !may_be_made(run, job, &now) {
            self.undo(job);
            self.made = None;
        }
        Some(self)
    }
}

/// Whether a file for the copy of what `stat` describes may stand there before anything else is
/// done for it.
fn may_be_made(run: &Run<'_>, job: &Job<'_>, stat: &Stat) -> bool {
    // Another name of the file may have been copied, and this one become a link to that.
    file_bytes(stat) <= FILE_BYTES_MAX && !has_several_names(run, job, stat)
}

/// How many files to make at once after so many at once took so long.
fn files_at_once(before: usize, files: usize, elapsed: Duration) -> usize {
    let nanos = usize::try_from(elapsed.as_nanos()).unwrap_or(usize::MAX);
    let in_time = BATCH_NANOS_MAX * files / nanos.max(1);
    in_time.min(2 * before).clamp(1, FILES_AHEAD_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_files_are_made_at_once_than_take_a_millisecond() {
        let mut files = 1;
        let mut after = |micros_each: u64| {
            let elapsed = Duration::from_micros(micros_each * files as u64);
            files = files_at_once(files, files, elapsed);
            files
        };
        assert_eq!([10; 6].map(&mut after), [2, 4, 8, 16, 16, 16]);
        assert_eq!([100, 100, 400, 3000, 3000, 10].map(&mut after), [10, 10, 2, 1, 1, 2]);
        assert_eq!(files_at_once(8, 3, Duration::from_secs(50_000_000_000)), 1);
        assert_eq!(files_at_once(8, 3, Duration::ZERO), 16);
    }
}
