//! Manual pages of the commands that clap parses.

use clap::builder::StyledStr;
use clap::{Arg, Command};

use super::roff::{self, bold, dashes, italic, paragraph, sentence};

/// The manual page of the command `name`. `about` is its purpose in a phrase, and `others` are pages to
/// see besides.
pub(crate) fn page(name: &str, about: &str, mut command: Command, others: &[String]) -> String {
    command.build();
    let called = dashes(&format!("haulage {name}"));
    let mut sections =
        format!(".SH SYNOPSIS\n.B {called}\n[\\fIOPTION\\fR]...{}\n", synopsis(&command));
    sections.push_str(".SH DESCRIPTION\n");
    sections.push_str(&paragraphs(&text(command.get_long_about().or(command.get_about()))));
    let operands: String = command.get_positionals().filter(is_shown).map(entry).collect();
    if !operands.is_empty() {
        sections.push_str(&format!(".SH OPERANDS\n{operands}"));
    }
    let mut options: Vec<&Arg> = command.get_arguments().filter(|it| !it.is_positional()).collect();
    // Those that every command has come last, as in the help.
    options.sort_by_key(|arg| arg.get_id() == "help");
    sections.push_str(".SH OPTIONS\n");
    sections.push_str(&options.into_iter().map(entry).collect::<String>());
    sections.push_str(&after_help(&text(command.get_after_help())));
    roff::page(&format!("haulage-{name}"), about, &sections, others)
}

/// Whether it is for users.
fn is_shown(arg: &&Arg) -> bool {
    !arg.is_hide_set()
}

fn is_switch(arg: &Arg) -> bool {
    !arg.is_positional() && !arg.get_action().takes_values()
}

fn metavars(arg: &Arg) -> Vec<String> {
    arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect()
}

fn text(styled: Option<&StyledStr>) -> String {
    styled.map(ToString::to_string).unwrap_or_default()
}

fn synopsis(command: &Command) -> String {
    let operand = |arg: &Arg| {
        let name = italic(&metavars(arg).join(" "));
        let several = arg.get_num_args().is_some_and(|count| count.max_values() > 1);
        let name = if several { format!("{name}...") } else { name };
        if arg.is_required_set() { format!(" {name}") } else { format!(" [{name}]") }
    };
    command.get_positionals().filter(is_shown).map(operand).collect()
}

/// Paragraphs that empty lines separate.
fn paragraphs(text: &str) -> String {
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join(".PP\n")
}

/// An argument, what it is for, its default and its values.
fn entry(arg: &Arg) -> String {
    let mut entry = format!(".TP\n{}\n", tag(arg));
    let (help, stated) = split_default(&text(arg.get_long_help().or(arg.get_help())));
    // clap says there how the two forms of the help differ.
    let help = if arg.get_id() == "help" { "Print help".to_owned() } else { help };
    let default = stated.unwrap_or_else(|| default_of(arg));
    entry.push_str(&paragraph(&sentence(&help)));
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() {
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        entry.push_str(&paragraph(&format!("Values: {}.", names.join(", "))));
    }
    if !default.is_empty() {
        entry.push_str(&paragraph(&format!("Default: {default}.")));
    }
    entry
}

/// The help without the default that it states in brackets, and that default.
fn split_default(help: &str) -> (String, Option<String>) {
    let parts = help.split_once(" [default:").and_then(|(before, rest)| {
        let (default, after) = rest.split_once(']')?;
        Some((format!("{before}{after}"), default.trim().to_owned()))
    });
    parts.map_or((help.to_owned(), None), |(help, default)| (help, Some(default)))
}

/// The default that clap would show.
fn default_of(arg: &Arg) -> String {
    let values = arg.get_default_values();
    if arg.is_hide_default_value_set() || !arg.get_action().takes_values() {
        return String::new();
    }
    values.iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(", ")
}

fn tag(arg: &Arg) -> String {
    let short = arg.get_short().map(|letter| bold(&format!("-{letter}")));
    let long = arg.get_long().map(|name| bold(&format!("--{name}")));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let metavars: Vec<String> = metavars(arg).iter().map(|name| italic(name)).collect();
    match (names.is_empty(), is_switch(arg)) {
        (true, _) => metavars.join(" "),
        (false, true) => names.join(", "),
        (false, false) => format!("{} {}", names.join(", "), metavars.join(" ")),
    }
}

/// The text below the options: `Examples:` and `Exit status:` have sections of their own.
fn after_help(text: &str) -> String {
    let mut page = String::new();
    let mut notes = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        if let Some(examples) = block.trim_start().strip_prefix("Examples:\n") {
            let lines = examples.lines().map(|line| dashes(line.trim()));
            let lines: Vec<String> = lines.collect();
            page.push_str(&format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", lines.join("\n")));
        } else if let Some(status) = block.trim_start().strip_prefix("Exit status:") {
            page.push_str(&format!(".SH EXIT STATUS\n{}", paragraph(status)));
        } else {
            notes.push(paragraph(block));
        }
    }
    if !notes.is_empty() {
        page.push_str(&format!(".SH NOTES\n{}", notes.join(".PP\n")));
    }
    page
}

/// `help` as one phrase, for completions: its first sentence, without the default.
pub(super) fn phrase(help: &str) -> String {
    let (help, _) = split_default(help);
    help.split(". ").next().unwrap_or_default().trim_end_matches('.').replace('`', "")
}
