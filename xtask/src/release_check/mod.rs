//! `cargo xtask release-check VERSION`: whether the present commit can be released.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};

use crate::command::cargo;
use crate::dist::checkout::{Checkout, git};

mod changelog;

/// Check whether the present commit can be released as VERSION, and print the steps that remain.
///
/// It changes nothing. Each line tells what was checked, and what to do if it does not hold. The exit
/// status is 1 if something does not hold. CONTRIBUTING.md has the steps of a release.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask release-check", bin_name = "cargo xtask release-check")]
pub(crate) struct Args {
    /// The version to be released, such as 1.0.0
    #[arg(value_name = "VERSION")]
    version: String,
}

/// A condition, and how it is checked: returns what was found.
type Check = (&'static str, fn(&Checkout, &str) -> anyhow::Result<String>);

const CHECKS: &[Check] = &[
    ("version", version),
    ("changelog", changelog),
    ("working tree", working_tree),
    ("Cargo.lock", lock_file),
    ("tag", tag),
    ("packages", packages),
];

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checkout = Checkout::own()?;
    let mut holds = true;
    for (name, check) in CHECKS {
        let (verdict, text) = match check(&checkout, &args.version) {
            Ok(found) => ("ok", found),
            Err(why) => ("NOT YET", format!("{why:#}")),
        };
        holds &= verdict == "ok";
        println!("{verdict:<8} {name:<13} {text}");
    }
    if !holds {
        return Ok(ExitCode::FAILURE);
    }
    println!("\nwhat remains:\n{}", remaining(&args.version));
    Ok(ExitCode::SUCCESS)
}

fn remaining(version: &str) -> String {
    [
        "cargo xtask test",
        "sudo cargo xtask dist --check",
        "cargo xtask dist --reproducible",
        "cargo publish --workspace --dry-run --locked",
        &format!("git tag --sign --message 'haulage {version}' v{version}"),
        &format!("git push origin v{version}"),
    ]
    .map(|step| format!("  {step}\n"))
    .concat()
}

fn version(checkout: &Checkout, version: &str) -> anyhow::Result<String> {
    let numbers: Vec<&str> = version.split('.').collect();
    let is_number = |part: &&str| part.parse::<u32>().is_ok_and(|it| it.to_string() == **part);
    ensure!(
        numbers.len() == 3 && numbers.iter().all(is_number),
        "'{version}' is no version such as 1.0.0"
    );
    let found = &checkout.version;
    ensure!(found == version, "Cargo.toml has {found}: change it there, and run 'cargo check'");
    for manifest in manifests(checkout)? {
        let text = std::fs::read_to_string(checkout.root.join(&manifest))?;
        ensure!(
            text.contains("\nversion.workspace = true\n"),
            "{} has a version of its own: write 'version.workspace = true'",
            manifest.display()
        );
    }
    Ok(format!("{version} in all crates"))
}

/// The manifests of the crates.
fn manifests(checkout: &Checkout) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut manifests = checkout.files_below("crates")?;
    manifests.extend(checkout.files_below("xtask")?);
    manifests.retain(|path| path.file_name() == Some("Cargo.toml".as_ref()));
    Ok(manifests)
}

fn changelog(checkout: &Checkout, version: &str) -> anyhow::Result<String> {
    let path = checkout.root.join("CHANGELOG.md");
    let text = std::fs::read_to_string(&path).context("CHANGELOG.md")?;
    let date = changelog::date_of_first_release(&text, version).map_err(anyhow::Error::msg)?;
    Ok(format!("has {version} of {date}"))
}

fn working_tree(checkout: &Checkout, _: &str) -> anyhow::Result<String> {
    checkout.require_clean()?;
    let commit = git(&checkout.root, &["rev-parse", "--short=12", "HEAD"])?;
    Ok(format!("as committed in {}", commit.trim()))
}

fn lock_file(checkout: &Checkout, _: &str) -> anyhow::Result<String> {
    let output = cargo()
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(&checkout.root)
        .output()
        .context("cargo cannot be started")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim().lines().last().unwrap_or_default();
    ensure!(
        output.status.success(),
        "it is not up to date: run 'cargo check' and commit it ({last})"
    );
    Ok("up to date".to_owned())
}

fn tag(checkout: &Checkout, version: &str) -> anyhow::Result<String> {
    let name = format!("v{version}");
    let existing = git(&checkout.root, &["tag", "--list", &name])?;
    ensure!(existing.trim().is_empty(), "{name} exists: a version is released once");
    Ok(format!("{name} is free"))
}

/// The packages in target/dist-packages are those of this version and commit.
fn packages(checkout: &Checkout, version: &str) -> anyhow::Result<String> {
    let advice = "run 'cargo xtask dist'";
    let commit = git(&checkout.root, &["rev-parse", "--short=12", "HEAD"])?;
    let mut names = Vec::new();
    for (kind, program) in [("deb", "usr/bin"), ("rpm", "usr/bin"), ("tar", "bin")] {
        let made = files_in(&checkout.out_dir().join(kind)).context(advice)?;
        for name in &made {
            ensure!(
                name.contains(&format!("-{version}-")) || name.contains(&format!("_{version}-")),
                "{name} is of another version: {advice}"
            );
        }
        let staged = checkout.out_dir().join("stage").join(kind).join(program).join("haulage");
        let output = Command::new(&staged).arg("--version").output();
        let output = output.with_context(|| format!("'{}': {advice}", staged.display()))?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(
            told.contains(&format!("commit {}, profile dist", commit.trim())),
            "{} is of another commit: {advice}",
            made.join(", ")
        );
        names.extend(made);
    }
    Ok(names.join(", "))
}

fn files_in(dir: &Path) -> anyhow::Result<Vec<String>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("'{}'", dir.display()))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    ensure!(!names.is_empty(), "'{}' has no package", dir.display());
    names.sort();
    Ok(names)
}
