//! What the copy of a rank tells the thread that communicates.

use cluster::{InodeId, Ticket};

#[derive(Debug)]
pub(crate) enum Event {
    Ready,
    Give {
        number: u64,
        home: Option<u32>,
        work: Vec<u8>,
    },
    NoSurplus,
    Idle,
    Resume,
    GiveUp,
    Done(u64),
    HandBack {
        share: u64,
        work: Vec<u8>,
        for_now: bool,
    },
    AskLink(InodeId, Ticket),
    Copied(InodeId, Option<Vec<u8>>),
    Claim {
        owner: u32,
        ticket: Ticket,
        claim: Vec<u8>,
    },
    Grant {
        to: u32,
        ticket: Ticket,
        grant: Vec<u8>,
    },
    Message(Vec<u8>),
    Interrupted,
    /// On rank 0: the operands are copied.
    Finish,
    /// The copy has ended with this exit status.
    Ended(u8),
}
