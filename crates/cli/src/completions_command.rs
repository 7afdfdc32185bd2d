//! `haulage completions SHELL`: the completion script for a shell.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::docs::completions::Shell;
use crate::terminal::output;

/// Print the completion script for a shell.
///
/// The script completes the commands of haulage, their options, and their values: engines,
/// experiments, run directories, files. 'cp --generate=SHELL' prints the script for a haulage that is
/// named cp.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Examples:\n  \
        source <(haulage completions bash)\n  \
        haulage completions zsh > ~/.zfunc/_haulage\n  \
        haulage completions fish > ~/.config/fish/completions/haulage.fish"
)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,

    /// The words of a line to complete, which the script passes
    #[arg(last = true, hide = true)]
    words: Vec<OsString>,
}

/// Runs the command. Exit status 1 if the script cannot be printed, 2 for bad usage.
pub(crate) fn run(
    args: &Args,
    completions: fn(Shell, Vec<OsString>) -> String,
) -> anyhow::Result<ExitCode> {
    output::print(&completions(args.shell, args.words.clone()))?;
    Ok(ExitCode::SUCCESS)
}
