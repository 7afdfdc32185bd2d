//! Diagnostics, questions and announcements as text. The messages are those of GNU cp.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use engines::profile::Problem;
use haulage::events::{
    Action, Announcement, Diagnostic, Errno, Offload, OldAttribute, Question, Severity,
    SparseDetection,
};

use crate::cp::messages::engine_line;
use crate::cp::messages::quote;
use crate::cp::messages::usage_error::UsageError;
use crate::cp::units;

/// The lines for a diagnostic.
pub(crate) fn of_diagnostic(diagnostic: &Diagnostic) -> Vec<u8> {
    if *diagnostic == Diagnostic::ParentsNeedDirectory {
        return UsageError::ParentsNeedDirectory.lines();
    }
    // GNU cp puts the name first in this message, without quotes.
    if let Diagnostic::RelativeSymlinkElsewhere { dst } = diagnostic {
        let words = b": can make relative symbolic links only in current directory";
        return line(&[dst.as_os_str().as_bytes(), words].concat());
    }
    let mut words: Vec<u8> = match diagnostic.severity() {
        Severity::Warning => b"warning: ".into(),
        Severity::Notice => b"note: ".into(),
        Severity::Failure => Vec::new(),
    };
    words.extend(words_of(diagnostic));
    if let Some(errno) = errno_of(diagnostic) {
        words.extend_from_slice(b": ");
        words.extend(error_words(&errno.into()).into_bytes());
    }
    line(&words)
}

fn line(words: &[u8]) -> Vec<u8> {
    [b"cp: ", words, b"\n"].concat()
}

/// The text of `error`, without its number.
pub(crate) fn error_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.find(" (os error ").map_or(text.clone(), |end| text[..end].to_owned())
}

/// A text with `{}` where names go.
fn fill(pattern: &str, names: &[&Path]) -> Vec<u8> {
    let mut names = names.iter();
    let mut words = Vec::new();
    for (index, piece) in pattern.split("{}").enumerate() {
        if index > 0 {
            let name = names.next().expect("a pattern has as many places as names");
            words.extend(quote::name(name));
        }
        words.extend_from_slice(piece.as_bytes());
    }
    words
}

fn words_of(diagnostic: &Diagnostic) -> Vec<u8> {
    match diagnostic {
        Diagnostic::Failed { action, path, .. } => fill(pattern(*action), &[path]),
        Diagnostic::HardLink { src, dst, .. } => {
            fill("cannot create hard link {} to {}", &[dst, src])
        }
        Diagnostic::SymbolicLink { src, dst, .. } => {
            fill("cannot create symbolic link {} to {}", &[dst, src])
        }
        Diagnostic::Copy { src, dst, .. } => fill("error copying {} to {}", &[src, dst]),
        Diagnostic::Clone { src, dst, .. } => fill("failed to clone {} from {}", &[dst, src]),
        Diagnostic::Incomplete { dst, bytes, bytes_expected } => {
            fill(&format!("{{}} is incomplete: {bytes} of {bytes_expected} bytes"), &[dst])
        }
        Diagnostic::RangeFailed { dst } => {
            fill("cannot complete {}: another rank failed at a range of it", &[dst])
        }
        Diagnostic::Shrank { src, bytes, bytes_expected } => fill(
            &format!("{{}} shrank while being copied: {bytes} of {bytes_expected} bytes"),
            &[src],
        ),
        Diagnostic::Changed { src } => fill("{} changed while being copied", &[src]),
        Diagnostic::Interrupted { dst, bytes } => {
            fill(&format!("interrupted: {{}} is incomplete, {bytes} bytes written"), &[dst])
        }
        Diagnostic::Differs { src, dst, at } => {
            fill(&format!("{{}} differs from {{}} at byte offset {at}"), &[dst, src])
        }
        Diagnostic::Unverifiable { path } => {
            fill("cannot verify the copy: {} is no regular file", &[path])
        }
        Diagnostic::InterruptedUnverified { dst } => {
            fill("interrupted: {} is complete but was not verified", &[dst])
        }
        Diagnostic::InterruptedBefore { dst } => {
            fill("interrupted: {} is as it was before", &[dst])
        }
        Diagnostic::NotTakenOver { what, dst, .. } => match what {
            OldAttribute::Ownership => fill("the new {} is not its old owner's", &[dst]),
            OldAttribute::Permissions => fill("the new {} has not its old permissions", &[dst]),
            OldAttribute::Xattr(name) if name.is_empty() => {
                fill("the new {} may lack attributes that it had", &[dst])
            }
            OldAttribute::Xattr(name) => {
                let name = std::ffi::OsStr::from_bytes(name);
                fill("the new {} lacks its old attribute {}", &[dst, name.as_ref()])
            }
        },
        Diagnostic::LeftOver { path, .. } => fill("cannot remove {}, which is left over", &[path]),
        Diagnostic::SourceReplaced { src } => {
            fill("skipping file {}, as it was replaced while being copied", &[src])
        }
        Diagnostic::DestinationReplaced { dst } => {
            fill("not writing to {}, as it was replaced while being copied", &[dst])
        }
        Diagnostic::DirectoryMoved { path } => {
            fill("{} was moved or replaced while what is in it was being copied", &[path])
        }
        Diagnostic::Xattr { name, dst, .. } if name.is_empty() => {
            fill("getting attributes for {}", &[dst])
        }
        // If the file system has no extended attributes, the name of one says nothing.
        Diagnostic::Xattr { dst, errno: Errno::OPNOTSUPP, .. } => {
            fill("setting attributes for {}", &[dst])
        }
        Diagnostic::Xattr { name, dst, .. } => {
            let name = std::ffi::OsStr::from_bytes(name);
            fill("setting attribute {} for {}", &[name.as_ref(), dst])
        }
        Diagnostic::Target { path, named: true, .. } => fill("target directory {}", &[path]),
        Diagnostic::Target { path, named: false, .. } => fill("target {}", &[path]),
        Diagnostic::ProfileUnusable { .. }
        | Diagnostic::ProfileLine { .. }
        | Diagnostic::ProfileForeign { .. }
        | Diagnostic::ProfileStale { .. } => words_of_profile(diagnostic),
        other => words_of_refusal(other),
    }
}

/// The messages about the profile.
fn words_of_profile(diagnostic: &Diagnostic) -> Vec<u8> {
    match diagnostic {
        Diagnostic::ProfileUnusable { path, problem } => {
            let why = match problem {
                Problem::Errno(errno) => error_words(&(*errno).into()),
                other => other.to_string(),
            };
            [fill("not using the profile {}: ", &[path]), why.into_bytes()].concat()
        }
        Diagnostic::ProfileLine { path, mistake } => {
            let why = mistake.to_string();
            [fill("of no use in the profile {}: ", &[path]), why.into_bytes()].concat()
        }
        Diagnostic::ProfileForeign { path } => {
            fill("the profile {} has nothing that was measured on this machine", &[path])
        }
        Diagnostic::ProfileStale { changes } => {
            let changes = changes.join("; ");
            format!("the profile is of another time: {changes}").into_bytes()
        }
        other => unreachable!("{other:?} has words elsewhere"),
    }
}

/// The messages about entries that were refused before a system call was tried.
fn words_of_refusal(diagnostic: &Diagnostic) -> Vec<u8> {
    match diagnostic {
        Diagnostic::OmittingDirectory { src } => {
            fill("-r not specified; omitting directory {}", &[src])
        }
        Diagnostic::SameFile { src, dst } => fill("{} and {} are the same file", &[src, dst]),
        Diagnostic::IntoItself { src, dst } => {
            fill("cannot copy a directory, {}, into itself, {}", &[src, dst])
        }
        Diagnostic::LocalToHost { path } => {
            fill("{} is on a local file system of this host", &[path])
        }
        Diagnostic::CyclicSymlink { src } => fill("cannot copy cyclic symbolic link {}", &[src]),
        Diagnostic::DirectoryInTheWay { src, dst } => {
            fill("cannot overwrite directory {} with non-directory {}", &[dst, src])
        }
        Diagnostic::NonDirectoryInTheWay { src, dst } => {
            fill("cannot overwrite non-directory {} with directory {}", &[dst, src])
        }
        Diagnostic::JustCreated { src, dst } => {
            fill("will not overwrite just-created {} with {}", &[dst, src])
        }
        Diagnostic::Record { src, dst } => {
            fill("will not overwrite {} with {}: it is the receipt", &[dst, src])
        }
        Diagnostic::SourceIsRecord { src } => {
            fill("not copying {}: it is the receipt, which is being written", &[src])
        }
        Diagnostic::BackupDestroysCopy { dst, backup } => {
            fill("will not overwrite just-created {} with {}", &[backup, dst])
        }
        Diagnostic::JustCreatedSymlink { src, dst } => {
            fill("will not copy {} through just-created symlink {}", &[src, dst])
        }
        Diagnostic::ForeignSymlink { dst } => {
            fill("not following {}: the symlink is new or another user's", &[dst])
        }
        Diagnostic::NameUnknown { dst } => {
            fill("cannot replace what {} leads to, as its name is not known", &[dst])
        }
        Diagnostic::DanglingSymlink { dst } => {
            fill("not writing through dangling symlink {}", &[dst])
        }
        Diagnostic::SourceTwice { src, directory: true } => {
            fill("source directory {} specified more than once", &[src])
        }
        Diagnostic::SourceTwice { src, directory: false } => {
            fill("source file {} specified more than once", &[src])
        }
        Diagnostic::DirectoryTwice { dst, first } => {
            fill("will not create hard link {} to directory {}", &[dst, first])
        }
        Diagnostic::BackupDestroysSource { src, dst } => {
            fill("backing up {} might destroy source;  {} not copied", &[dst, src])
        }
        Diagnostic::NotReplacing { dst } => fill("not replacing {}", &[dst]),
        Diagnostic::UnknownKind { src } => fill("{} has unknown file type", &[src]),
        Diagnostic::ParentNotDirectory { path } => {
            fill("{} exists but is not a directory", &[path])
        }
        other => unreachable!("{other:?} has words elsewhere"),
    }
}

/// The message for a failed system call on one file.
fn pattern(action: Action) -> &'static str {
    match action {
        Action::Stat => "cannot stat {}",
        Action::ParentAttributes => "failed to get attributes of {}",
        Action::OpenForReading => "cannot open {} for reading",
        Action::Fstat => "cannot fstat {}",
        Action::EnterDirectory | Action::EnterDestination => "cannot access {}",
        Action::List => "error reading directory {}",
        Action::ReadLink => "cannot read symbolic link {}",
        Action::Read => "error reading {}",
        Action::Write => "error writing {}",
        Action::Truncate => "cannot truncate {}",
        Action::Extend => "failed to extend {}",
        Action::Sync => "error syncing {}",
        Action::Close => "failed to close {}",
        Action::CreateRegular => "cannot create regular file {}",
        Action::CreateDirectory => "cannot create directory {}",
        Action::CreateParent => "cannot make directory {}",
        Action::CreateSymlink => "cannot create symbolic link {}",
        Action::CreateFifo => "cannot create fifo {}",
        Action::CreateSpecial => "cannot create special file {}",
        Action::Replace => "cannot replace {}",
        Action::Remove => "cannot remove {}",
        Action::Backup => "cannot backup {}",
        Action::UnBackup => "cannot un-backup {}",
        Action::Ownership => "failed to preserve ownership for {}",
        Action::Permissions => "preserving permissions for {}",
        Action::Times => "preserving times for {}",
        Action::Context => "failed to set the security context of {}",
    }
}

/// The error of the system call that failed, if one did.
pub(crate) fn errno_of(diagnostic: &Diagnostic) -> Option<Errno> {
    match diagnostic {
        Diagnostic::Failed { errno, .. }
        | Diagnostic::HardLink { errno, .. }
        | Diagnostic::SymbolicLink { errno, .. }
        | Diagnostic::Copy { errno, .. }
        | Diagnostic::Clone { errno, .. }
        | Diagnostic::Xattr { errno, .. }
        | Diagnostic::NotTakenOver { errno, .. }
        | Diagnostic::LeftOver { errno, .. }
        | Diagnostic::Target { errno, .. } => Some(*errno),
        _ => None,
    }
}

/// The text of a question, without a newline: the answer is on the same line.
pub(crate) fn of_question(question: &Question) -> Vec<u8> {
    let words = match question {
        Question::Overwrite { dst } => fill("overwrite {}? ", &[dst]),
        Question::OverwriteUnwritable { dst, mode, removing } => {
            let bits = mode.as_raw_mode();
            let letters = permission_letters(bits);
            let pattern = if *removing {
                format!("replace {{}}, overriding mode {bits:04o} ({letters})? ")
            } else {
                format!("unwritable {{}} (mode {bits:04o}, {letters}); try anyway? ")
            };
            fill(&pattern, &[dst])
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
    line(&fill(&words, &[dst, dst]))
}

/// The line for an announcement.
pub(crate) fn of_announcement(announcement: &Announcement) -> Vec<u8> {
    let mut words = match announcement {
        Announcement::Copied { src, dst, backup: None } => fill("{} -> {}", &[src, dst]),
        Announcement::Copied { src, dst, backup: Some(backup) } => {
            fill("{} -> {} (backup: {})", &[src, dst, backup])
        }
        // GNU cp does not quote these two.
        Announcement::ParentMade { src, dst } => {
            [src.as_os_str().as_bytes(), b" -> ", dst.as_os_str().as_bytes()].concat()
        }
        Announcement::Removed { dst } => fill("removed {}", &[dst]),
        Announcement::Restored { backup, dst } => fill("{} -> {} (unbackup)", &[backup, dst]),
        Announcement::Skipped { dst } => fill("skipped {}", &[dst]),
        Announcement::LeftOut { src } => fill("excluded {}", &[src]),
        Announcement::Data(offload) => debug_words(*offload).into_bytes(),
        Announcement::Engine { src, dst, chosen, attempts } => {
            let names = fill("haulage: {} -> {}: ", &[src, dst]);
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
