//! `haulage engines [PATH…]`: lists the engines, and why some do not work here.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::Style;
use anyhow::anyhow;
use clap::Parser;
use engines::{ENGINES, Engine, Pair};
use serde::Serialize;

use crate::sample_files::{EngineFound, directory_of, empty_file, ends, source, tried};
use crate::terminal::output::{self, DIM, GOOD, REFUSED, SLOWER, styled_lines};
use report::columns::wrapped_behind;

/// List the engines, and whether each works here.
///
/// Every engine copies a small sample between two unnamed scratch files, and the copy is compared with
/// the sample. "yes": the copy was right. "maybe": the engine works with a limitation, or could not be
/// tried. "no": the engine does not work here. "floor": a measurement that copies no file, to compare
/// with.
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// The directory to copy within; or the source, a file or directory, and the destination directory
    /// [default: the current directory]
    #[arg(value_name = "PATH", num_args = 0..=2)]
    paths: Vec<PathBuf>,

    /// Print a JSON array of objects with name, verdict, reason, about and shares
    #[arg(long)]
    json: bool,
}

/// What `--json` prints of an engine.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    found: EngineFound,
    about: &'static str,
    shares: &'static str,
}

/// Runs the command. Exit status 1 if nothing could be tried, 2 for bad usage.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let [src_path, dst_path] = ends(&args.paths);
    let advice = "name a directory that takes new files; haulage doctor needs none";
    let dst = empty_file(&directory_of(dst_path)?);
    let dst = dst.map_err(|error| anyhow!("{error:#}; {advice}"))?;
    let src = source(src_path)?;
    let pair = Pair::new(src.as_fd(), dst.as_fd());
    let rows: Vec<Row> = ENGINES.iter().map(|engine| row(engine, pair)).collect();
    output::print(&if args.json { output::json(&rows)? } else { table(&rows, output::columns()) })?;
    Ok(ExitCode::SUCCESS)
}

fn row(engine: &'static Engine, pair: Pair<'_>) -> Row {
    let reason = "it copies no file; other engines are compared with it";
    let floor = || EngineFound { name: engine.name, verdict: "floor", reason: reason.to_owned() };
    let found = tried(engine, pair).unwrap_or_else(floor);
    Row { found, about: engine.about, shares: engine.shares }
}

/// The columns of the names, with those between them and the verdicts.
const NAME: usize = 17;

/// The columns of the verdicts, in the same way.
const VERDICT: usize = 7;

/// The rows in lines of at most `columns` columns, except for words that are longer.
fn table(rows: &[Row], columns: usize) -> String {
    let head = format!("{:<NAME$}{:<VERDICT$}", "engine", "here");
    let head = wrapped_behind(&head, "what it does; what it shares or bypasses", columns);
    let mut text = styled_lines(DIM, &head);
    for row in rows {
        text.push_str(&named(row, columns));
        text.push_str(&below(row.shares, DIM, columns));
        let EngineFound { verdict, reason, .. } = &row.found;
        if !reason.is_empty() {
            text.push_str(&below(&format!("{verdict}: {reason}"), style(verdict), columns));
        }
    }
    text
}

/// The name and the verdict of `row`, in the style of the verdict, and what the engine does.
fn named(row: &Row, columns: usize) -> String {
    let EngineFound { name, verdict, .. } = &row.found;
    let first = format!("{name:<NAME$}{verdict:<VERDICT$}");
    let plain = wrapped_behind(&first, row.about, columns);
    let style = style(verdict);
    let (name, rest) = plain.split_at(first.trim_end().len());
    format!("{style}{name}{style:#}{rest}")
}

/// `text` in lines below what the engine does.
fn below(text: &str, style: Style, columns: usize) -> String {
    styled_lines(style, &wrapped_behind(&" ".repeat(NAME + VERDICT), text, columns))
}

fn style(verdict: &str) -> Style {
    match verdict {
        "yes" => GOOD,
        "maybe" => SLOWER,
        "no" => REFUSED,
        _ => DIM,
    }
}
