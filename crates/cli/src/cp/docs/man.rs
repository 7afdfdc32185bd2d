//! The manual page, written as roff from the table of options.

use crate::cp::flags::flag::{Flag, Group, Origin};
use crate::cp::flags::flags;

const HEAD: &str = r#".SH NAME
cp \- copy files and directories
.SH SYNOPSIS
.B cp
[\fIOPTION\fR]... [\fB\-T\fR] \fISOURCE\fR \fIDEST\fR
.br
.B cp
[\fIOPTION\fR]... \fISOURCE\fR... \fIDIRECTORY\fR
.br
.B cp
[\fIOPTION\fR]... \fB\-t\fR \fIDIRECTORY\fR \fISOURCE\fR...
.SH DESCRIPTION
Copies \fISOURCE\fR to \fIDEST\fR, or each \fISOURCE\fR into \fIDIRECTORY\fR.
It takes the options of GNU cp with the meaning they have there, and prints the same messages.
It is run as \fBhaulage cp\fR, or under the name \fBcp\fR.
.PP
Options may stand before, between and after the names; after \fB\-\-\fR there are only names.
A long option may be shortened to a beginning that no other of GNU cp's options has.
The same holds for the words that an option takes.
.PP
A file that changes while it is copied, and every other file that could not be copied whole, is
named on standard error, and the others are copied all the same.
.SH OPTIONS
"#;

const TAIL: &str = r#".SH EXIT STATUS
.TP
.B 0
Everything was copied, or left alone because an option said so.
.TP
.B 1
Something was not, or an answer to a question was no.
.SH SIGNALS
.TP
.B SIGUSR1
A line on standard error tells how far the copy is, and which files are being written.
GNU cp dies of it.
.TP
.BR SIGINT ", " SIGTERM ", " SIGHUP
The copy stops, files that are incomplete are named, directories that were entered get their
attributes, and the program dies of the signal.
Where a read or write does not return within a second it is not waited for.
.SH ENVIRONMENT
.TP
.B POSIXLY_CORRECT
Options end at the first name, and a dangling symbolic link is written through.
.TP
.B SIMPLE_BACKUP_SUFFIX
What names of simple backups end in.
.TP
.B VERSION_CONTROL
How backups are named, unless \fB\-\-backup=\fICONTROL\fR says so.
.SH SEE ALSO
.BR copy_file_range (2),
.BR ioctl_ficlone (2)
"#;

/// The whole page.
pub(crate) fn page() -> String {
    let mut page = format!(".TH CP 1 \"\" \"haulage {}\"\n", env!("CARGO_PKG_VERSION"));
    page.push_str(HEAD);
    for group in Group::ALL {
        page.push_str(&format!(".SS {}\n", group.heading()));
        for flag in flags().filter(|flag| flag.group == group) {
            page.push_str(&entry(flag));
        }
    }
    page.push_str(TAIL);
    page
}

fn entry(flag: &Flag) -> String {
    let mut entry = format!(".TP\n{}\n", tag(flag));
    entry.push_str(&sentence(flag.help));
    if !flag.details.is_empty() {
        entry.push_str(&dashes(flag.details));
        entry.push('\n');
    }
    if let Some(values) = flag.values {
        let words: Vec<String> = values().iter().map(|synonyms| synonyms.join(" = ")).collect();
        entry.push_str(&format!("Words: {}.\n", dashes(&words.join(", "))));
    }
    if flag.origin == Origin::Own {
        entry.push_str("(Not in GNU cp.)\n");
    }
    entry
}

/// [`Flag::label`] with its names in bold and what stands for an argument in italics.
fn tag(flag: &Flag) -> String {
    let label = dashes(&flag.label());
    let Some(begin) =
        label.find(|c: char| matches!(c, '=' | '[') || c == ' ' && flag.longs.is_empty())
    else {
        return format!("\\fB{}\\fR", label.replace(", ", "\\fR, \\fB"));
    };
    let (names, argument) = label.split_at(begin);
    let names = names.replace(", ", "\\fR, \\fB");
    let metavar = argument.trim_matches(|c| matches!(c, '=' | '[' | ']' | ' '));
    format!("\\fB{names}\\fR{}", argument.replace(metavar, &format!("\\fI{metavar}\\fR")))
}

/// The line of `--help` as a sentence.
fn sentence(help: &str) -> String {
    let mut letters = dashes(help).chars().collect::<Vec<_>>();
    if let Some(first) = letters.first_mut() {
        first.make_ascii_uppercase();
    }
    letters.iter().chain(".\n".chars().collect::<Vec<_>>().iter()).collect()
}

/// A dash is a minus to type, not a hyphen to read, and a word beginning a line with a dot would
/// be a request.
fn dashes(text: &str) -> String {
    text.replace('-', "\\-").replace(" .", " \\&.")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn every_option_has_an_entry() {
        let page = page();
        for flag in flags() {
            let plain = ["\\fB", "\\fI", "\\fR"].iter().fold(page.clone(), |p, f| p.replace(f, ""));
            assert!(plain.contains(&dashes(&flag.label())), "{} is missing", flag.label());
        }
    }

    #[test]
    fn groff_takes_the_page_without_a_warning() {
        let groff = Command::new("groff")
            .args(["-man", "-Tascii", "-ww", "-z"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut groff) = groff else {
            eprintln!("skipped: there is no groff here");
            return;
        };
        let mut stdin = groff.stdin.take().expect("it is piped");
        stdin.write_all(page().as_bytes()).expect("groff reads its input");
        drop(stdin);
        let outcome = groff.wait_with_output().expect("groff ends");
        assert_eq!(String::from_utf8_lossy(&outcome.stderr), "");
        assert!(outcome.status.success());
    }
}
