//! How long each step of a copy takes.

/// Names that one call lists (getdents64(2) with 128 KiB).
pub(super) const LISTED_NAMES: u64 = 4096;

/// Calls for a small file: look up and open the source, create, read, write, set attributes, close.
const CALLS_FILE: u64 = 6;

/// Calls to enter a directory: look up, open, create and open the copy.
const CALLS_ENTER: u64 = 4;

/// Calls to finish a directory: owner and mode, times.
const CALLS_FINISH: u64 = 2;

/// Calls to open one component of a share's path, on both sides.
const CALLS_COMPONENT: u64 = 2;

/// What the file system's server needs for one name of a listing.
const LIST_NAME_NS: u64 = 500;

/// Bytes that a rank copies in a nanosecond.
const BYTES_EACH_NS: u64 = 1;

/// Latencies of the machine that is simulated, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Costs {
    /// One metadata operation of the file system.
    pub(crate) metadata_ns: u64,
    /// A message between the nearest ranks.
    pub(crate) message_ns_min: u64,
    /// A message between the farthest ranks.
    pub(crate) message_ns_max: u64,
    /// What a rank needs to receive one message. Messages to one rank wait for each other.
    pub(crate) receive_ns: u64,
}

impl Costs {
    /// Metadata operations of `metadata_us`, messages of 1 to 50 µs.
    pub(crate) fn with_metadata_us(metadata_us: u64) -> Costs {
        Costs {
            metadata_ns: metadata_us * 1000,
            message_ns_min: 1000,
            message_ns_max: 50_000,
            receive_ns: 500,
        }
    }

    /// A small file, or one range of a large one, of so many bytes.
    pub(super) fn leaf_ns(&self, range_bytes: Option<u64>) -> u64 {
        match range_bytes {
            None => CALLS_FILE * self.metadata_ns,
            Some(bytes) => self.metadata_ns + bytes / BYTES_EACH_NS,
        }
    }

    pub(super) fn enter_ns(&self) -> u64 {
        CALLS_ENTER * self.metadata_ns
    }

    pub(super) fn list_ns(&self, names: u64) -> u64 {
        self.metadata_ns + names * LIST_NAME_NS
    }

    /// Lists all `names` of a directory.
    pub(super) fn list_all_ns(&self, names: u64) -> u64 {
        names.div_ceil(LISTED_NAMES).max(1) * self.metadata_ns + names * LIST_NAME_NS
    }

    pub(super) fn finish_ns(&self) -> u64 {
        CALLS_FINISH * self.metadata_ns
    }

    pub(super) fn open_ns(&self, depth: u32) -> u64 {
        CALLS_COMPONENT * u64::from(depth) * self.metadata_ns
    }

    /// A hard link to a copied file: look up, link.
    pub(super) fn link_ns(&self) -> u64 {
        2 * self.metadata_ns
    }
}
