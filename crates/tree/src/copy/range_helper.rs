//! Ranges of a large file that a partner owns, copied and verified here.

use std::cell::Cell;

use super::context::CopyContext;
use crate::data::files::Files;
use crate::data::ranges::copy_range;
use crate::data::verify::verify_range;
use crate::data::worker::DataWorker;
use crate::report::Diagnostic;
use crate::shared::messages::{self, Claim, Done, Grant, RangeOffer, Task};
use crate::shared::shared_file::NOTHING;

/// Claims ranges of the file until its owner has none. `more` says whether it has some for partners.
pub(crate) fn help(
    cx: &CopyContext<'_>,
    worker: &mut DataWorker,
    offer: &RangeOffer,
    files: &Files<'_>,
    more: &Cell<bool>,
) {
    let (mut done, mut failure) = (None, None);
    loop {
        let claim = messages::encode(&Claim { file: offer.file, done });
        let granted = messages::decode(&cx.partners().others.claim(offer.owner, claim));
        let task = match granted.unwrap_or(NOTHING) {
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
