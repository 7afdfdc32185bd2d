//! What is known of a file system by its type: [`engines::fs_types`].

use std::os::fd::BorrowedFd;

use engines::fs_types::{CIFS, SMB2, Storage, fs_type_of, storage_of};

/// Whether the file system of `fd` is reliable, see [`Storage::Reliable`].
pub(crate) fn is_on_reliable_fs(fd: BorrowedFd<'_>) -> bool {
    fs_type_of(fd).is_some_and(is_reliable)
}

/// Whether the file system of this type is reliable.
pub(crate) fn is_reliable(fs_type: u64) -> bool {
    storage_of(fs_type) == Some(Storage::Reliable)
}

/// Whether the file system of `fd` is one that only one host mounts. `false` where statfs(2) fails.
pub(crate) fn is_on_fs_of_one_host(fd: BorrowedFd<'_>) -> bool {
    let storage = fs_type_of(fd).and_then(storage_of);
    matches!(storage, Some(Storage::Reliable | Storage::Local))
}

/// Whether a server or another process keeps the data of this type of file system.
pub(crate) fn is_served(fs_type: u64) -> bool {
    storage_of(fs_type) == Some(Storage::Served)
}

/// Whether this type of file system is SMB, of any version.
pub(crate) fn is_smb(fs_type: u64) -> bool {
    matches!(fs_type, CIFS | SMB2)
}

/// Whether the files of this type of file system are variables of the kernel.
pub(crate) fn is_pseudo(fs_type: u64) -> bool {
    storage_of(fs_type) == Some(Storage::Pseudo)
}

/// An open file and its file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint<'f> {
    pub(crate) fd: BorrowedFd<'f>,
    pub(crate) dev: u64,
    /// The number that statfs(2) gives its file system.
    pub(crate) fs_type: Option<u64>,
}

/// Source and destination of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints<'f> {
    pub(crate) src: Endpoint<'f>,
    pub(crate) dst: Endpoint<'f>,
}

/// The types of the file systems that a worker has used, by device number: a handful at most.
#[derive(Debug, Default)]
pub(crate) struct FsTypes(Vec<(u64, Option<u64>)>);

impl FsTypes {
    /// The type of the file system of `fd`, which is on the device `dev`. `None` where statfs(2)
    /// fails.
    pub(crate) fn of(&mut self, fd: BorrowedFd<'_>, dev: u64) -> Option<u64> {
        self.known(dev).unwrap_or_else(|| {
            let fs_type = fs_type_of(fd);
            self.0.push((dev, fs_type));
            fs_type
        })
    }

    /// The type of the file system on the device `dev`, if it was asked for before. No call.
    pub(crate) fn known_of(&self, dev: u64) -> Option<u64> {
        self.known(dev).flatten()
    }

    fn known(&self, dev: u64) -> Option<Option<u64>> {
        self.0.iter().find(|(known, _)| *known == dev).map(|(_, fs_type)| *fs_type)
    }
}
