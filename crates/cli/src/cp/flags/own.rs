//! The options that only haulage has.

use engines::profile::Location;

use crate::cp::command_line::Command;
use crate::cp::flags::flag::Takes::{Nothing, Required};
use crate::cp::flags::flag::{Flag, Group, Origin};
use crate::cp::values::{
    Generated, bytes_per_second, choose, names, number_from_one, rule, variant,
};

/// In the order in which candidates for an ambiguous beginning are listed.
pub(super) static FLAGS: &[Flag] = &[
    Flag {
        longs: &["jobs"],
        origin: Origin::Own,
        group: Group::Means,
        takes: Required("N", |builder, number| {
            builder.options.jobs = Some(number_from_one(&number, "jobs")?);
            Ok(())
        }),
        help: "let N workers copy at once; without it as many as are of use",
        details: "They share the entries of a tree and the parts of a large file. Without this option \
                  there are as many as processors, and of those that share a tree up to eight times as \
                  many where a medium or a server keeps them waiting, and fewer where they are in each \
                  other's way: that is measured while the copy goes on. One worker does \
                  what has to be done in order: with \\fB-i\\fR, \\fB-v\\fR, \\fB--debug\\fR, \
                  \\fB-b\\fR and \\fB--keep-directory-symlink\\fR.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["engine"],
        origin: Origin::Own,
        group: Group::Means,
        takes: Required("VARIANT", |builder, text| {
            builder.options.engine = Some(variant(&text)?);
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
        origin: Origin::Own,
        group: Group::Means,
        takes: Required("FILE", |builder, file| {
            builder.options.profile = match file == "none" {
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
        origin: Origin::Own,
        group: Group::Safety,
        takes: Nothing(|builder| builder.options.atomic = true),
        help: "let a file's name stand for the old file or the whole new one at every moment",
        details: "The copy is made without a name in the directory of its destination, and comes to \
                  the name when it is whole; an interrupted or failed copy leaves the old file, or \
                  none. (Without this option a copy that is killed leaves files that are not \
                  whole, some of them empty, and newer than their sources, so that \\fB-u\\fR \
                  takes them for up to date.) An existing file is so replaced rather than written \
                  into: other hard links to it keep the old data. The new file takes over its \
                  owner, permissions, access control list and extended attributes unless other \
                  options say what they are to be, and what cannot be taken over is warned of. \
                  Where the destination is a symbolic link, the file that it leads to is replaced, \
                  in that file's directory; the link stays. Devices and fifos are written to as \
                  ever. It needs room for the old and the new file at once. Until it gets its name \
                  the copy has none, and goes away with a killed process. One that takes the place \
                  of an old file is called .NAME.haulage-new for an instant before that, and still \
                  is if it is killed right \
                  then; the next copy to that name removes it. Where a file system knows no files \
                  without names (NFS for one) every copy is called so all the while. A backup of a \
                  file that is replaced is another link to it for an instant, and so needs a file \
                  system that has links.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["durable"],
        origin: Origin::Own,
        group: Group::Safety,
        takes: Nothing(|builder| builder.options.durable = true),
        help: "succeed only when every copy, and its name, would outlast a loss of power",
        details: "Files and the directories that they are in are synced (fsync). An error in that \
                  is one of the copy. With \\fB--atomic\\fR a file is synced before it gets its \
                  name. Files that were left as they were are not synced. Several files are \
                  waited for together, so that it may be told later, but before the run ends, that \
                  one could not be. What a disk does with its own cache when it is told to empty it \
                  is up to the disk.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["verify"],
        origin: Origin::Own,
        group: Group::Safety,
        takes: Nothing(|builder| builder.options.verify = true),
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
        origin: Origin::Own,
        group: Group::Safety,
        takes: Nothing(|builder| {
            builder.options.resume = true;
            builder.options.atomic = true;
            builder.preserve_default();
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
        origin: Origin::Own,
        group: Group::Means,
        takes: Nothing(|builder| builder.options.no_cache = true),
        help: "leave the page cache as it was, for copies that nobody reads soon",
        details: "Data goes past the cache where the file systems let it (RWF_DONTCACHE, or else \
                  O_DIRECT). What came into the cache all the same is dropped: of the copy once it \
                  is written to the disk, for which the run waits; of the source, what was not in \
                  the cache before. On tmpfs, which is memory itself, a copy stays where it is.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["progress"],
        origin: Origin::Own,
        group: Group::Messages,
        takes: Nothing(|builder| builder.reports.progress = true),
        help: "show how far the copy is, if standard error is a terminal",
        details: "How much there is to do is counted beside the copy. Until that is known no time \
                  left is given, nor where entries are left out by globs. Rate and time left are \
                  those of the last seconds, without what the program was stopped for. Without it \
                  SIGUSR1 asks for one line of the same.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["receipt"],
        origin: Origin::Own,
        group: Group::Messages,
        takes: Required("FILE", |builder, file| {
            builder.reports.receipt = Some(file);
            Ok(())
        }),
        help: "write to FILE, a line of JSON each, what became of every entry, and a summary; \
               - is standard output",
        details: "FILE is opened before anything is copied, and what it held is lost. One that is \
                  among the sources is not copied, which is an error unless it is left out. \
                  docs/receipt.md describes the lines. If they cannot be written the exit status \
                  is 1.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["stats"],
        origin: Origin::Own,
        group: Group::Messages,
        takes: Nothing(|builder| builder.reports.stats = true),
        help: "tell at the end, on standard error, what was copied, how, and how fast",
        details: "The time elapsed is all the time there was, also what the program was stopped \
                  for.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["exclude"],
        origin: Origin::Own,
        group: Group::Sources,
        takes: Required("GLOB", |builder, glob| {
            builder.rules.push(rule("exclude", glob)?);
            Ok(())
        }),
        help: "leave out what matches GLOB below a SOURCE, and all that is in such a directory",
        details: "GLOB is written as in gitignore(5), with {a,b} for alternatives besides: without \
                  a slash it matches names in any directory; with one, at the front or in the \
                  middle, the path below SOURCE; with one at the end, directories only. Names \
                  are compared byte by byte. It may be given more than once. Of all \
                  \\fB--exclude\\fR and \\fB--include\\fR the first that matches decides; what \
                  none matches is copied unless an ignore file says otherwise. A SOURCE itself is \
                  never left out. docs/filter.md tells where that differs from rsync.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["include"],
        origin: Origin::Own,
        group: Group::Sources,
        takes: Required("GLOB", |builder, glob| {
            builder.rules.push(rule("include", glob)?);
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
        origin: Origin::Own,
        group: Group::Sources,
        takes: Required("FILE", |builder, file| {
            builder.ignore_files.push(file);
            Ok(())
        }),
        help: "leave out what FILE says, which is written like a .gitignore",
        details: "Its patterns hold from each SOURCE down, wherever FILE is. In it the last pattern \
                  that matches decides. It may be given more than once; the last file that has a \
                  match decides. A pattern that can match nothing is passed over.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["dry-run"],
        origin: Origin::Own,
        group: Group::Messages,
        takes: Nothing(|builder| builder.options.dry_run = true),
        help: "tell what would be done, as -v does, and do none of it",
        details: "Everything is looked at and decided as in a real run, and the exit status is \
                  that of a real run as far as can be known: errors that only reading, writing or \
                  the room on a disk would show are not seen. Of \\fB-l\\fR it knows what may not \
                  be linked: what is on another file system, or protected from it. Of what it \
                  would have made itself it knows that two operands go to one name, yet does not \
                  meet the first below a directory. With \\fB-i\\fR nobody is asked, and each \
                  answer is taken to be yes. It goes with neither \\fB--receipt\\fR nor \
                  \\fB--stats\\fR.",
        ..Flag::PLAIN
    },
    Flag {
        longs: &["limit-rate"],
        origin: Origin::Own,
        group: Group::Means,
        takes: Required("RATE", |builder, rate| {
            builder.options.limit_rate = Some(bytes_per_second(&rate)?);
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
        origin: Origin::Own,
        group: Group::Messages,
        takes: Required("WHAT", |builder, what| {
            builder.command = Some(Command::Generate(choose(&what, "--generate")?));
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
