//! Opens a directory of the destination again, from an ancestor that is still open.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{self, Errno};

use super::context::Security;
use super::symlink::{NotFollowed, open_through_symlink};
use crate::fs::{Anchor, DirPath, SEARCH, enter_for_search, open_for_search};

/// Opens the directory at `dir_path` again, from its anchor down. A symbolic link is followed only
/// where one was followed before, and only to the same directory.
///
/// # Errors
/// ENOENT when the path has no anchor, ESTALE when a link is not trusted any more or has another
/// target, and the errors of openat(2).
fn reopen(security: &Security, dir_path: &DirPath) -> io::Result<OwnedFd> {
    let mut steps = Vec::new();
    let mut at = dir_path;
    let held = loop {
        match (at.parent(), at.anchor()) {
            (Some(parent), _) => {
                let name = CString::new(at.name()).map_err(|_| Errno::INVAL)?;
                steps.push((name, None));
                at = parent;
            }
            (None, Some(Anchor::In(parent, name))) => {
                steps.push((name.clone(), None));
                at = parent;
            }
            (None, Some(Anchor::ThroughLink(parent, name, id))) => {
                steps.push((name.clone(), Some(*id)));
                at = parent;
            }
            (None, Some(Anchor::Held(held))) => break held,
            (None, None) => return Err(Errno::NOENT),
        }
    };
    let mut dir = open_for_search(held.as_fd(), c".")?;
    for (name, target) in steps.iter().rev() {
        dir = match target {
            None => enter_for_search(dir.as_fd(), name)?,
            Some(_) => open_through_symlink(security, dir.as_fd(), name, SEARCH, *target).map_err(
                |error| match error {
                    NotFollowed::Untrusted => Errno::STALE,
                    NotFollowed::Errno(errno) => errno,
                },
            )?,
        };
    }
    Ok(dir)
}

/// The directory that was reopened last: hard links to files in it often follow each other.
#[derive(Default)]
pub(crate) struct LastReopened(Option<(DirPath, OwnedFd)>);

impl LastReopened {
    /// The directory at `dir_path`, opened by [`reopen`] unless it is the last one.
    pub(crate) fn open(
        &mut self,
        security: &Security,
        dir_path: &DirPath,
    ) -> io::Result<BorrowedFd<'_>> {
        if self.0.as_ref().is_none_or(|(last, _)| !last.is(dir_path)) {
            self.0 = None;
            self.0 = Some((dir_path.clone(), reopen(security, dir_path)?));
        }
        let (_, dir) = self.0.as_ref().expect("it was just reopened");
        Ok(dir.as_fd())
    }
}
