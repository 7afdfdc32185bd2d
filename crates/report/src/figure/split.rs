//! Where the time goes: user mode, kernel, waiting, and page faults.

use lab::definition::Analysis;
use lab::sample::measurement::Measurement;
use lab::words::{grouped, nanoseconds};

use super::{content, rows};
use crate::plot::{About, Axis, Entry, Figure, Group, Look, Mark, Table, Unit};
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
            let title = cells[0].titled_part();
            figure.groups.extend(times(&summary.titled(&title), &cells));
            let title = summary.titled(&format!("{title}, page faults"));
            figure.groups.extend(faults(&title, &cells));
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

fn times(title: &str, cells: &[&CellSummary<'_>]) -> Option<Group> {
    let medians = |_: &CellSummary<'_>, variant: &VariantSummary<'_>| {
        Some([ELAPSED, USER, KERNEL, WAITING].map(|share| median(variant, share)))
    };
    let alt = |cell: &CellSummary<'_>| {
        format!("User, kernel and waiting time of each variant at {}.", cell.words())
    };
    let found = rows::found(cells.iter().copied(), medians);
    let x = Axis::amount("time", Unit::Ns);
    rows::group(title, &found, &x, alt, |name, row, &[elapsed, user, kernel, waiting]| {
        let bar = |(what, strength, ns)| {
            let text = format!("{name}: {what} {} of {}", nanoseconds(ns), nanoseconds(elapsed));
            Mark::bar(name, row, ns, strength, text)
        };
        [("user mode", 1.0, user), ("kernel", 0.55, kernel), ("waiting", 0.18, waiting)]
            .map(bar)
            .into()
    })
}

/// The page faults of cells that have any.
fn faults(title: &str, cells: &[&CellSummary<'_>]) -> Option<Group> {
    let mut found = rows::found(cells.iter().copied(), |_, variant| {
        let major = variant.median_of(|it| Some(it.major_faults))?;
        Some([major, variant.median_of(|it| Some(it.minor_faults))?])
    });
    found.retain(|(_, counts)| counts.iter().any(|(_, [major, minor])| major + minor > 0.0));
    let alt = |cell: &CellSummary<'_>| format!("Page faults of each variant at {}.", cell.words());
    let x = Axis::amount("page faults", Unit::Count);
    rows::group(title, &found, &x, alt, |name, row, &[major, minor]| {
        let bar = |(what, strength, count)| {
            let text = format!("{name}: {} {what} page faults", grouped(&format!("{count:.0}")));
            Mark::bar(name, row, count, strength, text)
        };
        [("major", 1.0, major), ("minor", 0.55, minor)].map(bar).into()
    })
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
