//! The started runners of a visit. They take memory, so they are dropped when the search pauses.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::search::candidate::{Candidate, Role};
use crate::trial::Runner;

/// For each candidate that has run, by its index, one runner a copy slot.
pub(super) type Runners = BTreeMap<usize, Vec<Runner>>;

/// What GNU cp tries with each file: to share extents, then to have the kernel copy, and where that
/// is refused, to read and write.
const GNU_CP_TRIES: [&str; 3] = ["reflink", "copy_file_range", "read_write:128K"];

/// The runners of `candidate`, which is started if it has none.
///
/// # Errors
/// Why it cannot be started, in words.
pub(super) fn started<'r>(
    runners: &'r mut Runners,
    candidate: &Candidate,
    index: usize,
    slots: usize,
) -> Result<&'r mut [Runner], String> {
    match runners.entry(index) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(none) => {
            let all = (0..slots).map(|_| start(candidate)).collect::<Result<_, _>>()?;
            Ok(none.insert(all))
        }
    }
}

fn start(candidate: &Candidate) -> Result<Runner, String> {
    if candidate.role != Role::OtherCopier {
        return Runner::start(&candidate.variant);
    }
    let tries = GNU_CP_TRIES.map(|text| text.parse().expect("the engine is in the table"));
    Ok(Runner::of_variants(&candidate.variant, &tries))
}
