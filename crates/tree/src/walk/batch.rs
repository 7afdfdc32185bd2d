//! Regular files that are made some at a time, and then filled one by one.
//!
//! While a name is made in a directory the kernel lets nobody else make one there, and some file
//! systems let nobody make one anywhere near. Workers who made a name, filled the file, and made
//! the next would meet at that lock for each file, and to go to sleep there and to be woken takes
//! longer than a small file does. So one of them makes some files in a row while the others fill
//! theirs. And what a file system changes for one new name it changes for the next as well, and
//! still has it at hand.

use std::ffi::CString;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Stat, fstat};

use super::stack::Frame;
use super::tree_walk::TreeWalk;
use super::worker::Worker;
use crate::copy::context::CopyContext;
use crate::copy::directory_pair::DirectoryPair;
use crate::copy::entry::Next;
use crate::copy::regular::create_prepared;
use crate::entry::{Entry, Prepared, is_left_out, open_listed_source};
use crate::fs::file_bytes;
use crate::request::{Make, Options, Reflink};

/// Files at once, at most. Each takes two descriptors, and stands empty for as long as those before
/// it take: as many are left empty by a worker that is killed.
pub(crate) const BATCH_FILES_MAX: usize = 16;

/// A file over this is not made ahead: others would stand empty for its sake.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of all files that are made at once, but for the last of them.
const BATCH_BYTES_MAX: u64 = 4 << 20;

/// How long that may take. Where one file takes longer no other is made before it is whole: the
/// user has time to interrupt, and other workers to ask for it.
const BATCH_NANOS_MAX: usize = 1_000_000;

/// Files that share blocks are copied in less. Where one takes longer it waits, as for a source
/// that has to be written back first, and others should not wait with it.
const CLONE_TIME_MAX: Duration = Duration::from_micros(60);

/// What was seen of a source may be out of date after this time.
const SEEN_TIME: Duration = Duration::from_micros(200);

/// A name, what its directory says it is, and what has been done for it.
struct BatchItem {
    name: CString,
    kind: FileType,
    prepared: Option<Prepared>,
}

/// Whether a run with such options makes files before they are filled.
fn batches_files(cx: &CopyContext<'_>) -> bool {
    let Options { make, atomic, limit_rate, record, .. } = cx.options;
    *make == Make::Copy
        && !cx.options.dry_run
        // A receipt says how long each file took.
        && !cx.report.keeps_receipts()
        // Nothing is to stand under its name before it is whole, or empty for long.
        && !atomic
        && limit_rate.is_none()
        && record.is_none()
        && !cx.options.copies_in_order()
}

impl TreeWalk<'_> {
    /// Whether the entry may be made together with those after it: its directory calls it a regular
    /// file, and nobody but this run has to do with the one that it goes to.
    pub(super) fn may_batch(&self, worker: &Worker, entry: &Entry<'_>) -> bool {
        self.batch_files > 1
            && entry.listed_as == FileType::RegularFile
            && entry.private
            && !worker.copy.last_was_linked
            && batches_files(self.cx)
    }

    /// Copies an entry, whose turn it is, and regular files that are listed after it.
    pub(super) fn copy_batch(
        &self,
        worker: &mut Worker,
        frame: &mut Frame<'_>,
        first: (CString, FileType),
    ) -> Next {
        let started = Instant::now();
        let mut entries = self.open_batch(worker, frame, first);
        let files = entries.len();
        worker.copy.data.permit.charge(files - 1);
        let pair = &*frame.pair;
        let mut waited = self.create_batch(worker, pair, &mut entries);
        let asked = Instant::now();
        let mut sharing = None;
        if worker.clones_at_once && self.shares_blocks() {
            sharing = pair.src_creation_lock.lock_sharing();
        }
        let (filling, moved_before) = (Instant::now(), worker.copy.data.moved_bytes);
        waited += filling - asked;
        let mut next = Next::Done;
        for (at, BatchItem { name, kind, mut prepared }) in entries.into_iter().enumerate() {
            let entry = self.child(pair, &name, kind);
            if self.cx.report.interrupted() {
                if let Some(prepared) = prepared {
                    prepared.undo(&entry);
                }
                continue;
            }
            if started.elapsed() > SEEN_TIME {
                prepared = prepared.and_then(|prepared| prepared.look_again(self.cx, &entry));
            }
            let is_last = at == files - 1;
            if is_last && at > 0 {
                let time = filling.elapsed() / u32::try_from(at).unwrap_or(u32::MAX);
                let moved = worker.copy.data.moved_bytes > moved_before;
                worker.clones_at_once = !moved && time < CLONE_TIME_MAX;
            }
            let is_made = prepared.as_ref().is_some_and(|prepared| prepared.created.is_some());
            if !is_made || files == 1 || !worker.clones_at_once {
                // It may be large, or wait for another worker, or for its source to be written; of
                // one alone nothing is seen.
                sharing = None;
            }
            next = self.copy_one(worker, &entry, prepared);
        }
        drop(sharing);
        worker.batch_files =
            files_at_once(worker.batch_files, files, started.elapsed().saturating_sub(waited));
        next
    }

    /// Whether files of this run may share blocks.
    fn shares_blocks(&self) -> bool {
        let Options { reflink, verify, durable, .. } = self.cx.options;
        *reflink != Reflink::Never && !verify && !durable
    }

    /// Makes the files for copies, as soon as nobody else makes any there. Returns how long that
    /// took to come. What cannot be made is tried again in its turn, and then told of.
    fn create_batch(
        &self,
        worker: &Worker,
        pair: &DirectoryPair,
        entries: &mut [BatchItem],
    ) -> Duration {
        let started = Instant::now();
        let making = pair.dst_creation_lock.lock_creation();
        let waited = started.elapsed();
        let mut made = 0;
        let mut can = true;
        for BatchItem { name, kind, prepared } in entries {
            let entry = self.child(pair, name, *kind);
            if !can {
                // For want of descriptors, perhaps, of which it has one.
                *prepared = None;
            } else if let Some(Prepared { source, created: file }) = prepared
                && may_be_made(self.cx, &entry, &source.stat)
            {
                *file = create_prepared(self.cx, &entry, &source.stat);
                can = file.is_some();
                made += u64::from(can);
            }
        }
        drop(making);
        worker.copy.data.permit.record_created(made);
        waited
    }

    /// Opens regular files, beginning with `first`. Only the last of what is returned may be
    /// something else, a directory even, that has taken the file's place.
    fn open_batch(
        &self,
        worker: &mut Worker,
        frame: &mut Frame<'_>,
        first: (CString, FileType),
    ) -> Vec<BatchItem> {
        let buffered = frame.listing.buffered() + 1;
        let is_wanted = self.pool.is_some_and(|pool| pool.idle_workers() > 0);
        let entries_max =
            worker.batch_files.min(if is_wanted { buffered.div_ceil(2) } else { buffered });
        let entries_max = entries_max.min(self.batch_files);
        let mut entries = Vec::with_capacity(entries_max);
        let mut bytes = 0;
        let mut following = Some(first);
        while let Some((name, kind)) = following.take() {
            let entry = self.child(&frame.pair, &name, kind);
            let source = open_listed_source(&mut worker.copy.data.fs_types, &entry);
            let file_bytes = source.as_ref().map_or(u64::MAX, |source| file_bytes(&source.stat));
            let prepared = source.map(|source| Prepared { source, created: None });
            entries.push(BatchItem { name, kind, prepared });
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
        while let Some((name, kind)) = frame.listing.next_buffered(FileType::RegularFile) {
            if !is_left_out(self.cx.options, self.cx.report, &self.child(&frame.pair, &name, kind))
            {
                return Some((name, kind));
            }
        }
        None
    }
}

impl Prepared {
    /// Takes the file away: it is not going to be filled.
    fn undo(&self, entry: &Entry<'_>) {
        if self.created.is_some() {
            // Nobody else can have put anything there.
            let _ = entry.dst.unlink();
        }
    }

    /// Looks at the source anew, now that its turn has come. If the file would be made otherwise by
    /// now, it is made otherwise.
    fn look_again(mut self, cx: &CopyContext<'_>, entry: &Entry<'_>) -> Option<Prepared> {
        let before = self.source.stat;
        let Ok(now) = fstat(&self.source.fd) else {
            self.undo(entry);
            return None;
        };
        self.source.stat = now;
        let of = |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid);
        if of(&now) != of(&before) || !may_be_made(cx, entry, &now) {
            self.undo(entry);
            self.created = None;
        }
        Some(self)
    }
}

/// Whether a file for the copy of what `stat` describes may stand there before anything else is
/// done for it.
fn may_be_made(cx: &CopyContext<'_>, entry: &Entry<'_>, stat: &Stat) -> bool {
    // Another name of the file may have been copied, and this one become a link to that.
    file_bytes(stat) <= FILE_BYTES_MAX && !entry.may_have_links(cx.options, stat)
}

/// How many files to make at once after so many at once took so long.
fn files_at_once(before: usize, files: usize, elapsed: Duration) -> usize {
    let nanos = usize::try_from(elapsed.as_nanos()).unwrap_or(usize::MAX);
    let in_time = BATCH_NANOS_MAX * files / nanos.max(1);
    in_time.min(2 * before).clamp(1, BATCH_FILES_MAX)
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
