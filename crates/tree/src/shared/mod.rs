//! What all workers of a run share, each part with its own lock.

pub(crate) mod copied_inodes;
pub(crate) mod hard_links;
pub(crate) mod locks;
pub(crate) mod messages;
pub(crate) mod operands;
mod partner_context;
pub(crate) mod partners;
pub(crate) mod rate_limit;
pub(crate) mod shared_file;

pub(crate) use copied_inodes::FirstCopy;
pub(crate) use hard_links::{Claim, Claimant, HardLinks};
pub(crate) use locks::{CreationLock, CreationLocks, FileGuard, FileLocks, lock_creation};
pub(crate) use operands::Operands;
pub(crate) use partner_context::{Kept, LOCAL, Offered, PartnerContext, Sender, open_top};
pub(crate) use partners::{Event, Load, ReceivedShare, ShareEnd, Surplus};
pub(crate) use rate_limit::RateLimit;
pub(crate) use shared_file::SharedFile;
