//! The file that a run writes: created, or overwritten; synced if the cell is durable; then
//! compared and removed.

use std::os::fd::{AsFd, OwnedFd};

use super::interface::Setting;
use crate::clock::note_durable;
use crate::definition::cell::Destination;
use crate::error::Error;
use crate::page_cache::prover;
use crate::sample::measurement::Measurement;
use crate::scratch::WorkDir;
use crate::trial::digest::Digests;

/// Where the runs of a variant write.
#[derive(Debug)]
pub(crate) struct Output {
    dir: WorkDir,
    name: String,
    destination: Destination,
    durable: bool,
    pub(super) bytes: u64,
    /// The text of the variant that writes it, for messages.
    pub(super) variant: String,
    pub(super) expected: Digests,
}

/// The file of one run.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) fd: OwnedFd,
    resident_bytes_before: Option<u64>,
}

impl Output {
    /// A file in the cell's destination, as long as the cell's, in which `variant` has to write what is `expected`.
    pub(crate) fn new(
        setting: &Setting<'_>,
        variant: &str,
        expected: Digests,
    ) -> Result<Output, Error> {
        let cell = setting.cell;
        let name = format!("{}-{}-{}", cell.workload, std::process::id(), fastrand::u32(..));
        Ok(Output {
            dir: WorkDir::open(setting.dirs.dst.path())?,
            name,
            destination: cell.destination,
            durable: cell.durable,
            bytes: cell.file_bytes,
            variant: variant.to_owned(),
            expected,
        })
    }

    /// A new, empty file; or one of the same length with zeros, on the medium and in the page
    /// cache.
    pub(crate) fn open(&self) -> Result<Opened, Error> {
        if self.destination == Destination::Fresh {
            let fd = self.dir.create_file(&self.name)?;
            return Ok(Opened { fd, resident_bytes_before: Some(0) });
        }
        let fd = self.dir.open_or_create(&self.name)?;
        self.dir.fill_zeros(&self.name, &fd, self.bytes)?;
        let resident_bytes_before = prover::resident_bytes(fd.as_fd(), self.bytes).ok();
        Ok(Opened { fd, resident_bytes_before })
    }

    /// Waits until the file is on the medium, if the cell is durable. The clock continues.
    pub(crate) fn sync(&self, opened: &Opened, measured: &mut Measurement) -> Result<(), Error> {
        if self.durable {
            rustix::fs::fsync(&opened.fd)
                .map_err(Error::path("cannot sync", self.dir.path().join(&self.name)))?;
            note_durable(measured);
        }
        Ok(())
    }

    /// Counts the file's pages and compares it. A fresh file is removed, and its dirty pages with it; one
    /// to be overwritten stays.
    pub(crate) fn end(&self, opened: Opened, measured: &mut Measurement) -> Result<(), Error> {
        let path = self.dir.path().join(&self.name);
        let resident_bytes = prover::resident_bytes(opened.fd.as_fd(), self.bytes).ok();
        let difference = self
            .expected
            .difference(0, self.bytes, opened.fd.as_fd())
            .map_err(Error::path("cannot read", path))?;
        if let Some(how) = difference {
            let how = format!("the file that it made {how}");
            return Err(Error::Wrong { variant: self.variant.clone(), how });
        }
        // All of it has just been read. If no page is counted even now (overlayfs), the counts mean
        // nothing.
        let counted = resident_bytes != Some(0)
            || prover::resident_bytes(opened.fd.as_fd(), self.bytes).is_ok_and(|bytes| bytes > 0);
        measured.dst_resident_bytes_after = resident_bytes.filter(|_| counted);
        measured.dst_resident_bytes_before = opened.resident_bytes_before.filter(|_| counted);
        measured.verified = true;
        drop(opened);
        match self.destination {
            Destination::Fresh => self.dir.remove_file(&self.name),
            Destination::Overwritten => Ok(()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Fresh ones are gone; files that cannot be removed go with the scratch directory.
        let _ = self.dir.remove_file(&self.name);
    }
}
