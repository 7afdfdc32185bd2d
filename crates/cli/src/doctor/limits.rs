//! The limits of this process that a copy may meet: getrlimit(2).

use rustix::process::{Resource, getrlimit};
use serde::Serialize;

/// Soft limits and one hard limit. `None` is unlimited.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Limits {
    /// Open files.
    pub(super) open_files: Option<u64>,
    /// To which `haulage cp` may raise it.
    pub(super) open_files_max: Option<u64>,
    /// Memory that io_uring may pin.
    pub(super) locked_bytes: Option<u64>,
    /// Processes and threads of this user.
    pub(super) processes: Option<u64>,
    /// The length of a file that is written.
    pub(super) file_bytes: Option<u64>,
    /// Address space.
    pub(super) address_space_bytes: Option<u64>,
}

impl Limits {
    pub(super) fn of_process() -> Limits {
        let soft = |resource| getrlimit(resource).current;
        Limits {
            open_files: soft(Resource::Nofile),
            open_files_max: getrlimit(Resource::Nofile).maximum,
            locked_bytes: soft(Resource::Memlock),
            processes: soft(Resource::Nproc),
            file_bytes: soft(Resource::Fsize),
            address_space_bytes: soft(Resource::As),
        }
    }
}
