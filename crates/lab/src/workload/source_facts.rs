//! Digests and prover results of a source, stored beside it. Every session is a process of its own;
//! the first one computes them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::page_cache::prover::Prover;
use crate::page_cache::state::State;
use crate::scratch::files::remove;
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

/// Removes what is known of a source that is about to be made.
pub(crate) fn forget(src: &Path) -> Result<(), Error> {
    let states = [State::Warm, State::Cold, State::AsItComes];
    let provers = states.map(|state| format!("prover-{}", state.name().replace(' ', "-")));
    let all = provers.iter().map(String::as_str).chain(["digests"]);
    all.map(|what| beside(src, what)).try_for_each(|path| remove(&path))
}

fn known<T: Serialize + DeserializeOwned>(
    src: &Path,
    what: &str,
    find_out: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let path = beside(src, what);
    let kept = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let found = find_out()?;
    // Another process may do the same. Each writes its own file and renames it; the last one stays.
    let part = beside(&path, &std::process::id().to_string());
    let text = serde_json::to_vec(&found).expect("plain data");
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &path));
    written.map_err(Error::path("cannot write", &path))?;
    Ok(found)
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(what);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_out_is_found_again_until_it_is_forgotten() {
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
        forget(&path).expect("forgotten");
        assert_ne!(text(&digests(&changed, &load).expect("digested")), first);
        assert!(!beside(&path, "prover-warm").exists());
    }
}
