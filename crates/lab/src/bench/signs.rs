//! Signs in the samples that something is not what it is taken for, as sentences for the verdict.
//!
//! Each of them made some published figure wrong: page faults inside a time that was to be that of a
//! copy in memory, a source that was all hole, extents shared in place of bytes moved, a machine that
//! became slower from the first method to the last, two kinds of runs under one median.

use std::collections::BTreeMap;

use engines::Variant;
use statrs::distribution::{Binomial, DiscreteCDF};

use super::analysis::view::{CellView, Surroundings, View, workers_of};
use super::definition::{is_floor, without_label};
use super::points::value_ns;
use super::record::Record;
use crate::state::{Proof, State};
use crate::stats::detect::{self, Finding};
use crate::stats::median;
use crate::words;

/// Page faults of one worker in a timed part that has none: of stacks, of threads that start.
const FAULTS_STRAY: f64 = 16.0;

/// The look at the clock may be this share of a time.
const CLOCK_SHARE: f64 = 0.02;

/// The share of an uncompressed source that a cold copy reads from the device at the least.
const READ_SHARE_MIN: f64 = 0.9;

/// The share of runs in which the kernel looked for memory that is worth a note.
const SCANNED_SHARE: f64 = 0.05;

/// Runs of a series that detectors look at: enough to see what matters, and few enough for hundreds of
/// series.
const SERIES_MAX: usize = 200;

/// How often a detector finds something where nothing is.
const BY_CHANCE: f64 = 0.01;

/// How often noise alone brings up so many findings that they are told.
const TOLD_BY_CHANCE: f64 = 0.02;

/// What detectors that draw follow from.
const SEED: u64 = 1;

/// Cells that a sentence names.
const NAMED_MAX: usize = 3;

/// What is to be said of the samples in `views`, which are all parts of an experiment.
#[must_use]
pub fn of(views: &[View<'_>], around: Surroundings) -> Vec<String> {
    let cells: Vec<(&View<'_>, &CellView<'_>)> =
        views.iter().flat_map(|view| view.cells.iter().map(move |cell| (view, cell))).collect();
    let mut signs = Vec::new();
    if !around.optimized_build {
        signs.push("this program was built without optimisation, and is slow for it".to_owned());
    }
    let cold = views.iter().any(|view| view.part.states.contains(&State::Cold));
    if cold && around.virtual_machine {
        signs.push(
            "this is a virtual machine: cold means that nothing was in its own page cache; its \
             host's cannot be seen"
                .to_owned(),
        );
    }
    signs.extend(faults(&cells));
    signs.extend(clock(&cells, around.clock_ns));
    signs.extend(shared(&cells));
    signs.extend(last_resort(&cells));
    signs.extend(not_counted(&cells));
    signs.extend(unverified(&cells));
    signs.extend(little_read(&cells));
    signs.extend(memory_short(&cells));
    signs.extend(unsteady(&cells));
    signs
}

/// Whether page faults belong to what a variant does.
fn faults_are_due(workload: &str, variant: &str) -> bool {
    workload == "command"
        || ["mmap", "untouched", "stdio"].iter().any(|word| variant.contains(word))
}

fn faults(cells: &[(&View<'_>, &CellView<'_>)]) -> Vec<String> {
    let mut found: BTreeMap<&str, Vec<(f64, String)>> = BTreeMap::new();
    for (view, cell) in cells {
        for (index, variant) in view.part.variants.iter().enumerate() {
            let of = |record: &Record| Some(record.measured.minor_faults as f64);
            let Some(faults) = cell.median_of(index, of) else { continue };
            let stray = FAULTS_STRAY * f64::from(workers_of(variant).1 * cell.cell.at_once);
            if faults > stray && !faults_are_due(&cell.cell.workload, variant) {
                found.entry(variant).or_default().push((faults, cell.cell.id()));
            }
        }
    }
    found
        .into_iter()
        .map(|(variant, mut cells)| {
            cells.sort_by(|a, b| b.0.total_cmp(&a.0));
            let (most, cell) = &cells[0];
            format!(
                "{variant} met page faults inside its time where none are due, {most:.0} a run at \
                 {cell}{}: what they cost is in its figures",
                and_more(cells.len())
            )
        })
        .collect()
}

fn and_more(cells: usize) -> String {
    match cells {
        0 | 1 => String::new(),
        more => format!(" and some in {} more", more - 1),
    }
}

/// Times so short that looking at the clock shows in them.
fn clock(cells: &[(&View<'_>, &CellView<'_>)], clock_ns: f64) -> Option<String> {
    let short: Vec<String> = cells
        .iter()
        .filter(|(view, cell)| {
            (0..view.part.variants.len()).any(|index| {
                let least = cell.median_ns(index, view.part.measure);
                least.is_some_and(|least| clock_ns > CLOCK_SHARE * least)
            })
        })
        .map(|(_, cell)| cell.cell.id())
        .collect();
    (!short.is_empty()).then(|| {
        format!(
            "in {} some times are so short that the look at the clock, {clock_ns:.0} ns, is more than \
             {:.0} % of them",
            named(&short),
            CLOCK_SHARE * 100.0
        )
    })
}

fn shared(cells: &[(&View<'_>, &CellView<'_>)]) -> Vec<String> {
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

fn last_resort(cells: &[(&View<'_>, &CellView<'_>)]) -> Vec<String> {
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

fn not_counted(cells: &[(&View<'_>, &CellView<'_>)]) -> Vec<String> {
    let mut found = Vec::new();
    for (_, cell) in cells {
        let missed: Vec<&&Record> =
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

fn unverified(cells: &[(&View<'_>, &CellView<'_>)]) -> Option<String> {
    let is_unverified = |record: &&&Record| {
        record.measured.counted
            && record.measured.state_proved == Proof::Unverified
            && record.state_wanted != State::AsItComes
            && record.measured.src_resident_bytes_before.is_none()
            && reads_a_file(record)
    };
    let mut of = Vec::new();
    let mut note = "";
    for (_, cell) in cells {
        if let Some(record) = cell.all.iter().find(is_unverified) {
            of.push(cell.cell.id());
            note = &record.measured.state_note;
        }
    }
    (!of.is_empty()).then(|| {
        format!("nothing here can prove the state of the page cache in {}: {note}", named(&of))
    })
}

fn reads_a_file(record: &Record) -> bool {
    let workload = super::workload::by_name(&record.workload);
    workload.is_some_and(|workload| workload.has_state) && !is_floor(&record.variant)
}

fn little_read(cells: &[(&View<'_>, &CellView<'_>)]) -> Option<String> {
    let little = of_variants(cells, |cell, record| {
        let bytes = cell.cell.run_bytes() * u64::from(cell.cell.at_once);
        let read = record.measured.device_read_bytes;
        record.state_wanted == State::Cold
            && record.measured.state_proved == Proof::Cold
            && !record.measured.shares_extents
            && reads_a_file(record)
            && read.is_some_and(|read| (read as f64) < READ_SHARE_MIN * bytes as f64)
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

fn memory_short(cells: &[(&View<'_>, &CellView<'_>)]) -> Option<String> {
    let all: Vec<&&Record> = cells.iter().flat_map(|(_, cell)| &cell.all).collect();
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

/// Drift, modes and outliers, counted over all variants and cells: with many of them some look so by
/// chance.
fn unsteady(cells: &[(&View<'_>, &CellView<'_>)]) -> Vec<String> {
    let (mut drift, mut modes, mut outliers) = (Found::new(), Found::new(), Found::new());
    for (view, cell) in cells {
        for (index, variant) in view.part.variants.iter().enumerate() {
            let times: Vec<f64> = cell.counted[index]
                .iter()
                .map(|record| value_ns(&record.measured, view.part.measure))
                .step_by(cell.counted[index].len().div_ceil(SERIES_MAX).max(1))
                .collect();
            let at = || format!("{variant} at {}", cell.cell.id());
            // How far from no drift, in either direction.
            let ways = |value: f64| value.ln().abs();
            drift.add(detect::drift(&times, SEED), ways, at);
            modes.add(detect::modes(&times, SEED), |_| spread(&times), at);
            outliers.add(detect::outliers(&times), |share| share, at);
        }
    }
    let drifting = |by: f64, at: &str| {
        format!(
            "the times drift over the run order, by up to {:.0} % ({at}): rounds take that out of \
             comparisons and nothing takes it out of medians",
            by.exp_m1() * 100.0
        )
    };
    let parted = |by: f64, at: &str| {
        format!(
            "runs are of more than one kind, at most {} x apart ({at}): one median does not describe \
             them",
            words::three_digits(by)
        )
    };
    let outlying = |share: f64, at: &str| {
        format!(
            "many runs lie far from the others, up to {:.0} % ({at}): ratios are those of typical runs",
            share * 100.0
        )
    };
    [drift.in_words(drifting), modes.in_words(parted), outliers.in_words(outlying)]
        .into_iter()
        .flatten()
        .collect()
}

/// The upper quartile over the lower.
fn spread(times: &[f64]) -> f64 {
    let middle = median(times).unwrap_or(1.0);
    let half = |keep: &dyn Fn(f64) -> bool| {
        median(&times.iter().copied().filter(|&time| keep(time)).collect::<Vec<_>>())
    };
    let (low, high) = (half(&|time| time <= middle), half(&|time| time >= middle));
    high.unwrap_or(middle) / low.unwrap_or(middle)
}

/// What a detector found over many arms.
struct Found {
    arms: u64,
    found: u64,
    most: Option<(f64, String)>,
}

impl Found {
    fn new() -> Found {
        Found { arms: 0, found: 0, most: None }
    }

    fn add(
        &mut self,
        finding: Option<Finding>,
        size: impl Fn(f64) -> f64,
        at: impl Fn() -> String,
    ) {
        let Some(finding) = finding else { return };
        self.arms += 1;
        if finding.is_beyond_noise() {
            self.found += 1;
            let size = size(finding.value);
            if self.most.as_ref().is_none_or(|(most, _)| size > *most) {
                self.most = Some((size, at()));
            }
        }
    }

    /// Only where there is more of it than chance brings up.
    fn in_words(&self, said: impl Fn(f64, &str) -> String) -> Option<String> {
        let (size, at) = self.most.as_ref()?;
        let chance = Binomial::new(BY_CHANCE, self.arms).expect("a share");
        if chance.sf(self.found - 1) > TOLD_BY_CHANCE {
            return None;
        }
        Some(format!("in {} of {} series of runs {}", self.found, self.arms, said(*size, at)))
    }
}

/// For each variant the cells in which `is_so` for any of its counted runs.
fn of_variants<'v>(
    cells: &[(&'v View<'_>, &CellView<'_>)],
    is_so: impl Fn(&CellView<'_>, &Record) -> bool,
) -> BTreeMap<&'v str, Vec<String>> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (view, cell) in cells {
        for (variant, records) in view.part.variants.iter().zip(&cell.counted) {
            if records.iter().any(|record| is_so(cell, record)) {
                found.entry(variant).or_default().push(cell.cell.id());
            }
        }
    }
    found
}

fn named(cells: &[String]) -> String {
    if cells.len() <= NAMED_MAX {
        return words::listed(cells);
    }
    format!("{} and {} more cells", cells[..NAMED_MAX - 1].join(", "), cells.len() - NAMED_MAX + 1)
}

#[cfg(test)]
mod tests {
    use super::super::analysis::synthetic::Synthetic;
    use super::*;

    fn said(made: &Synthetic) -> String {
        let samples = made.samples();
        of(&View::all(&made.definition, samples, made.rules), samples.around).join("\n")
    }

    fn quiet(variants: &[&str]) -> Synthetic {
        Synthetic::new("copy", variants, &["1M"])
    }

    #[test]
    fn quiet_samples_give_no_sign() {
        let mut made = quiet(&["sendfile", "mmap:8M"]);
        made.measure_with(10, 4, |_, variant, record| {
            // Which are due.
            record.measured.minor_faults = if variant == "mmap:8M" { 256 } else { 2 };
            record.measured.state_proved = Proof::Warm;
            1e6
        });
        assert_eq!(said(&made), "");
    }

    #[test]
    fn each_sign_is_told() {
        type Spoil = fn(&mut Record) -> f64;
        let cases: [(Spoil, &str); 8] = [
            (
                |record| {
                    record.measured.minor_faults = 63;
                    1e6
                },
                "sendfile met page faults inside its time where none are due, 63 a run at part/1M:",
            ),
            (|_| 800.0, "the look at the clock, 25 ns, is more than 2 % of them"),
            (
                |record| {
                    record.measured.shares_extents = true;
                    1e6
                },
                "sendfile moved no bytes in part/1M:",
            ),
            (
                |record| {
                    record.measured.last_resort_bytes = 77;
                    1e6
                },
                "sendfile refused some bytes in part/1M;",
            ),
            (
                |record| {
                    record.measured.counted = record.round != 2;
                    record.measured.state_note = "1 MiB is there".to_owned();
                    1e6
                },
                "10 of 40 runs at part/1M do not count, since their page cache state was not as asked \
                 for (the last: 1 MiB is there)",
            ),
            (
                |record| {
                    record.measured.pages_scanned = Some(5);
                    1e6
                },
                "during 40 of 40 runs the kernel looked for memory",
            ),
            (
                |record| 1e6 * (1.0 + 0.03 * f64::from(record.session)),
                "in 1 of 1 series of runs the times drift over the run order, by up to",
            ),
            (
                |record| if (record.session * 7 + record.round * 3) % 5 < 2 { 1e6 } else { 1.4e6 },
                "in 1 of 1 series of runs runs are of more than one kind, at most 1.4",
            ),
        ];
        for (spoil, expected) in cases {
            let mut made = quiet(&["sendfile"]);
            made.measure_with(10, 4, |_, _, record| {
                record.measured.state_proved = Proof::Warm;
                spoil(record)
            });
            let said = said(&made);
            assert!(said.contains(expected), "{said}\nfor {expected}");
        }
    }

    #[test]
    fn a_cold_source_of_which_little_is_read_is_told() {
        let mut made = quiet(&["sendfile"]);
        made.part().states = vec![State::Cold];
        made.measure_with(3, 2, |_, _, record| {
            record.measured.state_proved = Proof::Cold;
            record.measured.device_read_bytes = Some(1 << 18);
            1e6
        });
        let said = said(&made);
        assert!(said.contains("cold runs at part/1M/cold had devices read less"), "{said}");
    }

    #[test]
    fn cells_are_named_as_far_as_they_fit() {
        let cells: Vec<String> = (1..=5).map(|n| format!("a/{n}K")).collect();
        assert_eq!(named(&cells[..3]), "a/1K, a/2K and a/3K");
        assert_eq!(named(&cells), "a/1K, a/2K and 3 more cells");
    }
}
