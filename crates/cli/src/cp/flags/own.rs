//! The options that only haulage has.

use engines::profile::Location;

use crate::cp::command_line::Command;
use crate::cp::flags::flag::Flag;
use crate::cp::values::{
    Generated, bytes_per_second, choose, names, number_from_one, rule, variant,
};

/// The options that only haulage has, in the order in which candidates for an ambiguous beginning are listed.
pub(crate) static FLAGS: &[Flag] = &[
    Flag::required("--jobs", "N", |builder, number| {
            builder.options.jobs = Some(number_from_one(&number, "jobs")?);
            Ok(())
        })
        .help("copy with at most N workers")
        .details("Workers share the entries of a tree and the spans of a large file. Without this \
                  option there are as many as processors. For the entries of a tree a controller \
                  measures the throughput during the copy: it starts up to eight times as many \
                  workers if storage or a server has a high latency, and stops some if they slow \
                  each other down. One worker copies in order with \\fB-i\\fR, \\fB-v\\fR, \
                  \\fB--debug\\fR, \\fB-b\\fR and \\fB--keep-directory-symlink\\fR."),
    Flag::required("--engine", "VARIANT", |builder, text| {
            builder.options.engine = Some(variant(&text)?);
            Ok(())
        })
        .help("copy data by this variant, such as read_write:256K@2; see 'haulage engines'")
        .details("If the engine is refused, read(2) and write(2) take over, which \\fB--debug\\fR \
                  reports. Holes are copied as without this option. Files are not cloned \
                  first, unless VARIANT is \\fBreflink\\fR. With \\fB--reflink=never\\fR \
                  \\fBcopy_file_range\\fR is refused where it might share blocks."),
    Flag::required("--profile", "FILE", |builder, file| {
            builder.options.profile = match file == "none" {
                true => Location::None,
                false => Location::named(&file),
            };
            Ok(())
        })
        .help("use the measurements in FILE to choose the engine; none uses no profile")
        .details("Without this option HAULAGE_PROFILE names the file; if it is set and empty, no \
                  profile is used. If it is unset, the file is haulage/profile.toml in \
                  $XDG_CONFIG_HOME or ~/.config, which is not read for a copy of a few small \
                  files. docs/profile.md describes the format. If a profile cannot be used, a \
                  warning is printed and the rule of haulage decides. \\fB--engine\\fR takes \
                  precedence. \\fB--debug\\fR and \\fB--receipt\\fR report for each file which \
                  line of the profile was used."),
    Flag::switch("--atomic", |builder| builder.options.atomic = true)
        .help("replace each file in one step: its name is the old or the complete new file at any \
               time")
        .details("The copy is written to an unnamed file in the directory of the destination \
                  (O_TMPFILE), and linked to its name when it is complete. An interrupted or \
                  failed copy leaves the old file, or none, and so does a loss of power: the data is \
                  written to the disk before the copy gets its name. (Without this option a copy that is \
                  killed leaves incomplete and empty files that are newer than their sources, \
                  which \\fB-u\\fR then skips.) An existing file is replaced, not overwritten: \
                  other hard links to it keep the old data. The new file gets the owner, the \
                  permissions, the access control list and the extended attributes of the old \
                  one, unless other options set them; what cannot be set is a warning. Its flags \
                  (see \\fBchattr\\fR(1)) are those of a new file. If the \
                  destination is a symbolic link, the file that it points to is replaced, and the \
                  link stays. Devices and fifos are written to as without this option. The old \
                  and the new file need space at the same time. A copy that replaces a file is \
                  called .NAME.haulage-new for an instant before it gets its name, and keeps that \
                  name if it is killed then; the next copy to that name removes it. On file \
                  systems without O_TMPFILE, such as NFS, every copy has that name until it is \
                  complete. A backup needs a file system with hard links."),
    Flag::switch("--durable", |builder| builder.options.durable = true)
        .help("exit with success only if all copies and their names would survive a loss of power")
        .details("Files and their directories are synced by fsync(2). An error is an error of the \
                  copy. With \\fB--atomic\\fR a file is synced before it gets its name. Files \
                  that were skipped are synced too. Several files are synced together, so an \
                  error may be reported later than the copy of the file, but before the end of \
                  the run. Whether a disk writes its own cache when told to is up to the disk. \
                  On tmpfs, and on an overlay that is mounted with the option volatile, \
                  \\fBfsync\\fR(2) succeeds and nothing survives."),
    Flag::switch("--verify", |builder| builder.options.verify = true)
        .help("read every copy back and compare it with its source")
        .details("The copy is written to storage and dropped from the page cache first. Then both \
                  files are read. A difference is an error that names the offset of the first \
                  byte that differs. With \\fB--atomic\\fR this is done before the copy gets its \
                  name. If the copy cannot be dropped from the cache, as on tmpfs, it is read \
                  from memory; \\fB--receipt\\fR records this for each file, with a digest. A \
                  source that can be read only once, such as a fifo, is copied, and is an error. \
                  A disk may answer from its own cache."),
    Flag::switch("--resume", |builder| {
            builder.options.resume = true;
            builder.options.atomic = true;
            builder.preserve_default();
        })
        .help("continue after a run of the same command was killed; implies --atomic and -p")
        .details("A file with the source's size and modification time counts as complete, as in \
                  rsync. With \\fB--verify\\fR it is read and compared, and copied again if it \
                  differs. Of a file of at least 4 MiB, the partial copy stays in \
                  .NAME.haulage-part and a journal in .NAME.haulage-journal. The spans that the \
                  journal lists are not copied again, unless the source has changed. Both files \
                  are removed when the copy is complete. If SOURCE is a directory and DEST did \
                  not exist when the first run started, the next run continues in DEST instead of \
                  copying into it."),
    Flag::switch("--no-cache", |builder| builder.options.no_cache = true)
        .help("leave the page cache as it was")
        .details("Data bypasses the page cache where the file system supports it (RWF_DONTCACHE, \
                  else O_DIRECT). Data that was cached nevertheless is dropped: of the copy, \
                  after the run has waited until it is written to disk; of the source, what was \
                  not cached before. On tmpfs a copy stays in memory."),
    Flag::switch("--progress", |builder| builder.reports.progress = true)
        .help("show the progress, if standard error is a terminal")
        .details("The entries are counted in the background. No time left is shown until they are \
                  counted, or with globs that exclude entries. Rate and time left are computed \
                  over the last seconds, without the time that the process was stopped. Without \
                  this option, SIGUSR1 prints one line of progress."),
    Flag::required("--receipt", "FILE", |builder, file| {
            builder.reports.receipt = Some(file);
            Ok(())
        })
        .help("write one line of JSON for each entry, and a summary, to FILE; - is standard \
               output")
        .details("FILE is opened and truncated before the copy starts. If FILE is among the \
                  sources, it is not copied, which is an error unless it is excluded. \
                  docs/receipt.md describes the lines. If they cannot be written, the exit status \
                  is 1. Standard output cannot take them beside the lines of \\fB--verbose\\fR or \
                  \\fB--debug\\fR."),
    Flag::switch("--stats", |builder| builder.reports.stats = true)
        .help("print totals, engines and rates to standard error at the end")
        .details("The elapsed time includes the time that the process was stopped."),
    Flag::required("--exclude", "GLOB", |builder, glob| {
            builder.rules.push(rule("exclude", glob)?);
            Ok(())
        })
        .help("skip entries below SOURCE that match GLOB, and everything in such a directory")
        .details("GLOB has the syntax of gitignore(5), and {a,b} for alternatives. Without a \
                  slash it matches a name in any directory. With a slash at its start or in its \
                  middle it matches the path below SOURCE. With a slash at its end it matches \
                  directories only. Names are compared byte by byte. The option can be repeated. \
                  Of all \\fB--exclude\\fR and \\fB--include\\fR the first that matches decides. \
                  An entry that none matches is copied unless an ignore file excludes it. SOURCE \
                  itself is never excluded. docs/filter.md lists the differences from rsync."),
    Flag::required("--include", "GLOB", |builder, glob| {
            builder.rules.push(rule("include", glob)?);
            Ok(())
        })
        .help("copy entries that match GLOB, despite a later --exclude or an ignore file")
        .details("It does not apply below a directory that is excluded. \\fB--include='*/' \
                  --include='*.c' --exclude='*'\\fR copies the C files of a tree."),
    Flag::required("--ignore-file", "FILE", |builder, file| {
            builder.ignore_files.push(file);
            Ok(())
        })
        .help("skip what FILE lists in the syntax of .gitignore")
        .details("The patterns apply below each SOURCE, wherever FILE is. The last pattern of a \
                  file that matches decides. The option can be repeated; the last file with a \
                  match decides."),
    Flag::switch("--dry-run", |builder| builder.options.dry_run = true)
        .help("print what would be done, as -v does, without doing it")
        .details("The exit status is that of a real run, as far as it can be known: errors of \
                  reading, writing, or a full disk are not predicted. With \\fB-l\\fR it predicts \
                  links that are not permitted and links across file systems. It predicts that \
                  two operands have the same destination, but not that entries below two \
                  directories have. With \\fB-i\\fR each answer is taken as yes. It cannot be \
                  combined with \\fB--receipt\\fR or \\fB--stats\\fR."),
    Flag::required("--limit-rate", "RATE", |builder, rate| {
            builder.options.limit_rate = Some(bytes_per_second(&rate)?);
            Ok(())
        })
        .help("copy at most RATE bytes a second, such as 50M or 1.5G")
        .details("K, M, G and T, or KiB and so on, are powers of 1024; KB, MB, GB and TB are \
                  powers of 1000. All workers share the rate. Shared blocks and holes do not \
                  count; \\fB--reflink=never\\fR avoids shared blocks."),
    Flag::required("--generate", "WHAT", |builder, what| {
            builder.command = Some(Command::Generate(choose(&what, "--generate")?));
            Ok(())
        })
        .help("print the manual page (man) as roff, or a completion script (bash, zsh, fish), and \
               exit")
        .values(names::<Generated>)
        .details("The text is for the command that it is called as: \\fBsource <(haulage cp \
                  --generate=bash)\\fR completes \\fBhaulage\\fR. Called as \\fBcp\\fR, it \
                  completes \\fBcp\\fR."),
];
