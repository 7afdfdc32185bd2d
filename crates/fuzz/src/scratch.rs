//! Where targets write, and the program that some of them start.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The environment variable that names the directory for all that targets write.
pub const SCRATCH: &str = "HAULAGE_FUZZ_SCRATCH";

/// The environment variable that names the program `haulage`.
pub const PROGRAM: &str = "HAULAGE_FUZZ_PROGRAM";

static PLACES: OnceLock<Places> = OnceLock::new();

struct Places {
    scratch: PathBuf,
    program: Option<PathBuf>,
}

/// Sets the directory and the program for the rest of the process. Without a call they are those of
/// [`SCRATCH`] and [`PROGRAM`].
pub fn set(scratch: &Path, program: Option<&Path>) {
    let places = Places { scratch: scratch.to_owned(), program: program.map(Path::to_owned) };
    assert!(PLACES.set(places).is_ok(), "places are set once, before any target runs");
}

fn places() -> &'static Places {
    PLACES.get_or_init(|| Places {
        scratch: std::env::var_os(SCRATCH).expect("HAULAGE_FUZZ_SCRATCH names a directory").into(),
        program: std::env::var_os(PROGRAM).map(PathBuf::from),
    })
}

/// The program `haulage`.
pub(crate) fn program() -> &'static Path {
    places().program.as_deref().expect("HAULAGE_FUZZ_PROGRAM names the program haulage")
}

/// The directory of a target's own. It is created, and is empty at the first call for `name`.
pub(crate) fn dir(name: &str) -> PathBuf {
    // Processes that run one target at the same time must not share a directory.
    let dir = places().scratch.join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a scratch directory");
    dir
}

/// An empty directory of a target's own: what an earlier input left is removed.
pub(crate) fn empty_dir(name: &str) -> PathBuf {
    let dir = dir(name);
    std::fs::remove_dir_all(&dir).expect("the scratch directory can be removed");
    std::fs::create_dir(&dir).expect("a scratch directory");
    dir
}
