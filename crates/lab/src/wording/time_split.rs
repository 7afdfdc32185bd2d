//! Where the time goes, as text.

use super::sheet::{Sheet, circumstances};
use crate::analysis::time_split::Split;
use crate::definition::cell::Destination;
use crate::words;

impl Split {
    /// The largest size only: of short runs the kernel cannot tell user from system time.
    pub(crate) fn sheet(&self) -> Sheet {
        let largest = self.parts.iter().map(|parts| parts.file_bytes).max().unwrap_or(0);
        let of_largest = || self.parts.iter().filter(|parts| parts.file_bytes == largest);
        // What stands behind the part's name: the size, and of several files how many.
        let files = of_largest().find_map(|parts| parts.cell.split('/').nth(1)).unwrap_or("");
        let title = format!("Where the time goes, at {files}");
        let mut sheet = Sheet::new(
            &title,
            &[
                "variant",
                "state",
                "elapsed",
                "user",
                "system",
                "waiting",
                "for a cpu",
                "faults",
                "major",
            ],
        )
        .keyed_by(2);
        for parts in of_largest() {
            let state = circumstances(parts.state, parts.at_once);
            sheet.row(vec![
                parts.variant.clone(),
                match parts.destination {
                    Destination::Fresh => state,
                    Destination::Overwritten => format!("{state}, overwritten"),
                },
                words::nanoseconds(parts.elapsed_ns),
                words::nanoseconds(parts.user_ns),
                words::nanoseconds(parts.system_ns),
                words::nanoseconds(parts.waiting_ns),
                parts.processor_wait_ns.map_or_else(|| "-".to_owned(), words::nanoseconds),
                words::grouped(&format!("{:.0}", parts.minor_faults)),
                words::grouped(&format!("{:.0}", parts.major_faults)),
            ]);
        }
        let waiting = "Waiting is the time of all workers and runs at once that no processor was at work on \
                       them";
        let waits_known = of_largest().any(|parts| parts.processor_wait_ns.is_some());
        sheet.say(match waits_known {
            true => format!(
                "{waiting}; for a cpu, the part of it in which other programs had it. These are medians, \
                 which do not add up exactly."
            ),
            false => format!("{waiting}. These are medians, which do not add up exactly."),
        });
        if !waits_known {
            sheet.drop("for a cpu");
        }
        if of_largest().all(|parts| parts.major_faults == 0.0) {
            sheet.drop("major");
        }
        sheet.drop_if_uniform("state");
        sheet
    }
}
