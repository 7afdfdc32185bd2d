//! Digests and prover results of a source, stored beside it. Every session is a process of its own;
//! the first one computes them.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::page_cache::state::State;
use crate::source::{Load, Source};
use crate::trial::digest::Digests;

/// The digests of the whole source. If the source is changed later, copies do not match.
///
/// # Errors
/// When the source cannot be read.
pub(crate) fn digests(source: &Source, load: &Load) -> Result<Digests, Error> {
    known(source.path(), "digests", || Digests::of(source, load))
}

/// What can be proved of the page cache of the source. The prover tries it once, since trying drops
/// the source from the cache. Each run is proved nevertheless.
///
/// # Errors
/// When the source cannot be read.
pub(crate) fn prover(source: &Source, state: State) -> Result<Prover, Error> {
    let what = format!("prover-{}", state.name().replace(' ', "-"));
    known(source.path(), &what, || Prover::try_on(source, state))
}

fn known<T: Serialize + DeserializeOwned>(
    src: &Path,
    what: &str,
    find_out: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let path = src.with_added_extension(what);
    let kept = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let found = find_out()?;
    let text = serde_json::to_vec(&found).expect("plain data");
    std::fs::write(&path, text).map_err(Error::path("cannot write", &path))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_out_is_found_again() {
        let home = tempfile::tempdir().expect("created");
        let path = home.path().join("src");
        std::fs::write(&path, vec![7; 3 << 20]).expect("written");
        let source = Source::open(&path).expect("opened");
        let load = source.whole();
        let text = |digests: &Digests| serde_json::to_string(digests).expect("plain data");
        let first = text(&digests(&source, &load).expect("digested"));
        let tried = prover(&source, State::Warm).expect("tried");
        // The same length, so that only the bytes tell.
        std::fs::write(&path, vec![8; 3 << 20]).expect("written");
        let changed = Source::open(&path).expect("opened");
        assert_eq!(text(&digests(&changed, &load).expect("known")), first);
        let again = prover(&changed, State::Warm).expect("known");
        assert_eq!(again.counts_pages, tried.counts_pages);
    }
}
