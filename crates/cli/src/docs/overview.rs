//! The manual page of haulage itself.

use super::roff::{self, paragraph, reference, sentence};

const DESCRIPTION: &str = r#".SH SYNOPSIS
.B haulage
\fICOMMAND\fR [\fIARGUMENT\fR]...
.br
.B haulage
\fB\-\-help\fR | \fB\-\-version\fR
.SH DESCRIPTION
haulage copies files with the options and messages of GNU cp.
It also measures which of the copy methods of the kernel is the fastest on this machine, with the code that the
copies use.
A copy method is called an engine.
A variant is an engine with its parameters, such as
.BR read_write:256K@2 :
reads and writes through a buffer of 256 KiB by two workers.
.PP
A haulage that is named cp acts as
.BR "haulage cp" .
"#;

const OPTIONS: &str = r#".SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
Lists the commands.
.TP
\fB\-V\fR, \fB\-\-version\fR
Prints the version, the commit that the program was built from, the build profile, the target, and the kernel
with the calls that were found to work.
.SH ENVIRONMENT
.TP
.B HAULAGE_PROFILE
The file with the variants that were measured to be the fastest.
If it is empty, none is used.
.TP
.B XDG_CONFIG_HOME
The directory of
.I haulage/profile.toml
without HAULAGE_PROFILE.
The default is
.IR ~/.config .
.SH EXIT STATUS
.TP
.B 0
Success.
.TP
.B 1
The command could not do all that it was asked for.
.TP
.B 2
Bad usage.
.B haulage cp
exits with 1, as GNU cp does.
"#;

/// The page. `commands` are names and purposes.
pub(crate) fn page(commands: &[(&str, &str)]) -> String {
    let pages = commands.iter().map(|(name, _)| format!("haulage-{name}(1)"));
    let pages: Vec<String> = pages.chain(["cp(1)".to_owned()]).collect();
    let mut sections = format!("{DESCRIPTION}.SH COMMANDS\n");
    for (page, (_, about)) in pages.iter().zip(commands) {
        let about = paragraph(&sentence(about));
        sections.push_str(&format!(".TP\n{}\n{about}", reference(page)));
    }
    sections.push_str(OPTIONS);
    let about = "copy files with the fastest engine, and measure which one that is";
    roff::page("haulage", about, &sections, &pages)
}
