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
    use Diagnostic::*;
    let say = |pattern: &str, names: &[&Path]| fill(name, pattern, names);
    match diagnostic {
        Failed { action, path, .. } => say(pattern(*action), &[path]),
        HardLink { src, dst, .. } => say("cannot create hard link {} to {}", &[dst, src]),
        SymbolicLink { src, dst, .. } => say("cannot create symbolic link {} to {}", &[dst, src]),
        Copy { src, dst, .. } => say("error copying {} to {}", &[src, dst]),
        Clone { src, dst, .. } => say("failed to clone {} from {}", &[dst, src]),
        Incomplete { dst, bytes, bytes_expected } => {
            say(&format!("{{}} is incomplete: {bytes} of {bytes_expected} bytes"), &[dst])
        }
        RangeFailed { dst } => {
            say("cannot complete {}: another process failed at a range of it", &[dst])
        }
        Shrank { src, bytes, bytes_expected } => say(
            &format!("{{}} shrank while being copied: {bytes} of {bytes_expected} bytes"),
            &[src],
        ),
        Changed { src } => say("{} changed while being copied", &[src]),
        Interrupted { dst, bytes } => {
            say(&format!("interrupted: {{}} is incomplete, {bytes} bytes written"), &[dst])
        }
        Differs { src, dst, at } => {
            say(&format!("{{}} differs from {{}} at byte offset {at}"), &[dst, src])
        }
        Unverifiable { path } => say("cannot verify the copy: {} is no regular file", &[path]),
        InterruptedUnverified { dst } => {
            say("interrupted: {} is complete but was not verified", &[dst])
        }
        InterruptedBefore { dst } => say("interrupted: {} is as it was before", &[dst]),
        NotTakenOver { lost, dst } => match lost {
            Loss::Ownership(_) => say("the new {} is not its old owner's", &[dst]),
            Loss::Xattr(attribute, _) if attribute.is_empty() => {
                say("the new {} may lack attributes that it had", &[dst])
            }
            Loss::Xattr(attribute, _) => {
                let attribute = OsStr::from_bytes(attribute);
                say("the new {} lacks its old attribute {}", &[dst, attribute.as_ref()])
            }
            _ => say("the new {} has not its old permissions", &[dst]),
        },
        LeftOver { path, .. } => say("cannot remove {}, which is left over", &[path]),
        SourceReplaced { src } => {
            say("skipping file {}, as it was replaced while being copied", &[src])
        }
        DestinationReplaced { dst } => {
            say("not writing to {}, as it was replaced while being copied", &[dst])
        }
        DirectoryMoved { path } => {
            say("{} was moved or replaced while what is in it was being copied", &[path])
        }
        Xattr { name: attribute, dst, .. } if attribute.is_empty() => {
            say("getting attributes for {}", &[dst])
        }
        // If the file system has no extended attributes, the name of one says nothing.
        Xattr { dst, errno: Errno::OPNOTSUPP, .. } => say("setting attributes for {}", &[dst]),
        Xattr { name: attribute, dst, .. } => {
            let attribute = OsStr::from_bytes(attribute);
            say("setting attribute {} for {}", &[attribute.as_ref(), dst])
        }
        Target { path, named: true, .. } => say("target directory {}", &[path]),
        Target { path, named: false, .. } => say("target {}", &[path]),
        // The profile.
        ProfileUnusable { path, problem } => {
            let why = match problem {
                Problem::Errno(errno) => describe(*errno),
                other => other.to_string(),
            };
            [say("not using the profile {}: ", &[path]), why.into_bytes()].concat()
        }
        ProfileLine { path, mistake } => {
            let why = mistake.to_string();
            [say("of no use in the profile {}: ", &[path]), why.into_bytes()].concat()
        }
        ProfileForeign { path } => {
            say("the profile {} has nothing that was measured on this machine", &[path])
        }
        ProfileStale { changes } => {
            let changes = changes.join("; ");
            format!("the profile is of another time: {changes}").into_bytes()
        }
        // Entries that were refused before a system call was tried.
        OmittingDirectory { src } => say("-r not specified; omitting directory {}", &[src]),
        SameFile { src, dst } => say("{} and {} are the same file", &[src, dst]),
        IntoItself { src, dst } => say("cannot copy a directory, {}, into itself, {}", &[src, dst]),
        LocalToHost { path } => say("{} is on a local file system of this host", &[path]),
        CyclicSymlink { src } => say("cannot copy cyclic symbolic link {}", &[src]),
        DirectoryInTheWay { src, dst } => {
            say("cannot overwrite directory {} with non-directory {}", &[dst, src])
        }
        NonDirectoryInTheWay { src, dst } => {
            say("cannot overwrite non-directory {} with directory {}", &[dst, src])
        }
        JustCreated { src, dst } => say("will not overwrite just-created {} with {}", &[dst, src]),
        Record { src, dst } => say("will not overwrite {} with {}: it is the receipt", &[dst, src]),
        SourceIsRecord { src } => {
            say("not copying {}: it is the receipt, which is being written", &[src])
        }
        BackupDestroysCopy { dst, backup } => {
            say("will not overwrite just-created {} with {}", &[backup, dst])
        }
        JustCreatedSymlink { src, dst } => {
            say("will not copy {} through just-created symlink {}", &[src, dst])
        }
        ForeignSymlink { dst } => {
            say("not following {}: the symlink is new or another user's", &[dst])
        }
        NameUnknown { dst } => {
            say("cannot replace what {} leads to, as its name is not known", &[dst])
        }
        DanglingSymlink { dst } => say("not writing through dangling symlink {}", &[dst]),
        SourceTwice { src, directory: true } => {
            say("source directory {} specified more than once", &[src])
        }
        SourceTwice { src, directory: false } => {
            say("source file {} specified more than once", &[src])
        }
        DirectoryTwice { dst, first } => {
            say("will not create hard link {} to directory {}", &[dst, first])
        }
        BackupDestroysSource { src, dst } => {
            say("backing up {} might destroy source;  {} not copied", &[dst, src])
        }
        RelativeSymlinkElsewhere { dst } => {
            // GNU cp puts no quotes around this name.
            let words = b": can make relative symbolic links only in current directory";
            [dst.as_os_str().as_bytes(), words].concat()
        }
        ParentsNeedDirectory => b"with --parents, the destination must be a directory".to_vec(),
        NotReplacing { dst } => say("not replacing {}", &[dst]),
        UnknownKind { src } => say("{} has unknown file type", &[src]),
        ParentNotDirectory { path } => say("{} exists but is not a directory", &[path]),
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
