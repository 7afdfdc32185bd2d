//! Bytes that devices read and wrote for this process (/proc/self/io).

use super::proc_file::ProcFile;

/// Bytes that this process, and the children that it has waited for, have had devices read and
/// write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes that became dirty, to be written sooner or later.
    pub written: u64,
}

/// /proc/self/io, where the kernel keeps it: proc_pid_io(5). `None` elsewhere.
pub fn device_bytes() -> Option<DeviceBytes> {
    static IO: ProcFile = ProcFile::new("/proc/self/io");
    IO.read(DeviceBytes::of)?
}

impl DeviceBytes {
    /// Those in the text of the file of a process.
    pub(crate) fn of(io: &str) -> Option<DeviceBytes> {
        let field = |name: &str| {
            io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
        };
        Some(DeviceBytes { read: field("read_bytes:")?, written: field("write_bytes:")? })
    }
}
