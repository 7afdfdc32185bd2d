//! The findings as one screen.

use lab::in_order::gathered;
use lab::words;

use super::choices::Choice;
use super::findings::Findings;
use super::limits::Limits;
use super::place::Place;
use crate::sample_files::EngineFound;
use crate::terminal::output::{BEST, BOLD, DIM, styled};
use crate::terminal::text::counted;
use crate::version;
use report::columns::wrapped_behind;

/// The columns of the names at the left.
const NAME: usize = 11;

/// The text in lines of at most `columns` columns, except for words that are longer.
pub(super) fn of(found: &Findings, columns: usize) -> String {
    let mut text = styled(BOLD, &format!("haulage {}", found.haulage.version));
    text.push_str(&row("build", &version::build(), columns));
    text.push_str(&row("machine", &machine(found), columns));
    text.push_str(&row("kernel", &kernel(found), columns));
    text.push_str(&row("limits", &limits(&found.limits), columns));
    match found.is_one_place() {
        true => text.push_str(&row("directory", &place(&found.dst), columns)),
        false => {
            text.push_str(&row("from", &place(&found.src), columns));
            text.push_str(&row("to", &place(&found.dst), columns));
        }
    }
    text.push_str(&engines(&found.engines, columns));
    text.push('\n');
    text.push_str(&copies(found, columns));
    text.push('\n');
    text.push_str(&advice(&found.advice, columns));
    text
}

/// `text` behind `name`; further lines below the first.
fn row(name: &str, text: &str, columns: usize) -> String {
    let plain = wrapped_behind(&format!("{name:<NAME$}"), text, columns);
    match plain.strip_prefix(name) {
        Some(rest) if !name.is_empty() => format!("{BOLD}{name}{BOLD:#}{rest}"),
        _ => plain,
    }
}

fn machine(found: &Findings) -> String {
    let machine = &found.machine;
    let mut parts = vec![counted(machine.cpu_count, "processor")];
    parts.extend(machine.cpu_model.clone());
    parts.push(format!("{} of memory", words::bytes(machine.memory_bytes)));
    parts.extend(machine.hypervisor.as_ref().map(|name| format!("virtual ({name})")));
    let libc_version = machine.libc_version.as_ref().map(|version| format!(" {version}"));
    parts.push(format!("{}{}", machine.libc, libc_version.unwrap_or_default()));
    parts.join(", ")
}

fn kernel(found: &Findings) -> String {
    let kernel = &found.kernel;
    let names = kernel.calls.iter().filter(|call| call.found).map(|call| call.name);
    let mut text = format!("Linux {}, {}", kernel.release, kernel.arch);
    let names: Vec<&str> = names.collect();
    if !names.is_empty() {
        text.push_str(&format!("; has {}", names.join(", ")));
    }
    for call in kernel.calls.iter().filter(|call| !call.found) {
        text.push_str(&format!("; no {}: {}", call.name, call.reason));
    }
    text
}

fn limits(limits: &Limits) -> String {
    let count = |limit: Option<u64>| {
        limit.map_or("any number of".to_owned(), |limit| words::grouped(&limit.to_string()))
    };
    let bytes = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), words::bytes);
    let raised = match limits.open_files_max {
        most if most == limits.open_files => String::new(),
        most => format!(" (up to {})", count(most)),
    };
    let mut parts = vec![
        format!("{} open files{raised}", count(limits.open_files)),
        format!("{} threads", count(limits.processes)),
        format!("locked memory {}", bytes(limits.locked_bytes)),
        format!("file size {}", bytes(limits.file_bytes)),
    ];
    if limits.address_space_bytes.is_some() {
        parts.push(format!("address space {}", bytes(limits.address_space_bytes)));
    }
    parts.join(", ")
}

fn place(place: &Place) -> String {
    let unknown = || "an unknown file system".to_owned();
    let mut text = format!("'{}': {}", place.path, place.fs_type.clone().unwrap_or_else(unknown));
    if let Some(mount_point) = &place.mount_point {
        text.push_str(&format!(" at {mount_point}"));
    }
    if let Some(device) = &place.device {
        text.push_str(&format!(" on {device}"));
    }
    match [place.free_bytes, place.total_bytes] {
        // ramfs and some FUSE file systems answer statfs(2) with zeros.
        [_, 0] => text.push_str(", of unknown size"),
        space => {
            let [free, total] = space.map(words::bytes);
            text.push_str(&format!(", {free} of {total} free"));
        }
    }
    match place.direct_alignment_bytes {
        Some(0) => text.push_str(", no direct I/O"),
        Some(bytes) => {
            text.push_str(&format!(", direct I/O aligned to {}", words::bytes(bytes.into())));
        }
        None => {}
    }
    if place.journal == Some(false) {
        text.push_str(", no journal");
    }
    if place.read_only {
        text.push_str(", read-only");
    }
    text
}

/// The engines that work on one line, and the others by their reasons.
fn engines(engines: &[EngineFound], columns: usize) -> String {
    let of = |verdict: &str| {
        let names = engines.iter().filter(|it| it.verdict == verdict).map(|it| it.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let mut text = row("engines", &of("yes"), columns);
    let others = engines.iter().filter(|it| matches!(it.verdict, "maybe" | "no"));
    for ((verdict, reason), of) in gathered(others, |it| (it.verdict, &it.reason)) {
        let names: Vec<&str> = of.iter().map(|it| it.name).collect();
        text.push_str(&row("", &format!("{verdict} {}: {reason}", names.join(", ")), columns));
    }
    if let Some(first) = engines.iter().find(|it| it.verdict == "unknown") {
        let unknown = format!("not tried {}: {}", of("unknown"), first.reason);
        text.push_str(&row("", &unknown, columns));
    }
    text
}

/// What a copy uses.
fn copies(found: &Findings, columns: usize) -> String {
    let decided = match (found.profile.applies, &found.profile.measured) {
        (true, Some(date)) => format!("as it was measured here, {date}"),
        (true, None) => "by the profile".to_owned(),
        (false, _) => "by the rule".to_owned(),
    };
    let mut text = row("a copy", &format!("{} uses, {decided}:", found.between), columns);
    let mut rows = vec![["file", "in the page cache", "not in it"].map(str::to_owned)];
    let row_of = |it: &Choice| {
        let lengths = words::lengths(it.over_bytes, it.up_to_bytes);
        [lengths, it.cached.clone(), it.not_cached.clone()]
    };
    rows.extend(found.choices.iter().map(row_of));
    let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or(0) + 2;
    let (first, second) = (width(0), width(1));
    let fits = |indent: usize| indent + first + second + width(2) - 2 <= columns;
    let indent = if fits(NAME) { NAME } else { 2 };
    for (index, [lengths, cached, not_cached]) in rows.iter().enumerate() {
        let line = if fits(indent) {
            format!("{:indent$}{lengths:<first$}{cached:<second$}{not_cached}", "")
        } else {
            // A line for each cell.
            format!("{:indent$}{lengths}\n{:4}{cached}\n{:4}{not_cached}", "", "", "")
        };
        text.push_str(&if index == 0 { styled(DIM, &line) } else { format!("{line}\n") });
    }
    if found.engine("reflink").is_some_and(|engine| engine.verdict == "yes") {
        let shares =
            "reflink works: a copy shares the extents of its source, unless --reflink=never";
        text.push_str(&row("", shares, columns));
    }
    text
}

fn advice(advice: &[String], columns: usize) -> String {
    if advice.is_empty() {
        return format!("{BEST}Nothing to improve was found.{BEST:#}\n");
    }
    let mut text = String::new();
    for (index, sentence) in advice.iter().enumerate() {
        let name = if index == 0 { "better" } else { "" };
        text.push_str(&row(name, &format!("- {sentence}"), columns));
    }
    text
}
