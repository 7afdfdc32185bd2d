//! What one invocation of `cp` asks for, as plain typed data.

use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};

use engines::Variant;
use engines::profile::Location;

use super::completions::Shell;

pub(crate) use tree::{
    Backup, BackupKind, Context, Existing, Follow, Keep, Make, ModeRule, Preserve, Reflink, Rule,
    Sparse,
};

/// What the words of the command line ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `--generate=man`: the manual page, as roff.
    ManPage,
    /// `--generate=bash` and so on: what has a shell complete words.
    Completions(Shell),
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
    /// `--jobs`: how many workers copy at once, at most; what helps unless given.
    pub(crate) jobs: Option<NonZeroUsize>,
    /// `--engine`: how data is moved; what is best for the files unless given.
    pub(crate) engine: Option<Variant>,
    /// `--profile` and HAULAGE_PROFILE: where measurements are read; the user's own unless given.
    pub(crate) profile: Location,
    /// `--atomic`: no name ever stands for part of a file.
    pub(crate) atomic: bool,
    /// `--durable`: wait until all is on the medium.
    pub(crate) durable: bool,
    /// `--verify`: read every copy back.
    pub(crate) verify: bool,
    /// `--resume`: go on where an earlier run was killed.
    pub(crate) resume: bool,
    /// `--no-cache`: leave the page cache as it was.
    pub(crate) no_cache: bool,
    /// `--receipt`: the file that says what became of each entry.
    pub(crate) receipt: Option<OsString>,
    /// `--stats`: tell at the end what the run came to.
    pub(crate) stats: bool,
    /// `--dry-run`: tell what would be done, and make nothing.
    pub(crate) dry_run: bool,
    /// `--limit-rate`: bytes a second.
    pub(crate) limit_rate: Option<NonZeroU64>,
    /// `--exclude`, `--include`: in their order.
    pub(crate) rules: Vec<Rule>,
    /// `--ignore-file`: names of files, in their order.
    pub(crate) ignore_files: Vec<OsString>,
    /// `--progress`: show how far the copy is.
    pub(crate) progress: bool,
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
