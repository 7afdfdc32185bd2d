//! `cargo xtask layers`: which file of a crate imports which, checked against circles and against
//! the declared layers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use graph::Circle;
use imports::Import;
use modules::{Code, Modules};
use table::{CRATES, CrateRule, Rule};

mod crates;
mod graph;
mod imports;
mod methods;
mod modules;
mod order;
mod table;
#[cfg(test)]
mod tests;
mod uses;
mod without_tests;

/// Check that no files import each other in a circle, and that files import only from their own
/// layer and the layers below it, as xtask/src/layers/table.rs declares them. The table has the crates
/// that each crate may use as well.
///
/// An import is a name in production code that another file of the crate defines. What is imported
/// through a re-export counts for the file that defines it. A re-export is an import too, unless it
/// is of a module inside of the file's own, as lib.rs and mod.rs have them. A call of a method is an
/// import where a file defines the method for a type of another file, unless the crate has another
/// method of that name. The check sees neither other methods nor code that macros generate. A file below src/
/// that no `mod` declares is an error. The exit status is 1 where a rule is broken.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask layers", bin_name = "cargo xtask layers")]
pub(crate) struct Args {
    /// Only this crate, by the name of its folder; where the table skips it, circles are checked
    #[arg(value_name = "CRATE")]
    only: Option<String>,
    /// Print which file imports what from which, instead of checking it
    #[arg(long)]
    edges: bool,
    /// Read this checkout instead of the one that xtask was built from
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = args.root.as_deref().unwrap_or_else(|| own_checkout());
    let mut holds = args.edges || args.only.is_some() || check_crates(root)?;
    for CrateRule { folder, rule, .. } in chosen(args.only.as_deref())? {
        if args.edges {
            print!("{}", edges(folder, &read(root, folder)?.imports));
            continue;
        }
        let rule = match rule {
            Rule::Skipped(_) if args.only.is_some() => &Rule::NoCircle,
            rule => rule,
        };
        holds &= check(root, folder, rule)?;
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks the checkout that xtask was built from, and prints where a rule is broken. True where none
/// is.
pub(crate) fn check_own() -> anyhow::Result<bool> {
    let mut holds = check_crates(own_checkout())?;
    for CrateRule { folder, rule, .. } in CRATES {
        holds &= check(own_checkout(), folder, rule)?;
    }
    Ok(holds)
}

/// All crates, or the one of that name.
fn chosen(only: Option<&str>) -> anyhow::Result<Vec<&'static CrateRule>> {
    let Some(name) = only else { return Ok(CRATES.iter().collect()) };
    let Some(rule) = CRATES.iter().find(|rule| rule.name() == name) else {
        let known: Vec<&str> = CRATES.iter().map(CrateRule::name).collect();
        bail!("no crate '{name}'; known are {}", known.join(", "));
    };
    Ok(vec![rule])
}

fn check_crates(root: &Path) -> anyhow::Result<bool> {
    let faults = crates::faults(root, CRATES)?;
    faults.iter().for_each(|fault| eprintln!("xtask: {fault}"));
    Ok(faults.is_empty())
}

fn check(root: &Path, folder: &str, rule: &Rule) -> anyhow::Result<bool> {
    if let Rule::Skipped(why) = rule {
        eprintln!("xtask: {folder}: IMPORTS NOT CHECKED: {why}");
        return Ok(true);
    }
    let code = read(root, folder)?;
    let faults = faults(rule, &code);
    for fault in &faults {
        eprint!("xtask: {folder}: {fault}");
    }
    if faults.is_empty() {
        eprintln!(
            "xtask: {folder}: {} imports among {} files",
            code.imports.len(),
            code.files.len()
        );
    }
    Ok(faults.is_empty())
}

/// The production code of a crate.
struct CrateCode {
    files: Vec<String>,
    /// Files that no `mod` declares, not even one for tests. What imports them is not known.
    undeclared: Vec<String>,
    imports: Vec<Import>,
}

impl CrateCode {
    /// Reads the files of a crate: path to text.
    fn read(sources: &BTreeMap<String, String>) -> anyhow::Result<CrateCode> {
        let modules = Modules::read(Code::Production, sources)?;
        let declared = Modules::read(Code::All, sources)?.paths();
        let is_declared = |path: &&String| declared.binary_search(path).is_ok();
        let undeclared = sources.keys().filter(|path| !is_declared(path)).cloned().collect();
        Ok(CrateCode { files: modules.paths(), undeclared, imports: imports::all(&modules) })
    }
}

/// What breaks a rule, one text each, which ends with a newline.
fn faults(rule: &Rule, code: &CrateCode) -> Vec<String> {
    let undeclared = code.undeclared.iter().map(|file| format!("no `mod` declares {file}\n"));
    let mut faults: Vec<String> = undeclared.collect();
    faults.extend(graph::circles(&code.imports).iter().map(describe));
    if let Rule::Layers(layers) = rule {
        faults.extend(order::faults(layers, &code.files, &code.imports));
    }
    faults
}

fn describe(circle: &Circle) -> String {
    let mut text = format!("{} files import each other in a circle:\n", circle.files.len());
    for import in &circle.shortest {
        text += &format!("  {import}\n");
    }
    if circle.files.len() > circle.shortest.len() {
        text += &format!("  This is the shortest circle of: {}\n", circle.files.join(" "));
    }
    text
}

/// One line for each pair of files, with the names that the first imports from the second.
fn edges(folder: &str, imports: &[Import]) -> String {
    let mut pairs: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for import in imports {
        pairs.entry((&import.from, &import.to)).or_default().push(&import.name);
    }
    let line = |((from, to), names): (&(&str, &str), &Vec<&str>)| {
        format!("{folder}/{from} -> {folder}/{to}: {}\n", names.join(", "))
    };
    pairs.iter().map(line).collect()
}

fn read(root: &Path, folder: &str) -> anyhow::Result<CrateCode> {
    let mut sources = BTreeMap::new();
    let path = root.join(folder);
    read_folder(&path, &path.join("src"), &mut sources)?;
    CrateCode::read(&sources).with_context(|| folder.to_owned())
}

/// Reads the Rust files below `dir`, under their paths in `folder`.
fn read_folder(
    folder: &Path,
    dir: &Path,
    sources: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            read_folder(folder, &path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text =
                std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let name = path.strip_prefix(folder).expect("below the folder").display().to_string();
            sources.insert(name, text);
        }
    }
    Ok(())
}

fn own_checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ is in the repository")
}
