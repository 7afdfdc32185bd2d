//! What one invocation of `cp` asks for, as plain typed data.

use std::ffi::OsString;

/// What the words of the command line ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `--generate=man`: the manual page, as roff.
    ManPage,
    /// Copy.
    Copy(Box<Args>),
}

/// One copy to be made. Every rule about which option wins over which is settled: the reader of
/// this type needs to know nothing of the order in which options stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Args {
    /// The names that are no options: at least one; at least two unless `destination` is a
    /// [`Destination::Directory`], in which case all of them are sources; exactly two when it is
    /// [`Destination::Exact`].
    pub(crate) operands: Vec<OsString>,
    /// Where the copies go.
    pub(crate) destination: Destination,
    /// `-R`, `-r`, `-a`: copy directories with what is in them, and re-create special files.
    pub(crate) recursive: bool,
    /// `-H`, `-L`, `-P`, `-d`, `-a`; without any of them what `-R` and `-l` imply.
    pub(crate) follow: Follow,
    /// What is made of a source that is no directory.
    pub(crate) make: Make,
    /// `--copy-contents`: when recursive, read fifos and devices instead of re-creating them.
    pub(crate) copy_contents: bool,
    /// Which attributes the copy takes over.
    pub(crate) preserve: Preserve,
    /// What happens to a destination that exists and is no directory.
    pub(crate) existing: Existing,
    /// `-i`: having decided to replace an existing destination, ask first.
    pub(crate) ask: bool,
    /// `-f`: where an existing destination cannot be opened, remove it and try again.
    pub(crate) force: bool,
    /// `--remove-destination`: remove an existing destination before opening it.
    pub(crate) remove_destination: bool,
    /// `-b`, `--backup`: keep what is about to be replaced under another name.
    pub(crate) backup: Option<Backup>,
    /// `--sparse`.
    pub(crate) sparse: Sparse,
    /// `--reflink`.
    pub(crate) reflink: Reflink,
    /// `--parents`: append the whole source name to the destination directory.
    pub(crate) parents: bool,
    /// `--strip-trailing-slashes`, from sources.
    pub(crate) strip_trailing_slashes: bool,
    /// `--keep-directory-symlink`: a destination that is a symbolic link to a directory may stand
    /// for a directory of the source.
    pub(crate) keep_directory_symlink: bool,
    /// POSIXLY_CORRECT: a destination that is a dangling symbolic link is written through, which is
    /// otherwise refused.
    pub(crate) through_dangling_symlink: bool,
    /// `-x`: do not enter other file systems.
    pub(crate) one_file_system: bool,
    /// `-Z`, `--context`: the security context of what is made.
    pub(crate) context: Context,
    /// `-v`, and implied by `--debug`: tell of each file copied.
    pub(crate) verbose: bool,
    /// `--debug`: tell how each file was copied and which were skipped.
    pub(crate) debug: bool,
}

/// Where the copies go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The last operand: into it when it is a directory, else to that very name.
    LastOperand,
    /// `-t DIR`: into this directory.
    Directory(OsString),
    /// `-T`: to the very name that is the second of two operands.
    Exact,
}

/// Which symbolic links of the source stand for what they point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// `-P`: none.
    Never,
    /// `-H`: those named on the command line.
    CommandLine,
    /// `-L`: all.
    Always,
}

/// What is made of a source that is no directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Make {
    /// A copy of data and attributes.
    Copy,
    /// `--attributes-only`: a file without the source's data, with the attributes asked for.
    AttributesOnly,
    /// `-l`: a hard link to the source.
    HardLink,
    /// `-s`: a symbolic link to the source.
    SymbolicLink,
}

/// The attributes that a copy takes over from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preserve {
    /// Permission bits and access control lists.
    pub(crate) mode: ModeRule,
    /// Owner and group.
    pub(crate) ownership: bool,
    /// Times of last access and modification, in nanoseconds.
    pub(crate) timestamps: bool,
    /// Hard links among the files copied.
    pub(crate) links: bool,
    /// The SELinux security context.
    pub(crate) context: Keep,
    /// Extended attributes.
    pub(crate) xattr: Keep,
    /// `-a`: say nothing about contexts and extended attributes that could not be kept, unless
    /// they are [`Keep::Required`].
    pub(crate) quiet: bool,
}

/// How the mode of a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModeRule {
    /// The source's permissions less the umask for new files; an existing file keeps its own.
    Umask,
    /// The source's mode, exactly.
    Preserve,
    /// `--no-preserve=mode`: what the umask gives a file made from nothing.
    Fresh,
}

/// How hard to try to keep an attribute that not every file system can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keep {
    /// Leave it.
    No,
    /// Keep it where possible; failing to does not change the exit status.
    IfPossible,
    /// It was named: failing to keep it is an error.
    Required,
}

/// What happens to a destination that exists and is no directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Replace it.
    Replace,
    /// `-u`: replace it when it is older than the source, else leave it.
    ReplaceOlder,
    /// `-n`, `--update=none`: leave it, without a word.
    Skip,
    /// `--update=none-fail`: leave it, say so, and fail.
    Fail,
}

/// `-b`, `--backup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Backup {
    /// How the names of backups are made.
    pub(crate) kind: BackupKind,
    /// What a simple backup's name ends in: not empty, and without a slash.
    pub(crate) suffix: OsString,
}

/// How the names of backups are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackupKind {
    /// The suffix.
    Simple,
    /// `.~1~`, `.~2~`, … where there is such a backup already, else the suffix.
    Existing,
    /// `.~1~`, `.~2~`, …
    Numbered,
}

/// `--sparse`: where the copy gets holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sparse {
    /// Where the source has them.
    Auto,
    /// Wherever a block is all zeros.
    Always,
    /// Nowhere.
    Never,
}

/// `--reflink`: whether source and copy share their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reflink {
    /// Where the file system can.
    Auto,
    /// Yes, or the copy fails.
    Always,
    /// No, nor any other way of leaving the copying to the file system.
    Never,
}

/// `-Z`, `--context`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// Not asked for.
    Inherit,
    /// `-Z`, `--context`: the default of the destination's place.
    Default,
    /// `--context=CTX`.
    Named(OsString),
}
