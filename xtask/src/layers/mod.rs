//! `cargo xtask layers`: which file of a crate imports which, checked against circles and against xtask/layers.toml.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use imports::{Crate, Import, Sources};

use crate::command::root;

mod imports;

/// Check that no files import each other in a circle, and that files import only from their own layer and those
/// below it, as xtask/layers.toml has them. That file has the crates that each crate may use as well.
///
/// An import is a name in production code that a path leads to and another file of the crate defines. What is
/// imported through a re-export counts for the file that defines it. A re-export is an import too, unless it is of a
/// module inside of the file's own, as lib.rs and mod.rs have them. Calls of methods are not seen, nor what macros
/// generate. A file below src/ that no `mod` declares is an error. The exit status is 1 where a rule is broken.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask layers", bin_name = "cargo xtask layers")]
pub(crate) struct Args {
    /// Only this crate, by the name of its folder
    #[arg(value_name = "CRATE")]
    only: Option<String>,
    /// Print which file imports what from which, instead of checking it
    #[arg(long)]
    edges: bool,
}

/// A table of xtask/layers.toml.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// The crates of this repository that the crate may use.
    uses: BTreeSet<String>,
    /// The top first.
    layers: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = root();
    let text = std::fs::read_to_string(root.join("xtask/layers.toml"))?;
    let mut rules: BTreeMap<String, Rule> = toml::from_str(&text).context("xtask/layers.toml")?;
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !rules.contains_key(&name) {
            faults.push(format!("crates/{name} is not in xtask/layers.toml"));
        }
    }
    if let Some(only) = &args.only {
        rules.retain(|name, _| name == only);
        ensure!(!rules.is_empty(), "no crate '{only}' in xtask/layers.toml");
    }
    for (name, rule) in &rules {
        let folder = root.join(if name == "xtask" { "" } else { "crates" }).join(name);
        let sources = read(&folder.join("src"), Path::new(""))?;
        let code = Crate::read(&sources).with_context(|| name.clone())?;
        let imports = code.imports();
        if args.edges {
            imports.iter().for_each(|import| println!("{name}: {import}"));
            continue;
        }
        let found = [used(root, &folder, &rule.uses)?, broken(&rule.layers, &sources, &code)];
        faults.extend(found.concat().iter().map(|fault| format!("{name}: {fault}")));
        eprintln!("xtask: {name}: {} imports among {} files", imports.len(), code.files.len());
    }
    faults.iter().for_each(|fault| eprintln!("xtask: {fault}"));
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where a crate uses others of this repository than `allowed`. Dependencies of tests and of build scripts are not
/// read.
fn used(root: &Path, folder: &Path, allowed: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let read = |folder: &Path| -> anyhow::Result<toml::Table> {
        Ok(std::fs::read_to_string(folder.join("Cargo.toml"))?.parse()?)
    };
    let (workspace, manifest) = (read(root)?, read(folder)?);
    let shared = &workspace["workspace"]["dependencies"];
    let is_own = |name: &&String| shared.get(name).is_some_and(|it| it.get("path").is_some());
    let targets = manifest.get("target").and_then(|it| it.as_table()).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.get("dependencies"));
    let tables = tables.chain(manifest.get("dependencies")).filter_map(|it| it.as_table());
    let used: BTreeSet<String> = tables.flat_map(|it| it.keys()).filter(is_own).cloned().collect();
    let unlisted = used.difference(allowed).map(|name| format!("may not use `{name}`"));
    let unused =
        allowed.difference(&used).map(|name| format!("does not use `{name}`, which is listed"));
    Ok(unlisted.chain(unused).collect())
}

/// What breaks the rules of imports.
fn broken(layers: &[String], sources: &Sources, code: &Crate) -> Vec<String> {
    let mut faults = Vec::new();
    let files: BTreeSet<&str> = code.files.values().map(String::as_str).collect();
    // Those of tests are not read: `#[cfg(test)]` is before a `mod` with the name of the file or of its folder.
    let for_tests = sources.values().flat_map(|text| text.split("#[cfg(test)]\n").skip(1));
    let for_tests: Vec<&str> = for_tests.filter_map(|rest| rest.lines().next()).collect();
    let is_for_tests = |file: &str| {
        let mut declarations = file.split('/').map(|name| format!("mod {name};"));
        declarations.any(|it| for_tests.iter().any(|line| line.ends_with(&it)))
    };
    let lost = sources.keys().filter(|file| !files.contains(file.as_str()) && !is_for_tests(file));
    faults.extend(lost.map(|file| format!("no `mod` declares src/{file}.rs")));
    let members = layers.iter().enumerate();
    let members = members.flat_map(|(depth, it)| it.split(' ').map(move |member| (member, depth)));
    let members: BTreeMap<&str, usize> = members.collect();
    // The longest listed path that the file is at or in, or else `*`.
    let place = |file: &str| {
        let mut paths = Path::new(file).ancestors().filter_map(Path::to_str);
        paths.find_map(|path| members.get_key_value(if path.is_empty() { "*" } else { path }))
    };
    let used: BTreeSet<&str> = files.iter().filter_map(|file| Some(*place(file)?.0)).collect();
    let homeless = files.iter().filter(|file| place(file).is_none());
    faults.extend(homeless.map(|file| format!("src/{file}.rs is in no layer")));
    let empty = members.keys().filter(|member| !used.contains(*member));
    faults.extend(empty.map(|member| format!("layer `{member}` has no file")));
    let imports = code.imports();
    for import in &imports {
        if let (Some((lower, from)), Some((upper, to))) = (place(&import.from), place(&import.to))
            && to < from
        {
            faults.push(format!("{import}; `{upper}` is above `{lower}`"));
        }
    }
    faults.extend(shortest_circle(&imports).map(|circle| {
        let lines: String = circle.iter().map(|import| format!("\n  {import}")).collect();
        format!("files import each other in a circle:{lines}")
    }));
    faults
}

/// The fewest imports that lead from a file back to it.
fn shortest_circle(imports: &[Import]) -> Option<Vec<&Import>> {
    let mut of_file: BTreeMap<&str, Vec<&Import>> = BTreeMap::new();
    imports.iter().for_each(|import| of_file.entry(&import.from).or_default().push(import));
    let through = |start: &str| {
        let mut reached = BTreeSet::new();
        let mut routes: VecDeque<Vec<&Import>> = VecDeque::from([Vec::new()]);
        while let Some(route) = routes.pop_front() {
            let file = route.last().map_or(start, |import| &import.to);
            if file == start && !route.is_empty() {
                return Some(route);
            }
            if reached.insert(file) {
                let next = of_file.get(file).into_iter().flatten();
                routes.extend(next.map(|&import| [&route[..], &[import]].concat()));
            }
        }
        None
    };
    of_file.keys().filter_map(|start| through(start)).min_by_key(Vec::len)
}

/// The Rust files below `dir`, with their paths there without `.rs`, after `prefix`.
fn read(dir: &Path, prefix: &Path) -> anyhow::Result<Sources> {
    let mut sources = Sources::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let name = prefix.join(path.file_stem().unwrap_or_default());
        if path.is_dir() {
            sources.extend(read(&path, &name)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.insert(name.display().to_string(), std::fs::read_to_string(&path)?);
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests;
