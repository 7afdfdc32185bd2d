//! `haulage tune --show`: prints the profile.

use engines::mount::Mount;
use engines::profile::{Line, Machine, PairChoices, Profile};
use lab::words;
use report::columns::visible;

use super::profile_file::ProfileFile;
use crate::kernel;
use crate::terminal::output::print;
use crate::terminal::text::counted;

/// Prints the choices for this machine, and a line for each other machine.
pub(super) fn show() -> anyhow::Result<()> {
    let file = ProfileFile::needed()?;
    let profile = file.read()?;
    let there = if file.path().exists() { "" } else { " (does not exist yet)" };
    let mut text = format!("{}{there}\n", file.path().display());
    let this = Machine::this();
    let pairs: Vec<&PairChoices> = profile.pairs_of(&this).collect();
    if pairs.is_empty() {
        text.push_str("nothing was measured on this machine; the rule decides\n");
    }
    let mounts = Mount::all();
    for pair in pairs {
        text.push_str(&of_pair(pair, &mounts));
    }
    text.push_str(&of_others(&profile, &this));
    print(&text)
}

/// A line of a profile, which may come from another user: control characters are replaced.
fn row(text: &str) -> String {
    format!("{}\n", visible(text.trim_end()))
}

fn of_pair(pair: &PairChoices, mounts: &[Mount]) -> String {
    let (src, dst) = (pair.src.in_words(), pair.dst.in_words());
    let place = match pair.same {
        Some(true) => format!("within {dst}"),
        _ => format!("{src} to {dst}"),
    };
    let date = pair.lines.iter().find_map(|line| line.choice.measured.date.as_deref());
    let date = date.map(|date| format!(", measured {date}")).unwrap_or_default();
    let mut text = format!("\n{}", row(&format!("{place}{date}")));
    for change in pair.changes_listed(mounts, &kernel::release()) {
        text.push_str(&row(&format!("  stale: {change}")));
    }
    let mut lines: Vec<&Line> = pair.lines.iter().collect();
    lines.sort_by_key(|line| (line.no_cache, line.size, line.in_flight, line.residency));
    lines.iter().for_each(|line| text.push_str(&of_line(line)));
    text
}

fn of_line(line: &Line) -> String {
    let any = || "any".to_owned();
    let size = line.size.map_or_else(any, |size| size.to_string());
    let residency = line.residency.map_or("any", |residency| residency.name());
    let in_flight = line.in_flight.map_or("any", |in_flight| in_flight.name());
    let no_cache = if line.no_cache { "no-cache" } else { "" };
    let measured = &line.choice.measured;
    let rate = measured.bytes.zip(measured.median_ns).map(|(bytes, ns)| {
        let rate = bytes as f64 * 1e3 / (ns as f64).max(1.0);
        format!("{} MB/s", words::grouped(&format!("{rate:.0}")))
    });
    let variant = &line.choice.variant;
    let rate = rate.unwrap_or_default();
    row(&format!(
        "  {size:<11} {residency:<8} {in_flight:<7} {no_cache:<8} {variant:<26} {rate:>11}"
    ))
}

/// A line for each other machine.
fn of_others(profile: &Profile, this: &Machine) -> String {
    let mut text = String::new();
    for other in profile.machines.iter().filter(|other| !other.machine.fits(this)) {
        let host = other.machine.host.as_deref().unwrap_or("a machine without a name");
        let pairs = counted(other.pairs.len(), "pair");
        text.push('\n');
        text.push_str(&row(&format!("{host}, another machine: {pairs}")));
    }
    text
}
