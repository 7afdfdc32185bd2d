//! Messages between partners. All run the same program, so that a message is its values one after the
//! other.

use std::ffi::{CStr, CString};

use rustix::fs::{FileType, Stat};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::fs::{FileId, Listing, ctime, file_bytes, is_component, mtime};

/// The message with this content.
pub(crate) fn encode(content: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(content, Vec::new()).expect("values in memory can be written to memory")
}

/// The content of a message; `None` if it has another.
pub(crate) fn decode<'m, T: Deserialize<'m>>(message: &'m [u8]) -> Option<T> {
    let (content, rest) = postcard::take_from_bytes(message).ok()?;
    rest.is_empty().then_some(content)
}

/// A name that is one component of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Component(CString);

impl Component {
    /// Whether it is one is looked at where it arrives.
    pub(crate) fn new(name: impl Into<CString>) -> Component {
        Component(name.into())
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Component {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Component, D::Error> {
        let name = CString::deserialize(from)?;
        is_component(&name).then_some(Component(name)).ok_or_else(|| D::Error::custom("a path"))
    }
}

/// Work that a process gives to a partner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    Names(Names),
    /// A part in the copy of a large file.
    File(RangeOffer),
}

/// Names in a directory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) place: DirectoryMessage,
    /// Each with its type, as in `st_mode`.
    names: Vec<(Component, u32)>,
    pub(crate) is_large_file: bool,
}

impl Names {
    pub(crate) fn new(place: DirectoryMessage, names: &Listing, is_large_file: bool) -> Names {
        let of = |(name, kind): (&CStr, FileType)| (Component::new(name), kind.as_raw_mode());
        Names { place, names: names.names().map(of).collect(), is_large_file }
    }

    pub(crate) fn listing(&self) -> Listing {
        let names = self.names.iter();
        let of = |(name, kind): &(Component, u32)| (name.0.clone(), FileType::from_raw_mode(*kind));
        Listing::of_names(names.map(of).collect())
    }
}

/// A directory that is being copied, as a partner can open it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirectoryMessage {
    pub(crate) operand: OperandMessage,
    pub(crate) facts: Facts,
    pub(crate) levels: Vec<Level>,
    /// Symbolic links in the last level that existed before the run, if they are known.
    pub(crate) links: Option<Vec<FileId>>,
}

/// A directory below an operand: its name, and the identities of source and destination.
pub(crate) type Level = (Component, FileId, FileId);

/// What is known of a directory that is being copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The run created the destination.
    pub(crate) new: bool,
    /// No other user may create or remove names in the destination until it is finished.
    pub(crate) private: bool,
    /// The destination has a default access control list.
    pub(crate) children_inherit_acl: bool,
}

/// An operand that is a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OperandMessage {
    /// Of the host of the sender; empty if it is unknown.
    pub(crate) boot_id: Vec<u8>,
    pub(crate) src: Vec<u8>,
    pub(crate) src_id: FileId,
    pub(crate) dst: Vec<u8>,
    pub(crate) merged: Vec<Vec<u8>>,
    pub(crate) into_directory: bool,
    /// The run has created the destination.
    pub(crate) is_created_root: bool,
    pub(crate) top: TopMessage,
}

/// How a partner opens the destination of an operand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TopMessage {
    /// The directory that stays open: the destination itself, or the one that it is in.
    pub(crate) held: Vec<u8>,
    pub(crate) held_id: FileId,
    /// The name of the destination in that directory, and its identity. The name is a component, or the
    /// directory itself for operands such as `d/.`.
    pub(crate) inside: Option<(CString, FileId)>,
}

/// The copy of a source that has several names.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CopyMessage {
    pub(crate) boot_id: Vec<u8>,
    pub(crate) top: TopMessage,
    pub(crate) levels: Vec<Component>,
    pub(crate) name: Component,
    pub(crate) id: FileId,
}

/// A large file: what the files are, and whom to ask for ranges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RangeOffer {
    /// The process that owns it, and its number for it.
    pub(crate) owner: u32,
    pub(crate) file: u64,
    pub(crate) place: FilePlace,
    /// The name of the source in its directory, or the operand.
    pub(crate) src_name: CString,
    /// The name that the copy has now, and the one that it will have.
    pub(crate) dst_name: Component,
    pub(crate) dst_shown: Component,
    /// Both, with the device numbers that all partners have in common.
    pub(crate) src_id: FileId,
    pub(crate) dst_id: FileId,
    pub(crate) version: SourceVersion,
    /// The copy does not have its final name.
    pub(crate) atomic: bool,
    /// Of the journal; 0 if there is none.
    pub(crate) chunk_bytes: u64,
}

/// Where a large file is, and its copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FilePlace {
    /// In a directory that is being copied.
    Directory(DirectoryMessage),
    /// The source is an operand.
    Operand { boot_id: Vec<u8>, dst_dir: Vec<u8>, dst_dir_id: FileId },
}

/// What tells whether a source has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceVersion {
    pub(crate) file_bytes: u64,
    times: [(i64, i64); 2],
}

impl SourceVersion {
    pub(crate) fn of(stat: &Stat) -> SourceVersion {
        SourceVersion { file_bytes: file_bytes(stat), times: [mtime(stat), ctime(stat)] }
    }
}

/// What a process that helps tells the owner of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The number of the file.
    pub(crate) file: u64,
    /// What became of its last task.
    pub(crate) done: Option<(Task, Done)>,
}

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Grant {
    /// `more`: there are further ones, for other partners.
    Task { task: Task, more: bool },
    /// Nothing is left for the process. `tells`: its failure is the first of the file.
    Nothing { tells: bool },
}

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What a process does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Task {
    Copy(ByteRange),
    /// Reads it back and compares it. The end of the last range is that of the file.
    Verify(ByteRange),
}

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Done {
    Copied(CopiedRange),
    Verified,
    /// The copy differs from the source at this offset.
    Differs(u64),
    /// The process tells why, if [`Grant::Nothing`] asks for it.
    Failed,
    Interrupted,
}

/// A range that was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_arrives_as_it_was_sent_and_a_part_of_it_does_not() {
        let id = |dev| FileId { dev, ino: u64::MAX };
        let offer = RangeOffer {
            owner: 7,
            file: 1 << 40,
            place: FilePlace::Operand {
                boot_id: b"a\0b".into(),
                dst_dir: b"d".into(),
                dst_dir_id: id(4),
            },
            src_name: c"../up/x\xff".into(),
            dst_name: Component::new(c".x\xff.haulage-new"),
            dst_shown: Component::new(c"x\xff"),
            src_id: id(1),
            dst_id: id(2),
            version: SourceVersion { file_bytes: 1 << 50, times: [(-1, 2), (i64::MAX, 3)] },
            atomic: true,
            chunk_bytes: 0,
        };
        let bytes = encode(&offer);
        for end in 0..bytes.len() {
            assert_eq!(decode::<RangeOffer>(&bytes[..end]), None, "{end}");
        }
        assert_eq!(decode(&bytes), Some(offer));
        assert_eq!(decode::<RangeOffer>(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn only_a_single_component_is_a_name() {
        for (name, is_name) in
            [(c"a\xff\n", true), (c"..", false), (c".", false), (c"", false), (c"a/b", false)]
        {
            let arrived = decode::<Component>(&encode(&name));
            assert_eq!(arrived.as_ref().map(Component::name), is_name.then_some(name), "{name:?}");
        }
    }
}
