//! The text of `--help`.

use report::columns::{wrapped, wrapped_behind};

use crate::cp::flags::flag::Flag;
use crate::cp::flags::{OWN, gnu_in_help_order};

/// Lines are shorter, as those of GNU cp, also on wider terminals and in pipes.
const COLUMNS: usize = 80;

/// Less would leave the texts of options too narrow.
const COLUMNS_MIN: usize = 60;

/// The column of the second column: an option's text.
const TEXT_COLUMN: usize = 31;

const SYNOPSES: &[&str] = &[
    "[OPTION]... [-T] SOURCE DEST",
    "[OPTION]... SOURCE... DIRECTORY",
    "[OPTION]... -t DIRECTORY SOURCE...",
];

const SUMMARY: &str = "Copy SOURCE to DEST, or each SOURCE into DIRECTORY, with the fastest engine \
                       that was measured for it. Options and messages are those of GNU cp.";

const ARGUMENTS: &str = "An argument that the long form requires is required by the short form too. A \
                         long option may be abbreviated to a prefix that no other option of \
                         GNU cp has.";

const OWN_HEADING: &str = "Options that GNU cp does not have:";

const NOTES: &[&str] = &[
    "LIST is mode, ownership, timestamps, links, context, xattr or all, separated by commas.",
    "CONTROL is none (or off), simple (never), existing (nil) or numbered (t). Without it the \
     variable VERSION_CONTROL is used, else existing. SIMPLE_BACKUP_SUFFIX sets the default of \
     --suffix.",
    "With -f and -b, a file that is copied onto itself is copied to its backup.",
    "SIGUSR1 prints one line of progress to standard error; GNU cp is terminated by it.",
    "The exit status is 0 if everything was copied, else 1.",
];

/// The text of `--help` for a program that was called as `called`, on a terminal of `columns` columns.
pub(crate) fn text(called: &str, columns: usize) -> String {
    let columns = columns.clamp(COLUMNS_MIN, COLUMNS) - 1;
    let mut text = String::new();
    for (index, synopsis) in SYNOPSES.iter().enumerate() {
        let begin = if index == 0 { "Usage:" } else { "  or: " };
        text.push_str(&format!("{begin} {called} {synopsis}\n"));
    }
    text.push_str(&wrapped(SUMMARY, columns, ""));
    text.push('\n');
    text.push_str(&wrapped(ARGUMENTS, columns, ""));
    text.push('\n');
    gnu_in_help_order().for_each(|flag| text.push_str(&entry(flag, "      ", columns)));
    text.push_str(&format!("\n{OWN_HEADING}\n"));
    OWN.iter().for_each(|flag| text.push_str(&entry(flag, "    ", columns)));
    for note in NOTES {
        text.push('\n');
        text.push_str(&wrapped(note, columns, ""));
    }
    text
}

/// `indent` is that of an option without a letter. Scripts that compare the options of GNU cp with its --help
/// look for lines that start with six blanks and two dashes.
fn entry(flag: &Flag, indent: &str, columns: usize) -> String {
    let indent = if flag.shorts().next().is_some() { "  " } else { indent };
    let label = format!("{indent}{}", flag.label());
    // At least two blanks separate the columns.
    if label.len() + 2 <= TEXT_COLUMN {
        wrapped_behind(&format!("{label:<TEXT_COLUMN$}"), flag.help, columns)
    } else {
        format!("{label}\n{}", wrapped_behind(&" ".repeat(TEXT_COLUMN), flag.help, columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_shown_within_the_columns() {
        for (terminal, columns) in [(40, 60), (60, 60), (72, 72), (80, 80), (200, 80)] {
            let text = text("cp", terminal);
            for flag in gnu_in_help_order().chain(OWN) {
                assert!(text.contains(&flag.label()), "{} is missing", flag.label());
                assert!(!flag.help.is_empty(), "{} has no text", flag.label());
            }
            for line in text.lines() {
                // An option to type is a word that cannot be broken.
                let is_one_word = columns < COLUMNS && line.split_whitespace().count() == 1;
                let fits = line.chars().count() < columns;
                assert!(fits || is_one_word, "too long for {columns}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}
