//! The options that GNU cp has.

use tree::{BackupKind, Existing, Follow, Reflink, Sparse};

use crate::cp::builder::Interactive;
use crate::cp::command_line::Command;
use crate::cp::flags::flag::Takes::{Nothing, Optional, Required};
use crate::cp::flags::flag::{Flag, Group};
use crate::cp::values::{Attribute, choose, choose_each, names};

/// In the order in which GNU cp lists candidates for an ambiguous beginning; those without a long
/// name come after the one they resemble.
pub(super) static FLAGS: &[Flag] = &[
    Flag {
        shorts: &['a'],
        longs: &["archive"],
        group: Group::Attributes,
        takes: Nothing(|builder| builder.archive()),
        help: "copy trees as they are: -R -P and all attributes",
        details: "Nothing is said of extended attributes and security contexts that the \
                  destination cannot hold.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["attributes-only"],
        group: Group::Copies,
        takes: Nothing(|builder| builder.attributes_only = true),
        help: "leave the data; a new file is empty, an existing one keeps what it holds",
        details: "Useful with \\fB--preserve\\fR, to bring the attributes of two trees together.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["backup"],
        takes: Optional("CONTROL", |builder, control| {
            builder.backup = true;
            builder.backup_control = control.or(builder.backup_control.take());
            Ok(())
        }),
        values: Some(names::<Option<BackupKind>>),
        help: "rename what is about to be replaced, rather than lose it",
        details: "CONTROL, or else the variable VERSION_CONTROL, tells how the backup is named: \
                  \\fBsimple\\fR appends the suffix, \\fBnumbered\\fR appends .~1~, .~2~ and so \
                  on, \\fBexisting\\fR does the latter for files that have such backups already \
                  and the former for others, which is the default. \\fBnone\\fR makes no backup.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['b'],
        takes: Nothing(|builder| builder.backup = true),
        help: "the same as --backup without CONTROL",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["copy-contents"],
        group: Group::Sources,
        takes: Nothing(|builder| builder.options.copy_contents = true),
        help: "with -R, read fifos and devices rather than re-create them",
        details: "Reading a fifo waits for a writer, and some devices never end.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["debug"],
        group: Group::Messages,
        takes: Nothing(|builder| builder.options.debug = true),
        help: "tell how the bytes of each file were moved, and what was skipped; implies -v",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['d'],
        group: Group::Attributes,
        takes: Nothing(|builder| {
            builder.follow = Some(Follow::Never);
            builder.options.preserve.links = true;
        }),
        help: "keep links of both kinds: -P --preserve=links",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['L'],
        longs: &["dereference"],
        group: Group::Sources,
        takes: Nothing(|builder| builder.follow = Some(Follow::Always)),
        help: "copy what symbolic links point to; the default without -R",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['f'],
        longs: &["force"],
        takes: Nothing(|builder| builder.options.force = true),
        help: "where an existing file cannot be opened for writing, remove it and try again",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['H'],
        group: Group::Sources,
        takes: Nothing(|builder| builder.follow = Some(Follow::CommandLine)),
        help: "follow symbolic links named as SOURCE, but none found below it",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['i'],
        longs: &["interactive"],
        takes: Nothing(|builder| builder.interactive = Interactive::Ask),
        help: "ask before a file is replaced; undoes an earlier -n",
        details: "The exit status is 1 when an answer was no.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['l'],
        longs: &["link"],
        group: Group::Copies,
        takes: Nothing(|builder| builder.hard_link = true),
        help: "make hard links to files instead of copies",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['n'],
        longs: &["no-clobber"],
        takes: Nothing(|builder| builder.interactive = Interactive::AlwaysNo),
        help: "leave files that exist, silently; undoes an earlier -i",
        details: "Leaving a file is no failure. It overrides \\fB--update\\fR and \\fB--force\\fR \
                  wherever they stand; see \\fB--update=none-fail\\fR for the other way.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['P'],
        longs: &["no-dereference"],
        group: Group::Sources,
        takes: Nothing(|builder| builder.follow = Some(Follow::Never)),
        help: "copy symbolic links as symbolic links; the default with -R",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["no-preserve"],
        group: Group::Attributes,
        takes: Required("LIST", |builder, list| {
            let attributes = choose_each(&list, "--no-preserve")?;
            attributes.into_iter().for_each(|attribute| builder.no_preserve(attribute));
            Ok(())
        }),
        values: Some(names::<Attribute>),
        help: "do not take over these attributes; the later of this and --preserve counts",
        details: "Without \\fBmode\\fR a new file gets the permissions of one made from nothing.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['T'],
        longs: &["no-target-directory"],
        takes: Nothing(|builder| builder.no_target_directory = true),
        help: "DEST is the name of the copy even if it is a directory",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['x'],
        longs: &["one-file-system"],
        group: Group::Sources,
        takes: Nothing(|builder| builder.options.one_file_system = true),
        help: "do not enter directories on other file systems",
        details: "The directory on which another file system is mounted is made, and left empty.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["parents", "path"],
        takes: Nothing(|builder| builder.options.parents = true),
        help: "keep the directories in SOURCE's name: a/b/c is copied to DIRECTORY/a/b/c",
        details: "Directories that are missing are made.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['p'],
        group: Group::Attributes,
        takes: Nothing(|builder| builder.preserve_default()),
        help: "take over mode, ownership and timestamps",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["preserve"],
        group: Group::Attributes,
        takes: Optional("LIST", |builder, list| {
            match list {
                None => builder.preserve_default(),
                Some(list) => choose_each(&list, "--preserve")?
                    .into_iter()
                    .for_each(|attribute| builder.preserve(attribute)),
            }
            Ok(())
        }),
        values: Some(names::<Attribute>),
        help: "take over these attributes; without LIST the same as -p",
        details: "LIST has commas between its words. \\fBmode\\fR covers access control lists, \
                  \\fBlinks\\fR hard links among the files copied. A context or extended \
                  attributes that cannot be kept are an error when named, and a warning with \
                  \\fBall\\fR.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['R', 'r'],
        longs: &["recursive"],
        group: Group::Sources,
        takes: Nothing(|builder| builder.options.recursive = true),
        help: "copy directories with all that is in them",
        details: "Fifos, sockets and devices are re-created, not read.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["remove-destination"],
        takes: Nothing(|builder| builder.options.remove_destination = true),
        help: "remove an existing file before anything is written",
        details: "Other names of that file, and processes that have it open, keep what it held.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["sparse"],
        group: Group::Copies,
        takes: Required("WHEN", |builder, when| {
            builder.options.sparse = choose::<Sparse>(&when, "--sparse")?;
            Ok(())
        }),
        values: Some(names::<Sparse>),
        help: "where the copy gets holes: auto, where the source has them; always, wherever \
               there are zeros; never",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["reflink"],
        group: Group::Copies,
        takes: Optional("WHEN", |builder, when| {
            builder.options.reflink = match when {
                None => Reflink::Always,
                Some(when) => choose(&when, "--reflink")?,
            };
            Ok(())
        }),
        values: Some(names::<Reflink>),
        help: "share blocks with the source until either is written to: auto, where the file \
               system can; always, or fail (without WHEN); never",
        details: "\\fBnever\\fR also avoids every other way in which the file system could do the \
                  copying.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["strip-trailing-slashes"],
        group: Group::Sources,
        takes: Nothing(|builder| builder.options.strip_trailing_slashes = true),
        help: "take slashes off the end of each SOURCE",
        details: "A link to a directory is then copied as a link, even if a shell's completion \
                  put a slash after it.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['S'],
        longs: &["suffix"],
        takes: Required("SUFFIX", |builder, suffix| {
            builder.backup = true;
            builder.suffix = Some(suffix);
            Ok(())
        }),
        help: "what names of backups end in, if not ~; implies -b",
        details: "The variable SIMPLE_BACKUP_SUFFIX does the same, without implying \\fB-b\\fR.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['s'],
        longs: &["symbolic-link"],
        group: Group::Copies,
        takes: Nothing(|builder| builder.symbolic_link = true),
        help: "make symbolic links to files instead of copies",
        details: "Names of sources have to be absolute unless the links go into the current \
                  directory.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['t'],
        longs: &["target-directory"],
        takes: Required("DIRECTORY", |builder, directory| builder.set_target_directory(directory)),
        help: "copy every SOURCE into DIRECTORY",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["update"],
        takes: Optional("WHEN", |builder, when| {
            builder.options.existing = match when {
                None => Existing::ReplaceOlder,
                Some(when) => choose(&when, "--update")?,
            };
            Ok(())
        }),
        values: Some(names::<Existing>),
        help: "which existing files are replaced: all; none, leaving them silently; none-fail, \
               leaving them and failing; older, those with an earlier time than SOURCE's \
               (without WHEN)",
        details: "It decides before \\fB-i\\fR asks, and has no say where \\fB-n\\fR is given.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['u'],
        takes: Nothing(|builder| builder.options.existing = Existing::ReplaceOlder),
        help: "the same as --update=older",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['v'],
        longs: &["verbose"],
        group: Group::Messages,
        takes: Nothing(|builder| builder.options.verbose = true),
        help: "name each file as it is copied",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["keep-directory-symlink"],
        takes: Nothing(|builder| builder.options.keep_directory_symlink = true),
        help: "let a symbolic link to a directory stand where SOURCE has a directory, and copy \
               into what it points to",
        details: "Otherwise such a link is in the way, below the directory named on the command \
                  line.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["context"],
        group: Group::Attributes,
        takes: Optional("CTX", |builder, context| {
            builder.set_context(context);
            Ok(())
        }),
        help: "give copies the security context CTX; without it the same as -Z",
        details: "It is put aside with a warning where the kernel runs without SELinux.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['Z'],
        group: Group::Attributes,
        takes: Nothing(|builder| builder.set_context(None)),
        help: "give copies the security context that is the default of their place",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["help"],
        group: Group::Messages,
        takes: Nothing(|builder| builder.command = Some(Command::Help)),
        help: "show this, and do nothing",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["version"],
        group: Group::Messages,
        takes: Nothing(|builder| builder.command = Some(Command::Version)),
        help: "show the version, and do nothing",
        ..Flag::PLAIN
    },
];
