//! The receipt of an entry as a dict. Its keys are those of `haulage cp --receipt`.

use haulage::events::{Attempt, Chosen, Loss, Receipt};
use haulage::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) fn dict_of<'py>(py: Python<'py>, receipt: &Receipt) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("src", receipt.src.as_os_str())?;
    dict.set_item("dst", receipt.dst.as_os_str())?;
    dict.set_item("type", Kind::of(receipt.kind).word())?;
    dict.set_item("method", receipt.method.word())?;
    dict.set_item("data_bytes", receipt.data_bytes)?;
    dict.set_item("hole_bytes", receipt.hole_bytes)?;
    dict.set_item("chosen", receipt.chosen.as_ref().map(|of| chosen(py, of)).transpose()?)?;
    let attempts = receipt.attempts.iter().map(|of| attempt(py, of));
    dict.set_item("attempts", PyList::new(py, attempts.collect::<PyResult<Vec<_>>>()?)?)?;
    let kept: Vec<_> = receipt.kept.iter().map(|kept| kept.word()).collect();
    dict.set_item("kept", kept)?;
    let lost = receipt.lost.iter().map(|of| loss(py, of));
    dict.set_item("lost", PyList::new(py, lost.collect::<PyResult<Vec<_>>>()?)?)?;
    dict.set_item("changed", receipt.changed)?;
    let digest = receipt.verified.map(|verified| format!("{:032x}", verified.digest));
    dict.set_item("verified_xxh3_128", digest)?;
    dict.set_item("verified_past_cache", receipt.verified.is_some_and(|of| of.past_cache))?;
    let failures = receipt.failures.iter().map(|of| Error::from(of.clone()));
    let failures: Vec<_> = failures.map(|error| (error.errno(), error.to_string())).collect();
    dict.set_item("failures", failures)?;
    dict.set_item("elapsed_ns", receipt.elapsed_ns)?;
    Ok(dict)
}

fn chosen<'py>(py: Python<'py>, chosen: &Chosen) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("variant", chosen.variant.to_string())?;
    dict.set_item("by", chosen.by.word())?;
    Ok(dict)
}

fn attempt<'py>(py: Python<'py>, attempt: &Attempt) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("variant", attempt.variant.to_string())?;
    dict.set_item("asked_bytes", attempt.span.len)?;
    dict.set_item("bytes", attempt.moved.bytes)?;
    let stop = attempt.moved.stop;
    dict.set_item("stop", stop.word())?;
    dict.set_item("errno", stop.errno().map(|errno| errno.raw_os_error()))?;
    Ok(dict)
}

fn loss<'py>(py: Python<'py>, loss: &Loss) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("attribute", loss.attribute().word())?;
    let name = match loss {
        Loss::Xattr(name, _) => Some(String::from_utf8_lossy(name)),
        _ => None,
    };
    dict.set_item("name", name)?;
    dict.set_item("errno", loss.errno().raw_os_error())?;
    Ok(dict)
}
