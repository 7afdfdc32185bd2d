//! Artefacts: patterns in samples which suggest that they do not measure what they should. Each
//! detector returns sentences for the verdict.
//!
//! Each artefact made some published figure wrong: page faults in the time of a copy in memory, a
//! source that was all hole, extents shared instead of bytes moved, a machine that slowed down from
//! the first method to the last, two kinds of runs under one median.

use naming::{named, of_variants};

pub(crate) mod instability;
mod naming;
pub(crate) mod page_cache;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use engines::Variant;

use super::view::{CellView, View, median_of, workers_of};
use crate::definition::without_label;
use crate::page_cache::state::State;
use crate::sample::record::Sample;
use crate::sample::run_samples::MachineFacts;

/// Page faults of one worker in a timed part that has none: of stacks, of threads that start.
const FAULTS_STRAY: f64 = 16.0;

/// The reading of the clock may be this share of a time.
const CLOCK_SHARE: f64 = 0.02;

/// The warnings about the samples in `views`, which are all parts of an experiment.
pub fn of(views: &[View<'_>], machine: MachineFacts) -> Vec<String> {
    let cells: Vec<&CellView<'_>> = views.iter().flat_map(|view| &view.cells).collect();
    let mut warnings = Vec::new();
    if !machine.optimized_build {
        warnings
            .push("this program was built without optimisation and is therefore slow".to_owned());
    }
    let cold = views.iter().any(|view| view.part.states.contains(&State::Cold));
    if cold && machine.virtual_machine {
        warnings.push(
            "this is a virtual machine: cold means that nothing was in its own page cache; its \
             host's cannot be seen"
                .to_owned(),
        );
    }
    if machine.reports_free_pages {
        warnings.push(
            "this virtual machine gives free memory back to its host: runs that need much of it are \
             slow now and then, until the host has supplied it again"
                .to_owned(),
        );
    }
    warnings.extend(faults(&cells));
    warnings.extend(clock(&cells, machine.clock_ns));
    warnings.extend(shared(&cells));
    warnings.extend(last_resort(&cells));
    warnings.extend(page_cache::not_counted(&cells));
    warnings.extend(page_cache::unverified(&cells));
    warnings.extend(page_cache::little_read(&cells));
    warnings.extend(page_cache::memory_short(&cells));
    warnings.extend(instability::of(&cells));
    warnings
}

/// Whether page faults belong to what a variant does.
fn faults_are_expected(workload: &str, variant: &str) -> bool {
    workload == "command"
        || ["mmap", "untouched", "stdio"].iter().any(|word| variant.contains(word))
}

fn faults(cells: &[&CellView<'_>]) -> Vec<String> {
    let mut found: BTreeMap<&str, Vec<(f64, String)>> = BTreeMap::new();
    for cell in cells {
        for (index, variant) in cell.part.variants.iter().enumerate() {
            let of = |record: &Sample| Some(record.measured.minor_faults as f64);
            let Some(faults) = median_of(&cell.counted[index], of) else { continue };
            let stray = FAULTS_STRAY * f64::from(workers_of(variant).1 * cell.cell.at_once);
            if faults > stray && !faults_are_expected(&cell.cell.workload, variant) {
                found.entry(variant).or_default().push((faults, cell.cell.id()));
            }
        }
    }
    found
        .into_iter()
        .map(|(variant, mut cells)| {
            cells.sort_by(|a, b| b.0.total_cmp(&a.0));
            let (most, cell) = &cells[0];
            let more = match cells.len() {
                1 => String::new(),
                all => format!(" and some in {} more", all - 1),
            };
            format!(
                "{variant} had page faults in the timed part where none are expected, {most:.0} a run \
                 at {cell}{more}: their cost is included"
            )
        })
        .collect()
}

/// Times so short that reading the clock is a noticeable share of them.
fn clock(cells: &[&CellView<'_>], clock_ns: f64) -> Option<String> {
    let short: Vec<String> = cells
        .iter()
        .filter(|cell| {
            (0..cell.part.variants.len()).any(|index| {
                let least = cell.median_ns(index, cell.part.measure);
                least.is_some_and(|least| clock_ns > CLOCK_SHARE * least)
            })
        })
        .map(|cell| cell.cell.id())
        .collect();
    (!short.is_empty()).then(|| {
        format!(
            "in {} some times are so short that reading the clock, {clock_ns:.0} ns, is more than \
             {:.0} % of them",
            named(&short),
            CLOCK_SHARE * 100.0
        )
    })
}

fn shared(cells: &[&CellView<'_>]) -> Vec<String> {
    let by_name = |variant: &str| {
        let parsed = without_label(variant).parse::<Variant>();
        parsed.is_ok_and(|variant| variant.engine.name == "reflink")
    };
    of_variants(cells, |_, record| record.measured.shares_extents && !by_name(&record.variant))
        .into_iter()
        .map(|(variant, cells)| {
            format!(
                "{variant} moved no bytes in {}: the copy shares the source's extents, and its times \
                 are no copying",
                named(&cells)
            )
        })
        .collect()
}

fn last_resort(cells: &[&CellView<'_>]) -> Vec<String> {
    of_variants(cells, |_, record| record.measured.last_resort_bytes > 0)
        .into_iter()
        .map(|(variant, cells)| {
            format!(
                "{variant} refused some bytes in {}; read_write copied those inside its time",
                named(&cells)
            )
        })
        .collect()
}
