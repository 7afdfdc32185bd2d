//! `haulage report RUN`: shows runs as a page, as figures or as text.

mod args;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use lab::run_dir::files;
use lab::tune::record::{Record, Records};
use report::drawing;
use report::{Report, Source};

use crate::terminal::output;
use crate::terminal::steps::Steps;
pub(crate) use args::Args;

/// Runs the command. Exit status 1 if a run cannot be read or a file cannot be written, 2 for bad usage.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut steps = Steps::new("report");
    let done = make(args, &mut steps);
    steps.clear();
    done.map(|()| ExitCode::SUCCESS)
}

fn make(args: &Args, steps: &mut Steps) -> anyhow::Result<()> {
    let page = page_file(args)?;
    if let Some(records) = tune_records(args)? {
        return show(args, page.as_deref(), &Report::of_tuning(records), steps);
    }
    let mut sources: Vec<Source> = Vec::new();
    for run in args.all_runs() {
        steps.show(&format!("reading '{}'", run.display()));
        sources.push(Source::read(run)?);
    }
    steps.show("computing the figures");
    let report = match sources.first_chunk() {
        Some(pair) if !args.compare.is_empty() => Report::comparing(pair, args.epsilon),
        _ => Report::of(&sources, args.epsilon),
    };
    show(args, page.as_deref(), &report, steps)
}

/// The records in the files of `haulage tune --json`. `None` if the arguments are run directories.
fn tune_records(args: &Args) -> anyhow::Result<Option<Vec<Record>>> {
    if args.runs.is_empty() || !args.runs.iter().all(|path| path.is_file()) {
        return Ok(None);
    }
    let mut records = Vec::new();
    for path in &args.runs {
        let shown = path.display();
        let text = std::fs::read(path).with_context(|| format!("cannot read '{shown}'"))?;
        let read = Records::parse(&text).map_err(|why| {
            anyhow::anyhow!(
                "'{shown}' is neither a run directory nor a file of haulage tune --json: {why}"
            )
        })?;
        records.extend(read.pairs);
    }
    Ok(Some(records))
}

/// The file that takes the page, unless what is read lies there.
fn page_file(args: &Args) -> anyhow::Result<Option<PathBuf>> {
    let Some(file) = args.page() else { return Ok(None) };
    let is_data = file.file_name().is_some_and(|name| files::ALL.iter().any(|of| name == *of));
    let is_read = |run: &PathBuf| {
        output::is_same_file(&file, run)
            || (is_data && output::is_same_file(output::parent_of(&file), run))
    };
    if args.all_runs().iter().any(is_read) {
        bail!("'{}' is read and cannot take the page", file.display());
    }
    Ok(Some(file))
}

fn show(
    args: &Args,
    page: Option<&Path>,
    report: &Report<'_>,
    steps: &mut Steps,
) -> anyhow::Result<()> {
    steps.clear();
    if let Some(file) = page {
        let page = report::page::render(report, output::parent_of(file));
        output::write_file(file, page.as_bytes())?;
        eprintln!("haulage report: wrote '{}'", file.display());
    }
    if args.svg.is_some() || args.png.is_some() {
        draw(report, args, steps)?;
    }
    if args.text {
        let text = report::text::render(report, output::columns());
        output::print(&text)?;
    }
    Ok(())
}

/// Pixels of a PNG for each unit of its drawing: 300 per inch.
const PNG_SCALE: f32 = 3.125;

fn draw(report: &Report<'_>, args: &Args, steps: &mut Steps) -> anyhow::Result<()> {
    for dir in [&args.svg, &args.png].into_iter().flatten() {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make '{}'", dir.display()))?;
    }
    let drawings = drawing::drawings(report);
    steps.show("drawing");
    for (done, drawing) in drawings.iter().enumerate() {
        steps.show_nth("drawing", done, drawings.len());
        let name = &drawing.name;
        if let Some(dir) = &args.svg {
            output::write_file(&dir.join(format!("{name}.svg")), drawing.svg.as_bytes())?;
        }
        if let Some(dir) = &args.png {
            let png = drawing
                .png(PNG_SCALE)
                .map_err(|why| anyhow::anyhow!("cannot draw {name} as PNG: {why}"))?;
            output::write_file(&dir.join(format!("{name}.png")), &png)?;
        }
    }
    steps.clear();
    eprintln!("haulage report: {} drawings", drawings.len());
    Ok(())
}
