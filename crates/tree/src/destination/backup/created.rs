//! Files of this run that a backup must not replace.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use rustix::fs::{AtFlags, statat};

use crate::fs::{FileId, Place};
use crate::lock::lock;
use crate::request::{BackupKind, Options};

/// What this run has put where a backup could replace it: copies whose names end as those of simple
/// backups do, and simple backups.
#[derive(Default)]
pub(crate) struct CreatedFiles(Mutex<HashSet<FileId>>);

impl CreatedFiles {
    /// Remembers that `id` was made at `dst`.
    pub(crate) fn record(&self, options: &Options, dst: &Place<'_>, id: FileId) {
        if let Some(backup) = &options.backup
            && backup.kind != BackupKind::Numbered
            && dst.name.to_bytes().ends_with(backup.suffix.as_bytes())
        {
            self.insert(id);
        }
    }

    /// Remembers `id`.
    pub(super) fn insert(&self, id: FileId) {
        lock(&self.0).insert(id);
    }

    /// Whether what stands at `name` beside `dst` was put there by this run.
    pub(super) fn is_at(&self, dst: &Place<'_>, name: &CString) -> bool {
        let stat = statat(dst.dir, &**name, AtFlags::SYMLINK_NOFOLLOW);
        let own = lock(&self.0);
        stat.is_ok_and(|stat| own.contains(&FileId::of(&stat)))
    }
}
