//! A large file that this process copies together with its partners.
//!
//! This process creates the file and gives it its attributes and its name. Partners that wait for work are
//! told of it between two pieces, and claim ranges ([`crate::shared::shared_file`]).

use std::cell::{Cell, OnceCell};
use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, Stat, fallocate, fstat, ftruncate};
use rustix::io::retry_on_intr;

use crate::data::context::Files;
use crate::data::journal::Journal;
use crate::data::ranges::copy_range;
use crate::data::verify::verify_range;
use crate::data::worker::DataWorker;
use crate::destination::context::{CopyContext, Job};
use crate::destination::open::Opened;
use crate::destination::prepare::DestinationState;
use crate::entry::{Entry, RangePlace};
use crate::fs::{
    BTRFS, EXT4, FileId, XFS, data_bytes, file_bytes, fs_type_of, is_component, is_regular,
};
use crate::report::Diagnostic;
use crate::request::{Make, Reflink, Sparse};
use crate::shared::messages::{
    self, Claim, Component, Done, Grant, RangeOffer, SourceVersion, Task, Work, encode,
};
use crate::shared::shared_file::{Cut, NOTHING};
use crate::shared::{Kept, Load, Offered, PartnerContext, SharedFile};

/// A file with more holes than this is not shared: most ranges would have no data.
const FILE_BYTES_FOR_DATA_BYTE: u64 = 64;

/// A large file of this process. Until it is dropped partners may claim ranges of it.
pub(crate) struct OwnedFile<'o> {
    pub(crate) file: Arc<SharedFile>,
    partners: &'o PartnerContext,
    entry: &'o Entry<'o>,
    place: &'o RangePlace<'o>,
    dst: &'o Opened<'o>,
    /// The name that the copy has now.
    dst_name: &'o CStr,
    src: &'o Stat,
    /// Of the journal; 0 if there is none.
    chunk_bytes: u64,
    /// The blocks of the copy are allocated before others write to it.
    allocates: bool,
    /// What partners are told, once the file has its whole length; `None` if they cannot be.
    message: OnceCell<Option<(Vec<u8>, Kept)>>,
}

/// Whether ranges of the file may be copied by partners.
pub(crate) fn may_share(Job { cx, entry }: Job<'_>, state: &DestinationState, src: &Stat) -> bool {
    let options = cx.options;
    let bytes = file_bytes(src);
    let range_bytes = cx.partners.others.range_bytes(bytes, 0);
    let is_long = range_bytes.is_some_and(|range_bytes| bytes > range_bytes.most);
    is_long
        && entry.range_place.is_some()
        && is_regular(src)
        && bytes / FILE_BYTES_FOR_DATA_BYTE <= data_bytes(src)
        && options.make == Make::Copy
        && options.reflink != Reflink::Always
        // It clones files as a whole.
        && options.engine.as_ref().is_none_or(|variant| variant.engine.name != "reflink")
        // It tells pages of this copy from others by their order.
        && !options.no_cache
        // A receipt has one hash of the whole file, which is read in order.
        && !(options.verify && cx.report.keeps_receipts())
        && !state.dangling
        && state.found.as_deref().is_none_or(|found| !found.through_link)
        && is_component(entry.dst.name)
}

impl<'o> OwnedFile<'o> {
    /// The file that was opened for `entry`, of which [`may_share`] is true. `None` if others cannot
    /// open it.
    pub(crate) fn new(
        Job { cx, entry }: Job<'o>,
        src: &'o Stat,
        (dst, journal): (&'o Opened<'_>, Option<&Journal>),
    ) -> Option<OwnedFile<'o>> {
        let (partners, place) = (&cx.partners, entry.range_place?);
        if !is_regular(&dst.stat) {
            return None;
        }
        let dst_name: &CStr = match &dst.atomic {
            Some(atomic) => atomic.name_beside_destination()?,
            None => entry.dst.name,
        };
        let stripe_bytes = u64::try_from(dst.stat.st_blksize).unwrap_or(0);
        let bytes = file_bytes(src);
        let range_bytes = partners.others.range_bytes(bytes, stripe_bytes)?;
        let (from, chunk_bytes) =
            journal.map_or((0, 0), |journal| (journal.at, journal.chunk_bytes));
        let cut = Cut { from, file_bytes: bytes, range_bytes, verifies: cx.options.verify };
        let allocates = cx.options.sparse != Sparse::Always
            && data_bytes(src) >= bytes
            // Where the file system allocates any length in some microseconds, two processes that write to one file
            // would wait for one another to allocate, as workers do: on ext4 they take 1.6 times as long.
            && match fs_type_of(dst.fd.as_fd()) {
                Some(EXT4 | XFS) => true,
                Some(BTRFS) => !engines::compresses(dst.fd.as_fd()),
                _ => false,
            };
        Some(OwnedFile {
            file: partners.inbox.files.add(partners.number, cut),
            partners,
            entry,
            place,
            dst,
            dst_name,
            src,
            chunk_bytes,
            allocates,
            message: OnceCell::new(),
        })
    }

    /// Tells partners that wait of the file, if there is something to do for them.
    pub(crate) fn look(&self) {
        self.partners.has_offers();
        let mut is_told = false;
        while self.partners.others.waiting() > 0
            && self.file.wants_help()
            && let Some((message, kept)) = self.message.get_or_init(|| self.prepare())
        {
            let offered = Offered { file: Some(self.file.clone()), kept: kept.clone() };
            self.partners.offer(self.partners.number, message.clone(), offered);
            is_told = true;
        }
        if !is_told {
            self.partners.others.tell(Load::NoSurplus);
        }
    }

    /// Gives the file its length, so that no partner has to extend it, and describes it.
    fn prepare(&self) -> Option<(Vec<u8>, Kept)> {
        let bytes = file_bytes(self.src);
        let (place, kept) = (self.place)()?;
        if self.allocates {
            // A full disk is noticed by the process that writes.
            let _ = fallocate(&self.dst.fd, FallocateFlags::empty(), 0, bytes);
        }
        if file_bytes(&fstat(&self.dst.fd).ok()?) < bytes {
            retry_on_intr(|| ftruncate(&self.dst.fd, bytes)).ok()?;
        }
        let offer = RangeOffer {
            owner: self.partners.number,
            file: self.file.number,
            place,
            src_name: self.entry.src.name.into(),
            dst_name: Component::new(self.dst_name),
            dst_shown: Component::new(self.entry.dst.name),
            src_id: self.partners.common(FileId::of(self.src)),
            dst_id: self.partners.common(FileId::of(&self.dst.stat)),
            version: SourceVersion::of(self.src),
            atomic: self.dst.atomic.is_some(),
            chunk_bytes: self.chunk_bytes,
        };
        Some((encode(&Work::File(offer)), kept))
    }
}

impl Drop for OwnedFile<'_> {
    fn drop(&mut self) {
        self.partners.inbox.files.remove(&self.file);
    }
}

/// Claims ranges of the file until its owner has none. `more` says whether it has some for partners.
pub(crate) fn help(
    cx: &CopyContext<'_>,
    worker: &mut DataWorker,
    offer: &RangeOffer,
    files: &Files<'_>,
    more: &Cell<bool>,
) {
    let (mut done, mut failure) = (None, None);
    loop {
        let claim = messages::encode(&Claim { file: offer.file, done });
        let granted = messages::decode(&cx.partners.others.claim(offer.owner, claim));
        let task = match granted.unwrap_or(NOTHING) {
            Grant::Task { task, more: has_more } => {
                more.set(has_more);
                task
            }
            Grant::Nothing { tells } => {
                return failure.into_iter().filter(|_| tells).for_each(|diagnostic| {
                    cx.report.report(diagnostic);
                });
            }
        };
        let became = match task {
            Task::Copy(range) => {
                copy_range(cx.data, worker, files, (range, offer.chunk_bytes)).map(Done::Copied)
            }
            Task::Verify(range) => verify_range(cx.report, files, range)
                .map(|difference| difference.map_or(Done::Verified, Done::Differs)),
        };
        let became = became.unwrap_or_else(|diagnostic| match diagnostic {
            // The owner tells it of the whole file.
            Diagnostic::Interrupted { .. }
            | Diagnostic::InterruptedBefore { .. }
            | Diagnostic::InterruptedUnverified { .. } => Done::Interrupted,
            diagnostic => {
                failure = Some(diagnostic);
                Done::Failed
            }
        });
        done = Some((task, became));
    }
}
