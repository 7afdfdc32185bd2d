//! The rule of crates: a crate uses those that the table lists for it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use toml::{Table, Value};

use super::table::CrateRule;

/// What breaks the rule, one line each. Dependencies of tests and of build scripts are not read.
pub(super) fn faults(root: &Path, crates: &[CrateRule]) -> anyhow::Result<Vec<String>> {
    let workspace = read(&root.join("Cargo.toml"))?;
    let shared = workspace.get("workspace").and_then(|table| table.get("dependencies"));
    let is_own = |name: &str| shared.and_then(|table| table.get(name)?.get("path")).is_some();
    let mut faults = Vec::new();
    for rule in crates {
        let manifest = format!("{}/Cargo.toml", rule.folder);
        let allowed: BTreeSet<&str> = rule.uses.split_whitespace().collect();
        let manifest_table = read(&root.join(&manifest))?;
        let used: BTreeSet<&str> =
            dependencies(&manifest_table).into_iter().filter(|&name| is_own(name)).collect();
        for name in used.difference(&allowed) {
            faults.push(format!("{manifest}: {TABLE} does not let this crate use `{name}`"));
        }
        for name in allowed.difference(&used) {
            faults.push(format!("{manifest}: does not use `{name}`, which {TABLE} lists"));
        }
    }
    for entry in std::fs::read_dir(root.join("crates"))? {
        let folder = format!("crates/{}", entry?.file_name().to_string_lossy());
        if !crates.iter().any(|rule| rule.folder == folder) {
            faults.push(format!("{folder} is not in {TABLE}"));
        }
    }
    Ok(faults)
}

const TABLE: &str = "xtask/src/layers/table.rs";

fn read(path: &Path) -> anyhow::Result<Table> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.parse().with_context(|| path.display().to_string())
}

/// The names of the dependencies, those for some targets alone included.
fn dependencies(manifest: &Table) -> Vec<&str> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let of_targets = targets.into_iter().flat_map(Table::values);
    let all = manifest.get("dependencies").into_iter();
    let all = all.chain(of_targets.filter_map(|target| target.get("dependencies")));
    all.filter_map(Value::as_table).flat_map(Table::keys).map(String::as_str).collect()
}
