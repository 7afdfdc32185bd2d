//! A variant that is compared with others, and why it cannot copy.

use rustix::io::Errno;

use super::selector::Selector;
use crate::{Variant, refuses_for_good};

pub(super) struct Candidate {
    pub(super) variant: Variant,
    /// Why it cannot copy here.
    pub(super) refused: Option<Errno>,
    /// It has copied a part of this file.
    pub(super) has_moved: bool,
}

impl Candidate {
    pub(super) fn new(variant: Variant) -> Candidate {
        Candidate { variant, refused: None, has_moved: false }
    }
}

/// Starts the next file. A candidate that was refused for a reason that holds for the last file only, such as
/// ENOMEM, is tried again.
pub(super) fn start_file(candidates: &mut [Candidate], selector: &mut Selector) {
    for (index, candidate) in candidates.iter_mut().enumerate() {
        candidate.has_moved = false;
        if candidate.refused.is_some_and(|errno| !refuses_for_good(errno)) {
            candidate.refused = None;
            selector.admit(index);
        }
    }
}

/// All candidates, each with the rate of its last pieces, in bytes a second; `None` for one that was not
/// tried or was refused.
pub(super) fn rates(
    candidates: &[Candidate],
    selector: &Selector,
) -> impl Iterator<Item = (Variant, Option<u64>)> {
    candidates.iter().enumerate().map(|(index, candidate)| {
        let rate = selector.rate(index).filter(|_| candidate.refused.is_none());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive; saturates
        (candidate.variant.clone(), rate.map(|rate| rate as u64))
    })
}
