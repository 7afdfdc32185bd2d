//! Diagnostics, questions and announcements as text. The messages are those of GNU cp.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haulage::events::{
    Announcement, Diagnostic, Offload, Question, Severity, SparseDetection, fill,
};

use crate::cp::messages::engine_line;
use crate::cp::messages::quote;
use crate::cp::messages::usage_error::UsageError;
use crate::cp::units;

/// The lines for a diagnostic.
pub(crate) fn of_diagnostic(diagnostic: &Diagnostic) -> Vec<u8> {
    if *diagnostic == Diagnostic::ParentsNeedDirectory {
        let words = "with --parents, the destination must be a directory";
        return UsageError::Misuse(words.into()).lines();
    }
    let mut words: Vec<u8> = match diagnostic.severity() {
        Severity::Warning => b"warning: ".into(),
        Severity::Notice => b"note: ".into(),
        Severity::Failure => Vec::new(),
    };
    words.extend(diagnostic.message(&quoted));
    line(&words)
}

fn quoted(name: &Path) -> Vec<u8> {
    quote::name(name)
}

/// The line for `words`, in which each `{}` stands for one of `names`.
pub(crate) fn message(words: &str, names: &[&Path]) -> Vec<u8> {
    line(&fill(&quoted, words, names))
}

fn line(words: &[u8]) -> Vec<u8> {
    [b"cp: ", words, b"\n"].concat()
}

/// The text of a question, without a newline: the answer is on the same line.
pub(crate) fn of_question(question: &Question) -> Vec<u8> {
    let words = match question {
        Question::Overwrite { dst } => fill(&quoted, "overwrite {}? ", &[dst]),
        Question::OverwriteUnwritable { dst, mode, removing } => {
            let bits = mode.as_raw_mode();
            let letters = permission_letters(bits);
            let pattern = if *removing {
                format!("replace {{}}, overriding mode {bits:04o} ({letters})? ")
            } else {
                format!("unwritable {{}} (mode {bits:04o}, {letters}); try anyway? ")
            };
            fill(&quoted, &pattern, &[dst])
        }
    };
    [b"cp: ", &words[..]].concat()
}

/// Permissions as `ls -l` shows them.
fn permission_letters(mode: u32) -> String {
    let mut letters = String::new();
    for (shift, special, lower, upper) in
        [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
    {
        let bits = mode >> shift;
        letters.push(if bits & 4 == 0 { '-' } else { 'r' });
        letters.push(if bits & 2 == 0 { '-' } else { 'w' });
        letters.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => lower,
            (true, false) => upper,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    letters
}

/// The line for bytes that are not on the medium at the end.
pub(crate) fn of_unwritten(unwritten_bytes: u64, dst: &Path) -> Vec<u8> {
    let amount = units::bytes(unwritten_bytes);
    let words = format!("{amount} are still being written to {{}}; sync -f {{}} waits for them");
    message(&words, &[dst, dst])
}

/// The line for an announcement.
pub(crate) fn of_announcement(announcement: &Announcement) -> Vec<u8> {
    let mut words = match announcement {
        Announcement::Copied { src, dst, backup: None } => fill(&quoted, "{} -> {}", &[src, dst]),
        Announcement::Copied { src, dst, backup: Some(backup) } => {
            fill(&quoted, "{} -> {} (backup: {})", &[src, dst, backup])
        }
        // GNU cp does not quote these two.
        Announcement::ParentMade { src, dst } => {
            [src.as_os_str().as_bytes(), b" -> ", dst.as_os_str().as_bytes()].concat()
        }
        Announcement::Removed { dst } => fill(&quoted, "removed {}", &[dst]),
        Announcement::Restored { backup, dst } => {
            fill(&quoted, "{} -> {} (unbackup)", &[backup, dst])
        }
        Announcement::Skipped { dst } => fill(&quoted, "skipped {}", &[dst]),
        Announcement::LeftOut { src } => fill(&quoted, "excluded {}", &[src]),
        Announcement::Data(offload) => debug_words(*offload).into_bytes(),
        Announcement::Engine { src, dst, chosen, attempts } => {
            let names = fill(&quoted, "haulage: {} -> {}: ", &[src, dst]);
            [names, engine_line::words(chosen, attempts).into_bytes()].concat()
        }
    };
    words.push(b'\n');
    words
}

fn debug_words(offload: Offload) -> String {
    let sparse = match offload.sparse {
        SparseDetection::No => "no",
        SparseDetection::Unknown => "unknown",
        SparseDetection::Zeros => "zeros",
        SparseDetection::SeekHole => "SEEK_HOLE",
        SparseDetection::SeekHoleAndZeros => "SEEK_HOLE + zeros",
    };
    let Offload { offload, reflink, .. } = offload;
    format!("copy offload: {offload}, reflink: {reflink}, sparse detection: {sparse}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_shown_as_ls_does() {
        for (mode, letters) in [
            (0o444, "r--r--r--"),
            (0o000, "---------"),
            (0o6755, "rwsr-sr-x"),
            (0o7000, "--S--S--T"),
            (0o1777, "rwxrwxrwt"),
        ] {
            assert_eq!(permission_letters(mode), letters, "{mode:o}");
        }
    }
}
