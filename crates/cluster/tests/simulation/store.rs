//! What one rank still has to copy, and what it waits for.

use std::collections::BTreeMap;

use super::shape::{Children, Dir};
use cluster::RankId;

/// Names in one directory, as a message carries them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) dir: Dir,
    /// The rank that reads the directory.
    pub(super) home: RankId,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Names of one directory that this rank copies itself, or gives away.
#[derive(Debug)]
pub(super) struct Frame {
    /// No other frame has this one.
    pub(super) record: RecordId,
    pub(super) dir: Dir,
    pub(super) home: RankId,
    pub(super) children: Children,
    /// The first name that is not done.
    pub(super) next: u64,
    /// Names before this one are known.
    pub(super) listed: u64,
    /// The end of the names.
    pub(super) end: u64,
    /// The directory is open here.
    pub(super) is_open: bool,
    /// Names from it may be given to other ranks.
    pub(super) gives: bool,
}

impl Frame {
    pub(super) fn known(&self) -> u64 {
        self.listed - self.next
    }

    pub(super) fn is_read_to_its_end(&self) -> bool {
        self.listed == self.end
    }
}

pub(super) type RecordId = u64;

/// A directory or a share that is finished when nothing of it is left.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) owner: Owner,
    /// The record has a frame.
    pub(super) has_frame: bool,
    /// Shares, directories below and names that are not finished.
    pub(super) pending: u64,
    /// How many directories it stands for, whose attributes have to be set. 0 for a share.
    pub(super) dirs: u64,
}

/// Who waits for a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    Operand,
    Record(RecordId),
    Share(u64),
}

/// The records of one rank, by number.
#[derive(Debug, Default)]
pub(super) struct Records {
    all: BTreeMap<RecordId, Record>,
    next: RecordId,
    /// The most records at a time.
    pub(super) most: usize,
}

impl Records {
    pub(super) fn insert(&mut self, record: Record) -> RecordId {
        self.next += 1;
        self.all.insert(self.next, record);
        self.most = self.most.max(self.all.len());
        self.next
    }

    pub(super) fn get(&mut self, id: RecordId) -> &mut Record {
        self.all.get_mut(&id).expect("a record that something refers to")
    }

    pub(super) fn remove(&mut self, id: RecordId) -> Record {
        self.all.remove(&id).expect("a record is removed once")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
