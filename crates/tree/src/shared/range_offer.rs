//! A part in the copy of a large file, as a message to another rank: what the files are, and whom to
//! ask for ranges.

use std::ffi::CString;

use rustix::fs::Stat;

use super::wire::{Reader, Writer};
use crate::fs::{FileId, ctime, file_bytes, mtime};

/// The files of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeOffer {
    /// The rank that owns them, and its number for them.
    pub(crate) owner: u32,
    pub(crate) file: u64,
    /// How their directories are opened.
    pub(crate) place: Vec<u8>,
    /// The directories are being copied. If not, the source is an operand.
    pub(crate) in_directory: bool,
    /// The name of the source in its directory.
    pub(crate) src_name: CString,
    /// The name that the copy has now, and the one that it will have.
    pub(crate) dst_name: CString,
    pub(crate) dst_shown: CString,
    /// Both, with the device numbers that all ranks have in common.
    pub(crate) src_id: FileId,
    pub(crate) dst_id: FileId,
    pub(crate) version: SourceVersion,
    /// The copy does not have its final name.
    pub(crate) atomic: bool,
    /// Of the journal; 0 if there is none.
    pub(crate) chunk_bytes: u64,
}

/// What tells whether a source has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceVersion {
    pub(crate) file_bytes: u64,
    times: [(i64, i64); 2],
}

impl SourceVersion {
    pub(crate) fn of(stat: &Stat) -> SourceVersion {
        SourceVersion { file_bytes: file_bytes(stat), times: [mtime(stat), ctime(stat)] }
    }
}

impl RangeOffer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        // Names in a directory begin otherwise.
        out.flag(true);
        out.number(u64::from(self.owner));
        out.number(self.file);
        out.bytes(&self.place);
        out.flag(self.in_directory);
        out.bytes(self.src_name.to_bytes());
        out.bytes(self.dst_name.to_bytes());
        out.bytes(self.dst_shown.to_bytes());
        out.id(self.src_id);
        out.id(self.dst_id);
        out.number(self.version.file_bytes);
        for (seconds, nanoseconds) in self.version.times {
            out.number(seconds.cast_unsigned());
            out.number(nanoseconds.cast_unsigned());
        }
        out.flag(self.atomic);
        out.number(self.chunk_bytes);
        out.into_bytes()
    }

    /// What [`encode`](RangeOffer::encode) has written; `None` if it is something else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<RangeOffer> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        if !reader.flag()? {
            return None;
        }
        let owner = u32::try_from(reader.number()?).ok()?;
        let file = reader.number()?;
        let (place, in_directory) = (reader.bytes()?.into(), reader.flag()?);
        let src_name = match in_directory {
            true => reader.component()?,
            false => CString::new(reader.bytes()?).ok()?,
        };
        let (dst_name, dst_shown) = (reader.component()?, reader.component()?);
        let (src_id, dst_id) = (reader.id()?, reader.id()?);
        let file_bytes = reader.number()?;
        let mut time = || Some((reader.number()?.cast_signed(), reader.number()?.cast_signed()));
        let times = [time()?, time()?];
        let version = SourceVersion { file_bytes, times };
        let (atomic, chunk_bytes) = (reader.flag()?, reader.number()?);
        reader.is_at_end().then_some(RangeOffer {
            owner,
            file,
            place,
            in_directory,
            src_name,
            dst_name,
            dst_shown,
            src_id,
            dst_id,
            version,
            atomic,
            chunk_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_arrives_as_it_was_sent_and_a_part_of_it_does_not() {
        let id = |dev| FileId { dev, ino: u64::MAX };
        let offer = |in_directory: bool, src_name: &[u8]| RangeOffer {
            owner: 7,
            file: 1 << 40,
            place: b"a\0b".into(),
            in_directory,
            src_name: CString::new(src_name).expect("no zero"),
            dst_name: c".x\xff.haulage-new".into(),
            dst_shown: c"x\xff".into(),
            src_id: id(1),
            dst_id: id(2),
            version: SourceVersion { file_bytes: 1 << 50, times: [(-1, 2), (i64::MAX, 3)] },
            atomic: true,
            chunk_bytes: 0,
        };
        for offer in [offer(true, b"x\xff"), offer(false, b"../up/x")] {
            let bytes = offer.encode();
            for end in 0..bytes.len() {
                assert_eq!(RangeOffer::decode(&bytes[..end]), None, "{end}");
            }
            assert_eq!(RangeOffer::decode(&bytes), Some(offer));
        }
        // Below an operand a name is one component.
        assert_eq!(RangeOffer::decode(&offer(true, b"../up").encode()), None);
    }
}
