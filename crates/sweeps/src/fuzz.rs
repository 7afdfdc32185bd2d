//! `cargo xtask fuzz`: searches for inputs that crash haulage or cost too much, with libFuzzer on
//! the stable toolchain.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, ensure};
use tempfile::TempDir;
use xtask::command::{cargo, quietly, root, succeed};

/// Search for inputs on which haulage panics, is killed by a signal, or takes more than one second or
/// 256 MiB.
///
/// Builds the targets of crates/fuzz with libFuzzer (needs a C++ compiler; Debian: g++) and runs one
/// after another. Each begins with the committed inputs and with those that earlier searches kept below
/// target/fuzz/. A finding is saved there, tried again without libFuzzer, and printed with the command
/// that repeats it. Exits with 1 if there are findings.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask fuzz", bin_name = "cargo xtask fuzz")]
pub(crate) struct Args {
    /// Targets [default: all; see --list]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Seconds for each target
    #[arg(long, value_name = "S", default_value_t = 60)]
    time: u64,
    /// The seed of the changes to inputs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seed: u32,
    /// Run only this saved input of the one TARGET
    #[arg(long, value_name = "FILE", conflicts_with_all = ["time", "seed", "merge"])]
    input: Option<PathBuf>,
    /// Add the inputs of earlier searches that reach new code to the committed ones
    #[arg(long, conflicts_with_all = ["time", "seed"])]
    merge: bool,
    /// Print the targets and exit
    #[arg(long)]
    list: bool,
}

/// The longest input that `--merge` commits. The search finds longer ones again.
const COMMITTED_BYTES_MAX: u64 = 4096;

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        for target in fuzz_targets::targets() {
            println!("{:<16} {}", target.name, target.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let find = |name: &String| {
        fuzz_targets::by_name(name)
            .with_context(|| format!("no target is called '{name}'; see --list"))
    };
    let targets = match args.targets.is_empty() {
        true => fuzz_targets::targets().collect(),
        false => args.targets.iter().map(find).collect::<anyhow::Result<Vec<_>>>()?,
    };
    let programs = Programs::build(args.input.is_none())?;
    if let Some(input) = &args.input {
        ensure!(targets.len() == 1, "--input takes one TARGET");
        let (holds, said) = programs.repeat(targets[0], input)?;
        print!("{said}");
        return Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut holds = true;
    for target in targets {
        if args.merge {
            programs.merge(target)?;
        } else {
            holds &= programs.search(target, args)?;
        }
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The programs that this command runs.
struct Programs {
    /// With libFuzzer; empty if no search is made.
    libfuzzer: PathBuf,
    /// Runs single inputs.
    single: PathBuf,
    haulage: PathBuf,
    /// For all that targets write; in memory where possible.
    scratch: TempDir,
}

/// The passes of LLVM that count which code an input reaches, and report comparisons. They are part of
/// the stable compiler; only their flags have no name of their own.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                        -Cllvm-args=-sanitizer-coverage-pc-table \
                        -Cllvm-args=-sanitizer-coverage-trace-compares";

impl Programs {
    fn build(with_libfuzzer: bool) -> anyhow::Result<Programs> {
        let plain = ["build", "--quiet", "--bin", "haulage", "--bin", "haulage-fuzz"];
        run_cargo(&[&plain[..], &["-p", "haulage-cli", "-p", "haulage-fuzz"]].concat(), "")?;
        let bins = root().join("target/debug");
        let mut libfuzzer = PathBuf::new();
        if with_libfuzzer {
            let host = host()?;
            // With --target the flags are not those of build scripts and macros.
            let coverage = [
                "build",
                "--profile=fuzz",
                "--package=haulage-fuzz",
                "--features=libfuzzer",
                "--bin=haulage-libfuzzer",
                "--target-dir=target/fuzz",
                "--target",
                host.as_str(),
            ];
            run_cargo(&coverage, COVERAGE)?;
            libfuzzer = work().join(host).join("fuzz/haulage-libfuzzer");
        }
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory } else { Path::new("/tmp") };
        let scratch = tempfile::Builder::new().prefix("haulage-fuzz-").tempdir_in(place)?;
        let [haulage, single] = ["haulage", "haulage-fuzz"].map(|name| bins.join(name));
        Ok(Programs { libfuzzer, single, haulage, scratch })
    }

    /// Searches for `args.time`, and returns whether nothing was found.
    fn search(&self, target: &fuzz_targets::Target, args: &Args) -> anyhow::Result<bool> {
        let findings = dir("findings")?.join(target.name);
        std::fs::create_dir_all(&findings)?;
        let before = files(&findings)?;
        let kept = dir("corpus")?.join(target.name);
        std::fs::create_dir_all(&kept)?;
        let mut command = self.libfuzzer_command(target);
        command
            .arg(format!("-max_total_time={}", args.time))
            .arg(format!("-seed={}", args.seed))
            .arg(format!("-max_len={}", target.input_bytes_max))
            .arg(format!("-dict={}", target.dictionary().display()))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .args(["-rss_limit_mb=256", "-print_final_stats=1"])
            // By the clock, which other programs share: `repeat` judges by processor time.
            .args(["-report_slow_units=1", "-timeout=30"])
            .arg(&kept)
            .arg(target.corpus());
        let output = command.output().with_context(|| self.libfuzzer.display().to_string())?;
        let log = work().join(format!("{}.log", target.name));
        std::fs::write(&log, &output.stderr)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let count = |key: &str| {
            let line = said.lines().rfind(|line| line.contains(key))?;
            Some(line.split(key).nth(1)?.split_whitespace().next()?.to_owned())
        };
        let inputs = count("stat::number_of_executed_units:").unwrap_or_else(|| "some".into());
        let reached = count(" cov: ").unwrap_or_else(|| "0".into());
        let mut found = 0;
        for file in files(&findings)?.iter().filter(|file| !before.contains(file)) {
            let (holds, said) = self.repeat(target, file)?;
            if holds {
                // Slow only because of other programs, or large only because of libFuzzer.
                std::fs::remove_file(file)?;
                continue;
            }
            found += 1;
            println!("FOUND {}: {}", target.name, said.trim_end());
            println!("  cargo xtask fuzz {} --input {}", target.name, file.display());
        }
        ensure!(
            output.status.success() || found > 0 || said.contains("Test unit written to"),
            "{} ended with {}: see {}",
            target.name,
            output.status,
            log.display()
        );
        println!(
            "{:<16} {inputs:>9} inputs, {reached:>6} places in the code reached, {found} findings",
            target.name
        );
        Ok(found == 0)
    }

    /// Adds short inputs of earlier searches that reach what the committed ones do not.
    fn merge(&self, target: &fuzz_targets::Target) -> anyhow::Result<()> {
        let short = tempfile::tempdir()?;
        for file in files(&dir("corpus")?.join(target.name))? {
            if file.metadata()?.len() <= COMMITTED_BYTES_MAX {
                std::fs::copy(&file, short.path().join(file.file_name().context("a name")?))?;
            }
        }
        let before = files(&target.corpus())?.len();
        let mut command = self.libfuzzer_command(target);
        let output = command.arg("-merge=1").arg(target.corpus()).arg(short.path()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let after = files(&target.corpus())?.len();
        println!("{:<16} {} inputs, {} of them new", target.name, after, after - before);
        Ok(())
    }

    fn libfuzzer_command(&self, target: &fuzz_targets::Target) -> Command {
        let mut command = Command::new(&self.libfuzzer);
        command.env("HAULAGE_FUZZ_TARGET", target.name).stdin(Stdio::null());
        self.set_places(&mut command);
        command
    }

    fn set_places(&self, command: &mut Command) {
        command.env(fuzz_targets::scratch::SCRATCH, self.scratch.path());
        command.env(fuzz_targets::scratch::PROGRAM, &self.haulage);
    }

    /// Runs one input without libFuzzer. Returns whether it is within the limits, and what was said.
    fn repeat(
        &self,
        target: &fuzz_targets::Target,
        input: &Path,
    ) -> anyhow::Result<(bool, String)> {
        let mut command = Command::new(&self.single);
        self.set_places(&mut command);
        let output = command.arg(target.name).arg(input).output()?;
        let said = match output.stdout.is_empty() {
            false => String::from_utf8_lossy(&output.stdout).into_owned(),
            // Not even the panic could be caught.
            true => format!("{}: ended with {}\n", input.display(), output.status),
        };
        Ok((output.status.success(), said))
    }
}

fn run_cargo(args: &[&str], flags: &str) -> anyhow::Result<()> {
    let mut command = cargo();
    command.args(args).current_dir(root());
    if !flags.is_empty() {
        command.env("RUSTFLAGS", flags);
    }
    succeed(&mut command)
}

/// The triple of this machine.
fn host() -> anyhow::Result<String> {
    let said = quietly(Command::new("rustc").args(["--version", "--verbose"]))?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc names no host")?.to_owned())
}

fn work() -> PathBuf {
    root().join("target/fuzz")
}

fn dir(name: &str) -> anyhow::Result<PathBuf> {
    let dir = work().join(name);
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.sort();
    Ok(files)
}
