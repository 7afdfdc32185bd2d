//! Every option of `cp`, one row each: parser, `--help` and the manual page read it here.

use engines::profile::Location;

use super::args::{BackupKind, Existing, Follow, Reflink, Request, Sparse};
use super::choices::{
    Attribute, Generated, bytes_per_second, choose, choose_each, copier, names, number_from_one,
    rule,
};
use super::draft::Asking;
use super::flag::Takes::{Nothing, Optional, Required};
use super::flag::{Flag, Group, Origin};

/// GNU's options stand in the order in which GNU cp lists candidates for an ambiguous beginning;
/// those without a long name come after the one they resemble.
pub(crate) static FLAGS: &[Flag] = &[
    Flag {
        shorts: &['a'],
        longs: &["archive"],
        group: Group::Attributes,
        takes: Nothing(|draft| draft.archive()),
        help: "copy trees as they are: -R -P and all attributes",
        details: "Nothing is said of extended attributes and security contexts that the \
                  destination cannot hold.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["attributes-only"],
        group: Group::Copies,
        takes: Nothing(|draft| draft.attributes_only = true),
        help: "leave the data; a new file is empty, an existing one keeps what it holds",
        details: "Useful with \\fB--preserve\\fR, to bring the attributes of two trees together.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["backup"],
        takes: Optional("CONTROL", |draft, control| {
            draft.backup = true;
            draft.backup_control = control.or(draft.backup_control.take());
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
        takes: Nothing(|draft| draft.backup = true),
        help: "the same as --backup without CONTROL",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["copy-contents"],
        group: Group::Sources,
        takes: Nothing(|draft| draft.copy_contents = true),
        help: "with -R, read fifos and devices rather than re-create them",
        details: "Reading a fifo waits for a writer, and some devices never end.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["debug"],
        group: Group::Messages,
        takes: Nothing(|draft| draft.debug = true),
        help: "tell how the bytes of each file were moved, and what was skipped; implies -v",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['d'],
        group: Group::Attributes,
        takes: Nothing(|draft| {
            draft.follow = Some(Follow::Never);
            draft.preserve.links = true;
        }),
        help: "keep links of both kinds: -P --preserve=links",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['L'],
        longs: &["dereference"],
        group: Group::Sources,
        takes: Nothing(|draft| draft.follow = Some(Follow::Always)),
        help: "copy what symbolic links point to; the default without -R",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['f'],
        longs: &["force"],
        takes: Nothing(|draft| draft.force = true),
        help: "where an existing file cannot be opened for writing, remove it and try again",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['H'],
        group: Group::Sources,
        takes: Nothing(|draft| draft.follow = Some(Follow::CommandLine)),
        help: "follow symbolic links named as SOURCE, but none found below it",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['i'],
        longs: &["interactive"],
        takes: Nothing(|draft| draft.asking = Asking::Ask),
        help: "ask before a file is replaced; undoes an earlier -n",
        details: "The exit status is 1 when an answer was no.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['l'],
        longs: &["link"],
        group: Group::Copies,
        takes: Nothing(|draft| draft.hard_link = true),
        help: "make hard links to files instead of copies",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['n'],
        longs: &["no-clobber"],
        takes: Nothing(|draft| draft.asking = Asking::Refuse),
        help: "leave files that exist, silently; undoes an earlier -i",
        details: "Leaving a file is no failure. It overrides \\fB--update\\fR and \\fB--force\\fR \
                  wherever they stand; see \\fB--update=none-fail\\fR for the other way.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['P'],
        longs: &["no-dereference"],
        group: Group::Sources,
        takes: Nothing(|draft| draft.follow = Some(Follow::Never)),
        help: "copy symbolic links as symbolic links; the default with -R",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["no-preserve"],
        group: Group::Attributes,
        takes: Required("LIST", |draft, list| {
            let attributes = choose_each(&list, "--no-preserve")?;
            attributes.into_iter().for_each(|attribute| draft.drop(attribute));
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
        takes: Nothing(|draft| draft.no_target_directory = true),
        help: "DEST is the name of the copy even if it is a directory",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['x'],
        longs: &["one-file-system"],
        group: Group::Sources,
        takes: Nothing(|draft| draft.one_file_system = true),
        help: "do not enter directories on other file systems",
        details: "The directory on which another file system is mounted is made, and left empty.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["parents", "path"],
        takes: Nothing(|draft| draft.parents = true),
        help: "keep the directories in SOURCE's name: a/b/c is copied to DIRECTORY/a/b/c",
        details: "Directories that are missing are made.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['p'],
        group: Group::Attributes,
        takes: Nothing(|draft| draft.keep_usual()),
        help: "take over mode, ownership and timestamps",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["preserve"],
        group: Group::Attributes,
        takes: Optional("LIST", |draft, list| {
            match list {
                None => draft.keep_usual(),
                Some(list) => choose_each(&list, "--preserve")?
                    .into_iter()
                    .for_each(|attribute| draft.keep(attribute)),
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
        takes: Nothing(|draft| draft.recursive = true),
        help: "copy directories with all that is in them",
        details: "Fifos, sockets and devices are re-created, not read.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["remove-destination"],
        takes: Nothing(|draft| draft.remove_destination = true),
        help: "remove an existing file before anything is written",
        details: "Other names of that file, and processes that have it open, keep what it held.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["sparse"],
        group: Group::Copies,
        takes: Required("WHEN", |draft, when| {
            draft.sparse = choose::<Sparse>(&when, "--sparse")?;
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
        takes: Optional("WHEN", |draft, when| {
            draft.reflink = match when {
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
        takes: Nothing(|draft| draft.strip_trailing_slashes = true),
        help: "take slashes off the end of each SOURCE",
        details: "A link to a directory is then copied as a link, even if a shell's completion \
                  put a slash after it.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['S'],
        longs: &["suffix"],
        takes: Required("SUFFIX", |draft, suffix| {
            draft.backup = true;
            draft.suffix = Some(suffix);
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
        takes: Nothing(|draft| draft.symbolic_link = true),
        help: "make symbolic links to files instead of copies",
        details: "Names of sources have to be absolute unless the links go into the current \
                  directory.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['t'],
        longs: &["target-directory"],
        takes: Required("DIRECTORY", |draft, directory| draft.target(directory)),
        help: "copy every SOURCE into DIRECTORY",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["update"],
        takes: Optional("WHEN", |draft, when| {
            draft.update = match when {
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
        takes: Nothing(|draft| draft.update = Existing::ReplaceOlder),
        help: "the same as --update=older",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['v'],
        longs: &["verbose"],
        group: Group::Messages,
        takes: Nothing(|draft| draft.verbose = true),
        help: "name each file as it is copied",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["keep-directory-symlink"],
        takes: Nothing(|draft| draft.keep_directory_symlink = true),
        help: "let a symbolic link to a directory stand where SOURCE has a directory, and copy \
               into what it points to",
        details: "Otherwise such a link is in the way, below the directory named on the command \
                  line.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["context"],
        group: Group::Attributes,
        takes: Optional("CTX", |draft, context| {
            draft.set_context(context);
            Ok(())
        }),
        help: "give copies the security context CTX; without it the same as -Z",
        details: "It is put aside with a warning where the kernel runs without SELinux.",
        ..Flag::PLAIN
    },
    Flag {
        shorts: &['Z'],
        group: Group::Attributes,
        takes: Nothing(|draft| draft.set_context(None)),
        help: "give copies the security context that is the default of their place",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["help"],
        group: Group::Messages,
        takes: Nothing(|draft| draft.answer = Some(Request::Help)),
        help: "show this, and do nothing",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["version"],
        group: Group::Messages,
        takes: Nothing(|draft| draft.answer = Some(Request::Version)),
        help: "show the version, and do nothing",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["jobs"],
        origin: Origin::Ours,
        group: Group::Means,
        takes: Required("N", |draft, number| {
            draft.jobs = Some(number_from_one(&number, "jobs")?);
            Ok(())
        }),
        help: "let N workers copy at once; without it as many as there are processors",
        details: "They share the entries of a tree and the parts of a large file. One worker does \
                  what has to be done in order: with \\fB-i\\fR, \\fB-v\\fR, \\fB--debug\\fR, \
                  \\fB-b\\fR and \\fB--keep-directory-symlink\\fR.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["engine"],
        origin: Origin::Ours,
        group: Group::Means,
        takes: Required("VARIANT", |draft, variant| {
            draft.engine = Some(copier(&variant)?);
            Ok(())
        }),
        help: "move data this way where it works, such as read_write:256K@2; see \
               'haulage engines'",
        details: "Where it is refused, read and write take over, as \\fB--debug\\fR tells. It \
                  says nothing of holes, and keeps \\fB--reflink=auto\\fR from sharing blocks \
                  unless it is \\fBreflink\\fR itself.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["profile"],
        origin: Origin::Ours,
        group: Group::Means,
        takes: Required("FILE", |draft, file| {
            draft.profile = match file == "none" {
                true => Location::None,
                false => Location::named(&file),
            };
            Ok(())
        }),
        help: "go by what FILE says was measured on this machine to be the fastest; 'none' is none",
        details: "Without it the variable HAULAGE_PROFILE names the file, and none if it is empty; \
                  without that it is haulage/profile.toml in $XDG_CONFIG_HOME or ~/.config, which is \
                  read only where there is more to copy than a few small files. docs/profile.md \
                  describes it. A profile that cannot be used is warned of, and what is built in \
                  serves instead. \\fB--engine\\fR overrides it, and \\fB--debug\\fR and \
                  \\fB--receipt\\fR tell for each file which line was used.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["atomic"],
        origin: Origin::Ours,
        group: Group::Safety,
        takes: Nothing(|draft| draft.atomic = true),
        help: "let a file's name stand for the old file or the whole new one at every moment",
        details: "The copy is made without a name in the directory of its destination, and comes to \
                  the name when it is whole; an interrupted or failed copy leaves the old file, or \
                  none. An existing file is so replaced rather than written into: other hard links \
                  to it keep the old data. The new file takes over its owner, permissions, access \
                  control list and extended attributes unless other options say what they are to \
                  be, and what cannot be taken over is warned of. Where the destination is a \
                  symbolic link, the file that it leads to is replaced, in that file's directory; \
                  the link stays. Devices and fifos are written to as ever. A killed copy may leave \
                  a file of the name .haulage-NUMBER-NUMBER behind. It needs room for the old and \
                  the new file at once.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["durable"],
        origin: Origin::Ours,
        group: Group::Safety,
        takes: Nothing(|draft| draft.durable = true),
        help: "succeed only when every copy, and its name, would outlast a loss of power",
        details: "Files and the directories that they are in are synced (fsync). An error in that \
                  is one of the copy. With \\fB--atomic\\fR a file is synced before it gets its \
                  name. Files that were left as they were are not synced. What a disk does with \
                  its own cache when it is told to empty it is up to the disk.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["verify"],
        origin: Origin::Ours,
        group: Group::Safety,
        takes: Nothing(|draft| draft.verify = true),
        help: "read every copy back and compare it with its source",
        details: "The copy is written to the medium and dropped from the page cache first, and then \
                  both files are read from end to end. A difference is an error that names the first \
                  byte of it. With \\fB--atomic\\fR this comes before the copy gets its name. Where \
                  a copy cannot be dropped, on tmpfs for one, it is read from memory; \
                  \\fB--receipt\\fR tells for each file, with a digest. What can be read only once, \
                  such as a fifo, is copied and is an error. A disk may answer from a cache of its \
                  own.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["resume"],
        origin: Origin::Ours,
        group: Group::Safety,
        takes: Nothing(|draft| {
            draft.resume = true;
            draft.atomic = true;
            draft.keep_usual();
        }),
        help: "go on where a run of the same command was killed; implies --atomic and -p",
        details: "A file of the source's length and time of modification is taken for complete, as \
                  rsync does, whoever made it: with \\fB--verify\\fR it is read and compared, and copied \
                  again where it differs. Of a file of 4 MiB and more the part that was copied stays beside its destination \
                  as .NAME.haulage-part, with a journal, .NAME.haulage-journal; what the journal \
                  vouches for is not copied again, unless the source has changed. Both go away when \
                  the file is complete. If SOURCE is a directory and DEST was none when the copy \
                  began, the next run goes on with DEST rather than copy into it.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["no-cache"],
        origin: Origin::Ours,
        group: Group::Means,
        takes: Nothing(|draft| draft.no_cache = true),
        help: "leave the page cache as it was, for copies that nobody reads soon",
        details: "Data goes past the cache where the file systems let it (RWF_DONTCACHE, or else \
                  O_DIRECT). What came into the cache all the same is dropped: of the copy once it \
                  is written to the disk, for which the run waits; of the source, what was not in \
                  the cache before. On tmpfs, which is memory itself, a copy stays where it is.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["progress"],
        origin: Origin::Ours,
        group: Group::Messages,
        takes: Nothing(|draft| draft.progress = true),
        help: "show how far the copy is, if standard error is a terminal",
        details: "How much there is to do is counted beside the copy. Until that is known no time \
                  left is given, nor where entries are left out by globs. Without it SIGUSR1 asks \
                  for one line of the same.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["receipt"],
        origin: Origin::Ours,
        group: Group::Messages,
        takes: Required("FILE", |draft, file| {
            draft.receipt = Some(file);
            Ok(())
        }),
        help: "write to FILE, a line of JSON each, what became of every entry, and a summary; \
               - is standard output",
        details: "FILE is opened before anything is copied, and what it held is lost. \
                  docs/receipt.md describes the lines. If they cannot be written the exit \
                  status is 1.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["stats"],
        origin: Origin::Ours,
        group: Group::Messages,
        takes: Nothing(|draft| draft.stats = true),
        help: "tell at the end, on standard error, what was copied, how, and how fast",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["exclude"],
        origin: Origin::Ours,
        group: Group::Sources,
        takes: Required("GLOB", |draft, glob| {
            draft.rules.push(rule("exclude", glob)?);
            Ok(())
        }),
        help: "leave out what matches GLOB below a SOURCE, and all that is in such a directory",
        details: "GLOB is written as in gitignore(5), with {a,b} for alternatives besides: without \
                  a slash it matches names in any directory; with one, at the front or in the \
                  middle, the path below SOURCE; with one at the end, directories only. Names \
                  are compared byte by byte. It may be given more than once. Of all \
                  \\fB--exclude\\fR and \\fB--include\\fR the first that matches decides; what \
                  none matches is copied unless an ignore file says otherwise. A SOURCE itself is \
                  never left out.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["include"],
        origin: Origin::Ours,
        group: Group::Sources,
        takes: Required("GLOB", |draft, glob| {
            draft.rules.push(rule("include", glob)?);
            Ok(())
        }),
        help: "copy what matches GLOB even if a later --exclude or an ignore file says otherwise",
        details: "It brings nothing back out of a directory that is left out: \
                  \\fB--include='*/' --include='*.c' --exclude='*'\\fR copies the C files of a \
                  whole tree.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["ignore-file"],
        origin: Origin::Ours,
        group: Group::Sources,
        takes: Required("FILE", |draft, file| {
            draft.ignore_files.push(file);
            Ok(())
        }),
        help: "leave out what FILE says, which is written like a .gitignore",
        details: "Its patterns hold from each SOURCE down, wherever FILE is. In it the last pattern \
                  that matches decides. It may be given more than once; the last file that has a \
                  match decides.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["dry-run"],
        origin: Origin::Ours,
        group: Group::Messages,
        takes: Nothing(|draft| draft.dry_run = true),
        help: "tell what would be done, as -v does, and do none of it",
        details: "Everything is looked at and decided as in a real run, and the exit status is that \
                  of a real run as far as can be known: errors that only reading, writing or the \
                  room on a disk would show are not seen. Of what it would have made itself it knows \
                  that two operands go to one name, yet makes no backup of the first, and does not \
                  meet it below a directory. With \\fB-i\\fR nobody is asked, and each answer is \
                  taken to be yes. It goes with neither \\fB--receipt\\fR nor \\fB--stats\\fR.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["limit-rate"],
        origin: Origin::Ours,
        group: Group::Means,
        takes: Required("RATE", |draft, rate| {
            draft.limit_rate = Some(bytes_per_second(&rate)?);
            Ok(())
        }),
        help: "move no more than RATE bytes a second in all, such as 50M or 1.5G",
        details: "K, M, G and T, or KiB and so on, are powers of 1024; KB, MB, GB and TB are powers \
                  of 1000. All workers share the rate. Blocks that are shared rather than copied, \
                  and holes, do not count; \\fB--reflink=never\\fR keeps blocks from being shared.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["generate"],
        origin: Origin::Ours,
        group: Group::Messages,
        takes: Required("WHAT", |draft, what| {
            draft.answer = Some(match choose::<Generated>(&what, "--generate")? {
                Generated::Man => Request::ManPage,
                Generated::Completions(shell) => Request::Completions(shell),
            });
            Ok(())
        }),
        values: Some(names::<Generated>),
        help: "write the manual page (man) as roff, or what has a shell complete words (bash, \
               zsh, fish), and do nothing",
        details: "For the command that it was called as: \\fBsource <(haulage cp --generate=bash)\\fR \
                  completes \\fBhaulage\\fR, and under the name \\fBcp\\fR it completes that.",
        ..Flag::PLAIN
    },
];
