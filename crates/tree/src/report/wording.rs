//! The words of a diagnostic, which are those of GNU cp.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use engines::profile::Problem;
use engines::{Errno, describe};

use super::attribute::Loss;
use super::diagnostic::{Action, Diagnostic};

/// Puts a name between quotation marks.
type Quote<'q> = &'q dyn Fn(&Path) -> Vec<u8>;

impl Diagnostic {
    /// The message of GNU cp, without `cp: ` and `warning: `. `quote` puts a name between quotation marks; the
    /// bytes of names that it leaves may be no UTF-8.
    #[must_use]
    pub fn message(&self, quote: &dyn Fn(&Path) -> Vec<u8>) -> Vec<u8> {
        let mut words = words_of(self, quote);
        if let Some(errno) = self.errno() {
            words.extend_from_slice(b": ");
            words.extend(describe(errno).into_bytes());
        }
        words
    }

    /// The error of the system call that failed, if one did.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Diagnostic::Failed { errno, .. }
            | Diagnostic::HardLink { errno, .. }
            | Diagnostic::SymbolicLink { errno, .. }
            | Diagnostic::Copy { errno, .. }
            | Diagnostic::Clone { errno, .. }
            | Diagnostic::Xattr { errno, .. }
            | Diagnostic::LeftOver { errno, .. }
            | Diagnostic::Target { errno, .. } => Some(*errno),
            Diagnostic::NotTakenOver { lost, .. } => Some(lost.errno()),
            _ => None,
        }
    }
}

/// With names in single quotes. What is no UTF-8 in them is replaced.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message(&|name| format!("'{}'", name.display()).into_bytes());
        f.write_str(&String::from_utf8_lossy(&message))
    }
}

/// `pattern`, with a name in the place of each `{}`. `name` puts one between quotation marks.
///
/// # Panics
/// If there are fewer names than places.
#[must_use]
pub fn fill(name: &dyn Fn(&Path) -> Vec<u8>, pattern: &str, names: &[&Path]) -> Vec<u8> {
    let mut names = names.iter();
    let mut words = Vec::new();
    for (index, piece) in pattern.split("{}").enumerate() {
        if index > 0 {
            words.extend(name(names.next().expect("a pattern has as many places as names")));
        }
        words.extend_from_slice(piece.as_bytes());
    }
    words
}

fn words_of(diagnostic: &Diagnostic, name: Quote<'_>) -> Vec<u8> {
    match diagnostic {
        Diagnostic::Failed { action, path, .. } => fill(name, pattern(*action), &[path]),
        Diagnostic::HardLink { src, dst, .. } => {
            fill(name, "cannot create hard link {} to {}", &[dst, src])
        }
        Diagnostic::SymbolicLink { src, dst, .. } => {
            fill(name, "cannot create symbolic link {} to {}", &[dst, src])
        }
        Diagnostic::Copy { src, dst, .. } => fill(name, "error copying {} to {}", &[src, dst]),
        Diagnostic::Clone { src, dst, .. } => fill(name, "failed to clone {} from {}", &[dst, src]),
        Diagnostic::Incomplete { dst, bytes, bytes_expected } => {
            fill(name, &format!("{{}} is incomplete: {bytes} of {bytes_expected} bytes"), &[dst])
        }
        Diagnostic::RangeFailed { dst } => {
            fill(name, "cannot complete {}: another process failed at a range of it", &[dst])
        }
        Diagnostic::Shrank { src, bytes, bytes_expected } => fill(
            name,
            &format!("{{}} shrank while being copied: {bytes} of {bytes_expected} bytes"),
            &[src],
        ),
        Diagnostic::Changed { src } => fill(name, "{} changed while being copied", &[src]),
        Diagnostic::Interrupted { dst, bytes } => {
            fill(name, &format!("interrupted: {{}} is incomplete, {bytes} bytes written"), &[dst])
        }
        Diagnostic::Differs { src, dst, at } => {
            fill(name, &format!("{{}} differs from {{}} at byte offset {at}"), &[dst, src])
        }
        Diagnostic::Unverifiable { path } => {
            fill(name, "cannot verify the copy: {} is no regular file", &[path])
        }
        Diagnostic::InterruptedUnverified { dst } => {
            fill(name, "interrupted: {} is complete but was not verified", &[dst])
        }
        Diagnostic::InterruptedBefore { dst } => {
            fill(name, "interrupted: {} is as it was before", &[dst])
        }
        Diagnostic::NotTakenOver { lost, dst } => match lost {
            Loss::Ownership(_) => fill(name, "the new {} is not its old owner's", &[dst]),
            Loss::Xattr(attribute, _) if attribute.is_empty() => {
                fill(name, "the new {} may lack attributes that it had", &[dst])
            }
            Loss::Xattr(attribute, _) => {
                let attribute = OsStr::from_bytes(attribute);
                fill(name, "the new {} lacks its old attribute {}", &[dst, attribute.as_ref()])
            }
            _ => fill(name, "the new {} has not its old permissions", &[dst]),
        },
        Diagnostic::LeftOver { path, .. } => {
            fill(name, "cannot remove {}, which is left over", &[path])
        }
        Diagnostic::SourceReplaced { src } => {
            fill(name, "skipping file {}, as it was replaced while being copied", &[src])
        }
        Diagnostic::DestinationReplaced { dst } => {
            fill(name, "not writing to {}, as it was replaced while being copied", &[dst])
        }
        Diagnostic::DirectoryMoved { path } => {
            fill(name, "{} was moved or replaced while what is in it was being copied", &[path])
        }
        Diagnostic::Xattr { name: attribute, dst, .. } if attribute.is_empty() => {
            fill(name, "getting attributes for {}", &[dst])
        }
        // If the file system has no extended attributes, the name of one says nothing.
        Diagnostic::Xattr { dst, errno: Errno::OPNOTSUPP, .. } => {
            fill(name, "setting attributes for {}", &[dst])
        }
        Diagnostic::Xattr { name: attribute, dst, .. } => {
            let attribute = OsStr::from_bytes(attribute);
            fill(name, "setting attribute {} for {}", &[attribute.as_ref(), dst])
        }
        Diagnostic::Target { path, named: true, .. } => fill(name, "target directory {}", &[path]),
        Diagnostic::Target { path, named: false, .. } => fill(name, "target {}", &[path]),
        // The profile.
        Diagnostic::ProfileUnusable { path, problem } => {
            let why = match problem {
                Problem::Errno(errno) => describe(*errno),
                other => other.to_string(),
            };
            [fill(name, "not using the profile {}: ", &[path]), why.into_bytes()].concat()
        }
        Diagnostic::ProfileLine { path, mistake } => {
            let why = mistake.to_string();
            [fill(name, "of no use in the profile {}: ", &[path]), why.into_bytes()].concat()
        }
        Diagnostic::ProfileForeign { path } => {
            fill(name, "the profile {} has nothing that was measured on this machine", &[path])
        }
        Diagnostic::ProfileStale { changes } => {
            let changes = changes.join("; ");
            format!("the profile is of another time: {changes}").into_bytes()
        }
        // Entries that were refused before a system call was tried.
        Diagnostic::OmittingDirectory { src } => {
            fill(name, "-r not specified; omitting directory {}", &[src])
        }
        Diagnostic::SameFile { src, dst } => fill(name, "{} and {} are the same file", &[src, dst]),
        Diagnostic::IntoItself { src, dst } => {
            fill(name, "cannot copy a directory, {}, into itself, {}", &[src, dst])
        }
        Diagnostic::LocalToHost { path } => {
            fill(name, "{} is on a local file system of this host", &[path])
        }
        Diagnostic::CyclicSymlink { src } => {
            fill(name, "cannot copy cyclic symbolic link {}", &[src])
        }
        Diagnostic::DirectoryInTheWay { src, dst } => {
            fill(name, "cannot overwrite directory {} with non-directory {}", &[dst, src])
        }
        Diagnostic::NonDirectoryInTheWay { src, dst } => {
            fill(name, "cannot overwrite non-directory {} with directory {}", &[dst, src])
        }
        Diagnostic::JustCreated { src, dst } => {
            fill(name, "will not overwrite just-created {} with {}", &[dst, src])
        }
        Diagnostic::Record { src, dst } => {
            fill(name, "will not overwrite {} with {}: it is the receipt", &[dst, src])
        }
        Diagnostic::SourceIsRecord { src } => {
            fill(name, "not copying {}: it is the receipt, which is being written", &[src])
        }
        Diagnostic::BackupDestroysCopy { dst, backup } => {
            fill(name, "will not overwrite just-created {} with {}", &[backup, dst])
        }
        Diagnostic::JustCreatedSymlink { src, dst } => {
            fill(name, "will not copy {} through just-created symlink {}", &[src, dst])
        }
        Diagnostic::ForeignSymlink { dst } => {
            fill(name, "not following {}: the symlink is new or another user's", &[dst])
        }
        Diagnostic::NameUnknown { dst } => {
            fill(name, "cannot replace what {} leads to, as its name is not known", &[dst])
        }
        Diagnostic::DanglingSymlink { dst } => {
            fill(name, "not writing through dangling symlink {}", &[dst])
        }
        Diagnostic::SourceTwice { src, directory: true } => {
            fill(name, "source directory {} specified more than once", &[src])
        }
        Diagnostic::SourceTwice { src, directory: false } => {
            fill(name, "source file {} specified more than once", &[src])
        }
        Diagnostic::DirectoryTwice { dst, first } => {
            fill(name, "will not create hard link {} to directory {}", &[dst, first])
        }
        Diagnostic::BackupDestroysSource { src, dst } => {
            fill(name, "backing up {} might destroy source;  {} not copied", &[dst, src])
        }
        Diagnostic::RelativeSymlinkElsewhere { dst } => {
            // GNU cp puts no quotes around this name.
            let words = b": can make relative symbolic links only in current directory";
            [dst.as_os_str().as_bytes(), words].concat()
        }
        Diagnostic::ParentsNeedDirectory => {
            b"with --parents, the destination must be a directory".to_vec()
        }
        Diagnostic::NotReplacing { dst } => fill(name, "not replacing {}", &[dst]),
        Diagnostic::UnknownKind { src } => fill(name, "{} has unknown file type", &[src]),
        Diagnostic::ParentNotDirectory { path } => {
            fill(name, "{} exists but is not a directory", &[path])
        }
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
        Action::KeepName => "cannot keep the name {}",
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
