//! Every difference that is meant, in one table with its reason.

use std::path::Path;

use rustix::fs::FileType;
use testfs::Entry;

use super::run::{Case, Outcome, RECENT_NS, Said};

/// A release of GNU coreutils.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32);

/// A difference, and what makes up for it.
pub(crate) struct Known {
    /// Why we differ.
    pub(crate) reason: &'static str,
    /// GNU cp does as we do from this release on; `None` where we differ on purpose.
    pub(crate) until: Option<Version>,
    /// Whether it shows in this case, of which GNU made this and we that.
    pub(crate) concerns: fn(&Case, gnu: &Outcome, ours: &Outcome) -> bool,
    /// Turns what GNU did into what we do, or sets aside what cannot be compared.
    pub(crate) amend: fn(gnu: &mut Outcome, ours: &mut Outcome),
}

pub(crate) static KNOWN: &[Known] = &[
    Known {
        reason: "GNU leaves out whatever the directory happens to list after the copy itself",
        until: None,
        concerns: |_, gnu, ours| {
            let failed = gnu.said.iter().any(|said| said.status != Some(0));
            gnu.stderr_has(INTO_ITSELF) || (failed && ours.meets_itself())
        },
        amend: |gnu, ours| {
            ours.tree = gnu.tree.clone();
            // GNU may come upon nothing at all, or upon the same more than once.
            let both = gnu.meets_itself() && ours.meets_itself();
            for said in gnu.said.iter_mut().chain(&mut ours.said) {
                said.stdout.clear();
                let text = String::from_utf8_lossy(&said.stderr).into_owned();
                let first = text.split_inclusive('\n').find_map(of_itself);
                said.stderr = first.filter(|_| both).unwrap_or_default().into();
            }
        },
    },
    Known {
        reason: "where blocks can be shared GNU shares them with --sparse=always too, and does not read",
        until: None,
        concerns: |case, _, _| case.line.contains("--sparse=always"),
        amend: |gnu, ours| {
            amend_entries(gnu, ours, |gnu, ours| {
                if ours.atime_ns == RECENT_NS {
                    gnu.atime_ns = RECENT_NS;
                }
            });
        },
    },
    Known {
        reason: "-b with -n was worded otherwise",
        until: Some(Version(9, 5)),
        concerns: |_, gnu, _| gnu.stderr_has(OLD_BACKUP_OF_NOTHING),
        amend: |gnu, _| gnu.replace_in_stderr(OLD_BACKUP_OF_NOTHING, NEW_BACKUP_OF_NOTHING),
    },
    Known {
        reason: "an answer other than yes is a failure now",
        until: Some(Version(9, 2)),
        concerns: |case, gnu, _| {
            gnu.stderr_has("? ") && !case.line.contains("<y") && !case.line.contains("<Y")
        },
        amend: |gnu, _| gnu.said.iter_mut().for_each(|said| said.status = Some(1)),
    },
    Known {
        reason: "the source is named as well when a directory is in its way",
        until: Some(Version(9, 5)),
        concerns: |_, gnu, _| gnu.stderr_has("with non-directory\n"),
        amend: |gnu, ours| {
            for (gnu, ours) in gnu.said.iter_mut().zip(&ours.said) {
                gnu.stderr = with_sources_named(&gnu.stderr, &ours.stderr);
            }
        },
    },
    Known {
        reason: "with -b, what is in the way of a directory is kept under the backup's name",
        until: Some(Version(9, 5)),
        concerns: |case, gnu, _| {
            case.line.contains('b') && gnu.stderr_has("cannot overwrite non-directory")
        },
        amend: |gnu, ours| *gnu = ours.clone(),
    },
    Known {
        reason: "names with a quotation mark and an unprintable byte began with two marks too many",
        until: Some(Version(9, 5)),
        concerns: |case, gnu, _| case.holds_mark_and_escape() && gnu.says("'''"),
        amend: |gnu, _| {
            for said in &mut gnu.said {
                replace(&mut said.stderr, "'''it", "'it");
                replace(&mut said.stdout, "'''it", "'it");
            }
        },
    },
    Known {
        reason: "what this run has made is replaced where that leaves a numbered backup of it",
        until: Some(Version(9, 5)),
        concerns: |case, gnu, _| {
            case.line.contains("--backup=t") && gnu.stderr_has("will not overwrite just-created")
        },
        amend: |gnu, ours| *gnu = ours.clone(),
    },
    Known {
        reason: "-p leaves no set-ID bit on a file whose source has none, nor a directory's \
                 inherited one",
        until: Some(Version(9, 5)),
        concerns: |_, gnu, _| gnu.tree.entries.values().any(|entry| entry.mode & 0o6000 != 0),
        amend: |gnu, ours| {
            // A file that has one is called like its copy; of directories whose owner is lost it is
            // lost as well.
            let with_bit = ours.tree.entries.iter().filter(|(_, entry)| entry.mode & 0o6000 != 0);
            let sources: Vec<_> = with_bit.map(|(name, _)| name.file_name()).collect();
            for (name, gnu) in &mut gnu.tree.entries {
                let Some(ours) = ours.tree.entries.get(name) else { continue };
                let is_file = gnu.kind == FileType::RegularFile;
                let source_has = is_file && sources.contains(&name.file_name());
                if gnu.mode & 0o6000 != 0 && !source_has && gnu.mode & 0o1777 == ours.mode {
                    gnu.mode = ours.mode;
                }
            }
        },
    },
    Known {
        reason: "a clone that fails leaves no empty file",
        until: Some(Version(9, 5)),
        concerns: |_, gnu, _| gnu.stderr_has("failed to clone 'c'"),
        amend: |gnu, _| drop(gnu.tree.entries.remove(Path::new("c"))),
    },
    Known {
        reason: "links are read to see where they lead, and holes to see whether they are",
        until: None,
        concerns: |case, _, _| case.tree.contains("->") || case.tree.contains('~'),
        amend: |gnu, ours| {
            amend_entries(gnu, ours, |gnu, ours| {
                if ours.atime_ns == RECENT_NS && (gnu.kind == FileType::Symlink || is_hole(gnu)) {
                    gnu.atime_ns = RECENT_NS;
                }
            });
        },
    },
    Known {
        reason: "with --reflink=always a file keeps what it held until the clone has worked",
        until: None,
        concerns: |_, gnu, _| gnu.stderr_has("failed to clone 'b'"),
        amend: |gnu, ours| gnu.tree = ours.tree.clone(),
    },
    Known {
        reason: "a destination gives way, and an older backup to it, only to a source that could \
                 be opened",
        until: None,
        concerns: |case, gnu, ours| {
            let unread = "for reading: Permission denied";
            gives_way(case) && gnu.stderr_has(unread) && ours.stderr_has(unread)
        },
        amend: |gnu, ours| {
            gnu.tree = ours.tree.clone();
            for (gnu, ours) in gnu.said.iter_mut().zip(&ours.said) {
                gnu.stdout.clone_from(&ours.stdout);
            }
        },
    },
    Known {
        reason: "a backup replaces nothing that this run has made, and no other backup of this run",
        until: None,
        concerns: |case, gnu, ours| {
            let refused = "will not overwrite just-created";
            makes_backups(case) && ours.stderr_has(refused) && !gnu.stderr_has(refused)
        },
        amend: |gnu, ours| *gnu = ours.clone(),
    },
    Known {
        reason: "what this run has made is not replaced by way of a link to its directory either",
        until: None,
        concerns: |case, gnu, ours| {
            case.line.contains("--parents")
                && case.tree.contains("; t/b->a")
                && ours.stderr_has("will not overwrite just-created 't/b/e' with 'b/e'")
                && !gnu.stderr_has("will not overwrite just-created")
        },
        amend: |gnu, ours| *gnu = ours.clone(),
    },
    Known {
        reason: "a link in the way, an empty file and an unchanged directory need not be read",
        until: None,
        concerns: |_, gnu, _| gnu.tree.entries.values().any(may_stay_unread),
        amend: |gnu, ours| {
            amend_entries(gnu, ours, |gnu, ours| {
                if may_stay_unread(gnu) && gnu.atime_ns == RECENT_NS {
                    gnu.atime_ns = ours.atime_ns;
                }
            });
        },
    },
    Known {
        reason: "what is a link of the right file already is not removed and made again",
        until: None,
        concerns: |case, _, _| case.line.contains("-au s t && -auv s t"),
        amend: |gnu, ours| gnu.said.clone_from(&ours.said),
    },
    Known {
        reason: "once --parents has made a directory GNU takes it that nothing stands where the \
                 operands after that go, and fails where something does",
        until: None,
        concerns: |case, gnu, ours| {
            case.line.contains("--parents") && gnu.finds_besides(ours, ": File exists")
        },
        amend: |gnu, ours| *gnu = ours.clone(),
    },
    Known {
        reason: "of two reasons to refuse another is told",
        until: None,
        concerns: |_, gnu, ours| {
            REASONS.iter().any(|(theirs, own)| gnu.stderr_has(theirs) && ours.stderr_has(own))
        },
        amend: |gnu, ours| {
            for (theirs, own) in REASONS {
                if gnu.stderr_has(theirs) && ours.stderr_has(own) {
                    for outcome in [&mut *gnu, &mut *ours] {
                        outcome.drop_from_stderr(theirs);
                        outcome.drop_from_stderr(own);
                    }
                    // It may have said what it is about to do before it found out.
                    for (gnu, ours) in gnu.said.iter_mut().zip(&ours.said) {
                        gnu.stdout.clone_from(&ours.stdout);
                    }
                }
            }
        },
    },
    Known {
        reason: "GNU names an attribute twice and not the file, and calls nothing a warning",
        until: None,
        concerns: |_, gnu, ours| gnu.stderr_has("for 'user.k'") && ours.stderr_has("for 'n'"),
        amend: |gnu, ours| {
            for (gnu, ours) in gnu.said.iter_mut().zip(&ours.said) {
                gnu.stderr.clone_from(&ours.stderr);
            }
        },
    },
    Known {
        reason: "a directory below one operand is copied though another operand named it before",
        until: None,
        concerns: |case, gnu, ours| {
            let refused = ["will not create hard link", "specified more than once"];
            !case.line.contains("c dir c/.")
                && refused.iter().any(|text| gnu.stderr_has(text) && !ours.stderr_has(text))
        },
        amend: |gnu, ours| *gnu = ours.clone(),
    },
    Known {
        reason: "a backup that renames the source itself, a link, leaves nothing to copy",
        until: None,
        concerns: |case, _, ours| {
            let replaced = "as it was replaced while being copied";
            makes_backups(case) && case.tree.contains("->") && ours.stderr_has(replaced)
        },
        amend: |gnu, ours| *gnu = ours.clone(),
    },
    Known {
        reason: "with -l the second operand is what the first was linked to",
        until: None,
        concerns: |case, _, ours| case.line.contains("-l ") && ours.stderr_has("more than once"),
        amend: |gnu, ours| gnu.said.clone_from(&ours.said),
    },
    Known {
        reason: "--parents keeps all attributes of directories, and for good",
        until: None,
        concerns: |case, _, _| case.line.contains("--parents"),
        amend: |gnu, ours| {
            amend_entries(gnu, ours, |gnu, ours| {
                if gnu.kind == FileType::Directory {
                    if gnu.xattrs.is_empty() {
                        gnu.xattrs = ours.xattrs.clone();
                    }
                    if gnu.mtime_ns == RECENT_NS {
                        gnu.mtime_ns = ours.mtime_ns;
                    }
                }
            });
        },
    },
    Known {
        reason: "the file is read once for all its names, and which is copied first hangs on the \
                 order of the directory",
        until: None,
        concerns: |case, _, _| case.tree.contains("=="),
        amend: |gnu, ours| {
            amend_entries(gnu, ours, |gnu, ours| gnu.atime_ns = ours.atime_ns);
        },
    },
    Known {
        reason: "a simple backup of what is in another directory was put into the current one",
        until: Some(Version(9, 5)),
        concerns: |case, gnu, _| {
            let stray = |name: &str| gnu.tree.entries.contains_key(Path::new(name));
            case.tree.ends_with("b->d") && (stray("a~") || stray("a.s"))
        },
        amend: |gnu, ours| gnu.tree = ours.tree.clone(),
    },
    Known {
        reason: "9.10 leaves the list of an existing file when its mode is to be that of a source \
                 without a list, and so lets in whom the source does not",
        until: None,
        concerns: |case, _, _| ["-p a acl", "--preserve=mode a acl"].contains(&&*case.line),
        amend: |gnu, _| {
            if let Some(entry) = gnu.tree.entries.get_mut(Path::new("acl")) {
                entry.xattrs.clear();
            }
        },
    },
    Known {
        reason: "where -b cannot help, since a directory is in the way, 9.10 complains otherwise",
        until: None,
        concerns: |case, gnu, _| case.line.contains('b') && gnu.stderr_has(": Is a directory\n"),
        amend: |gnu, ours| gnu.said.clone_from(&ours.said),
    },
    Known {
        reason: "`DIR/.` made backups of nothing below it",
        until: Some(Version(9, 5)),
        concerns: |case, gnu, _| case.line.contains("s/. ") && gnu.stderr_has("File exists"),
        amend: |gnu, ours| *gnu = ours.clone(),
    },
];

/// Amends each of GNU's entries by what we have at its name, if we have something there.
fn amend_entries(gnu: &mut Outcome, ours: &Outcome, amend: impl Fn(&mut Entry, &Entry)) {
    for (name, gnu) in &mut gnu.tree.entries {
        if let Some(ours) = ours.tree.entries.get(name) {
            amend(gnu, ours);
        }
    }
}

/// A symbolic link, an empty file or a directory.
fn may_stay_unread(entry: &Entry) -> bool {
    match entry.kind {
        FileType::RegularFile => entry.bytes == 0,
        kind => matches!(kind, FileType::Symlink | FileType::Directory),
    }
}

/// A file that is all hole.
fn is_hole(entry: &Entry) -> bool {
    entry.kind == FileType::RegularFile && entry.data.is_empty()
}

/// Whether what stands at the destination is removed or renamed before a copy is made.
fn gives_way(case: &Case) -> bool {
    case.line.contains("--remove-destination")
        || makes_backups(case)
        || (case.tree.contains("==") && (has_option(case, 'a') || has_option(case, 'd')))
}

fn makes_backups(case: &Case) -> bool {
    case.line.contains("--backup") || has_option(case, 'b') || has_option(case, 'S')
}

/// Whether an option of this letter is in the line.
fn has_option(case: &Case, letter: char) -> bool {
    let short = |word: &&str| word.starts_with('-') && !word.starts_with("--");
    case.line.split(' ').filter(short).any(|word| word.contains(letter))
}

const INTO_ITSELF: &str = "cp: cannot copy a directory, ";
const TO_ITSELF: &str = "cp: will not create hard link ";

/// What a line tells of a copy that has come upon its own beginning, without a question that was
/// asked before, which ends no line.
fn of_itself(line: &str) -> Option<&str> {
    let start = line.find(INTO_ITSELF).or_else(|| line.find(TO_ITSELF))?;
    Some(&line[start..])
}

/// What GNU says, and what we say, where both refuse for good reason.
const REASONS: &[(&str, &str)] = &[
    ("cannot overwrite non-directory", "are the same file"),
    ("are the same file", "cannot overwrite non-directory"),
    ("can make relative symbolic links only in", "cannot overwrite directory"),
    (": Is a directory", "cannot overwrite directory"),
];

const OLD_BACKUP_OF_NOTHING: &str = "options --backup and --no-clobber are mutually exclusive";
const NEW_BACKUP_OF_NOTHING: &str = "--backup is mutually exclusive with -n or --update=none-fail";

impl Case {
    fn holds_mark_and_escape(&self) -> bool {
        self.line.contains("it's\\n") || self.line.contains("it\\x27s\\n")
    }
}

impl Outcome {
    /// Whether some command's standard error has `text` in it.
    fn stderr_has(&self, text: &str) -> bool {
        self.said.iter().any(|said| String::from_utf8_lossy(&said.stderr).contains(text))
    }

    fn meets_itself(&self) -> bool {
        self.stderr_has(INTO_ITSELF) || self.stderr_has(TO_ITSELF)
    }

    /// Whether standard error has lines that `other` lacks, all of which end with `text`.
    fn finds_besides(&self, other: &Outcome, text: &str) -> bool {
        let lines = |outcome: &Outcome| -> Vec<String> {
            let texts = outcome.said.iter().map(|said| String::from_utf8_lossy(&said.stderr));
            texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
        };
        let (own, others) = (lines(self), lines(other));
        let mut besides = own.iter().filter(|line| !others.contains(line)).peekable();
        besides.peek().is_some() && besides.all(|line| line.ends_with(text))
    }

    /// Whether some command said `text` at all.
    fn says(&self, text: &str) -> bool {
        let stdout = |said: &Said| String::from_utf8_lossy(&said.stdout).contains(text);
        self.stderr_has(text) || self.said.iter().any(stdout)
    }

    /// Removes the lines with `text` in them.
    fn drop_from_stderr(&mut self, text: &str) {
        for said in &mut self.said {
            let lines = String::from_utf8_lossy(&said.stderr).into_owned();
            let kept = lines.split_inclusive('\n').filter(|line| !line.contains(text));
            said.stderr = kept.collect::<String>().into();
        }
    }

    fn replace_in_stderr(&mut self, old: &str, new: &str) {
        self.said.iter_mut().for_each(|said| replace(&mut said.stderr, old, new));
    }
}

/// Replaces `old` in what is ASCII wherever it matters here.
fn replace(text: &mut Vec<u8>, old: &str, new: &str) {
    if let Ok(valid) = std::str::from_utf8(text) {
        *text = valid.replace(old, new).into();
    }
}

/// GNU's lines, those of them that lack the source's name taken from ours where we name it, each of
/// ours once: two sources may have the same directory in their way.
fn with_sources_named(gnu: &[u8], ours: &[u8]) -> Vec<u8> {
    let lines = |text| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    let (gnu, mut ours) = (lines(gnu), lines(ours));
    let mut name_source = |line: String| {
        let begun = format!("{line} ");
        let named = ours
            .iter()
            .position(|ours| line.ends_with("with non-directory") && ours.starts_with(&begun));
        named.map_or(line, |at| ours.remove(at)) + "\n"
    };
    gnu.into_iter().map(&mut name_source).collect::<String>().into()
}
