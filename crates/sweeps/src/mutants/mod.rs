//! `cargo xtask mutants`: plants known faults in a copy of the working tree, one at a time, and
//! demands that a test or a sweep notices each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use table::{MUTANTS, Mutant};
use xtask::command::{quietly, root};
use xtask::file_systems::FileSystems;

mod table;

/// Plant faults in a copy of the copier, one at a time, and demand that a test or a sweep notices each.
///
/// The copy of the working tree is below target/mutants/, and is built there. First each check runs
/// without a fault and has to pass. A check that fails or does not end has noticed the fault. Exits with
/// 1 if a fault is not noticed.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask mutants", bin_name = "cargo xtask mutants")]
pub(crate) struct Args {
    /// Faults [default: all; see --list]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The most seconds that a check may take; a fault that makes it take longer is noticed
    #[arg(long, value_name = "S", default_value_t = 300)]
    time: u32,
    /// Print the faults and what notices each, and exit
    #[arg(long)]
    pub(crate) list: bool,
}

/// Prints the faults, and what notices each.
pub(crate) fn list() -> anyhow::Result<ExitCode> {
    for Mutant { name, wrong, noticed_by, .. } in MUTANTS {
        println!("{name:<26} {wrong}\n{:<26}   cargo test {noticed_by}", "");
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(args: &Args, file_systems: &FileSystems) -> anyhow::Result<ExitCode> {
    let find = |name: &String| {
        let known = MUTANTS.iter().find(|mutant| mutant.name == name);
        known.with_context(|| format!("no fault is called '{name}'; see --list"))
    };
    let mutants = match args.names.is_empty() {
        true => MUTANTS.iter().collect(),
        false => args.names.iter().map(find).collect::<anyhow::Result<Vec<_>>>()?,
    };
    file_systems.announce();
    let tree = Tree::copy(args.time, file_systems)?;
    let mut unusable = BTreeMap::new();
    for mutant in &mutants {
        let words = mutant.noticed_by;
        if unusable.contains_key(words) {
            continue;
        }
        eprintln!("xtask: without a fault: cargo test {words}");
        unusable.insert(words, tree.why_unusable(words)?);
    }
    let mut all_noticed = true;
    for mutant in mutants {
        let words = mutant.noticed_by;
        let begun = Instant::now();
        let outcome = match &unusable[words] {
            Some(why) => format!("SKIPPED: {why}"),
            None => match tree.notices(mutant)? {
                true => "noticed".to_owned(),
                false => {
                    all_noticed = false;
                    "SURVIVED".to_owned()
                }
            },
        };
        let seconds = begun.elapsed().as_secs();
        println!("{:<26} {outcome} ({seconds} s, cargo test {words})", mutant.name);
    }
    Ok(if all_noticed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A copy of the working tree.
struct Tree {
    root: PathBuf,
    target: PathBuf,
    seconds: u32,
    environment: Vec<(&'static str, std::ffi::OsString)>,
}

/// How a check ended.
struct Ended {
    passed: bool,
    /// All that it printed.
    said: String,
}

impl Tree {
    /// Makes the copy of before equal to the working tree: files that git knows, and those that it does
    /// not ignore. git leaves files that are equal as they are, so that cargo builds only what changed.
    fn copy(seconds: u32, file_systems: &FileSystems) -> anyhow::Result<Tree> {
        let work = root().join("target/mutants");
        let copy = work.join("tree");
        let git = |dir: &Path, words: &str| {
            let mut git = Command::new("git");
            git.current_dir(dir).args(words.split(' '));
            if dir == root() {
                // The index of the user stays as it is.
                git.env("GIT_INDEX_FILE", work.join("index"));
            }
            quietly(&mut git)
        };
        fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
        if !copy.join(".git").exists() {
            git(root(), "clone --quiet --shared --no-checkout . target/mutants/tree")?;
        }
        git(root(), "read-tree HEAD")?;
        git(root(), "add --all")?;
        let tree = git(root(), "write-tree")?;
        git(&copy, &format!("read-tree --reset -u {}", tree.trim()))?;
        git(&copy, "clean -ffdxq")?;
        let environment = file_systems.environment().to_vec();
        Ok(Tree { root: copy, target: work.join("target"), seconds, environment })
    }

    /// Why the check cannot notice anything here, if it cannot.
    ///
    /// # Errors
    /// If it fails without a fault.
    fn why_unusable(&self, check: &str) -> anyhow::Result<Option<String>> {
        self.build(check)?;
        let Ended { passed, said } = self.run(check)?;
        ensure!(passed, "it fails without a fault:\n{said}");
        if let Some(skip) = said.lines().find(|line| line.starts_with("SKIPPED")) {
            return Ok(Some(skip.to_owned()));
        }
        let ran =
            |line: &str| line.starts_with("test result: ok. ") && !line.contains(". 0 passed");
        if !said.lines().any(ran) {
            bail!("it runs no test:\n{said}");
        }
        Ok(None)
    }

    /// Plants the fault and returns whether its check fails. The copy is as before afterwards.
    fn notices(&self, mutant: &Mutant) -> anyhow::Result<bool> {
        let path = self.root.join(mutant.file);
        let whole = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ensure!(
            whole.matches(mutant.old).count() == 1,
            "{}: its old text is not once in {}",
            mutant.name,
            mutant.file
        );
        let write = |text: &str| fs::write(&path, text).with_context(|| path.display().to_string());
        write(&whole.replacen(mutant.old, mutant.new, 1))?;
        let ended = self.build(mutant.noticed_by).and_then(|()| self.run(mutant.noticed_by));
        write(&whole)?;
        let Ended { passed, said } = ended.with_context(|| mutant.name)?;
        let log = self.root.with_file_name(format!("{}.log", mutant.name));
        fs::write(&log, said).with_context(|| log.display().to_string())?;
        Ok(!passed)
    }

    /// Builds what the check runs, so that a fault that does not compile is not taken for a noticed one.
    fn build(&self, check: &str) -> anyhow::Result<()> {
        let Ended { passed, said } = self.cargo_test(&format!("{check} --no-run"), None)?;
        ensure!(passed, "cargo test {check} --no-run:\n{said}");
        Ok(())
    }

    fn run(&self, check: &str) -> anyhow::Result<Ended> {
        self.cargo_test(check, Some(self.seconds))
    }

    fn cargo_test(&self, arguments: &str, seconds: Option<u32>) -> anyhow::Result<Ended> {
        let mut command = match seconds {
            Some(seconds) => {
                let mut command = Command::new("timeout");
                command.args(["--kill-after=10", &seconds.to_string(), "cargo"]);
                command
            }
            None => Command::new("cargo"),
        };
        command
            .arg("test")
            .args(arguments.split(' '))
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("HAULAGE_PROFILE", "")
            .envs(self.environment.iter().cloned());
        let output = command.output().context("cargo")?;
        let said = [output.stdout, output.stderr].concat();
        Ok(Ended {
            passed: output.status.success(),
            said: String::from_utf8_lossy(&said).into_owned(),
        })
    }
}
