//! The licences of what the program or the library contains besides haulage: crates, fonts, scripts, libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::checkout::{CAPI_FOLDER, CLI_FOLDER, Checkout};
use super::format::Format;
use crate::command::cargo;

/// What the program contains that is no crate, with the file of its licence.
const VENDORED: &[(&str, &str)] = &[
    ("DejaVu Sans (subset)", "crates/report/assets/DejaVu-LICENSE"),
    ("plotly.js (cartesian bundle)", "crates/report/assets/plotly-LICENSE"),
];

/// musl is in the static program only.
const MUSL: (&str, &str) = ("musl", "packaging/musl-LICENSE");

/// What is linked from crates.
#[derive(Clone, Copy, Debug)]
pub(super) enum Linked {
    /// The program, in a package of this format.
    Program(Format),
    /// The library for C.
    Library,
}

impl Linked {
    fn name(self) -> &'static str {
        match self {
            Linked::Program(_) => "program",
            Linked::Library => "library",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Linked::Program(_) => CLI_FOLDER,
            Linked::Library => CAPI_FOLDER,
        }
    }

    /// What is no crate.
    fn vendored(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Linked::Program(Format::Tar) => VENDORED.iter().copied().chain([MUSL]).collect(),
            Linked::Program(_) => VENDORED.to_vec(),
            Linked::Library => Vec::new(),
        }
    }
}

/// Libraries whose licences ask for no notice in a program.
const WITHOUT_NOTICE: &str = "It also contains the standard library of Rust (MIT OR Apache-2.0) and the stack unwinder\n\
     of GCC (GPL-3.0-or-later WITH GCC-exception-3.1).\n";

/// The names of files with a licence or a notice start with these.
const NAMES: &[&str] = &["license", "licence", "copying", "notice", "copyright"];

/// The text of all of them. Crates with the same text share one copy.
pub(super) fn of_third_parties(checkout: &Checkout, linked: Linked) -> anyhow::Result<String> {
    let mut packages = String::new();
    // By text: who has it.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in crates(checkout, linked.folder())? {
        let Package { name, version, license, manifest_path, .. } = &package;
        let license = license.as_deref().unwrap_or("see below");
        packages.push_str(&format!("{name} {version}: {license}\n"));
        let dir = Path::new(manifest_path).parent().context("a crate has a directory")?;
        for text in texts_in(dir)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (name, file) in linked.vendored() {
        let path = checkout.root().join(file);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read '{}'", path.display()))?;
        packages.push_str(&format!("{name}: see below\n"));
        texts.entry(tidy(&text)).or_default().push(name.to_owned());
    }
    let mut sections: Vec<(String, String)> =
        texts.into_iter().map(|(text, owners)| (owners.join(", "), text)).collect();
    sections.sort();
    let rule = "-".repeat(80);
    let mut all = format!("What the {} contains\n\n{packages}\n{WITHOUT_NOTICE}", linked.name());
    for (owners, text) in sections {
        all.push_str(&format!("\n{rule}\n{owners}\n{rule}\n\n{text}"));
    }
    Ok(all)
}

/// The licences and notices in the directory of a crate.
fn texts_in(dir: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot read '{}'", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            let bytes = std::fs::read(&path)
                .with_context(|| format!("cannot read '{}'", path.display()))?;
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

/// What `cargo metadata` prints, as far as it is needed.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: String,
    /// `None` for a member of the workspace.
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `None` for what is linked.
    kind: Option<String>,
}

/// The crates of others that are linked into that in `folder`, sorted by name.
fn crates(checkout: &Checkout, folder: &str) -> anyhow::Result<Vec<Package>> {
    let output = cargo()
        .current_dir(checkout.root())
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
        .arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
        .output()
        .context("cargo cannot be started")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {}", errors.trim());
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let manifest = checkout.root().join(folder).join("Cargo.toml");
    let is_top = |package: &&Package| Path::new(&package.manifest_path) == manifest;
    let top = metadata.packages.iter().find(is_top).context("the crate that is linked")?;
    let mut linked = BTreeSet::new();
    let mut open = vec![top.id.as_str()];
    while let Some(id) = open.pop() {
        if linked.insert(id.to_owned()) {
            let node = metadata.resolve.nodes.iter().find(|node| node.id == id);
            let deps = node.map_or(&[][..], |node| &node.deps);
            let is_linked = |dep: &&Dependency| dep.dep_kinds.iter().any(|it| it.kind.is_none());
            open.extend(deps.iter().filter(is_linked).map(|dep| dep.pkg.as_str()));
        }
    }
    let is_macro = |package: &Package| {
        package.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    };
    let mut crates: Vec<Package> = metadata.packages;
    crates.retain(|it| linked.contains(&it.id) && it.source.is_some() && !is_macro(it));
    crates.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(crates)
}
