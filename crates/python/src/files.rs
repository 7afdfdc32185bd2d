//! The copy of one file.

use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use haulage::Copy;
use haulage::events::FileType;
use haulage::options::{Existing, Follow, Request};
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

/// Copies the file `src` to the name `dst`, through symbolic links; if `src` is one, only if it `follows`.
/// Returns the first failure.
#[pyfunction]
pub(crate) fn copy_file(
    py: Python<'_>,
    src: &[u8],
    dst: &[u8],
    attributes: &str,
    follows: bool,
    keywords: Option<Keywords>,
) -> PyResult<Option<Failure>> {
    let keywords = keywords.unwrap_or_default();
    let mut options = keywords.options(Attributes::parse(attributes)?)?;
    let request = request(src, dst)?;
    let callbacks =
        Callbacks { progress: keywords.progress, receipt: keywords.receipt, ignore: None };
    let observer = Observer::new(&callbacks, None);
    let looked = py.detach(|| {
        let looked = look(&request, follows)?;
        if looked.target.is_some() {
            options.follow = Follow::Never;
            // As symlink(2). A copy that is continued may have made the link.
            options.existing = if options.resume { Existing::Replace } else { Existing::Fail };
        }
        let is_alone = looked.is_short && callbacks.are_none();
        if is_alone {
            let _ = Copy::of(request.clone(), options.clone()).run_observed(&observer);
        }
        Ok((is_alone, looked))
    });
    let (is_alone, Look { total, target, .. }) = match looked {
        Err(failure) => return Ok(Some(failure)),
        Ok(looked) => looked,
    };
    if !is_alone {
        run_beside(py, (&request, &options), &observer, &callbacks, total)?;
    }
    let failure = observer.into_failures().into_iter().next();
    Ok(failure.map(|failure| match failure.path.as_deref() == Some(dst) {
        true => Failure { target, ..failure },
        false => failure,
    }))
}

/// What a file is, by the first checks of `shutil.copyfile`.
struct Look {
    /// It is copied in a moment, or refused. Others may have no end, such as devices.
    is_short: bool,
    total: Total,
    /// The target of a symbolic link that is copied itself.
    target: Option<Vec<u8>>,
}

/// Looks at both files.
///
/// # Errors
/// They are the same file, or one of them is a fifo. What cannot be looked at is left to the copy.
fn look(request: &Request, follows: bool) -> Result<Look, Failure> {
    let src = Path::new(&request.sources[0]);
    let refused = Look { is_short: true, total: Total::Unknown, target: None };
    let haulage::options::Destination::Exact(dst) = &request.destination else {
        return Ok(refused);
    };
    let dst = Path::new(dst);
    let (src_stat, dst_stat) = (stat(src).ok(), stat(dst).ok());
    let id = |stat: Stat| (stat.st_dev, stat.st_ino);
    if dst_stat.is_some() && dst_stat.map(id) == src_stat.map(id) {
        return Err(Failure::special(Kind::SameFile, dst));
    }
    for (path, stat) in [(src, src_stat), (dst, dst_stat)] {
        if stat.is_some_and(|stat| kind(&stat) == FileType::Fifo) {
            return Err(Failure::special(Kind::Fifo, path));
        }
    }
    if !follows && let Ok(target) = std::fs::read_link(src) {
        let target = Some(target.into_os_string().into_vec());
        return Ok(Look { total: Total::File(0), target, ..refused });
    }
    let Some(src_stat) = src_stat else { return Ok(refused) };
    let bytes = u64::try_from(src_stat.st_size).unwrap_or(0);
    let is_regular = kind(&src_stat) == FileType::RegularFile;
    let streams = |stat: Stat| kind(&stat) == FileType::CharacterDevice;
    let is_short = match kind(&src_stat) {
        _ if dst_stat.is_some_and(streams) => false,
        FileType::RegularFile => bytes <= SHORT_BYTES,
        FileType::Directory | FileType::Socket => true,
        _ => false,
    };
    let total = if is_regular { Total::File(bytes) } else { Total::Unknown };
    Ok(Look { is_short, total, target: None })
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
