//! Warnings about the page cache: states that were not reached or not verified, cold runs that read
//! too little, and too little memory.

use super::naming::{NAMED_MAX, named, of_variants};
use crate::analysis::view::CellView;
use crate::definition::is_floor;
use crate::page_cache::state::{Proof, State};
use crate::sample::record::Sample;
use crate::workload;

/// The share of an uncompressed source that a cold copy reads from the device at the least.
const READ_SHARE_MIN: f64 = 0.9;

/// The share of runs in which the kernel looked for memory that is worth a note.
const SCANNED_SHARE: f64 = 0.05;

pub(crate) fn not_counted(cells: &[&CellView<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for cell in cells {
        let missed: Vec<&&Sample> =
            cell.all.iter().filter(|record| !record.measured.counted).collect();
        let Some(last) = missed.last() else { continue };
        found.push(format!(
            "{} of {} runs at {} do not count, since their page cache state was not as asked for (the \
             last: {})",
            missed.len(),
            cell.all.len(),
            cell.cell.id(),
            last.measured.state_note
        ));
    }
    let more = found.len().saturating_sub(NAMED_MAX);
    found.truncate(NAMED_MAX);
    if more > 0 {
        found.push(format!("in {more} more cells some runs do not count for the same reason"));
    }
    found
}

pub(crate) fn unverified(cells: &[&CellView<'_>]) -> Option<String> {
    let is_unverified = |cell: &CellView<'_>, sample: &Sample| {
        sample.measured.counted
            && sample.measured.state_proved == Proof::Unverified
            && cell.cell.state != State::AsItComes
            && sample.measured.src_resident_bytes_before.is_none()
            && reads_a_file(cell, sample)
    };
    let mut of = Vec::new();
    let mut note = "";
    for cell in cells {
        if let Some(record) = cell.all.iter().find(|sample| is_unverified(cell, sample)) {
            of.push(cell.cell.id());
            note = &record.measured.state_note;
        }
    }
    (!of.is_empty()).then(|| {
        format!("nothing here can prove the state of the page cache in {}: {note}", named(&of))
    })
}

fn reads_a_file(cell: &CellView<'_>, sample: &Sample) -> bool {
    let workload = workload::by_name(&cell.cell.workload);
    workload.is_some_and(|workload| workload.has_state) && !is_floor(&sample.variant)
}

pub(crate) fn little_read(cells: &[&CellView<'_>]) -> Option<String> {
    let little = of_variants(cells, |cell, record| {
        let bytes = cell.cell.run_bytes() as f64 * f64::from(cell.cell.at_once);
        let read = record.measured.device_read_bytes;
        cell.cell.state == State::Cold
            && record.measured.state_proved == Proof::Cold
            && !record.measured.shares_extents
            && reads_a_file(cell, record)
            && read.is_some_and(|read| (read as f64) < READ_SHARE_MIN * bytes)
    });
    let mut cells: Vec<String> = little.into_values().flatten().collect();
    cells.sort();
    cells.dedup();
    (!cells.is_empty()).then(|| {
        format!(
            "cold runs at {} had devices read less than the source is long: it is sparse, compressed \
             or cached below the file system",
            named(&cells)
        )
    })
}

pub(crate) fn memory_short(cells: &[&CellView<'_>]) -> Option<String> {
    let all: Vec<&&Sample> = cells.iter().flat_map(|cell| &cell.all).collect();
    let scanned = all.iter().filter(|r| r.measured.pages_scanned.is_some_and(|n| n > 0)).count();
    let swapped = all.iter().filter(|r| r.measured.pages_swapped.is_some_and(|n| n > 0)).count();
    (scanned as f64 > SCANNED_SHARE * all.len() as f64 || swapped > 0).then(|| {
        format!(
            "during {scanned} of {} runs the kernel looked for memory, and during {swapped} it swapped: \
             there is too little for what the machine does",
            all.len()
        )
    })
}
