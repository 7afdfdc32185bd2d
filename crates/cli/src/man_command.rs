//! `haulage man [COMMAND]`: the manual pages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use crate::terminal::command::usage_error;
use crate::terminal::output;

/// A manual page.
pub(crate) struct Page {
    /// The command that it describes; `None` for haulage itself.
    pub(crate) command: Option<&'static str>,
    /// The text, as roff.
    pub(crate) text: String,
}

/// Print a manual page, or write all of them.
///
/// The page is roff, which man(1), mandoc(1) and groff(1) read. Without COMMAND it is the page of
/// haulage itself, haulage(1). The page of COMMAND is called haulage-COMMAND(1).
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Examples:\n  \
        haulage man cp | man -l -\n  \
        haulage man --all ~/.local/share/man/man1"
)]
pub(crate) struct Args {
    /// The command whose page is printed
    #[arg(value_name = "COMMAND")]
    command: Option<String>,

    /// Write all pages to the directory DIR, which is made if it does not exist
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    all: Option<PathBuf>,
}

/// Runs the command. Exit status 1 if a page cannot be written, 2 for bad usage.
pub(crate) fn run(args: &Args, pages: Vec<Page>) -> anyhow::Result<ExitCode> {
    match &args.all {
        Some(dir) => write_all(&pages, dir)?,
        None => output::print(&page_of(pages, args.command.as_deref())?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn page_of(pages: Vec<Page>, command: Option<&str>) -> anyhow::Result<String> {
    let page = pages.into_iter().find(|page| page.command == command);
    let unknown = || {
        let name = command.unwrap_or_default();
        usage_error(format!("no command is called '{name}'; see haulage --help"))
    };
    Ok(page.ok_or_else(unknown)?.text)
}

fn write_all(pages: &[Page], dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make '{}'", dir.display()))?;
    for Page { command, text } in pages {
        let name = command.map_or("haulage.1".to_owned(), |name| format!("haulage-{name}.1"));
        let file = dir.join(name);
        output::write_file(&file, text.as_bytes())?;
    }
    eprintln!("haulage man: wrote {} pages to '{}'", pages.len(), dir.display());
    Ok(())
}
