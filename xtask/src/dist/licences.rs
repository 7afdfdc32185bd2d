//! The licences of what the program or the library contains besides haulage: crates, fonts, scripts, libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::checkout::{CAPI_FOLDER, CLI_FOLDER, Checkout};
use crate::command::{cargo, output};

/// What the program contains that is no crate, with the file of its licence.
const VENDORED: &[(&str, &str)] = &[
    ("DejaVu Sans (subset)", "crates/report/assets/DejaVu-LICENSE"),
    // In the static program only.
    ("musl", "packaging/musl-LICENSE"),
];

/// Libraries whose licences ask for no notice in a program.
const WITHOUT_NOTICE: &str = "It also contains the standard library of Rust (MIT OR Apache-2.0) and the stack unwinder\n\
     of GCC (GPL-3.0-or-later WITH GCC-exception-3.1).\n";

/// The names of files with a licence or a notice start with these.
const NAMES: &[&str] = &["license", "licence", "copying", "notice", "copyright"];

/// The licences and notices of what the program contains.
pub(super) fn of_program(checkout: &Checkout, is_static: bool) -> anyhow::Result<String> {
    let count = if is_static { VENDORED.len() } else { VENDORED.len() - 1 };
    of_third_parties(checkout, "program", CLI_FOLDER, &VENDORED[..count])
}

/// The licences and notices of what the library for C contains.
pub(super) fn of_library(checkout: &Checkout) -> anyhow::Result<String> {
    of_third_parties(checkout, "library", CAPI_FOLDER, &[])
}

/// The text of all of them. Crates with the same text share one copy.
fn of_third_parties(
    checkout: &Checkout,
    linked: &str,
    folder: &str,
    vendored: &[(&str, &'static str)],
) -> anyhow::Result<String> {
    let mut packages = String::new();
    // By text: who has it.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in crates(checkout, folder)? {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let license = package["license"].as_str().unwrap_or("see below");
        packages.push_str(&format!("{name} {version}: {license}\n"));
        let manifest = Path::new(text(&package["manifest_path"]));
        for text in texts_in(manifest.parent().context("a crate has a directory")?)? {
            texts.entry(text).or_default().push(name.to_owned());
        }
    }
    for (name, file) in vendored {
        let text = String::from_utf8(checkout.read(file.as_ref())?).context(*file)?;
        packages.push_str(&format!("{name}: see below\n"));
        texts.entry(tidy(&text)).or_default().push((*name).to_owned());
    }
    let mut sections: Vec<(String, String)> =
        texts.into_iter().map(|(text, owners)| (owners.join(", "), text)).collect();
    sections.sort();
    let rule = "-".repeat(80);
    let mut all = format!("What the {linked} contains\n\n{packages}\n{WITHOUT_NOTICE}");
    for (owners, text) in sections {
        all.push_str(&format!("\n{rule}\n{owners}\n{rule}\n\n{text}"));
    }
    Ok(all)
}

/// The licences and notices in the directory of a crate.
fn texts_in(dir: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    let cannot = || format!("cannot read '{}'", dir.display());
    for entry in std::fs::read_dir(dir).with_context(cannot)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            let bytes = std::fs::read(&path).with_context(cannot)?;
            texts.insert(tidy(&String::from_utf8_lossy(&bytes)));
        }
    }
    Ok(texts)
}

/// Crates have the same text with other blanks and line ends.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned() + "\n"
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The crates of others that are linked into that in `folder`, sorted by name, as `cargo metadata` describes them.
fn crates(checkout: &Checkout, folder: &str) -> anyhow::Result<Vec<Value>> {
    let mut cargo = cargo();
    cargo.current_dir(&checkout.root);
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform"]);
    cargo.arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
    let metadata: Value = serde_json::from_str(&output(&mut cargo)?).context("cargo metadata")?;
    let manifest = checkout.root.join(folder).join("Cargo.toml");
    let is_top = |package: &&Value| Path::new(text(&package["manifest_path"])) == manifest;
    let top = items(&metadata["packages"]).find(is_top).context("the crate that is linked")?;
    let mut linked = BTreeSet::new();
    let mut open = vec![text(&top["id"])];
    while let Some(id) = open.pop() {
        if linked.insert(id) {
            let node = items(&metadata["resolve"]["nodes"]).find(|node| node["id"] == id);
            let deps = node.into_iter().flat_map(|node| items(&node["deps"]));
            // Those with a kind are linked into build scripts or tests.
            let is_linked = |dep: &&Value| items(&dep["dep_kinds"]).any(|it| it["kind"].is_null());
            open.extend(deps.filter(is_linked).map(|dep| text(&dep["pkg"])));
        }
    }
    let is_macro = |package: &Value| {
        items(&package["targets"])
            .any(|target| items(&target["kind"]).any(|kind| kind == "proc-macro"))
    };
    let mut crates: Vec<Value> = items(&metadata["packages"])
        .filter(|it| linked.contains(text(&it["id"])) && !it["source"].is_null() && !is_macro(it))
        .cloned()
        .collect();
    crates.sort_by_key(|it| (text(&it["name"]).to_owned(), text(&it["version"]).to_owned()));
    Ok(crates)
}
