//! Ranges of a large file that another rank of a job owns, copied and verified here.

use std::cell::Cell;

use super::context::CopyContext;
use crate::data::files::Files;
use crate::data::ranges::copy_range;
use crate::data::verify::verify_range;
use crate::data::worker::DataWorker;
use crate::report::Diagnostic;
use crate::shared::RankContext;
use crate::shared::range_claim::{Claim, Done, Grant, Task};
use crate::shared::range_offer::RangeOffer;

/// Claims ranges of the file until its owner has none. `more` says whether it has some for other ranks.
pub(crate) fn help(
    cx: &CopyContext<'_>,
    worker: &mut DataWorker,
    (rank, offer): (&RankContext, &RangeOffer),
    files: &Files<'_>,
    more: &Cell<bool>,
) {
    let (mut done, mut failure) = (None, None);
    loop {
        let claim = Claim { file: offer.file, done }.encode();
        let task = match Grant::decode(&rank.ranks.claim(offer.owner, claim)) {
            Grant::Task { task, more: has_more } => {
                more.set(has_more);
                task
            }
            Grant::Nothing { tells } => {
                return failure.into_iter().filter(|_| tells).for_each(|diagnostic| {
                    cx.report.report(diagnostic);
                });
            }
        };
        let became = match task {
            Task::Copy(range) => {
                copy_range(cx.data, worker, files, (range, offer.chunk_bytes)).map(Done::Copied)
            }
            Task::Verify(range) => verify_range(cx.report, files, range)
                .map(|difference| difference.map_or(Done::Verified, Done::Differs)),
        };
        let became = became.unwrap_or_else(|diagnostic| match diagnostic {
            // The owner tells it of the whole file.
            Diagnostic::Interrupted { .. }
            | Diagnostic::InterruptedBefore { .. }
            | Diagnostic::InterruptedUnverified { .. } => Done::Interrupted,
            diagnostic => {
                failure = Some(diagnostic);
                Done::Failed
            }
        });
        done = Some((task, became));
    }
}
