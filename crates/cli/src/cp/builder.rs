//! Accumulates options in command-line order, and resolves at the end which of them take precedence.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use haulage::options::{
    Backup, BackupKind, Context, Destination, Existing, Follow, Keep, Make, ModeRule, Options,
    Preserve, Reflink, Request, Rule, Sparse,
};

use crate::cp::command_line::{Command, CopyCommand, Reports};
use crate::cp::environment::Environment;
use crate::cp::messages::quote;
use crate::cp::messages::usage_error::{CONTEXT_IGNORED, UsageError};
use crate::cp::values::{Attribute, choose};

/// The options read so far. A row of the flag table changes it; [`Builder::build`] ends it.
#[derive(Default)]
pub(crate) struct Builder {
    environment: Environment,
    /// The line of a warning that is not printed yet.
    pub(crate) warning: Option<&'static str>,
    /// Set by an option that asks for something other than a copy, such as `--help`. No further
    /// argument is read.
    pub(crate) command: Option<Command>,
    /// Options that mean the same whatever else is given. [`Builder::build`] overwrites `follow`,
    /// `make` and `backup`, which depend on the fields below.
    pub(crate) options: Options,
    /// The last of `-H`, `-L`, `-P`, `-d` and `-a`.
    pub(crate) follow: Option<Follow>,
    /// `--attributes-only`.
    pub(crate) attributes_only: bool,
    /// `-l`.
    pub(crate) hard_link: bool,
    /// `-s`.
    pub(crate) symbolic_link: bool,
    /// `-n`, without a later `-i`: an existing destination is not replaced. `-i` is `ask` in the options.
    pub(crate) no_clobber: bool,
    /// `-b`, `--backup` or `-S`.
    pub(crate) backup: bool,
    /// The last CONTROL of `--backup`.
    pub(crate) backup_control: Option<OsString>,
    /// `-S`, or SIMPLE_BACKUP_SUFFIX.
    pub(crate) suffix: Option<OsString>,
    /// `-t`.
    target_directory: Option<OsString>,
    /// `-T`.
    pub(crate) no_target_directory: bool,
    /// `--exclude` and `--include`.
    pub(crate) rules: Vec<Rule>,
    /// `--ignore-file`.
    pub(crate) ignore_files: Vec<OsString>,
    /// `--receipt`, `--stats` and `--progress`.
    pub(crate) reports: Reports,
}

impl Builder {
    /// The defaults of `environment`.
    pub(crate) fn new(environment: &Environment) -> Builder {
        let options = Options {
            sigbus_handler: true,
            profile: environment.profile.clone(),
            through_dangling_symlink: environment.posixly_correct,
            ..Options::default()
        };
        let suffix = environment.simple_backup_suffix.clone();
        Builder { environment: environment.clone(), options, suffix, ..Builder::default() }
    }

    /// `-a`.
    pub(crate) fn archive(&mut self) {
        self.options.recursive = true;
        self.follow = Some(Follow::Never);
        self.preserve_all();
        self.options.preserve.quiet = true;
    }

    /// `-p`.
    pub(crate) fn preserve_default(&mut self) {
        let preserve = &mut self.options.preserve;
        preserve.mode = ModeRule::Preserve;
        (preserve.ownership, preserve.timestamps) = (true, true);
    }

    /// A word of `--preserve`, or of `--no-preserve` if it is not `kept`.
    pub(crate) fn preserve(&mut self, attribute: Attribute, kept: bool) {
        let preserve = &mut self.options.preserve;
        let keep = if kept { Keep::Required } else { Keep::No };
        match attribute {
            Attribute::Mode => {
                preserve.mode = if kept { ModeRule::Preserve } else { ModeRule::Fresh };
            }
            Attribute::Timestamps => preserve.timestamps = kept,
            Attribute::Ownership => preserve.ownership = kept,
            Attribute::Links => preserve.links = kept,
            Attribute::Context => preserve.context = keep,
            Attribute::Xattr => preserve.xattr = keep,
            Attribute::All if kept => self.preserve_all(),
            Attribute::All => {
                *preserve = Preserve {
                    mode: ModeRule::Fresh,
                    // A context that was required by name stays required, as in GNU cp.
                    context: match preserve.context {
                        Keep::Required => Keep::Required,
                        Keep::No | Keep::IfPossible => Keep::No,
                    },
                    quiet: preserve.quiet,
                    ..Preserve::default()
                };
            }
        }
    }

    fn preserve_all(&mut self) {
        self.preserve_default();
        let preserve = &mut self.options.preserve;
        preserve.links = true;
        // An attribute that was required by name stays required.
        preserve.xattr = preserve.xattr.max(Keep::IfPossible);
        if self.environment.selinux {
            preserve.context = preserve.context.max(Keep::IfPossible);
        }
    }

    /// `-t`.
    ///
    /// # Errors
    /// A second `-t`.
    pub(crate) fn set_target_directory(&mut self, directory: OsString) -> Result<(), UsageError> {
        match self.target_directory.replace(directory) {
            None => Ok(()),
            Some(_) => Err(UsageError::Refused("multiple target directories specified")),
        }
    }

    /// `-Z` and `--context`.
    pub(crate) fn set_context(&mut self, context: Option<OsString>) {
        match (context, self.environment.selinux) {
            (None, false) => (),
            (Some(_), false) => self.warning = Some(CONTEXT_IGNORED),
            (None, true) => self.options.context = Context::Default,
            (Some(context), true) => self.options.context = Context::Named(context),
        }
    }

    /// Resolves the combination of all options.
    ///
    /// # Errors
    /// Options that contradict each other, and too few or too many operands. The first error is the
    /// one that GNU cp reports first.
    pub(crate) fn build(self, operands: Vec<OsString>) -> Result<CopyCommand, UsageError> {
        let dry_run = self.options.dry_run;
        let reports = self.reports.receipt.is_some() || self.reports.stats;
        let prints_receipts = self.reports.receipt.as_ref().is_some_and(|file| file == "-");
        let names_files = self.options.verbose || self.options.debug;
        let existing = if self.no_clobber { Existing::Skip } else { self.options.existing };
        let keeps_existing = matches!(existing, Existing::Skip | Existing::Fail);
        let (reflink, sparse) = (self.options.reflink, self.options.sparse);
        let engine = self.options.engine.as_ref().map(|variant| variant.engine.name);
        let mistakes = [
            (self.hard_link && self.symbolic_link, "cannot make both hard and symbolic links"),
            (dry_run && reports, "--dry-run cannot be combined with --receipt or --stats"),
            (
                prints_receipts && names_files,
                "--receipt=- cannot be combined with --verbose or --debug",
            ),
            (
                self.backup && keeps_existing,
                "--backup is mutually exclusive with -n or --update=none-fail",
            ),
            (
                reflink == Reflink::Always && sparse != Sparse::Auto,
                "--reflink can be used only with --sparse=auto",
            ),
            (
                reflink == Reflink::Never && engine == Some("reflink"),
                "cannot combine --reflink=never and --engine=reflink",
            ),
        ];
        if let Some((_, words)) = mistakes.into_iter().find(|(is_made, _)| *is_made) {
            return Err(UsageError::Misuse(words.into()));
        }
        let backup = self.resolve_backup()?;
        if self.options.preserve.context == Keep::Required {
            if !self.environment.selinux {
                return Err(UsageError::Refused(
                    "cannot preserve security context without an SELinux-enabled kernel",
                ));
            }
            if self.options.context != Context::Inherit {
                return Err(UsageError::Refused("cannot set target context and preserve it"));
            }
        }
        let (follow, make) = (self.resolve_follow(), self.resolve_make());
        let request = resolve_operands(self.target_directory, self.no_target_directory, operands)?;
        let options = Options {
            follow,
            make,
            existing,
            backup,
            verbose: self.options.verbose || self.options.debug || dry_run,
            durable: self.options.durable && !dry_run,
            verify: self.options.verify && !dry_run,
            ..self.options
        };
        Ok(CopyCommand {
            request,
            options,
            rules: self.rules,
            ignore_files: self.ignore_files,
            reports: self.reports,
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
        let suffix = self.suffix.as_deref().filter(|suffix| is_valid_suffix(suffix));
        let suffix = suffix.unwrap_or(OsStr::new("~")).to_owned();
        Ok(kind.map(|kind| Backup { kind, suffix }))
    }

    fn resolve_follow(&self) -> Follow {
        self.follow.unwrap_or(if self.options.recursive && !self.hard_link {
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

/// Whether a backup with this suffix stays in the file's directory and has another name than the
/// file. GNU cp ignores any other suffix.
fn is_valid_suffix(suffix: &OsStr) -> bool {
    !suffix.is_empty() && !suffix.as_bytes().contains(&b'/')
}

/// Splits the operands into sources and destination.
fn resolve_operands(
    target_directory: Option<OsString>,
    no_target_directory: bool,
    mut operands: Vec<OsString>,
) -> Result<Request, UsageError> {
    let about = |words: &str, operand: &OsString| {
        Err(UsageError::Misuse([words.as_bytes(), &quote::name(operand)].concat()))
    };
    match (&operands[..], target_directory) {
        ([], _) => return Err(UsageError::Misuse("missing file operand".into())),
        ([only], None) => return about("missing destination file operand after ", only),
        (_, Some(_)) if no_target_directory => {
            return Err(UsageError::Refused(
                "cannot combine --target-directory (-t) and --no-target-directory (-T)",
            ));
        }
        (_, Some(directory)) => {
            let destination = Destination::Directory(directory);
            return Ok(Request { sources: operands, destination });
        }
        ([_, _, extra, ..], None) if no_target_directory => return about("extra operand ", extra),
        (_, None) => (),
    }
    let last = operands.pop().expect("at least two operands");
    let destination =
        if no_target_directory { Destination::Exact(last) } else { Destination::Last(last) };
    Ok(Request { sources: operands, destination })
}
