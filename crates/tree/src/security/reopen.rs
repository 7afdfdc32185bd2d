//! Opening a directory of the destination again, from an anchor that is still open.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use super::context::Security;
use super::symlink::{NotFollowed, open_through_symlink};
use crate::fs::{Anchor, DirPath, FileId, enter_for_search, open_for_search};

/// Opens the directory at `dir_path` again, from the anchor down. Symbolic links are followed where one
/// was when the directory was entered, and only to that very directory.
///
/// # Errors
/// ENOENT when the trail has no anchor, ESTALE when a link is not to be trusted any more or leads
/// elsewhere, and what the kernel says of any component.
pub(crate) fn reach(security: &Security, dir_path: &DirPath) -> io::Result<OwnedFd> {
    let mut steps = Vec::new();
    let mut at = dir_path;
    let held = loop {
        match (at.parent(), at.anchor()) {
            (Some(parent), _) => {
                let name = CString::new(at.name()).map_err(|_| Errno::INVAL)?;
                steps.push((name, None));
                at = parent;
            }
            (None, Some(Anchor::In(home, name))) => {
                steps.push((name.clone(), None));
                at = home;
            }
            (None, Some(Anchor::Behind(home, name, id))) => {
                steps.push((name.clone(), Some(*id)));
                at = home;
            }
            (None, Some(Anchor::Held(held))) => break held,
            (None, None) => return Err(Errno::NOENT),
        }
    };
    let mut dir = open_for_search(held.as_fd(), c".")?;
    for (name, behind) in steps.iter().rev() {
        dir = match behind {
            None => enter_for_search(dir.as_fd(), name)?,
            Some(id) => enter_behind(security, dir.as_fd(), name, *id)?,
        };
    }
    Ok(dir)
}

/// Opens the directory `id` where the symbolic link `name` in `dir` leads to it still.
fn enter_behind(
    security: &Security,
    dir: BorrowedFd<'_>,
    name: &CStr,
    id: FileId,
) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open_through_symlink(security, dir, name, flags, Some(id)).map_err(|error| match error {
        NotFollowed::Untrusted => Errno::STALE,
        NotFollowed::Errno(errno) => errno,
    })
}

/// The directory that was reached last: those who have names elsewhere have neighbours there, too.
#[derive(Default)]
pub(crate) struct LastReopened(Option<(DirPath, OwnedFd)>);

impl LastReopened {
    /// The directory at `dir_path`.
    ///
    /// # Errors
    /// What [`reach`] says.
    pub(crate) fn reach(
        &mut self,
        security: &Security,
        dir_path: &DirPath,
    ) -> io::Result<BorrowedFd<'_>> {
        if self.0.as_ref().is_none_or(|(last, _)| !last.is(dir_path)) {
            self.0 = None;
            self.0 = Some((dir_path.clone(), reach(security, dir_path)?));
        }
        let (_, dir) = self.0.as_ref().expect("it was just reopened");
        Ok(dir.as_fd())
    }
}
