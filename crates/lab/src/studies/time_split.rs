//! Splits the time into user mode, kernel and waiting, and counts page faults.

use serde::{Deserialize, Serialize};

use super::sheet::{Sheet, written_to};
use crate::analysis::view::{CellView, View, median_of, user_and_system_ns, workers_of};
use crate::definition::cell::{Cell, Destination};
use crate::page_cache::state::State;
use crate::sample::measurement::Measurement;
use crate::sample::record::Sample;
use crate::words;

/// The parts of the time of one variant in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// The page cache state.
    pub state: State,
    /// What was written to.
    pub destination: Destination,
    /// Runs at once.
    pub at_once: u32,
    /// By the clock.
    pub elapsed_ns: f64,
    /// Of the processor in user mode, all threads: a share of the median of both together.
    pub user_ns: f64,
    /// Of the processor in the kernel, all threads.
    pub system_ns: f64,
    /// Time by the clock of all runs at once and of all workers, less the processor's: waiting for
    /// a device, for each other, or for a processor.
    pub waiting_ns: f64,
    /// Of one thread, what it waited for a processor that other programs had; none where that is
    /// not known.
    pub processor_wait_ns: Option<f64>,
    /// Page faults served from memory.
    pub minor_faults: f64,
    /// Page faults that waited for a device.
    pub major_faults: f64,
    /// Times that a thread waited.
    pub voluntary_switches: f64,
    /// Bytes that devices had to read; none where that is not counted.
    pub device_read_bytes: Option<f64>,
    /// Calls that moved bytes; none where that is not counted.
    pub calls: Option<f64>,
}

pub(crate) fn of(view: &View<'_>) -> Option<Vec<Parts>> {
    let of_cell = |cell: &CellView<'_>| -> Vec<Parts> {
        let variants = view.part.variants.iter().zip(&cell.counted);
        variants.filter_map(|(variant, counted)| Parts::of(&cell.cell, variant, counted)).collect()
    };
    let parts: Vec<Parts> = view.cells.iter().flat_map(of_cell).collect();
    (!parts.is_empty()).then_some(parts)
}

impl Parts {
    /// The parts of the time of a variant in a cell, of which these runs count; `None` without any.
    pub fn of(cell: &Cell, variant: &str, counted: &[&Sample]) -> Option<Parts> {
        let of = |field: fn(&Measurement) -> u64| {
            median_of(counted, |record| Some(field(&record.measured) as f64))
        };
        let known = |field: fn(&Measurement) -> Option<u64>| {
            median_of(counted, |record| Some(field(&record.measured)? as f64))
        };
        let (user_ns, system_ns) = user_and_system_ns(counted)?;
        let workers = f64::from(workers_of(variant).1);
        let waiting = |record: &Sample| {
            let measured = &record.measured;
            let each_ns: f64 = measured.each_ns.iter().map(|&ns| ns as f64).sum();
            let clock_ns = if each_ns > 0.0 { each_ns } else { measured.elapsed_ns as f64 };
            let processor_ns = measured.user_ns as f64 + measured.system_ns as f64;
            Some((clock_ns * workers - processor_ns).max(0.0))
        };
        Some(Parts {
            cell: cell.id(),
            variant: variant.to_owned(),
            file_bytes: cell.file_bytes,
            state: cell.state,
            destination: cell.destination,
            at_once: cell.at_once,
            elapsed_ns: of(|it| it.elapsed_ns)?,
            user_ns,
            system_ns,
            waiting_ns: median_of(counted, waiting)?,
            processor_wait_ns: known(|it| it.processor_wait_ns),
            minor_faults: of(|it| it.minor_faults)?,
            major_faults: of(|it| it.major_faults)?,
            voluntary_switches: of(|it| it.voluntary_switches)?,
            device_read_bytes: known(|it| it.device_read_bytes),
            calls: known(|it| it.calls),
        })
    }
}

/// The largest size only: of short runs the kernel cannot tell user from system time.
pub(crate) fn sheet(parts: &[Parts]) -> Sheet {
    let largest = parts.iter().map(|parts| parts.file_bytes).max().unwrap_or(0);
    let of_largest = || parts.iter().filter(|parts| parts.file_bytes == largest);
    // What stands behind the part's name: the size, and of several files how many.
    let files = of_largest().find_map(|parts| parts.cell.split('/').nth(1)).unwrap_or("");
    let title = format!("Where the time goes, at {files}");
    let none = || "-".to_owned();
    let mut sheet = Sheet::of(
        &title,
        2,
        of_largest(),
        &[
            ("variant", &|parts| parts.variant.clone()),
            ("state", &|parts| written_to(parts.destination, parts.state, parts.at_once)),
            ("elapsed", &|parts| words::nanoseconds(parts.elapsed_ns)),
            ("user", &|parts| words::nanoseconds(parts.user_ns)),
            ("system", &|parts| words::nanoseconds(parts.system_ns)),
            ("waiting", &|parts| words::nanoseconds(parts.waiting_ns)),
            ("for a cpu", &|it| it.processor_wait_ns.map_or_else(none, words::nanoseconds)),
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
    sheet.drop_if(!waits_known, "for a cpu");
    sheet.drop_if(of_largest().all(|parts| parts.major_faults == 0.0), "major");
    sheet.drop_if_uniform("state");
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;
    use crate::definition::cell::Shape;

    #[test]
    fn what_no_processor_worked_on_is_waiting() {
        let mut made = Synthetic::new("copy", &["sendfile", "read_write:64K@2"], &["4K", "1M"]);
        made.measure_with(3, 3, |_, variant, record| {
            record.measured.system_ns = 400_000;
            record.measured.user_ns = 100_000;
            record.measured.major_faults = u64::from(variant == "sendfile") * 7;
            2_000_000.0
        });
        let parts = of(&made.view()).expect("parts");
        assert_eq!(parts.len(), 4);
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.05;
        assert!(near(parts[0].waiting_ns, 1_500_000.0), "{:?}", parts[0]);
        // Two workers could have used twice the time.
        assert!(near(parts[1].waiting_ns, 3_500_000.0), "{:?}", parts[1]);
        let sheet = sheet(&parts);
        let majors: Vec<_> = sheet.table.rows.iter().filter_map(|row| row.last()).collect();
        assert_eq!(majors, ["7", "0"]);
        assert!(sheet.table.title.ends_with("at 1M"));
    }

    #[test]
    fn what_a_kernel_samples_at_ticks_is_divided_over_all_runs() {
        let mut made = Synthetic::new("copy", &["sendfile"], &["1M"]);
        made.part().shape = Shape::Tree;
        made.part().files = 20;
        // One run in eight is met in the kernel by the only tick in it, the others in user mode.
        made.measure_with(2, 16, |_, _, record| {
            let in_kernel = record.round % 8 == 0;
            let (user, system) = if in_kernel { (0, 4_000_000) } else { (4_000_000, 0) };
            (record.measured.user_ns, record.measured.system_ns) = (user, system);
            4_000_000.0
        });
        let parts = of(&made.view()).expect("parts");
        assert_eq!((parts[0].user_ns, parts[0].system_ns), (3_500_000.0, 500_000.0));
        let sheet = sheet(&parts);
        assert_eq!(sheet.table.title, "Where the time goes, at 1Mx20-tree");
        let heads = ["variant", "elapsed", "user", "system", "waiting", "faults"];
        assert_eq!(sheet.table.columns, heads, "nothing is known of waits for a processor");
    }
}
