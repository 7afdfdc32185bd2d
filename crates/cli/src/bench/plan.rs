//! The output of `--list` and `--dry-run`.

use anyhow::bail;
use lab::analysis::interim::SESSIONS_MIN;
use lab::definition::{Definition, Part};
use lab::environment::memory_bytes;
use lab::experiment::estimate;
use lab::experiment::library::BUILT_IN;
use lab::experiment::space::SpaceNeeded;
use lab::words;

use crate::terminal::output::{BOLD, styled};
use crate::terminal::text::counted;
use report::columns::{wrapped, wrapped_behind};

/// The built-in experiments, in a few lines each.
pub(super) fn list(columns: usize) -> String {
    let mut text = String::new();
    for built_in in BUILT_IN {
        let definition = built_in.definition();
        let minutes = words::duration(definition.minutes * 60.0);
        text.push_str(&styled(BOLD, &definition.name));
        let extent = format!(
            "{} in {} cells, {minutes} unless --time is given",
            counted(definition.parts.len(), "part"),
            definition.cells().len(),
        );
        for line in [&definition.title, &definition.question, &extent] {
            text.push_str(&wrapped_behind("  ", line, columns));
        }
    }
    text
}

/// The claims that the built-in experiments test.
pub(super) fn list_claims(columns: usize) -> String {
    let mut text = String::new();
    for built_in in BUILT_IN {
        let definition = built_in.definition();
        if definition.claims.is_empty() {
            continue;
        }
        text.push_str(&styled(BOLD, &definition.title));
        for claim in &definition.claims {
            text.push_str(&wrapped_behind("  ", &claim.name, columns));
            let says = format!("{} (published: {})", claim.says, claim.published);
            text.push_str(&wrapped_behind("      ", &says, columns));
        }
    }
    text
}

/// What a run of `definition` would do, and the time and space that it needs.
pub(super) fn of(
    definition: &Definition,
    rounds: Option<u32>,
    seconds: Option<f64>,
    columns: usize,
) -> anyhow::Result<String> {
    let room = SpaceNeeded::of(definition);
    let heading = format!("{}: {}", definition.name, definition.question);
    let mut text = styled(BOLD, &wrapped(&heading, columns, "")) + "\n";
    for part in &definition.parts {
        text.push_str(&of_part(part, columns));
    }
    text.push('\n');
    let round = estimate::seconds_of_rounds(definition);
    let least = round * f64::from(rounds.unwrap_or(SESSIONS_MIN));
    let space = format!(
        "{} for sources and {} for what the runs write; {} of memory to keep them in the page cache",
        words::bytes(room.src_bytes),
        words::bytes(room.dst_bytes),
        words::bytes(room.memory_bytes),
    );
    text.push_str(&wrapped(&space, columns, "  "));
    let needed = words::duration(least);
    let duration = match (rounds, seconds) {
        (Some(rounds), _) => {
            format!("{} of each cell, about {needed}", counted(rounds as usize, "round"))
        }
        (None, Some(seconds)) => format!(
            "at most {}; the {SESSIONS_MIN} sessions of each cell that an answer needs take about {needed}",
            words::duration(seconds),
        ),
        (None, None) => format!("at least about {needed}"),
    };
    text.push_str(&wrapped(&duration, columns, "  "));
    if seconds.is_some_and(|seconds| seconds < least) {
        let warning = "that is longer than the time limit: many comparisons would be unresolved";
        text.push_str(&wrapped(warning, columns, "  "));
    }
    require_memory(&room)?;
    Ok(text)
}

fn of_part(part: &Part, columns: usize) -> String {
    let states: Vec<&str> = part.states.iter().map(|state| state.name()).collect();
    let mut factors = vec![
        counted(part.variants.len(), "variant"),
        format!("sizes {}", part.sizes.join(" ")),
        states.join(" and "),
    ];
    if part.files > 1 {
        factors.push(format!("{} files", part.files));
    }
    if part.at_once != [1] {
        let at_once: Vec<String> = part.at_once.iter().map(u32::to_string).collect();
        factors.push(format!("{} at once", at_once.join(", ")));
    }
    let seconds = estimate::seconds_of_part(part);
    let heading = format!("{} ({}): {}", part.name, part.workload, part.question);
    let extent = format!(
        "{}; {}, about {} a round of all",
        factors.join(", "),
        counted(part.cells().len(), "cell"),
        words::nanoseconds(seconds * 1e9),
    );
    wrapped(&heading, columns, "  ") + &wrapped_behind("  ", &extent, columns)
}

/// Fails if the files do not fit into the page cache: runs would measure swapping.
pub(super) fn require_memory(room: &SpaceNeeded) -> anyhow::Result<()> {
    let memory = memory_bytes();
    // Other programs need memory too.
    if room.memory_bytes > memory / 10 * 8 {
        bail!(
            "not enough memory: the files take {} of the page cache, and the machine has {}; --scale \
             makes them smaller",
            words::bytes(room.memory_bytes),
            words::bytes(memory)
        );
    }
    Ok(())
}
