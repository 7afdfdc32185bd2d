//! What all workers of a run share, each part with its own lock.

pub(crate) mod copied_inodes;
pub(crate) mod creation_locks;
pub(crate) mod destination_locks;
pub(crate) mod hard_links;
pub(crate) mod operands;
pub(crate) mod range_claim;
pub(crate) mod range_offer;
pub(crate) mod ranks;
pub(crate) mod rate_limit;
pub(crate) mod shared_file;
pub(crate) mod wire;

pub(crate) use copied_inodes::FirstCopy;
pub(crate) use creation_locks::{CreationLock, CreationLocks, SharingLock};
pub(crate) use destination_locks::{DestinationGuard, DestinationLocks};
pub(crate) use hard_links::{Claim, Claimant, HardLinks};
pub(crate) use operands::Operands;
pub(crate) use ranks::{
    Event, LOCAL, RankContext, ReceivedShare, Sender, Surplus, TopMessage, open_top,
};
pub(crate) use rate_limit::RateLimit;
pub(crate) use shared_file::SharedFile;
