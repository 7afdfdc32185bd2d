//! How many descriptors the process may open.

use engines::sys::resource_limit;
use rustix::process::Resource;

/// Descriptors of everything but the copied files and directories, such as standard streams.
pub(crate) const OTHER_DESCRIPTORS: u64 = 20;

/// With a limit above this, open descriptors are not counted, which takes 20 microseconds.
const FEW_DESCRIPTORS: u64 = 1024;

/// With a limit under this no descriptor can be spared for what is only faster.
const DESCRIPTORS_ENOUGH: u64 = 256;

/// Whether the process may open so few descriptors that none is kept from file to file.
pub(crate) fn are_few() -> bool {
    let limit = resource_limit(Resource::Nofile);
    limit.is_ok_and(|limit| limit.current.is_some_and(|current| current < DESCRIPTORS_ENOUGH))
}

/// How many descriptors the process may have, less those that it has open beyond
/// [`OTHER_DESCRIPTORS`].
pub(crate) fn available() -> u64 {
    // The usual limit stands for one that cannot be read.
    let allowed = resource_limit(Resource::Nofile)
        .map_or(FEW_DESCRIPTORS, |limit| limit.current.unwrap_or(u64::MAX));
    if allowed > FEW_DESCRIPTORS {
        return allowed;
    }
    // If /proc cannot be read, EMFILE comes later.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64);
    allowed.saturating_sub(open.saturating_sub(OTHER_DESCRIPTORS))
}
