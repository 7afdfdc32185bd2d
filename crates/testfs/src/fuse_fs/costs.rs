//! What requests cost, and which are refused.

use std::time::Duration;

/// The time of requests, and which requests are not supported. All others take only the round trip
/// to this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// The time that each request is on its way, as to a server. Requests travel at the same time.
    pub latency: Duration,
    /// The time of each write, whatever its size. Writes wait for one another, unless there is a latency.
    pub write_time: Duration,
    /// The time for each MiB of a copy_file_range(2), which the file system serves itself. `None`
    /// if it does not support the call.
    pub served_mib_time: Option<Duration>,
    /// Whether reads and writes bypass the page cache.
    pub direct_io: bool,
    /// Renames with flags, such as RENAME_NOREPLACE, fail with EINVAL, as on many network file
    /// systems.
    pub no_rename_flags: bool,
    /// Before the first such rename fails, a file with the new name is created, as by another
    /// process. It contains its name.
    pub rename_loses_race: bool,
    /// Hard links fail with this error.
    pub no_hard_links: Option<rustix::io::Errno>,
    /// Names that differ in case, or in dots at their end, are one name, as on FAT.
    pub ignores_case: bool,
    /// Names are stored as text, as UDF does: a file whose name was none is not found by that again.
    pub stores_text: bool,
    /// How long the kernel trusts names and attributes that it has seen, and that a name is missing.
    /// A second mount of the same store may show what was true so long ago, as network file systems
    /// do. Data is read again after each open(2).
    pub caches_for: Duration,
    /// The attribute `system.nfs4_acl` of each file, as clients of NFSv4 show it. Nothing can change it.
    pub nfs4_acl: Option<&'static [u8]>,
}
