//! Every difference that is meant, in one table with its reason.

use std::path::Path;

use super::run::{Case, Outcome, Said};

/// A release of GNU coreutils.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32);

/// A difference, and what makes up for it.
pub(crate) struct Known {
    /// Why we differ.
    pub(crate) reason: &'static str,
    /// GNU cp does as we do from this release on; `None` where we differ on purpose.
    pub(crate) until: Option<Version>,
    /// Whether it shows in this case, of which GNU made this.
    pub(crate) concerns: fn(&Case, &Outcome) -> bool,
    /// Turns what GNU did into what we do, or sets aside what cannot be compared.
    pub(crate) amend: fn(gnu: &mut Outcome, ours: &mut Outcome),
}

pub(crate) static KNOWN: &[Known] = &[
    Known {
        reason: "GNU leaves out whatever the directory happens to list after the copy itself",
        until: None,
        concerns: |_, gnu| gnu.stderr_has(INTO_ITSELF),
        amend: |gnu, ours| {
            ours.tree = gnu.tree.clone();
            for said in gnu.said.iter_mut().chain(&mut ours.said) {
                said.stdout.clear();
                let text = String::from_utf8_lossy(&said.stderr).into_owned();
                let lines = text.split_inclusive('\n');
                said.stderr =
                    lines.filter(|line| line.contains(INTO_ITSELF)).collect::<String>().into();
            }
        },
    },
    Known {
        reason: "-b with -n was worded otherwise",
        until: Some(Version(9, 5)),
        concerns: |_, gnu| gnu.stderr_has(OLD_BACKUP_OF_NOTHING),
        amend: |gnu, _| gnu.replace_in_stderr(OLD_BACKUP_OF_NOTHING, NEW_BACKUP_OF_NOTHING),
    },
    Known {
        reason: "an answer other than yes is a failure now",
        until: Some(Version(9, 2)),
        concerns: |case, gnu| {
            gnu.stderr_has("? ") && !case.line.contains("<y") && !case.line.contains("<Y")
        },
        amend: |gnu, _| gnu.said.iter_mut().for_each(|said| said.status = Some(1)),
    },
    Known {
        reason: "the source is named as well when a directory is in its way",
        until: Some(Version(9, 5)),
        concerns: |_, gnu| gnu.stderr_has("with non-directory\n"),
        amend: |gnu, ours| {
            for (gnu, ours) in gnu.said.iter_mut().zip(&ours.said) {
                gnu.stderr = with_sources_named(&gnu.stderr, &ours.stderr);
            }
        },
    },
    Known {
        reason: "with -b, what is in the way of a directory is kept under the backup's name",
        until: Some(Version(9, 5)),
        concerns: |case, gnu| {
            case.line.contains('b') && gnu.stderr_has("cannot overwrite non-directory")
        },
        amend: |gnu, ours| *gnu = ours.clone(),
    },
    Known {
        reason: "names with a quotation mark and an unprintable byte began with two marks too many",
        until: Some(Version(9, 5)),
        concerns: |case, gnu| case.holds_mark_and_escape() && gnu.says("'''"),
        amend: |gnu, _| {
            for said in &mut gnu.said {
                replace(&mut said.stderr, "'''it", "'it");
                replace(&mut said.stdout, "'''it", "'it");
            }
        },
    },
    Known {
        reason: "-p leaves no set-ID bit on a file whose source has none, nor a directory's \
                 inherited one",
        until: Some(Version(9, 5)),
        concerns: |_, gnu| gnu.tree.0.values().any(|entry| entry.mode & 0o6000 != 0),
        amend: |gnu, ours| {
            for (name, gnu) in &mut gnu.tree.0 {
                let Some(ours) = ours.tree.0.get(name) else { continue };
                if gnu.mode & 0o6000 != 0 && gnu.mode & 0o1777 == ours.mode {
                    gnu.mode = ours.mode;
                }
            }
        },
    },
    Known {
        reason: "a clone that fails leaves no empty file",
        until: Some(Version(9, 5)),
        concerns: |_, gnu| gnu.stderr_has("failed to clone 'c'"),
        amend: |gnu, _| drop(gnu.tree.0.remove(Path::new("c"))),
    },
    Known {
        reason: "the file is read once for all its names, and which is copied first hangs on the \
                 order of the directory",
        until: None,
        concerns: |case, _| case.tree.contains("=="),
        amend: |gnu, ours| {
            for (name, gnu) in &mut gnu.tree.0 {
                if let Some(ours) = ours.tree.0.get(name) {
                    gnu.accessed = ours.accessed.clone();
                }
            }
        },
    },
    Known {
        reason: "a simple backup of what is in another directory was put into the current one",
        until: Some(Version(9, 5)),
        concerns: |case, gnu| {
            let stray = |name: &str| gnu.tree.0.contains_key(Path::new(name));
            case.tree.ends_with("b->d") && (stray("a~") || stray("a.s"))
        },
        amend: |gnu, ours| gnu.tree = ours.tree.clone(),
    },
    Known {
        reason: "9.10 leaves the list of an existing file when its mode is to be that of a source \
                 without a list, and so lets in whom the source does not",
        until: None,
        concerns: |case, _| ["-p a acl", "--preserve=mode a acl"].contains(&&*case.line),
        amend: |gnu, _| {
            if let Some(entry) = gnu.tree.0.get_mut(Path::new("acl")) {
                entry.xattrs.clear();
            }
        },
    },
    Known {
        reason: "where -b cannot help, since a directory is in the way, 9.10 complains otherwise",
        until: None,
        concerns: |case, gnu| case.line.contains('b') && gnu.stderr_has(": Is a directory\n"),
        amend: |gnu, ours| gnu.said.clone_from(&ours.said),
    },
    Known {
        reason: "`DIR/.` made backups of nothing below it",
        until: Some(Version(9, 5)),
        concerns: |case, gnu| case.line.contains("s/. ") && gnu.stderr_has("File exists"),
        amend: |gnu, ours| *gnu = ours.clone(),
    },
];

const INTO_ITSELF: &str = "cp: cannot copy a directory, ";
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

    /// Whether some command said `text` at all.
    fn says(&self, text: &str) -> bool {
        let stdout = |said: &Said| String::from_utf8_lossy(&said.stdout).contains(text);
        self.stderr_has(text) || self.said.iter().any(stdout)
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

/// GNU's lines, those of them that lack the source's name taken from ours where we name it.
fn with_sources_named(gnu: &[u8], ours: &[u8]) -> Vec<u8> {
    let lines = |text| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    let (gnu, ours) = (lines(gnu), lines(ours));
    let name_source = |line: String| {
        let begun = format!("{line} ");
        let named = ours
            .iter()
            .find(|ours| line.ends_with("with non-directory") && ours.starts_with(&begun));
        named.cloned().unwrap_or(line) + "\n"
    };
    gnu.into_iter().map(name_source).collect::<String>().into()
}
