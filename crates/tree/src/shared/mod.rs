//! What all workers of a run share, each part with its own lock.

pub(crate) mod copied_inodes;
pub(crate) mod creation_locks;
pub(crate) mod destination_locks;
pub(crate) mod hard_links;
pub(crate) mod messages;
pub(crate) mod operands;
pub(crate) mod partner_context;
pub(crate) mod partners;
pub(crate) mod rate_limit;
pub(crate) mod shared_file;

pub(crate) use copied_inodes::FirstCopy;
pub(crate) use creation_locks::{CreationLock, CreationLocks};
pub(crate) use destination_locks::{DestinationGuard, DestinationLocks};
pub(crate) use hard_links::{Claim, Claimant, HardLinks};
pub(crate) use operands::Operands;
pub(crate) use partner_context::{LOCAL, Offered, PartnerContext, Sender, open_top};
pub(crate) use partners::{Event, Load, ReceivedShare, ShareEnd, Surplus};
pub(crate) use rate_limit::RateLimit;
pub(crate) use shared_file::SharedFile;
