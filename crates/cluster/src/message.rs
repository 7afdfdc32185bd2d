//! What ranks tell each other.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use crate::ids::{RankId, ShareId};
use crate::source_links::{InodeId, Ticket};

/// What a message carries, which the protocol does not look into.
pub trait Payload {
    /// Work that a rank gives away: names in one directory, or a part in the copy of one large file.
    type Work: Debug;
    /// The name of a copied file, to which another rank makes a hard link.
    type Name: Clone + Debug;
    /// What a rank has done, told at the end.
    type Summary: Debug;
}

/// Why a rank asks for work, and how long the answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Request {
    /// The rank has nothing to do. It is answered soon.
    Once,
    /// The rank has nothing to do. It is answered when there is work, or at the end.
    Standing,
}

/// A message between two ranks. Messages from one rank to another arrive in the order in which
/// they were sent; none is lost.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "P::Work: Serialize, P::Name: Serialize, P::Summary: Serialize",
    deserialize = "P::Work: Deserialize<'de>, P::Name: Deserialize<'de>, P::Summary: Deserialize<'de>"
))]
pub enum Message<P: Payload> {
    /// The sender asks for work. There is exactly one answer, `Share` or `NoWork`.
    Ask(Request),
    /// The answer to an `Ask`.
    NoWork(Request),
    /// The answer to an `Ask`: work for the receiver.
    Share {
        /// As in the `Ask`.
        request: Request,
        /// The rank that reads the directory of the share, and may have more.
        home: RankId,
        /// The number under which `Done` or `HandBack` returns it.
        id: ShareId,
        /// The work.
        work: P::Work,
    },
    /// The share and everything below it is copied.
    Done(ShareId),
    /// The sender takes no share from now on, and has none to give. Ranks that relied on it ask rank 0
    /// instead.
    TakesNone,
    /// The answer to `TakesNone` and to `Copied`.
    Known,
    /// The sender could not start the share. The rank that gave it does the work itself.
    HandBack {
        /// As in the `Share`.
        id: ShareId,
        /// The sender takes no share at all, or none at the moment. Nothing is said about this share,
        /// which another rank may take.
        takes_none: bool,
        /// The work.
        work: P::Work,
    },
    /// The sender has a name of a file with several names. There is exactly one answer, `FirstCopy`.
    AskLink(InodeId, Ticket),
    /// The receiver links its name to this copy. If there is none, it copies the file, and sends `Copied`.
    FirstCopy(Ticket, Option<P::Name>),
    /// The file is copied to this name, or could not be copied.
    Copied(InodeId, Option<P::Name>),
    /// The sender takes part in the copy of a file of the receiver. It tells what became of its last
    /// range, and asks for another. There is exactly one answer, `Grant`.
    Claim(Ticket, P::Work),
    /// The answer to a `Claim`: a range, or that there is none.
    Grant(Ticket, P::Work),
    /// The run is to end early. To rank 0 a request, from rank 0 an order.
    Cancel,
    /// Everything is copied.
    Finish,
    /// The sender has sent and received everything.
    Farewell(P::Summary),
    /// All ranks have sent and received everything.
    Exit,
}
