//! Circles among imports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::imports::Import;

/// Files each of which imports all others, directly or through others of them.
pub(super) struct Circle {
    /// In the order of their names.
    pub(super) files: Vec<String>,
    /// The fewest imports that lead from one of the files back to it.
    pub(super) shortest: Vec<Import>,
}

/// The largest sets of files that import each other.
pub(super) fn circles(imports: &[Import]) -> Vec<Circle> {
    let mut imports_of: BTreeMap<&str, Vec<&Import>> = BTreeMap::new();
    for import in imports {
        imports_of.entry(&import.from).or_default().push(import);
    }
    let reached: BTreeMap<&str, BTreeMap<&str, &Import>> =
        imports_of.keys().map(|&file| (file, reached_from(file, &imports_of))).collect();
    let mut circles = Vec::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (&file, from_file) in &reached {
        if done.contains(file) || !from_file.contains_key(file) {
            continue;
        }
        let leads_back =
            |other: &&str| reached.get(other).is_some_and(|from| from.contains_key(file));
        let files: Vec<&str> = from_file.keys().copied().filter(leads_back).collect();
        let shortest = files.iter().map(|&file| circle_through(file, &reached[file]));
        let shortest = shortest.min_by_key(Vec::len).unwrap_or_default();
        done.extend(&files);
        circles.push(Circle { files: files.into_iter().map(str::to_owned).collect(), shortest });
    }
    circles
}

/// The files that imports lead to from `start`, each with the last import of the shortest path.
fn reached_from<'a>(
    start: &'a str,
    imports_of: &BTreeMap<&'a str, Vec<&'a Import>>,
) -> BTreeMap<&'a str, &'a Import> {
    let mut reached: BTreeMap<&str, &Import> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(file) = waiting.pop_front() {
        for import in imports_of.get(file).into_iter().flatten() {
            if !reached.contains_key(import.to.as_str()) {
                reached.insert(&import.to, import);
                waiting.push_back(&import.to);
            }
        }
    }
    reached
}

/// The fewest imports that lead from `file` back to it.
fn circle_through(file: &str, reached: &BTreeMap<&str, &Import>) -> Vec<Import> {
    let mut circle = vec![reached[file].clone()];
    while circle[circle.len() - 1].from != file {
        let before = reached[circle[circle.len() - 1].from.as_str()];
        circle.push(before.clone());
    }
    circle.reverse();
    circle
}
