//! Windows of a file that are mapped one after another, as `create` and `receive` fill them.

use std::os::fd::BorrowedFd;

use sys::Window;

use super::parameters;

/// How a file is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) window_bytes: usize,
    pub(super) populate: bool,
}

/// The most bytes of a window.
const WINDOW_BYTES_MAX: u64 = 1 << 30;

impl Windows {
    /// The windows of a variant's text behind `mmap:`; otherwise why it names none.
    pub(super) fn parse(text: &str) -> Result<Windows, String> {
        let (size, option) = match text.split_once(',') {
            Some((size, option)) => (size, Some(option)),
            None => (text, None),
        };
        match option {
            None | Some("populate") => {
                let window_bytes = parameters::window_bytes_of(size, WINDOW_BYTES_MAX)?;
                Ok(Windows { window_bytes, populate: option.is_some() })
            }
            Some(option) => Err(format!("'{option}' is no option of mmap")),
        }
    }

    /// Gives the file its length and has each window of it filled, whose offset and length follow.
    /// Returns the sum of what that returns.
    pub(super) fn fill(
        self,
        fd: BorrowedFd<'_>,
        bytes: u64,
        mut fill: impl FnMut(&mut Window, u64, usize) -> rustix::io::Result<u64>,
    ) -> rustix::io::Result<u64> {
        rustix::fs::ftruncate(fd, bytes)?;
        let (mut done, mut calls) = (0, 0);
        while done < bytes {
            let left = usize::try_from(bytes - done).unwrap_or(usize::MAX);
            let len = self.window_bytes.min(left);
            calls += fill(&mut Window::new(fd, done, len, self.populate)?, done, len)?;
            done += len as u64;
        }
        Ok(calls)
    }
}
