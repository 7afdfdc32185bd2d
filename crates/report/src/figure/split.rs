//! Where the time goes: user mode, kernel, waiting, and page faults.

use lab::definition::Analysis;
use lab::sample::measurement::Measurement;
use lab::words::{grouped, nanoseconds};

use super::{content, rows};
use crate::plot::{About, Axis, Entry, Figure, Group, Look, Mark, Panel, Table, Unit};
use crate::summary::{CellSummary, Summary, VariantSummary};

const ABOUT: About = About {
    id: "split",
    title: "Where the time goes",
    reading: "Each bar is the median run of a variant, from the first byte to the return of the last call: \
              processor time in user mode (full colour), processor time in the kernel (medium), and the \
              rest, in which no thread of it ran (pale). With several workers processor time is the sum \
              over threads and may exceed the elapsed time; the rest is zero then. Many kernels tell user \
              from kernel time by the timer tick, so for runs of a few milliseconds only their sum is \
              meaningful. Bars of page faults are medians too: major faults, which waited for the device, \
              in full colour, minor faults medium. The axes are linear.",
    keys: &[(Look::Strong, "user mode"), (Look::Medium, "kernel"), (Look::Pale, "waiting")],
};

/// The figure. `None` if nothing was measured.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_parts(&ABOUT, summaries, |figure, summary, part| {
        // A part with other analyses only is not shown here.
        if !part.analyses.is_empty() && !part.analyses.contains(&Analysis::Split) {
            return;
        }
        let series = summary.series(part);
        if !series.is_empty() {
            figure.tables.push(table(summary, &part.name, &series.concat()));
        }
        for cells in series {
            let rows = rows::ranked(&cells);
            let title = cells[0].titled_part();
            let times = cells.iter().map(|cell| times(cell, &rows)).collect();
            figure.groups.extend(Group::of_rows(summary.titled(&title), times));
            let faults = cells.iter().filter_map(|cell| faults(cell, &rows)).collect();
            let title = summary.titled(&format!("{title}, page faults"));
            figure.groups.extend(Group::of_rows(title, faults));
        }
    })
}

/// A part of the time of a run, in nanoseconds.
type Share = fn(&Measurement) -> u64;

const ELAPSED: Share = |it| it.elapsed_ns;
const USER: Share = |it| it.user_ns;
const KERNEL: Share = |it| it.system_ns;
const WAITING: Share = |it| it.elapsed_ns.saturating_sub(it.user_ns + it.system_ns);

fn median(variant: &VariantSummary<'_>, share: Share) -> f64 {
    variant.median_of(|measured| Some(share(measured))).unwrap_or(0.0)
}

fn times(cell: &CellSummary<'_>, rows: &[&str]) -> Panel {
    let mut marks = Vec::new();
    for variant in &cell.variants {
        let (name, row) = (variant.variant, rows::row_of(rows, variant.variant));
        let elapsed = nanoseconds(median(variant, ELAPSED));
        let shares =
            [("user mode", 1.0, USER), ("kernel", 0.55, KERNEL), ("waiting", 0.18, WAITING)];
        for (what, strength, share) in shares {
            let ns = median(variant, share);
            let text = format!("{name}: {what} {} of {elapsed}", nanoseconds(ns));
            marks.push(Mark::bar(name, row, ns, strength, text));
        }
    }
    let alt = format!("User, kernel and waiting time of each variant at {}.", cell.words());
    rows::panel(cell, alt, Axis::amount("time", Unit::Ns), rows, marks)
}

/// Page faults of each variant. `None` if there were none.
fn faults(cell: &CellSummary<'_>, rows: &[&str]) -> Option<Panel> {
    let mut marks = Vec::new();
    let mut any = false;
    for variant in &cell.variants {
        let (name, row) = (variant.variant, rows::row_of(rows, variant.variant));
        let major = variant.median_of(|it| Some(it.major_faults));
        let minor = variant.median_of(|it| Some(it.minor_faults));
        for (what, strength, count) in [("major", 1.0, major), ("minor", 0.55, minor)] {
            let Some(count) = count else { continue };
            any |= count > 0.0;
            let text = format!("{name}: {} {what} page faults", grouped(&format!("{count:.0}")));
            marks.push(Mark::bar(name, row, count, strength, text));
        }
    }
    let alt = format!("Page faults of each variant at {}.", cell.words());
    any.then(|| rows::panel(cell, alt, Axis::amount("page faults", Unit::Count), rows, marks))
}

fn table(summary: &Summary<'_>, part: &str, cells: &[&CellSummary<'_>]) -> Table {
    Table::of(
        &summary.titled(&format!("{part}: medians of each run")),
        cells.iter().flat_map(|cell| cell.variants.iter().map(move |it| (*cell, it))),
        &[
            ("variant", &|(_, it)| Entry::words(it.variant)),
            ("file size", &|(cell, _)| cell.size_entry()),
            ("state", &|(cell, _)| Entry::words(&cell.circumstances())),
            ("elapsed", &|(_, it)| Entry::ns(median(it, ELAPSED))),
            ("user", &|(_, it)| Entry::ns(median(it, USER))),
            ("kernel", &|(_, it)| Entry::ns(median(it, KERNEL))),
            ("waiting", &|(_, it)| Entry::ns(median(it, WAITING))),
            ("minor faults", &|(_, it)| Entry::count(it.median_of(|it| Some(it.minor_faults)))),
            ("major faults", &|(_, it)| Entry::count(it.median_of(|it| Some(it.major_faults)))),
            ("waits", &|(_, it)| Entry::count(it.median_of(|it| Some(it.voluntary_switches)))),
            ("preempted", &|(_, it)| {
                Entry::count(it.median_of(|it| Some(it.involuntary_switches)))
            }),
            ("calls", &|(_, it)| Entry::count(it.median_of(|it| it.calls))),
            ("read from device", &|(_, it)| Entry::bytes(it.median_of(|it| it.device_read_bytes))),
            ("written", &|(_, it)| Entry::bytes(it.median_of(|it| it.device_written_bytes))),
        ],
    )
}
