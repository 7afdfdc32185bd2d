//! Messages between ranks as bytes.

use cluster::{InodeId, Message, Payload, Request};
use haulage::events::Progress;

/// What a message of the protocol carries: bytes that the copies of two ranks understand.
#[derive(Debug)]
pub struct Bytes;

impl Payload for Bytes {
    type Work = Vec<u8>;
    type Name = Vec<u8>;
    type Report = Vec<u8>;
    type Summary = Vec<u8>;
}

/// A message.
#[derive(Debug)]
pub enum Frame {
    /// The sender is ready to copy, at this place: what all ranks must have in common. Empty if it
    /// has failed before.
    Ready(Vec<u8>),
    /// A message of the protocol.
    Protocol(Message<Bytes>),
    /// For rank 0: how far the sender is.
    Progress(RankProgress),
    /// For rank 0: lines of receipts. There is one answer, and then the next lines follow.
    Receipts(Vec<u8>),
    /// The answer to `Receipts`.
    ReceiptsWritten,
}

/// How far a rank is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankProgress {
    /// Its sums.
    pub progress: Progress,
    /// It has nothing to do.
    pub is_waiting: bool,
}

/// Tags of messages that are not of the protocol.
const READY: u8 = 0;
const PROGRESS: u8 = 64;
const RECEIPTS: u8 = 65;
const RECEIPTS_WRITTEN: u8 = 66;

impl Frame {
    /// The message as bytes.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let (tag, numbers, bytes) = match self {
            Frame::Ready(place) => (READY, vec![], place),
            Frame::Protocol(message) => parts(message),
            Frame::Progress(RankProgress { progress, is_waiting }) => {
                let Progress { entries, bytes, skipped_bytes, .. } = progress;
                (PROGRESS, vec![entries, bytes, skipped_bytes, u64::from(is_waiting)], vec![])
            }
            Frame::Receipts(lines) => (RECEIPTS, vec![], lines),
            Frame::ReceiptsWritten => (RECEIPTS_WRITTEN, vec![], vec![]),
        };
        let mut out = vec![tag];
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&bytes);
        out
    }

    /// The message that [`encode`](Frame::encode) made these bytes of.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Frame> {
        let (&tag, rest) = bytes.split_first()?;
        match tag {
            READY => Some(Frame::Ready(rest.into())),
            PROGRESS => rank_progress(rest).map(Frame::Progress),
            RECEIPTS => Some(Frame::Receipts(rest.into())),
            RECEIPTS_WRITTEN => rest.is_empty().then_some(Frame::ReceiptsWritten),
            tag => message(tag, rest).map(Frame::Protocol),
        }
    }
}

fn rank_progress(bytes: &[u8]) -> Option<RankProgress> {
    let (numbers, rest) = bytes.as_chunks();
    let numbers = <[[u8; 8]; 4]>::try_from(numbers).ok().filter(|_| rest.is_empty())?;
    let [entries, bytes, skipped_bytes, is_waiting] = numbers.map(u64::from_le_bytes);
    let progress = Progress { entries, bytes, skipped_bytes, ..Progress::default() };
    (is_waiting < 2).then_some(RankProgress { progress, is_waiting: is_waiting == 1 })
}

/// The tag, the numbers, and the bytes at the end of a message.
fn parts(message: Message<Bytes>) -> (u8, Vec<u64>, Vec<u8>) {
    let of = |request| match request {
        Request::Once => 0,
        Request::Standing => 1,
    };
    match message {
        Message::Ask(request) => (1, vec![of(request)], vec![]),
        Message::NoWork(request) => (2, vec![of(request)], vec![]),
        Message::Share { request, home, id, work } => {
            (3, vec![of(request), u64::from(home), id], work)
        }
        Message::Done(id) => (4, vec![id], vec![]),
        Message::HandBack { id, takes_none, work } => (5, vec![id, u64::from(takes_none)], work),
        Message::AskLink(inode, ticket) => (6, vec![inode.dev, inode.ino, ticket], vec![]),
        Message::CopyFirst(inode, ticket) => (7, vec![inode.dev, inode.ino, ticket], vec![]),
        Message::LinkTo(ticket, name) => (8, vec![ticket], name),
        Message::Copied(inode, Some(name)) => (9, vec![inode.dev, inode.ino], name),
        Message::Copied(inode, None) => (10, vec![inode.dev, inode.ino], vec![]),
        Message::CopyKnown => (11, vec![], vec![]),
        Message::Report(report) => (12, vec![], report),
        Message::Cancel => (13, vec![], vec![]),
        Message::Finish => (14, vec![], vec![]),
        Message::Farewell(summary) => (15, vec![], summary),
        Message::Exit => (16, vec![], vec![]),
        Message::TakesNone => (17, vec![], vec![]),
        Message::LeaveKnown => (18, vec![], vec![]),
        Message::Claim(ticket, work) => (19, vec![ticket], work),
        Message::Grant(ticket, work) => (20, vec![ticket], work),
    }
}

fn message(tag: u8, bytes: &[u8]) -> Option<Message<Bytes>> {
    let mut rest = bytes;
    let mut number = || {
        let (number, after) = rest.split_first_chunk()?;
        rest = after;
        Some(u64::from_le_bytes(*number))
    };
    let request = |number| match number {
        0 => Some(Request::Once),
        1 => Some(Request::Standing),
        _ => None,
    };
    let flag = |number| match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    let message = match tag {
        1 => Message::Ask(request(number()?)?),
        2 => Message::NoWork(request(number()?)?),
        3 => {
            let request = request(number()?)?;
            let (home, id) = (u32::try_from(number()?).ok()?, number()?);
            return Some(Message::Share { request, home, id, work: rest.into() });
        }
        4 => Message::Done(number()?),
        5 => {
            let (id, takes_none) = (number()?, flag(number()?)?);
            return Some(Message::HandBack { id, takes_none, work: rest.into() });
        }
        6 => Message::AskLink(InodeId { dev: number()?, ino: number()? }, number()?),
        7 => Message::CopyFirst(InodeId { dev: number()?, ino: number()? }, number()?),
        8 => return Some(Message::LinkTo(number()?, rest.into())),
        9 => {
            let inode = InodeId { dev: number()?, ino: number()? };
            return Some(Message::Copied(inode, Some(rest.into())));
        }
        10 => Message::Copied(InodeId { dev: number()?, ino: number()? }, None),
        11 => Message::CopyKnown,
        12 => return Some(Message::Report(rest.into())),
        13 => Message::Cancel,
        14 => Message::Finish,
        15 => return Some(Message::Farewell(rest.into())),
        16 => Message::Exit,
        17 => Message::TakesNone,
        18 => Message::LeaveKnown,
        19 => return Some(Message::Claim(number()?, rest.into())),
        20 => return Some(Message::Grant(number()?, rest.into())),
        _ => return None,
    };
    rest.is_empty().then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_arrives_as_it_was_sent() {
        let (inode, bytes) = (InodeId { dev: 1 << 40, ino: u64::MAX }, || b"a\0b\xff".to_vec());
        let messages: Vec<Message<Bytes>> = vec![
            Message::Ask(Request::Once),
            Message::Ask(Request::Standing),
            Message::NoWork(Request::Once),
            Message::Share { request: Request::Standing, home: 7, id: 1 << 50, work: bytes() },
            Message::Done(3),
            Message::HandBack { id: 9, takes_none: false, work: bytes() },
            Message::HandBack { id: 9, takes_none: true, work: bytes() },
            Message::AskLink(inode, 5),
            Message::CopyFirst(inode, 6),
            Message::LinkTo(7, bytes()),
            Message::Copied(inode, Some(bytes())),
            Message::Copied(inode, None),
            Message::CopyKnown,
            Message::Report(bytes()),
            Message::Cancel,
            Message::Finish,
            Message::Farewell(bytes()),
            Message::Exit,
            Message::TakesNone,
            Message::LeaveKnown,
            Message::Claim(1 << 40, bytes()),
            Message::Grant(11, bytes()),
        ];
        for message in messages {
            let sent = Frame::Protocol(message);
            let shown = format!("{sent:?}");
            let encoded = sent.encode();
            let arrived = Frame::decode(&encoded);
            assert_eq!(arrived.map(|frame| format!("{frame:?}")), Some(shown));
        }
        let progress =
            Progress { entries: 1, bytes: u64::MAX, skipped_bytes: 3, ..Progress::default() };
        for sent in [
            Frame::Ready(bytes()),
            Frame::Progress(RankProgress { progress, is_waiting: true }),
            Frame::Receipts(bytes()),
            Frame::ReceiptsWritten,
        ] {
            let shown = format!("{sent:?}");
            let arrived = Frame::decode(&sent.encode());
            assert_eq!(arrived.map(|frame| format!("{frame:?}")), Some(shown));
        }
    }

    #[test]
    fn what_is_no_message_is_not_taken_for_one() {
        let few = [&b""[..], &[21], &[19], &[1], &[1, 9, 0, 0, 0, 0, 0, 0, 0], &[13, 0], &[4, 1]];
        let of_counts = [&[PROGRESS; 32][..], &[PROGRESS; 33], &[RECEIPTS_WRITTEN, 0]];
        for bytes in few.into_iter().chain(of_counts) {
            assert!(Frame::decode(bytes).is_none(), "{bytes:?}");
        }
    }
}
