//! Files that this run created and that a simple backup must not replace.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use crate::fs::{FileId, Place, lstat};
use crate::hash::HashSet;
use crate::lock::lock;
use crate::request::{BackupKind, Options};

/// Copies whose names end in the suffix of simple backups, and simple backups.
#[derive(Default)]
pub(crate) struct CreatedFiles(Mutex<HashSet<FileId>>);

impl CreatedFiles {
    /// Records the copy `id` at `dst`.
    pub(crate) fn record(&self, options: &Options, dst: &Place<'_>, id: FileId) {
        if let Some(backup) = &options.backup
            && backup.kind != BackupKind::Numbered
            && dst.name.to_bytes().ends_with(backup.suffix.as_bytes())
        {
            self.insert(id);
        }
    }

    pub(super) fn insert(&self, id: FileId) {
        lock(&self.0).insert(id);
    }

    /// Whether the file `name` in the directory of `dst` is one of them.
    pub(super) fn is_at(&self, dst: &Place<'_>, name: &CString) -> bool {
        let stat = lstat(dst.dir, &**name);
        let own = lock(&self.0);
        stat.is_ok_and(|stat| own.contains(&FileId::of(&stat)))
    }
}
