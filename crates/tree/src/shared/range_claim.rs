//! The claims of ranks that help with a large file, and the answers of the rank that owns it, as
//! messages. What the owner makes of them: [`super::shared_file`].

use super::wire::{Reader, Writer};

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What a rank does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Copy(ByteRange),
    /// Reads it back and compares it. The end of the last range is that of the file.
    Verify(ByteRange),
}

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Copied(CopiedRange),
    Verified,
    /// The copy differs from the source at this offset.
    Differs(u64),
    /// The rank tells why, if [`Grant::Nothing`] asks for it.
    Failed,
    Interrupted,
}

/// A range that was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopiedRange {
    pub(crate) range: ByteRange,
    /// Less than its end if the source ended there.
    pub(crate) to: u64,
    pub(crate) data_bytes: u64,
    pub(crate) hole_bytes: u64,
    /// What the journal of `--resume` is to record of it, and up to where it then has recorded all.
    pub(crate) records: Vec<ChunkRecord>,
    pub(crate) recorded_to: u64,
}

/// The end of a chunk, and the hash of its data.
pub(crate) type ChunkRecord = (u64, u128);

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// `more`: there are further ones, for other ranks.
    Task { task: Task, more: bool },
    /// Nothing is left for the rank. `tells`: its failure is the first of the file.
    Nothing { tells: bool },
}

/// What a rank that helps tells the owner of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The number of the file.
    pub(crate) file: u64,
    /// What became of its last task.
    pub(crate) done: Option<(Task, Done)>,
}

impl Claim {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.file);
        let Some((task, done)) = &self.done else { return out.into_bytes() };
        write_task(&mut out, *task);
        match done {
            Done::Copied(copied) => {
                let CopiedRange { range, to, data_bytes, hole_bytes, records, recorded_to } =
                    copied;
                out.number(0);
                [range.start, range.end, *to, *data_bytes, *hole_bytes, *recorded_to]
                    .into_iter()
                    .for_each(|number| out.number(number));
                out.count(records.len());
                for (end, hash) in records {
                    out.number(*end);
                    out.bytes(&hash.to_le_bytes());
                }
            }
            Done::Verified => out.number(1),
            Done::Differs(at) => {
                out.number(2);
                out.number(*at);
            }
            Done::Failed => out.number(3),
            Done::Interrupted => out.number(4),
        }
        out.into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Claim> {
        let mut reader = Reader::new(bytes);
        let file = reader.number()?;
        if reader.is_at_end() {
            return Some(Claim { file, done: None });
        }
        let task = read_task(&mut reader)?;
        let done = match reader.number()? {
            0 => {
                let range = ByteRange { start: reader.number()?, end: reader.number()? };
                let (to, data_bytes) = (reader.number()?, reader.number()?);
                let (hole_bytes, recorded_to) = (reader.number()?, reader.number()?);
                let mut records = Vec::new();
                for _ in 0..reader.count()? {
                    let end = reader.number()?;
                    let hash = u128::from_le_bytes(reader.bytes()?.try_into().ok()?);
                    records.push((end, hash));
                }
                Done::Copied(CopiedRange {
                    range,
                    to,
                    data_bytes,
                    hole_bytes,
                    records,
                    recorded_to,
                })
            }
            1 => Done::Verified,
            2 => Done::Differs(reader.number()?),
            3 => Done::Failed,
            4 => Done::Interrupted,
            _ => return None,
        };
        reader.is_at_end().then_some(Claim { file, done: Some((task, done)) })
    }
}

fn write_task(out: &mut Writer, task: Task) {
    let (verifies, range) = match task {
        Task::Copy(range) => (false, range),
        Task::Verify(range) => (true, range),
    };
    out.flag(verifies);
    out.number(range.start);
    out.number(range.end);
}

fn read_task(reader: &mut Reader<'_>) -> Option<Task> {
    let verifies = reader.flag()?;
    let range = ByteRange { start: reader.number()?, end: reader.number()? };
    Some(if verifies { Task::Verify(range) } else { Task::Copy(range) })
}

impl Grant {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Grant::Task { task, more } => {
                write_task(&mut out, task);
                out.flag(more);
            }
            Grant::Nothing { tells } => out.flag(tells),
        }
        out.into_bytes()
    }

    /// What the owner has answered. What is no answer is taken for none.
    pub(crate) fn decode(bytes: &[u8]) -> Grant {
        let mut reader = Reader::new(bytes);
        if let Some(task) = read_task(&mut reader)
            && let Some(more) = reader.flag()
            && reader.is_at_end()
        {
            return Grant::Task { task, more };
        }
        Grant::Nothing { tells: bytes != [0] }
    }
}
