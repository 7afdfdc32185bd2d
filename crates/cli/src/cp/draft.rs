//! Options as they come, until all have been seen and the last and strongest have won.

use std::ffi::{OsStr, OsString};
use std::num::{NonZeroU64, NonZeroUsize};
use std::os::unix::ffi::OsStrExt;

use engines::Variant;
use engines::profile::Location;
use tree::Rule;

use super::args::{
    Args, Backup, BackupKind, Context, Destination, Existing, Follow, Keep, Make, ModeRule,
    Preserve, Reflink, Request, Sparse,
};
use super::choices::{Attribute, choose};
use super::environment::Environment;
use super::usage_error::{UsageError, Warning};

/// What the options seen so far ask for.
pub(crate) struct Draft<'e> {
    environment: &'e Environment,
    warn: &'e mut dyn FnMut(Warning),
    /// An option that asks for something other than a copy was seen; no more words are read.
    pub(crate) answer: Option<Request>,
    pub(crate) recursive: bool,
    pub(crate) follow: Option<Follow>,
    pub(crate) attributes_only: bool,
    pub(crate) hard_link: bool,
    pub(crate) symbolic_link: bool,
    pub(crate) copy_contents: bool,
    pub(crate) preserve: Preserve,
    pub(crate) update: Existing,
    pub(crate) asking: Asking,
    pub(crate) force: bool,
    pub(crate) remove_destination: bool,
    pub(crate) backup: bool,
    pub(crate) backup_control: Option<OsString>,
    pub(crate) suffix: Option<OsString>,
    pub(crate) sparse: Sparse,
    pub(crate) reflink: Reflink,
    pub(crate) parents: bool,
    pub(crate) strip_trailing_slashes: bool,
    pub(crate) keep_directory_symlink: bool,
    pub(crate) one_file_system: bool,
    pub(crate) context: Context,
    pub(crate) target_directory: Option<OsString>,
    pub(crate) no_target_directory: bool,
    pub(crate) verbose: bool,
    pub(crate) debug: bool,
    pub(crate) jobs: Option<NonZeroUsize>,
    pub(crate) engine: Option<Variant>,
    pub(crate) profile: Location,
    pub(crate) atomic: bool,
    pub(crate) durable: bool,
    pub(crate) verify: bool,
    pub(crate) resume: bool,
    pub(crate) no_cache: bool,
    pub(crate) receipt: Option<OsString>,
    pub(crate) stats: bool,
    pub(crate) dry_run: bool,
    pub(crate) limit_rate: Option<NonZeroU64>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) ignore_files: Vec<OsString>,
    pub(crate) progress: bool,
}

/// The last of `-i` and `-n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Neither.
    No,
    /// `-i`.
    Ask,
    /// `-n`: the answer is no already.
    Refuse,
}

impl<'e> Draft<'e> {
    /// No option seen.
    pub(crate) fn new(environment: &'e Environment, warn: &'e mut dyn FnMut(Warning)) -> Draft<'e> {
        Draft {
            environment,
            warn,
            answer: None,
            recursive: false,
            follow: None,
            attributes_only: false,
            hard_link: false,
            symbolic_link: false,
            copy_contents: false,
            preserve: Preserve::default(),
            update: Existing::Replace,
            asking: Asking::No,
            force: false,
            remove_destination: false,
            backup: false,
            backup_control: None,
            suffix: environment.simple_backup_suffix.clone(),
            sparse: Sparse::Auto,
            reflink: Reflink::Auto,
            parents: false,
            strip_trailing_slashes: false,
            keep_directory_symlink: false,
            one_file_system: false,
            context: Context::Inherit,
            target_directory: None,
            no_target_directory: false,
            verbose: false,
            debug: false,
            jobs: None,
            engine: None,
            profile: environment.profile.clone(),
            atomic: false,
            durable: false,
            verify: false,
            resume: false,
            no_cache: false,
            receipt: None,
            stats: false,
            dry_run: false,
            limit_rate: None,
            rules: Vec::new(),
            ignore_files: Vec::new(),
            progress: false,
        }
    }

    /// `-a`.
    pub(crate) fn archive(&mut self) {
        self.recursive = true;
        self.follow = Some(Follow::Never);
        self.keep(Attribute::All);
        self.preserve.quiet = true;
    }

    /// `-p`.
    pub(crate) fn keep_usual(&mut self) {
        self.keep(Attribute::Mode);
        self.keep(Attribute::Ownership);
        self.keep(Attribute::Timestamps);
    }

    /// A word of `--preserve`.
    pub(crate) fn keep(&mut self, attribute: Attribute) {
        let preserve = &mut self.preserve;
        match attribute {
            Attribute::Mode => preserve.mode = ModeRule::Preserve,
            Attribute::Timestamps => preserve.timestamps = true,
            Attribute::Ownership => preserve.ownership = true,
            Attribute::Links => preserve.links = true,
            Attribute::Context => preserve.context = Keep::Required,
            Attribute::Xattr => preserve.xattr = Keep::Required,
            Attribute::All => {
                self.keep_usual();
                self.preserve.links = true;
                // What was demanded by name stays demanded.
                self.preserve.xattr = self.preserve.xattr.max(Keep::IfPossible);
                if self.environment.selinux {
                    self.preserve.context = self.preserve.context.max(Keep::IfPossible);
                }
            }
        }
    }

    /// A word of `--no-preserve`.
    pub(crate) fn drop(&mut self, attribute: Attribute) {
        let preserve = &mut self.preserve;
        match attribute {
            Attribute::Mode => preserve.mode = ModeRule::Fresh,
            Attribute::Timestamps => preserve.timestamps = false,
            Attribute::Ownership => preserve.ownership = false,
            Attribute::Links => preserve.links = false,
            Attribute::Context => preserve.context = Keep::No,
            Attribute::Xattr => preserve.xattr = Keep::No,
            Attribute::All => {
                *preserve = Preserve {
                    mode: ModeRule::Fresh,
                    ownership: false,
                    timestamps: false,
                    links: false,
                    // A context demanded by name stays demanded, as with GNU.
                    context: match preserve.context {
                        Keep::Required => Keep::Required,
                        Keep::No | Keep::IfPossible => Keep::No,
                    },
                    xattr: Keep::No,
                    quiet: preserve.quiet,
                };
            }
        }
    }

    /// `-t`.
    pub(crate) fn target(&mut self, directory: OsString) -> Result<(), UsageError> {
        match self.target_directory.replace(directory) {
            None => Ok(()),
            Some(_) => Err(UsageError::SeveralTargets),
        }
    }

    /// `-Z` and `--context`.
    pub(crate) fn set_context(&mut self, context: Option<OsString>) {
        match (context, self.environment.selinux) {
            (None, false) => (),
            (Some(_), false) => (self.warn)(Warning::ContextIgnored),
            (None, true) => self.context = Context::Default,
            (Some(context), true) => self.context = Context::Named(context),
        }
    }

    /// Settles what the options mean together.
    ///
    /// # Errors
    /// Options that contradict each other, and too few or too many operands, in GNU's order.
    pub(crate) fn finish(self, operands: Vec<OsString>) -> Result<Args, UsageError> {
        if self.hard_link && self.symbolic_link {
            return Err(UsageError::HardAndSymbolic);
        }
        if self.dry_run && (self.receipt.is_some() || self.stats) {
            return Err(UsageError::BooksOfNothing);
        }
        let existing = match self.asking {
            Asking::Refuse => Existing::Skip,
            Asking::No | Asking::Ask => self.update,
        };
        if self.backup && matches!(existing, Existing::Skip | Existing::Fail) {
            return Err(UsageError::BackupOfNothing);
        }
        if self.reflink == Reflink::Always && self.sparse != Sparse::Auto {
            return Err(UsageError::ReflinkWithSparse);
        }
        let backup = self.resolve_backup()?;
        if self.preserve.context == Keep::Required && !self.environment.selinux {
            return Err(UsageError::NoContexts);
        }
        if self.preserve.context == Keep::Required && self.context != Context::Inherit {
            return Err(UsageError::ContextSetAndPreserved);
        }
        let destination = resolve_destination(
            self.target_directory.clone(),
            self.no_target_directory,
            &operands,
        )?;
        Ok(Args {
            operands,
            destination,
            recursive: self.recursive,
            follow: self.resolve_follow(),
            make: self.resolve_make(),
            copy_contents: self.copy_contents,
            preserve: self.preserve,
            existing,
            ask: self.asking == Asking::Ask,
            force: self.force,
            remove_destination: self.remove_destination,
            backup,
            sparse: self.sparse,
            reflink: self.reflink,
            parents: self.parents,
            strip_trailing_slashes: self.strip_trailing_slashes,
            keep_directory_symlink: self.keep_directory_symlink,
            through_dangling_symlink: self.environment.posixly_correct,
            one_file_system: self.one_file_system,
            context: self.context,
            verbose: self.verbose || self.debug || self.dry_run,
            debug: self.debug,
            jobs: self.jobs,
            engine: self.engine,
            profile: self.profile,
            atomic: self.atomic,
            durable: self.durable && !self.dry_run,
            verify: self.verify && !self.dry_run,
            resume: self.resume,
            no_cache: self.no_cache,
            receipt: self.receipt,
            stats: self.stats,
            dry_run: self.dry_run,
            limit_rate: self.limit_rate,
            rules: self.rules,
            ignore_files: self.ignore_files,
            progress: self.progress,
        })
    }

    fn resolve_backup(&self) -> Result<Option<Backup>, UsageError> {
        if !self.backup {
            return Ok(None);
        }
        let given = |value: &Option<OsString>| value.clone().filter(|value| !value.is_empty());
        let kind: Option<BackupKind> = if let Some(control) = given(&self.backup_control) {
            choose(&control, "backup type")?
        } else if let Some(control) = given(&self.environment.version_control) {
            choose(&control, "$VERSION_CONTROL")?
        } else {
            Some(BackupKind::Existing)
        };
        let suffix = self.suffix.as_deref().filter(|suffix| makes_suffix(suffix));
        let suffix = suffix.unwrap_or(OsStr::new("~")).to_owned();
        Ok(kind.map(|kind| Backup { kind, suffix }))
    }

    fn resolve_follow(&self) -> Follow {
        self.follow.unwrap_or(if self.recursive && !self.hard_link {
            Follow::Never
        } else {
            Follow::Always
        })
    }

    fn resolve_make(&self) -> Make {
        if self.hard_link {
            Make::HardLink
        } else if self.symbolic_link {
            Make::SymbolicLink
        } else if self.attributes_only {
            Make::AttributesOnly
        } else {
            Make::Copy
        }
    }
}

/// A backup stays in its directory and has another name than the file: a suffix that would have it
/// otherwise is passed over.
fn makes_suffix(suffix: &OsStr) -> bool {
    !suffix.is_empty() && !suffix.as_bytes().contains(&b'/')
}

fn resolve_destination(
    target_directory: Option<OsString>,
    no_target_directory: bool,
    operands: &[OsString],
) -> Result<Destination, UsageError> {
    match (operands, target_directory) {
        ([], _) => Err(UsageError::MissingSource),
        ([only], None) => Err(UsageError::MissingDestination(only.clone())),
        (_, Some(_)) if no_target_directory => Err(UsageError::TargetAndNone),
        (_, Some(directory)) => Ok(Destination::Directory(directory)),
        ([_, _, extra, ..], None) if no_target_directory => {
            Err(UsageError::ExtraOperand(extra.clone()))
        }
        (_, None) if no_target_directory => Ok(Destination::Exact),
        (_, None) => Ok(Destination::LastOperand),
    }
}
