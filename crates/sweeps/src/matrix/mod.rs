//! `cargo xtask matrix`: `haulage cp` beside GNU cp on every file system and kernel, in guests.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;

use crate::guest::kernel::{self, KERNELS, Kernel};
use crate::guest::{self, Prepared};
use systems::{Role, System, systems};
use xtask::command::{output, root};
use xtask::skips;

mod cell;
mod faults;
mod inside;
mod special;
mod systems;

/// The document with the table, which begins after the line and ends with an empty one.
const DOCUMENT: &str = "docs/reliability.md";
const MARK: &str = "<!-- written by cargo xtask matrix --write -->\n";

/// The outcome where the kernel has no such file system. A set-up that fails for another reason is a failure.
const NOT_SUPPORTED: &str = "not supported";

/// What `--sample` tries.
const SAMPLE: &[&str] = &["nfs-4.2", "smb-samba", "vfat"];

/// Copy with haulage and GNU cp on the file systems of other kernels, each as destination and as source.
///
/// A cell is one file system on one kernel, in a guest of its own. Prints each finding: where haulage is worse than
/// GNU cp, and where it exits with 0 though content is lost. Exits with 1 if there are findings. A cell takes minutes, and all of them hours.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask matrix", bin_name = "cargo xtask matrix")]
pub(crate) struct Args {
    /// Kernels [default: all]
    #[arg(long, value_name = "KERNEL", value_delimiter = ',', value_parser = kernel::find)]
    kernel: Vec<Kernel>,
    /// File systems [default: all; see --list]
    #[arg(long, value_name = "FS", value_delimiter = ',', value_parser = find)]
    fs: Vec<System>,
    /// Write the outcomes into the table of docs/reliability.md; other cells stay
    #[arg(long)]
    write: bool,
    /// Try a few cases of each, as destinations if they can be; by default of NFS, SMB and vfat on the newest kernel
    #[arg(long)]
    sample: bool,
    /// Guests at the same time; each uses one processor, and sometimes two
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    jobs: u16,
    /// Print the file systems and exit
    #[arg(long)]
    list: bool,
    /// Try one file system on this kernel. Within a guest
    #[arg(long, value_name = "FS", value_parser = find, hide = true)]
    inside: Option<System>,
}

/// What became of a cell, by direction.
type Outcomes = Vec<(&'static str, String)>;

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(system) = args.inside {
        return inside::run(system, args.sample).map(|()| ExitCode::SUCCESS);
    }
    if args.list {
        systems().for_each(|system| println!("{}", system.name));
        return Ok(ExitCode::SUCCESS);
    }
    let (mut kernels, mut chosen) = (args.kernel.clone(), args.fs.clone());
    if kernels.is_empty() {
        kernels = if args.sample { vec![kernel::find("newest")?] } else { KERNELS.to_vec() };
    }
    if chosen.is_empty() {
        chosen = systems().filter(|it| !args.sample || SAMPLE.contains(&it.name)).collect();
    }
    let prepared: anyhow::Result<Vec<_>> =
        kernels.iter().map(|&kernel| Ok((kernel, Prepared::new(kernel)?))).collect();
    let prepared = match prepared {
        Err(why) if args.sample => {
            skips::report_skip(&format!("file systems of other kernels: {why:#}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        prepared => prepared.context("no guest can run here")?,
    };
    let date = output(Command::new("date").arg("--iso-8601"))?;
    let cells = chosen.iter().flat_map(|system| prepared.iter().map(move |it| (*system, it)));
    let (cells, document) = (Mutex::new(cells), Mutex::new(root().join(DOCUMENT)));
    let next = || cells.lock().unwrap_or_else(PoisonError::into_inner).next();
    let try_cells = || {
        let mut all_good = true;
        while let Some((system, (kernel, prepared))) = next() {
            let outcomes = try_cell(system, *kernel, prepared, args.sample);
            all_good &= outcomes.iter().all(|(_, outcome)| is_good(outcome));
            if args.write {
                // Hours of other cells may follow, or an interrupt.
                let path = document.lock().unwrap_or_else(PoisonError::into_inner);
                let head = format!("{}, {}", prepared.kernel.release, date.trim());
                let text = std::fs::read_to_string(&*path)?;
                std::fs::write(&*path, with_outcomes(&text, system, &outcomes, (kernel, &head))?)?;
            }
        }
        anyhow::Ok(all_good)
    };
    let all_good: anyhow::Result<Vec<bool>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..args.jobs).map(|_| scope.spawn(try_cells)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    let all_good = all_good.context("the table")?.into_iter().all(|good| good);
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find(name: &str) -> anyhow::Result<System> {
    let known = systems().find(|system| system.name == name);
    known.with_context(|| format!("no file system of the matrix is called '{name}'; see --list"))
}

fn is_good(outcome: &str) -> bool {
    outcome.starts_with("pass") || outcome.starts_with(NOT_SUPPORTED)
}

/// Tries a cell in a guest, and prints findings and outcomes.
fn try_cell(system: System, kernel: Kernel, prepared: &Prepared, sample: bool) -> Outcomes {
    let own = std::env::current_exe().unwrap_or_default().display().to_string();
    let mut command = vec![own, "matrix".to_owned(), "--inside".to_owned(), system.name.to_owned()];
    command.extend(sample.then(|| "--sample".to_owned()));
    let disk = ["320M", "3G"].map(str::to_owned).to_vec();
    let args = guest::Args { kernel, time: 2400, share: vec![], disk, write_rate: None, command };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ended = prepared.run(&args, &mut stdout, &mut stderr);
    let mut text = String::from_utf8_lossy(&stdout).into_owned();
    match ended {
        Ok(0) => {}
        Ok(_) => text.push_str(&format!("failed {}\n", String::from_utf8_lossy(&stderr).trim())),
        Err(error) => text.push_str(&format!("failed {error:#}\n")),
    }
    let mut outcomes = outcomes(&text, system.role);
    outcomes.retain(|(way, _)| !sample || way.starts_with("to") || system.role == Role::Source);
    let shown = text.lines().filter(|line| !line.starts_with("cases "));
    shown.for_each(|line| println!("  {line}"));
    for (direction, outcome) in &outcomes {
        println!("{} {direction}, Linux {}: {outcome}", system.name, prepared.kernel.release);
    }
    outcomes
}

/// The outcomes of a cell from what it printed.
fn outcomes(text: &str, role: Role) -> Outcomes {
    let starting = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let directions: &[&'static str] = match role {
        Role::Source => &["from"],
        Role::Faulty | Role::Twice => &["to"],
        _ => &["to", "from"],
    };
    for (start, verdict) in [("unsupported ", NOT_SUPPORTED), ("broken ", "set-up failed")] {
        if let Some(why) = starting(start) {
            return vec![("to and from", format!("{verdict}: {why}"))];
        }
    }
    let outcome = |direction: &str| {
        let start = format!("finding {direction} ");
        let findings = text.lines().filter(|line| line.starts_with(&start)).count();
        match (starting(&format!("cases {direction} ")), findings) {
            (Some(cases), 0) => format!("pass ({cases})"),
            (Some(cases), findings) => format!("{findings} of {cases} worse"),
            (None, _) => format!("failed: {}", starting("failed ").unwrap_or("not tried")),
        }
    };
    directions.iter().map(|&way| (way, outcome(way))).collect()
}

/// The document with the outcomes of a cell in its table, and the kernel's column headed by `head`.
fn with_outcomes(
    text: &str,
    system: System,
    outcomes: &Outcomes,
    (kernel, head): (&Kernel, &str),
) -> anyhow::Result<String> {
    let (before, rest) =
        text.split_once(MARK).context("the document has no place for the table")?;
    let (old, after) = rest.split_once("\n\n").context("the table does not end")?;
    // By row and kernel. The heads are the row without a name.
    let mut cells: BTreeMap<(String, &str), String> = BTreeMap::new();
    for line in old.lines().filter(|line| !line.starts_with("|-")) {
        let mut words = line.trim_matches('|').split('|').map(|word| word.trim().to_owned());
        let row = words.next().unwrap_or_default();
        cells.extend(
            KERNELS.iter().zip(words).map(|(kernel, word)| ((row.clone(), kernel.name), word)),
        );
    }
    cells.insert((String::new(), kernel.name), head.to_owned());
    // Of what passed, the number of cases.
    let short = |(_, outcome): &(_, String)| {
        let passed = outcome.strip_prefix("pass (").and_then(|rest| rest.strip_suffix(')'));
        let is_missing = outcome.starts_with(NOT_SUPPORTED);
        let text = if is_missing { NOT_SUPPORTED } else { passed.unwrap_or(outcome) };
        text.replace('|', "/").chars().take(90).collect::<String>()
    };
    let short: Vec<_> = outcomes.iter().map(short).collect();
    cells.insert((system.name.to_owned(), kernel.name), short.join(", "));
    let line = |row: &str| {
        let cell =
            |kernel: &Kernel| cells.get(&(row.to_owned(), kernel.name)).map_or("", String::as_str);
        format!("| {row} | {} |\n", KERNELS.iter().map(cell).collect::<Vec<_>>().join(" | "))
    };
    let rows = systems().map(|system| system.name);
    let rows = rows.filter(|row| cells.keys().any(|(known, _)| known == row));
    let table: String = rows.map(line).collect();
    let rule = "|---".repeat(KERNELS.len() + 1);
    Ok(format!("{before}{MARK}{}{rule}|\n{table}\n{}", line(""), after.trim_start_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_a_cell_is_what_it_printed() {
        let text = "finding to -a (Plain): x (and 1 more)\nmore y\ncases to 30\ncases from 20\n";
        let expected = [("to", "1 of 30 worse"), ("from", "pass (20)")];
        assert_eq!(outcomes(text, Role::Local), expected.map(|(way, it)| (way, it.to_owned())));
        let last = |text, role| outcomes(text, role).pop().unwrap().1;
        let text = "cases to 30\nfailed the guest was killed\n";
        assert_eq!(last(text, Role::Local), "failed: the guest was killed");
        assert_eq!(last("", Role::Local), "failed: not tried");
        let missing = last("unsupported no ntfs", Role::Source);
        assert_eq!(missing, "not supported: no ntfs");
        let broken = last("broken no mkfs", Role::Twice);
        assert_eq!(broken, "set-up failed: no mkfs");
        assert!(is_good(&missing) && !is_good(&broken));
    }

    #[test]
    fn the_table_keeps_the_cells_that_were_not_tried() {
        let document = format!("before\n{MARK}|\n\nafter\n");
        let add = |text: &str, kernel, head, outcomes: &[&str]| {
            let kernel = kernel::find(kernel).unwrap();
            let ways = ["to", "from"].into_iter().zip(outcomes.iter().map(|&it| it.to_owned()));
            let vfat = find("vfat").unwrap();
            with_outcomes(text, vfat, &ways.collect(), (&kernel, head)).unwrap()
        };
        let once = add(&document, "6.1", "6.1.0, today", &["pass (3)", "pass (3)"]);
        let twice = add(&once, "newest", "7.2, today", &["2 of 3 worse", "pass (3)"]);
        let thrice = add(&twice, "5.10", "5.10, today", &["not supported: no vfat"]);
        let table = "|  | 5.10, today | 6.1.0, today |  | 7.2, today |\n|---|---|---|---|---|\n\
            | vfat | not supported | 3, 3 |  | 2 of 3 worse, 3 |\n";
        assert_eq!(thrice, format!("before\n{MARK}{table}\nafter\n"));
    }
}
