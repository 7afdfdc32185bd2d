//! The texts of `--help` and `--version`.

use crate::cp::flags::flag::{Flag, Group, Origin};
use crate::cp::flags::flags;

/// Lines are no longer than this.
const COLUMNS: usize = 80;

/// Where the text of an option begins.
const TEXT_COLUMN: usize = 26;

const SYNOPSES: &[&str] = &[
    "[OPTION]... [-T] SOURCE DEST",
    "[OPTION]... SOURCE... DIRECTORY",
    "[OPTION]... -t DIRECTORY SOURCE...",
];

const SUMMARY: &str = "Copies SOURCE to DEST, or each SOURCE into DIRECTORY, with GNU cp's \
                       options. Long options may be shortened to a beginning that no other has.";

const NOTES: &[&str] = &[
    "LIST has commas between its words: mode, ownership, timestamps, links, context, xattr, all.",
    "CONTROL is none (off), simple (never), existing (nil) or numbered (t); without it the \
     variable VERSION_CONTROL decides, or else existing: numbered if there are numbered backups \
     already. SIMPLE_BACKUP_SUFFIX stands for --suffix.",
    "With -f and -b, a file that is copied onto itself is copied to its backup.",
    "On SIGUSR1 a line on standard error tells how far the copy is; GNU cp dies of it.",
    "The exit status is 0 when everything was copied and 1 otherwise.",
];

/// The text of `--help` of a program that was called as `called`.
pub(crate) fn text(called: &str) -> String {
    let mut text = String::new();
    for (index, synopsis) in SYNOPSES.iter().enumerate() {
        let begin = if index == 0 { "Usage:" } else { "  or: " };
        text.push_str(&format!("{begin} {called} {synopsis}\n"));
    }
    text.push('\n');
    text.push_str(&filled(SUMMARY, 0));
    for group in Group::ALL {
        text.push_str(&format!("\n{}:\n", group.heading()));
        for flag in flags().filter(|flag| flag.group == group) {
            text.push_str(&entry(flag));
        }
    }
    for note in NOTES {
        text.push('\n');
        text.push_str(&filled(note, 0));
    }
    text
}

/// The text of `--version`.
pub(crate) fn version() -> String {
    format!("cp (haulage) {}\n", env!("CARGO_PKG_VERSION"))
}

fn entry(flag: &Flag) -> String {
    let is_ours = flag.origin == Origin::Own;
    // Options without a letter stand under the long names of the others. Whoever reads GNU's
    // options from these lines goes by how they begin, so our own begin otherwise.
    let indent = match (flag.shorts.is_empty(), is_ours) {
        (false, _) => "  ",
        (true, false) => "      ",
        (true, true) => "    ",
    };
    let label = format!("{indent}{}", flag.label());
    let ours = if is_ours { " (haulage's own)" } else { "" };
    let help = filled(&format!("{}{ours}", flag.help), TEXT_COLUMN);
    // Two spaces at least part them.
    if label.len() + 2 <= TEXT_COLUMN {
        format!("{label:<TEXT_COLUMN$}{}", help.trim_start())
    } else {
        format!("{label}\n{help}")
    }
}

/// `text` in lines that begin at the column `indent`.
fn filled(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.len() + 1 + word.len() > COLUMNS - 1 {
            lines.push_str(&format!("{:indent$}{line}\n", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    format!("{lines}{:indent$}{line}\n", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_shown_within_the_columns() {
        let text = text("cp");
        for flag in flags() {
            assert!(text.contains(&flag.label()), "{} is missing", flag.label());
            assert!(!flag.help.is_empty(), "{} has no text", flag.label());
        }
        for line in text.lines() {
            assert!(line.chars().count() < COLUMNS, "too long: {line}");
            assert_eq!(line, line.trim_end());
        }
    }
}
