//! Names in a directory as a message to another rank of a job.
//!
//! A message has the operand and each directory below it, with device and inode numbers of source
//! and destination.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use rustix::fs::FileType;

use crate::copy::context::CopyContext;
use crate::copy::directory_pair::DirectoryPair;
use crate::entry::Operand;
use crate::fs::{FileId, Listing};
use crate::shared::RankContext;
use crate::shared::range_offer::RangeOffer;
use crate::shared::wire::{Reader, Writer};

/// What is known of a directory that is being copied.
#[derive(Clone, Copy)]
pub(super) struct Facts {
    pub(super) new: bool,
    pub(super) private: bool,
    pub(super) children_inherit_acl: bool,
    pub(super) one_file_system: bool,
}

/// A message with `names` in the directory that [`encode_place`] has described.
pub(super) fn encode(place: &[u8], names: &Listing, is_large_file: bool) -> Vec<u8> {
    let mut out = Writer::default();
    out.flag(false);
    out.bytes(place);
    out.flag(is_large_file);
    let names = names.names();
    out.count(names.len());
    for (name, kind) in names {
        out.number(u64::from(kind.as_raw_mode()));
        out.bytes(name.to_bytes());
    }
    out.into_bytes()
}

/// What a message has.
pub(super) struct Names<'m> {
    /// As [`encode_place`] described the directory.
    pub(super) place: &'m [u8],
    pub(super) names: Listing,
    pub(super) is_large_file: bool,
}

/// What another rank has given.
pub(super) enum Work<'m> {
    Names(Names<'m>),
    /// A part in the copy of a large file.
    File(RangeOffer),
}

/// What [`encode`] or [`RangeOffer::encode`] has written; `None` if the message is neither.
pub(super) fn decode(message: &[u8]) -> Option<Work<'_>> {
    let mut reader = Reader::new(message);
    if reader.flag()? {
        return RangeOffer::decode(message).map(Work::File);
    }
    let (place, is_large_file) = (reader.bytes()?, reader.flag()?);
    let mut names = Vec::new();
    for _ in 0..reader.count()? {
        let kind = FileType::from_raw_mode(u32::try_from(reader.number()?).ok()?);
        names.push((reader.component()?, kind));
    }
    let names = Listing::of_names(names);
    reader.is_at_end().then_some(Work::Names(Names { place, names, is_large_file }))
}

/// The directory of `pair`, as another rank can open it; `None` if it cannot.
pub(super) fn encode_place(
    cx: &CopyContext<'_>,
    rank: &RankContext,
    pair: &DirectoryPair,
) -> Option<Vec<u8>> {
    let src: Vec<_> = pair.src.dir_path.levels().collect();
    let dst: Vec<_> = pair.dst.dir_path.levels().collect();
    // A directory that was entered through a symbolic link has no directory above it.
    if src.len() != dst.len() {
        return None;
    }
    let ((&src_top, src_below), (&dst_top, dst_below)) = (src.split_first()?, dst.split_first()?);
    let mut out = Writer::default();
    rank.encode_host(&mut out);
    let operand = &pair.operand;
    out.bytes(operand.src.as_os_str().as_bytes());
    out.bytes(operand.dst.as_os_str().as_bytes());
    out.flag(operand.into_directory);
    out.flag(cx.destination.operands.is_created_root(dst_top.id()?));
    out.id(rank.devices.common(src_top.id()?));
    rank.encode_top(&mut out, dst_top)?;
    out.flag(pair.new);
    out.flag(pair.private);
    out.flag(pair.children_inherit_acl);
    out.flag(pair.device.is_some());
    out.count(src_below.len());
    for (src, dst) in src_below.iter().zip(dst_below) {
        if src.name() != dst.name() {
            return None;
        }
        out.bytes(src.name());
        out.id(rank.devices.common(src.id()?));
        out.id(rank.devices.common(dst.id()?));
    }
    // Links in a directory that existed before the run may be followed, if they are as old.
    let is_followed = !pair.new && cx.options.may_write_through();
    let links = is_followed.then(|| cx.security().preexisting.recorded(pair.dst.id)).flatten();
    out.flag(links.is_some());
    let links = links.unwrap_or_default();
    out.count(links.len());
    links.into_iter().for_each(|link| out.id(rank.devices.common(link)));
    Some(out.into_bytes())
}

/// The operand, whether this run created its destination, and the source directory.
pub(super) fn decode_operand(reader: &mut Reader<'_>) -> Option<(Operand, bool, FileId)> {
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let operand = Operand {
        src: path(reader.bytes()?),
        dst: path(reader.bytes()?),
        into_directory: reader.flag()?,
        into_itself: AtomicBool::new(false),
        shareable: AtomicBool::new(true),
    };
    Some((operand, reader.flag()?, reader.id()?))
}

/// What a message has of the directories below an operand.
pub(super) struct Below {
    pub(super) facts: Facts,
    /// The name of each, and the identities of source and destination.
    pub(super) levels: Vec<(CString, FileId, FileId)>,
    /// Symbolic links in the last one that existed before the run, if they are known.
    pub(super) links: Option<Vec<FileId>>,
}

pub(super) fn decode_below(reader: &mut Reader<'_>) -> Option<Below> {
    let facts = Facts {
        new: reader.flag()?,
        private: reader.flag()?,
        children_inherit_acl: reader.flag()?,
        one_file_system: reader.flag()?,
    };
    let mut levels = Vec::new();
    for _ in 0..reader.count()? {
        levels.push((reader.component()?, reader.id()?, reader.id()?));
    }
    let are_known = reader.flag()?;
    let mut links = Vec::new();
    for _ in 0..reader.count()? {
        links.push(reader.id()?);
    }
    let links = are_known.then_some(links);
    reader.is_at_end().then_some(Below { facts, levels, links })
}
