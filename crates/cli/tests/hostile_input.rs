//! The committed inputs of the fuzz targets, each within the limits of time and memory.

use std::path::{Path, PathBuf};

use fuzz_targets::{limits, scratch, targets};

/// One test: the limits are those of the whole process.
#[test]
fn every_committed_input_is_borne() {
    let dir = tempfile::tempdir().expect("created");
    scratch::set(dir.path(), Some(Path::new(env!("CARGO_BIN_EXE_haulage"))));
    for target in targets() {
        assert!(target.dictionary().is_file(), "{} has no dictionary", target.name);
        let inputs = files(&target.corpus());
        assert!(!inputs.is_empty(), "{} has no input", target.name);
        for path in inputs {
            let input = std::fs::read(&path).expect("read");
            if let Some(fault) = limits::check(target, &input) {
                panic!("{}: {fault}\ncargo xtask fuzz {} --input {0}", path.display(), target.name);
            }
        }
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}
