//! Where the time goes: user mode, kernel, waiting, and page faults.

use lab::definition::Analysis;
use lab::studies::time_split::Parts;
use lab::words::{grouped, nanoseconds};

use super::{content, rows};
use crate::plot::{About, Axis, Entry, Figure, Group, Look, Mark, Table, Unit};
use crate::summary::{CellSummary, Summary, VariantSummary};

const ABOUT: About = About {
    id: "split",
    title: "Where the time goes",
    reading: "Each bar is the median run of a variant, from the first byte to the return of the last call: \
              processor time in user mode (full colour), processor time in the kernel (medium), and waiting \
              (pale): the time of all workers and runs at once that no processor was at work on them. \
              With several of these the bars together exceed the elapsed time. Many kernels tell user \
              from kernel time by the timer tick, so the median of their sum is divided as in all runs \
              together. Bars of page faults are medians too: major faults, which waited for the device, \
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

/// What the verdict says of the time of a variant.
fn parts(cell: &CellSummary<'_>, variant: &VariantSummary<'_>) -> Option<Parts> {
    Parts::of(&cell.cell, variant.variant, &variant.counted)
}

fn times(title: &str, cells: &[&CellSummary<'_>]) -> Option<Group> {
    let alt = |cell: &CellSummary<'_>| {
        format!("User, kernel and waiting time of each variant at {}.", cell.words())
    };
    let found = rows::found(cells.iter().copied(), parts);
    let x = Axis::amount("time", Unit::Ns);
    rows::group(
        title,
        &found,
        &x,
        alt,
        |name, row, &Parts { user_ns, system_ns, waiting_ns, .. }| {
            let all_ns = user_ns + system_ns + waiting_ns;
            let bar = |(what, strength, ns)| {
                let text = format!("{name}: {what} {} of {}", nanoseconds(ns), nanoseconds(all_ns));
                Mark::bar(name, row, ns, strength, text)
            };
            [
                ("user mode", 1.0, user_ns),
                ("kernel", 0.55, system_ns),
                ("waiting", 0.18, waiting_ns),
            ]
            .map(bar)
            .into()
        },
    )
}

/// The page faults of cells that have any.
fn faults(title: &str, cells: &[&CellSummary<'_>]) -> Option<Group> {
    let mut found = rows::found(cells.iter().copied(), parts);
    found.retain(|(_, of)| of.iter().any(|(_, it)| it.major_faults + it.minor_faults > 0.0));
    let alt = |cell: &CellSummary<'_>| format!("Page faults of each variant at {}.", cell.words());
    let x = Axis::amount("page faults", Unit::Count);
    rows::group(title, &found, &x, alt, |name, row, it| {
        let bar = |(what, strength, count)| {
            let text = format!("{name}: {} {what} page faults", grouped(&format!("{count:.0}")));
            Mark::bar(name, row, count, strength, text)
        };
        [("major", 1.0, it.major_faults), ("minor", 0.55, it.minor_faults)].map(bar).into()
    })
}

fn table(summary: &Summary<'_>, part: &str, cells: &[&CellSummary<'_>]) -> Table {
    Table::of(
        &summary.titled(&format!("{part}: medians of each run")),
        cells.iter().flat_map(|cell| {
            cell.variants.iter().filter_map(move |it| Some((*cell, it, parts(cell, it)?)))
        }),
        &[
            ("variant", &|(_, it, _)| Entry::words(it.variant)),
            ("file size", &|(cell, _, _)| cell.size_entry()),
            ("state", &|(cell, _, _)| Entry::words(&cell.circumstances())),
            ("elapsed", &|(_, _, parts)| Entry::ns(parts.elapsed_ns)),
            ("user", &|(_, _, parts)| Entry::ns(parts.user_ns)),
            ("kernel", &|(_, _, parts)| Entry::ns(parts.system_ns)),
            ("waiting", &|(_, _, parts)| Entry::ns(parts.waiting_ns)),
            ("minor faults", &|(_, _, parts)| Entry::count(Some(parts.minor_faults))),
            ("major faults", &|(_, _, parts)| Entry::count(Some(parts.major_faults))),
            ("waits", &|(_, _, parts)| Entry::count(Some(parts.voluntary_switches))),
            ("preempted", &|(_, it, _)| {
                Entry::count(it.median_of(|it| Some(it.involuntary_switches)))
            }),
            ("calls", &|(_, _, parts)| Entry::count(parts.calls)),
            ("read from device", &|(_, _, parts)| Entry::bytes(parts.device_read_bytes)),
            ("written", &|(_, it, _)| Entry::bytes(it.median_of(|it| it.device_written_bytes))),
        ],
    )
}
