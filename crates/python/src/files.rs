//! The copy of one file.

use std::path::Path;

use haulage::Copy;
use haulage::events::FileType;
use haulage::options::Request;
use pyo3::prelude::*;
use rustix::fs::{Stat, stat};

use crate::callbacks::Callbacks;
use crate::failure::{Failure, Kind};
use crate::keywords::{Attributes, Keywords, request};
use crate::observer::Observer;
use crate::run::{Total, run_beside};

/// Files up to this length are copied on the thread of the caller. Ctrl-C waits for their end, which
/// takes less than a tenth of a second where a medium writes 100 MB/s.
const SHORT_BYTES: u64 = 8 << 20;

/// Copies the file `src` to the name `dst`, through symbolic links. Returns the first failure.
#[pyfunction]
pub(crate) fn copy_file(
    py: Python<'_>,
    src: &[u8],
    dst: &[u8],
    attributes: &str,
    keywords: Option<Keywords>,
) -> PyResult<Option<Failure>> {
    let keywords = keywords.unwrap_or_default();
    let options = keywords.options(Attributes::parse(attributes)?)?;
    let request = request(src, dst)?;
    let callbacks =
        Callbacks { progress: keywords.progress, receipt: keywords.receipt, ignore: None };
    let observer = Observer::new(&callbacks, None);
    let looked = py.detach(|| {
        let looked = look(&request)?;
        if matches!(looked, Look::Short) && callbacks.are_none() {
            let _ = Copy::of(request.clone(), options.clone()).run_observed(&observer);
            return Ok(None);
        }
        Ok(Some(looked))
    });
    let total = match looked {
        Err(failure) => return Ok(Some(failure)),
        Ok(None) => return Ok(observer.into_failures().into_iter().next()),
        Ok(Some(Look::Long(bytes))) => Total::File(bytes),
        Ok(Some(Look::Short | Look::Stream)) => Total::Unknown,
    };
    run_beside(py, (&request, &options), &observer, &callbacks, total)?;
    Ok(observer.into_failures().into_iter().next())
}

/// What a file is, by the first checks of `shutil.copyfile`.
enum Look {
    /// Copied in a moment, or refused.
    Short,
    /// A regular file of so many bytes.
    Long(u64),
    /// A file that may have no end, such as a device.
    Stream,
}

/// Looks at both files.
///
/// # Errors
/// They are the same file, or one of them is a fifo. What cannot be looked at is left to the copy.
fn look(request: &Request) -> Result<Look, Failure> {
    let src = Path::new(&request.sources[0]);
    let haulage::options::Destination::Exact(dst) = &request.destination else {
        return Ok(Look::Short);
    };
    let dst = Path::new(dst);
    let Ok(src_stat) = stat(src) else { return Ok(Look::Short) };
    let dst_stat = stat(dst).ok();
    if dst_stat.is_some_and(|dst| (dst.st_dev, dst.st_ino) == (src_stat.st_dev, src_stat.st_ino)) {
        return Err(Failure::special(Kind::SameFile, dst));
    }
    if kind(&src_stat) == FileType::Fifo {
        return Err(Failure::special(Kind::Fifo, src));
    }
    if dst_stat.is_some_and(|stat| kind(&stat) == FileType::Fifo) {
        return Err(Failure::special(Kind::Fifo, dst));
    }
    let bytes = u64::try_from(src_stat.st_size).unwrap_or(0);
    let streams = |stat: &Stat| kind(stat) == FileType::CharacterDevice;
    Ok(match kind(&src_stat) {
        _ if dst_stat.as_ref().is_some_and(streams) => Look::Stream,
        FileType::RegularFile if bytes > SHORT_BYTES => Look::Long(bytes),
        FileType::RegularFile | FileType::Directory | FileType::Socket => Look::Short,
        _ => Look::Stream,
    })
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
