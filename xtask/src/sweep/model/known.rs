//! Where GNU cp differs from the model, and is known to: one table with the reasons. haulage differs nowhere.

use super::case::Case;
use super::item::Kind;
use super::meaning::Meaning;
use super::options::{Existing, Follow, Make, Sparse};
use super::outcome::{Outcome, Program, Release};
use super::tree::Tree;

/// A known difference. GNU cp is not compared in a case that it concerns.
pub(super) struct Known {
    /// Why GNU cp differs.
    pub(super) reason: &'static str,
    /// The first release of GNU cp that does as the model says; `None` if there is none.
    pub(super) until: Option<Release>,
    pub(super) concerns: fn(&Case, due: &Meaning, found: &Outcome) -> bool,
}

/// The reason why `program` may differ in `case`. `None` for haulage.
pub(super) fn known(
    program: &Program,
    case: &Case,
    due: &Meaning,
    found: &Outcome,
) -> Option<&'static str> {
    let release = program.release?;
    let is_of = |known: &&Known| known.until.is_none_or(|until| release < until);
    let mut of_program = KNOWN.iter().filter(is_of);
    of_program.find(|known| (known.concerns)(case, due, found)).map(|known| known.reason)
}

static KNOWN: &[Known] = &[
    Known {
        reason: "a simple backup of what is in another directory was put into the current one",
        until: Some(Release(9, 5)),
        concerns: |case, due, found| {
            let backups = |tree: &Tree| {
                let paths = tree.by_path().into_keys();
                paths.filter(|path| path.ends_with(case.options().suffix)).collect::<Vec<_>>()
            };
            backups(&due.tree) != backups(&found.tree)
        },
    },
    Known {
        reason: "with a backup, what is in the way of a directory was not renamed",
        until: Some(Release(9, 5)),
        concerns: |case, _, found| {
            case.options().backup.is_some() && found.says("cannot overwrite non-directory")
        },
    },
    Known {
        reason: "a directory is not copied onto itself, even if each file in it were to be kept",
        until: None,
        concerns: |case, due, found| {
            let options = case.options();
            let keeps = options.existing == Existing::Keep;
            options.is_recursive && keeps && due.fails && !found.says("are the same file")
        },
    },
    Known {
        reason: "a name in a directory that a symbolic link leads to counts as another one, and a \
                 file is not copied onto itself without a word",
        until: None,
        concerns: |case, due, found| {
            let options = case.options();
            let leaves_it =
                options.follow() == Follow::Nothing || options.existing == Existing::ReplaceOlder;
            let is_unchanged = due.tree.differences(&found.tree).is_empty();
            let is_said = found.says("are the same file");
            leaves_it && due.fails && !is_said && is_unchanged
        },
    },
    Known {
        reason: "a symbolic link that is copied onto itself is removed before it is read",
        until: None,
        concerns: |case, due, found| {
            let options = case.options();
            let is_removed = options.backup.is_some() || options.removes_destination;
            let is_lost = found.says("No such file or directory") || found.is_silent();
            let has_link = case.items.iter().any(|item| matches!(item.kind, Kind::Symlink(_)));
            is_removed && due.fails && is_lost && has_link
        },
    },
    Known {
        reason: "a destination that the path of a symbolic link leads through is removed before the link is read",
        until: None,
        concerns: |_, due, found| !due.fails && found.says("cannot read symbolic link"),
    },
    Known {
        reason: "with --update a file that was kept is linked to itself, where the source is given twice, which sets \
                 the time of the directory",
        until: None,
        concerns: |case, due, found| {
            let differences = due.tree.differences(&found.tree);
            let is_of_time = |line: &String| line.contains(": time Now, not ");
            case.options().existing == Existing::ReplaceOlder
                && !due.fails
                && found.is_silent()
                && !differences.is_empty()
                && differences.iter().all(is_of_time)
        },
    },
    Known {
        reason: "a link of -s belongs to the caller, even if owners are preserved",
        until: None,
        concerns: |case, due, found| {
            let options = case.options();
            let differences = due.tree.differences(&found.tree);
            let is_of_owner = |line: &String| line.contains(": owner ");
            options.make == Make::Symlink
                && options.preserve.ownership
                && !differences.is_empty()
                && differences.iter().all(is_of_owner)
        },
    },
    Known {
        reason: "--sparse=never makes a clone, which has the holes of the source",
        until: None,
        concerns: |case, due, found| {
            let differences = due.tree.differences(&found.tree);
            let is_of_holes = |line: &String| line.ends_with("not the sparse file without holes");
            case.options().sparse == Sparse::Never
                && !differences.is_empty()
                && differences.iter().all(is_of_holes)
        },
    },
    Known {
        reason: "with --remove-destination or a backup each file of a directory that is copied onto itself is \
                 refused, not the directory",
        until: None,
        concerns: |case, due, found| {
            let options = case.options();
            let is_unchanged = due.tree.differences(&found.tree).is_empty();
            options.is_recursive
                && (options.removes_destination || options.backup.is_some())
                && due.fails
                && is_unchanged
                && found.says("are the same file")
        },
    },
    Known {
        reason: "a destination gives way only to a source that could be opened",
        until: None,
        concerns: |case, _, found| {
            let options = case.options();
            let gives_way =
                options.backup.is_some() || options.removes_destination || options.preserve.links;
            gives_way && found.says("for reading: Permission denied")
        },
    },
    Known {
        reason: "once --parents has made a directory GNU takes it that nothing stands where the \
                 operands after it go",
        until: None,
        concerns: |case, _, found| case.options().has_parents && found.says(": File exists"),
    },
];
