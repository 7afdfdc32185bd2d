//! What a caller asks for, as options of a copy.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;

use haulage::options::{Destination, Follow, Keep, ModeRule, Options, Preserve, Reflink, Request};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The keyword arguments that functions of `shutil` do not have.
#[derive(Default, FromPyObject)]
pub(crate) struct Keywords {
    pub(crate) progress: Option<Py<PyAny>>,
    verify: bool,
    atomic: bool,
    durable: bool,
    pub(crate) resume: bool,
    jobs: Option<usize>,
    reflink: Option<String>,
    pub(crate) receipt: Option<Py<PyAny>>,
}

/// Which attributes a file takes over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attributes {
    /// None, as `shutil.copyfile`.
    Data,
    /// The mode, as `shutil.copy`.
    Mode,
    /// The mode, times and extended attributes, as `shutil.copy2`.
    All,
}

impl Attributes {
    pub(crate) fn parse(word: &str) -> PyResult<Attributes> {
        match word {
            "data" => Ok(Attributes::Data),
            "mode" => Ok(Attributes::Mode),
            "all" => Ok(Attributes::All),
            _ => Err(PyValueError::new_err(format!("no such attributes: {word}"))),
        }
    }
}

impl Keywords {
    /// The options of a copy that takes over these attributes.
    pub(crate) fn options(&self, attributes: Attributes) -> PyResult<Options> {
        let reflink = match self.reflink.as_deref() {
            None | Some("auto") => Reflink::Auto,
            Some("always") => Reflink::Always,
            Some("never") => Reflink::Never,
            Some(other) => {
                let words = format!("reflink is 'auto', 'always' or 'never', not '{other}'");
                return Err(PyValueError::new_err(words));
            }
        };
        let all = attributes == Attributes::All;
        Ok(Options {
            preserve: Preserve {
                mode: match attributes {
                    Attributes::Data => ModeRule::Fresh,
                    Attributes::Mode | Attributes::All => ModeRule::Preserve,
                },
                // A copy is complete if it has the times of its source.
                timestamps: all || self.resume,
                xattr: if all { Keep::IfPossible } else { Keep::No },
                // It is one of the attributes that `shutil` copies.
                context: if all { Keep::IfPossible } else { Keep::No },
                quiet: true,
                ..Preserve::default()
            },
            verify: self.verify,
            atomic: self.atomic || self.resume,
            durable: self.durable,
            resume: self.resume,
            jobs: self.jobs.and_then(NonZeroUsize::new),
            reflink,
            // As open(2) with O_CREAT, which `shutil` calls.
            through_dangling_symlink: true,
            follow: Follow::Always,
            ..Options::default()
        })
    }
}

/// A copy of `src` that gets the name `dst`.
pub(crate) fn request(src: &[u8], dst: &[u8]) -> PyResult<Request> {
    Ok(Request { sources: vec![name(src)?], destination: Destination::Exact(name(dst)?) })
}

/// A name as the kernel takes it.
pub(crate) fn name(bytes: &[u8]) -> PyResult<OsString> {
    if bytes.contains(&0) {
        // The words of `open`.
        return Err(PyValueError::new_err("embedded null byte"));
    }
    Ok(OsStr::from_bytes(bytes).to_owned())
}
