//! The options that GNU cp has.

use haulage::options::{BackupKind, Existing, Follow, Reflink, Sparse};

use crate::cp::command_line::Command;
use crate::cp::flags::flag::Flag;
use crate::cp::values::{Attribute, choose, choose_each, names};

/// The order of `--help` and of the manual page, which is that of GNU cp. Each option is given by its
/// first long name, or by its letter if it has none.
pub(super) const HELP_ORDER: &str = "archive attributes-only backup b copy-contents d debug \
     force interactive H link dereference no-clobber no-dereference p preserve no-preserve \
     parents recursive reflink remove-destination sparse strip-trailing-slashes symbolic-link \
     suffix target-directory no-target-directory update u verbose keep-directory-symlink \
     one-file-system Z context help version";

/// The options of GNU cp, in the order in which it lists the candidates for an ambiguous abbreviation. An
/// option without a long name follows the one that it resembles.
pub(crate) static FLAGS: &[Flag] = &[
    Flag::switch("-a --archive", |builder| builder.archive())
        .help("copy recursively and keep everything: -dR --preserve=all")
        .details(
            "Extended attributes and security contexts that the destination does not support \
             are not reported.",
        ),
    Flag::switch("--attributes-only", |builder| builder.attributes_only = true)
        .help("copy attributes, not data")
        .details(
            "A new file is empty. An existing file keeps its data. Combine it with \
             \\fB--preserve\\fR to copy the attributes of one tree to another.",
        ),
    Flag::optional("--backup", "CONTROL", |builder, control| {
        builder.backup = true;
        builder.backup_control = control.or(builder.backup_control.take());
        Ok(())
    })
    .help("back up each destination file before it is replaced")
    .values(names::<Option<BackupKind>>)
    .details(
        "CONTROL selects the name of the backup; without it the variable VERSION_CONTROL \
         does, and without that it is \\fBexisting\\fR. \\fBsimple\\fR appends the \
         suffix. \\fBnumbered\\fR appends .~1~, .~2~ and so on. \\fBexisting\\fR makes \
         numbered backups of files that have one already, and simple backups of others. \
         \\fBnone\\fR makes no backup.",
    ),
    Flag::switch("-b", |builder| builder.backup = true).help("like --backup, without an argument"),
    Flag::switch("--copy-contents", |builder| builder.options.copy_contents = true)
        .help("with -R, read the data of fifos and devices")
        .details("A read from a fifo waits for a writer, and some devices never end."),
    Flag::switch("--debug", |builder| builder.options.debug = true)
        .help("report how the data of each file was copied; implies -v"),
    Flag::switch("-d", |builder| {
        builder.follow = Some(Follow::Never);
        builder.options.preserve.links = true;
    })
    .help("copy links as links: --no-dereference --preserve=links"),
    Flag::switch("-L --dereference", |builder| builder.follow = Some(Follow::Always))
        .help("follow all symbolic links in SOURCE")
        .details("This is the default without \\fB-R\\fR."),
    Flag::switch("-f --force", |builder| builder.options.force = true)
        .help("if a destination file cannot be opened, remove it and try again"),
    Flag::switch("-H", |builder| builder.follow = Some(Follow::CommandLine))
        .help("follow symbolic links that are operands"),
    Flag::switch("-i --interactive", |builder| {
        (builder.options.ask, builder.no_clobber) = (true, false);
    })
    .help("ask before replacing a file; overrides an earlier -n")
    .details("The exit status is 1 if an answer was no."),
    Flag::switch("-l --link", |builder| builder.hard_link = true)
        .help("create hard links instead of copies"),
    Flag::switch("-n --no-clobber", |builder| {
        (builder.options.ask, builder.no_clobber) = (false, true);
    })
    .help("do not replace an existing file; overrides an earlier -i")
    .details(
        "A skipped file is not reported and is not an error. It takes precedence over \
         \\fB--update\\fR and \\fB--force\\fR. With \\fB--update=none-fail\\fR a skipped \
         file is an error.",
    ),
    Flag::switch("-P --no-dereference", |builder| builder.follow = Some(Follow::Never))
        .help("never follow symbolic links in SOURCE")
        .details("This is the default with \\fB-R\\fR."),
    Flag::required("--no-preserve", "LIST", |builder, list| {
        let attributes = choose_each(&list, "--no-preserve")?;
        attributes.into_iter().for_each(|attribute| builder.preserve(attribute, false));
        Ok(())
    })
    .help("do not preserve these attributes")
    .values(names::<Attribute>)
    .details(
        "Of this option and \\fB--preserve\\fR the later one counts. Without \
         \\fBmode\\fR a new file gets the permissions that the umask leaves.",
    ),
    Flag::switch("-T --no-target-directory", |builder| builder.no_target_directory = true)
        .help("treat DEST as the name of the copy, not as a directory to copy into"),
    Flag::switch("-x --one-file-system", |builder| builder.options.one_file_system = true)
        .help("do not enter other file systems")
        .details("A mount point is created as an empty directory."),
    Flag::switch("--parents --path", |builder| builder.options.parents = true)
        .help("append the full SOURCE path to DIRECTORY")
        .details(
            "\\fB--parents a/b/c dir\\fR creates dir/a/b/c, and the directories dir/a and \
             dir/a/b if they do not exist.",
        ),
    Flag::switch("-p", |builder| builder.preserve_default())
        .help("same as --preserve=mode,ownership,timestamps"),
    Flag::optional("--preserve", "LIST", |builder, list| {
        match list {
            None => builder.preserve_default(),
            Some(list) => choose_each(&list, "--preserve")?
                .into_iter()
                .for_each(|attribute| builder.preserve(attribute, true)),
        }
        Ok(())
    })
    .help("preserve the attributes in LIST, or mode, ownership and timestamps")
    .values(names::<Attribute>)
    .details(
        "LIST is separated by commas. \\fBmode\\fR includes access control lists. \
         \\fBlinks\\fR means hard links between the files that are copied. A context or \
         an extended attribute that cannot be preserved is an error if it was named, and \
         a warning with \\fBall\\fR.",
    ),
    Flag::switch("-R -r --recursive", |builder| builder.options.recursive = true)
        .help("copy directories and everything in them")
        .details("Fifos, sockets and devices are re-created; their data is not read."),
    Flag::switch("--remove-destination", |builder| builder.options.remove_destination = true)
        .help("remove each destination file before it is opened")
        .details(
            "Other hard links to that file, and processes that have it open, keep the old \
             data.",
        ),
    Flag::required("--sparse", "WHEN", |builder, when| {
        builder.options.sparse = choose::<Sparse>(&when, "--sparse")?;
        Ok(())
    })
    .help(
        "where to create holes: auto, where the source has holes; always, also for zeros; \
         never",
    )
    .values(names::<Sparse>),
    Flag::optional("--reflink", "WHEN", |builder, when| {
        builder.options.reflink = match when {
            None => Reflink::Always,
            Some(when) => choose(&when, "--reflink")?,
        };
        Ok(())
    })
    .help(
        "share blocks with the source (copy-on-write): auto, if possible; always, or fail; \
         never",
    )
    .values(names::<Reflink>)
    .details(
        "Without WHEN it is \\fBalways\\fR. \\fBnever\\fR also avoids the system calls \
         by which a file system can share blocks by itself.",
    ),
    Flag::switch("--strip-trailing-slashes", |builder| {
        builder.options.strip_trailing_slashes = true;
    })
    .help("remove trailing slashes from each SOURCE")
    .details(
        "A symbolic link to a directory is then copied as a link, even if the shell \
         completed it with a slash.",
    ),
    Flag::required("-S --suffix", "SUFFIX", |builder, suffix| {
        builder.backup = true;
        builder.suffix = Some(suffix);
        Ok(())
    })
    .help("use this suffix for backups instead of ~; implies -b")
    .details(
        "The variable SIMPLE_BACKUP_SUFFIX sets the suffix too, but does not imply \
         \\fB-b\\fR.",
    ),
    Flag::switch("-s --symbolic-link", |builder| builder.symbolic_link = true)
        .help("create symbolic links instead of copies")
        .details(
            "The sources must be absolute paths, unless the links are created in the current \
             directory.",
        ),
    Flag::required("-t --target-directory", "DIRECTORY", |builder, directory| {
        builder.set_target_directory(directory)
    })
    .help("copy each SOURCE into DIRECTORY"),
    Flag::optional("--update", "WHEN", |builder, when| {
        builder.options.existing = match when {
            None => Existing::ReplaceOlder,
            Some(when) => choose(&when, "--update")?,
        };
        Ok(())
    })
    .help(
        "which existing files to replace: all; none; none-fail, where a skipped file is an \
         error; older, only files older than SOURCE",
    )
    .values(names::<Existing>)
    .details(
        "Without WHEN it is \\fBolder\\fR. It is applied before \\fB-i\\fR asks, and is \
         ignored with \\fB-n\\fR. With \\fB--preserve=timestamps\\fR a source is not \
         newer by less than the file system of the destination can store.",
    ),
    Flag::switch("-u", |builder| builder.options.existing = Existing::ReplaceOlder)
        .help("same as --update=older"),
    Flag::switch("-v --verbose", |builder| builder.options.verbose = true)
        .help("print the name of each file that is copied"),
    Flag::switch("--keep-directory-symlink", |builder| {
        builder.options.keep_directory_symlink = true;
    })
    .help("follow symbolic links to directories in DEST")
    .details(
        "Without it, a symbolic link in the destination where the source has a directory \
         is an error, except for a link that is an operand.",
    ),
    Flag::optional("--context", "CTX", |builder, context| {
        builder.set_context(context);
        Ok(())
    })
    .help("set the SELinux context to CTX; without CTX, like -Z")
    .details("Without SELinux in the kernel it is ignored with a warning."),
    Flag::switch("-Z", |builder| builder.set_context(None))
        .help("set the default SELinux context of the destination"),
    Flag::switch("--help", |builder| builder.command = Some(Command::Help))
        .help("print this help and exit"),
    Flag::switch("--version", |builder| builder.command = Some(Command::Version))
        .help("print the version and exit"),
];
