//! Messages between ranks as bytes.

use cluster::{Message, Payload};
use haulage::events::Progress;
use serde::{Deserialize, Serialize};

use crate::place::Place;

/// What a message of the protocol carries: bytes that the copies of two ranks understand.
#[derive(Debug)]
pub struct Bytes;

impl Payload for Bytes {
    type Work = Vec<u8>;
    type Name = Vec<u8>;
    type Summary = Vec<u8>;
}

/// A message.
#[derive(Debug, Serialize, Deserialize)]
pub enum Frame {
    /// The sender is ready to copy at this place. `None` if it has failed before. Ranks of other
    /// versions understand this message, so it stays the first.
    Ready(Option<Place>),
    /// A message of the protocol.
    Protocol(Message<Bytes>),
    /// For rank 0: how far the sender is.
    Progress(RankProgress),
    /// For rank 0: lines of receipts. There is one answer, and then the next lines follow.
    Receipts(Vec<u8>),
    /// The answer to `Receipts`.
    ReceiptsWritten,
    /// For rank 0: lines for the user.
    Messages(Vec<u8>),
}

/// How far a rank is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankProgress {
    /// The sums over what the rank copies.
    pub progress: Progress,
    /// The rank has nothing to do.
    pub is_waiting: bool,
}

impl Frame {
    /// The message as bytes.
    ///
    /// # Panics
    /// Never: values in memory can be written to memory.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, Vec::new()).expect("values in memory can be written to memory")
    }

    /// The message that [`encode`](Frame::encode) made these bytes of.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Frame> {
        let (frame, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use cluster::Request;

    use super::*;

    #[test]
    fn a_message_arrives_as_it_was_sent_and_neither_a_part_of_it_nor_more_does() {
        let (request, work) = (Request::Once, b"a\0b\xff".to_vec());
        let sent = Frame::Protocol(Message::Share { request, home: 7, id: 1 << 50, work });
        let encoded = sent.encode();
        let arrived = Frame::decode(&encoded);
        assert_eq!(arrived.map(|it| format!("{it:?}")), Some(format!("{sent:?}")));
        for end in 0..encoded.len() {
            assert!(Frame::decode(&encoded[..end]).is_none(), "{end} bytes");
        }
        assert!(Frame::decode(&[&encoded[..], &[0]].concat()).is_none());
    }
}
