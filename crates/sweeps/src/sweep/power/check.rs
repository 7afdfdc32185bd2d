//! Whether a state has what the options promise.

use std::collections::BTreeSet;
use std::path::Path;

use testfs::{Aspects, Tree};

use super::recorded::{DST, Recorded, copy};
use super::state::State;
use crate::sweep::copies::OptionSet;
use crate::sweep::process::{self, PATIENCE};
use crate::sweep::run::Run;

/// Checks the state that is mounted at `root`. Returns whether there was a journal to resume from.
pub(super) fn check(
    run: &Run,
    set: &OptionSet<'_>,
    recorded: &Recorded,
    state: &State,
    root: &Path,
    faults: &mut Vec<String>,
) -> anyhow::Result<bool> {
    let dst = root.join(DST);
    let found = match dst.try_exists()? {
        true => match Tree::read(&dst) {
            Ok(tree) => Some(tree),
            Err(error) => {
                faults.push(format!("the copy cannot be read: {error}"));
                return Ok(false);
            }
        },
        false => None,
    };
    if set.has("--durable") && state.is_after_exit {
        match &found {
            Some(found) => faults.extend(recorded.new.differences(found, Aspects::ALL)),
            None => faults.push("there is no copy".to_owned()),
        }
    }
    let resumes = set.has("--resume");
    if set.is_atomic() {
        faults.extend(mixtures(recorded, found.as_ref()));
    }
    let is_journal = |path: &Path| path.to_string_lossy().ends_with(".haulage-journal");
    let had_journal = found.is_some_and(|found| found.paths().any(is_journal));
    if resumes {
        let ended = process::run(&mut copy(run, &recorded.options, &recorded.src, root), PATIENCE)?;
        faults.extend(ended.crash());
        if !ended.success() {
            faults.push(format!("resuming failed: {}", ended.said()));
        } else {
            // Times are kept with -p alone, which --resume implies for files and not for directories.
            let aspects = Aspects { mtimes: set.has("-a"), ..Aspects::ALL };
            let differences = recorded.new.differences(&Tree::read(&dst)?, aspects);
            faults.extend(differences.into_iter().map(|line| format!("after resuming: {line}")));
        }
    }
    Ok(had_journal)
}

/// The names of files that stand for neither the old file nor the whole new one.
fn mixtures(recorded: &Recorded, found: Option<&Tree>) -> Vec<String> {
    let mut faults = Vec::new();
    let (old, new) = (recorded.old.as_ref(), &recorded.new);
    let paths = |tree: Option<&Tree>| {
        tree.into_iter().flat_map(Tree::paths).map(Path::to_owned).collect::<BTreeSet<_>>()
    };
    let all = &(&paths(old) | &paths(found)) | &paths(Some(new));
    for path in all {
        let had = old.is_some_and(|old| old.has(&path));
        let Some(found) = found.filter(|found| found.has(&path)) else {
            if had {
                faults.push(format!("{}: neither old nor new: it is gone", path.display()));
            }
            continue;
        };
        if !found.is_file(&path) || is_ours(&path) {
            continue;
        }
        if !had && !new.has(&path) {
            faults.push(format!("{}: of neither the old tree nor the new one", path.display()));
            continue;
        }
        let from = |tree: Option<&Tree>| {
            tree.filter(|tree| tree.has(&path)).map_or(vec!["absent".to_owned()], |tree| {
                tree.differences_at(found, &path, Aspects::ALL)
            })
        };
        let (from_old, from_new) = (from(old), from(Some(new)));
        if !from_old.is_empty() && !from_new.is_empty() {
            let (from_old, from_new) = (from_old.join(", "), from_new.join(", "));
            let path = path.display();
            faults.push(format!("{path}: not old ({from_old}) and not new ({from_new})"));
        }
    }
    faults
}

/// Whether it is a temporary or partial file, a journal or a marker.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') && name.contains(".haulage-")
}
