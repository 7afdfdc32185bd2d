//! Where the time goes, as text.

use super::sheet::{Sheet, written_to};
use crate::analysis::time_split::{Parts, Split};
use crate::words;

impl Split {
    /// The largest size only: of short runs the kernel cannot tell user from system time.
    pub(crate) fn sheet(&self) -> Sheet {
        let largest = self.parts.iter().map(|parts| parts.file_bytes).max().unwrap_or(0);
        let of_largest = || self.parts.iter().filter(|parts| parts.file_bytes == largest);
        // What stands behind the part's name: the size, and of several files how many.
        let files = of_largest().find_map(|parts| parts.cell.split('/').nth(1)).unwrap_or("");
        let title = format!("Where the time goes, at {files}");
        let for_a_cpu = |parts: &&Parts| match parts.processor_wait_ns {
            Some(ns) => words::nanoseconds(ns),
            None => "-".to_owned(),
        };
        let mut sheet = Sheet::of(
            title,
            2,
            of_largest(),
            &[
                ("variant", &|parts| parts.variant.clone()),
                ("state", &|parts| written_to(parts.destination, parts.state, parts.at_once)),
                ("elapsed", &|parts| words::nanoseconds(parts.elapsed_ns)),
                ("user", &|parts| words::nanoseconds(parts.user_ns)),
                ("system", &|parts| words::nanoseconds(parts.system_ns)),
                ("waiting", &|parts| words::nanoseconds(parts.waiting_ns)),
                ("for a cpu", &for_a_cpu),
                ("faults", &|parts| words::grouped(&format!("{:.0}", parts.minor_faults))),
                ("major", &|parts| words::grouped(&format!("{:.0}", parts.major_faults))),
            ],
        );
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
