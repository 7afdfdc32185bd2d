//! The manual page, as roff, from the flag table.

use crate::cp::flags::flag::Flag;
use crate::cp::flags::{OWN, gnu_in_help_order};
use crate::docs::roff::{self, bold, dashes, italic, sentence};

const HEAD: &str = r#".SH SYNOPSIS
.B @CALLED@
[\fIOPTION\fR]... [\fB\-T\fR] \fISOURCE\fR \fIDEST\fR
.br
.B @CALLED@
[\fIOPTION\fR]... \fISOURCE\fR... \fIDIRECTORY\fR
.br
.B @CALLED@
[\fIOPTION\fR]... \fB\-t\fR \fIDIRECTORY\fR \fISOURCE\fR...
.SH DESCRIPTION
Copies \fISOURCE\fR to \fIDEST\fR, or each \fISOURCE\fR into \fIDIRECTORY\fR.
Options and messages are those of GNU cp.
The command is \fBhaulage cp\fR, or \fBcp\fR if the program is installed under that name.
.PP
Options may precede and follow operands; \fB\-\-\fR ends the options.
A long option may be abbreviated to a prefix that no other option of GNU cp has.
The same holds for the values of an option.
.PP
A file that changes while it is copied, or that cannot be copied completely, is reported on standard
error, and the other files are copied.
.SH OPTIONS
"#;

const TAIL: &str = r#".SH EXIT STATUS
.TP
.B 0
Everything was copied, or skipped because of an option.
.TP
.B 1
An entry was not copied completely, or an answer to a question was no.
.SH SIGNALS
.TP
.B SIGUSR1
Prints the progress and the files being written to standard error.
GNU cp is terminated by this signal.
.TP
.BR SIGINT ", " SIGTERM ", " SIGHUP
The copy stops, files that are incomplete are reported, directories that were entered get their
attributes, and the process is terminated by the signal.
A read or write that does not return within a second is abandoned.
.SH ENVIRONMENT
.TP
.B POSIXLY_CORRECT
Options end at the first operand, and a dangling symbolic link is written through.
.TP
.B SIMPLE_BACKUP_SUFFIX
The suffix of simple backups.
.TP
.B VERSION_CONTROL
The kind of backups, unless \fB\-\-backup=\fICONTROL\fR is given.
"#;

/// The whole page, for a program that is called cp or for the command of haulage.
pub(crate) fn page(is_called_cp: bool) -> String {
    let (name, called) = if is_called_cp { ("cp", "cp") } else { ("haulage-cp", "haulage cp") };
    let mut sections = HEAD.replace("@CALLED@", called);
    gnu_in_help_order().for_each(|flag| sections.push_str(&entry(flag)));
    sections.push_str(".SS Options that GNU cp does not have\n");
    OWN.iter().for_each(|flag| sections.push_str(&entry(flag)));
    sections.push_str(TAIL);
    let haulage = (!is_called_cp).then_some("haulage(1)");
    let others = haulage.into_iter().chain(["copy_file_range(2)", "ioctl_ficlone(2)"]);
    let others: Vec<String> = others.map(str::to_owned).collect();
    roff::page(name, "copy files and directories", &sections, &others)
}

fn entry(flag: &Flag) -> String {
    let help = sentence(&dashes(flag.help));
    let mut entry = format!(".TP\n{}\n{help}\n", flag.styled_label(bold, italic));
    if !flag.details.is_empty() {
        entry.push_str(&dashes(flag.details));
        entry.push('\n');
    }
    if let Some(values) = flag.values {
        let words: Vec<String> = values().iter().map(|synonyms| synonyms.join(" = ")).collect();
        entry.push_str(&format!("Values: {}.\n", dashes(&words.join(", "))));
    }
    entry
}
