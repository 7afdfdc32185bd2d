//! `haulage bench EXPERIMENT`: runs an experiment and keeps every sample.

mod args;
pub(crate) mod certificates;
pub(crate) mod experiment;
pub(crate) mod measured_dirs;
mod plan;
mod summary;
pub(crate) mod table;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use lab::certificate::store::{Badge, StoredCertificate, Subject};
use lab::conduct::Conductor;
use lab::definition::Definition;
use lab::experiment::library::{BUILT_IN, BuiltIn};
use lab::run_dir::{self, HowRun, Run};

use crate::scratch::ScratchGuard;
use crate::terminal::{command, output};
use crate::version::VERSION;
pub(crate) use args::Args;
use args::Listed;
use experiment::{Purpose, Start};

/// Runs the command. Exit status 1 if the experiment could not be run, a run made a wrong copy, or no run
/// was counted; 2 for bad usage.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match (args.list, &args.resume) {
        (Some(Listed::Claims), _) => output::print(&plan::list_claims(output::columns()))?,
        (Some(Listed::Experiments), _) => output::print(&plan::list(output::columns()))?,
        (None, Some(path)) => resume(args, path)?,
        (None, None) => begin(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One session of an experiment, or one copier of several at once: `bench` starts this program for it.
pub(crate) fn session() -> ExitCode {
    if lab::session::main() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn begin(args: &Args) -> anyhow::Result<()> {
    args.dirs.check()?;
    let definition = match &args.claim {
        Some(claim) => only_claim(args.experiment.as_deref(), claim)?.scaled(args.scale),
        None => {
            let name = args.experiment.as_deref().unwrap_or_default();
            match load(name)?.scaled(args.scale).only(&args.parts) {
                Ok(definition) => definition,
                Err(part) => return Err(no_part(name, part, &load(name)?)),
            }
        }
    };
    let seconds = match (args.time, args.rounds) {
        (None, None) => Some(definition.minutes * 60.0),
        (time, _) => time.as_ref().map(Duration::as_secs_f64),
    };
    if args.dry_run {
        return output::print(&plan::of(&definition, args.rounds, seconds, output::columns())?);
    }
    let how = HowRun {
        seconds,
        rounds: args.rounds,
        scale: args.scale,
        ..experiment::new_run(&args.dirs, args.seed)?
    };
    measure(&definition, &how, Start::New { runs: &args.runs }, args.details)
}

fn resume(args: &Args, path: &Path) -> anyhow::Result<()> {
    let before = Run::read(path)?;
    let mut how = before.how.clone();
    how.rounds = args.rounds.or(how.rounds);
    if args.rounds.is_some() || args.time.is_some() {
        how.seconds = args.time.as_ref().map(Duration::as_secs_f64);
    } else if let Some(seconds) = &mut how.seconds {
        *seconds = (*seconds - before.measured_for().as_secs_f64()).max(0.0);
    }
    if args.dry_run {
        let plan = plan::of(&before.definition, how.rounds, how.seconds, output::columns())?;
        return output::print(&plan);
    }
    require_same_version_and_kernel(&before)?;
    let definition = before.definition.clone();
    measure(&definition, &how, Start::Resume(Box::new(before)), args.details)
}

fn require_same_version_and_kernel(before: &Run) -> anyhow::Result<()> {
    let (path, version) = (before.path.display(), &before.how.haulage_version);
    if before.how.schema != run_dir::SCHEMA {
        let schema = before.how.schema;
        bail!("'{path}' has files of schema {schema}, which can be read and not be resumed");
    }
    if version != VERSION {
        bail!("'{path}' is a run of haulage {version}; haulage {VERSION} cannot resume it");
    }
    let kernel = lab::environment::kernel();
    let kernel_before = &before.environment["kernel"];
    if kernel_before != kernel.as_str() {
        bail!(
            "'{path}' is a run under kernel {}, and this is kernel {kernel}; to compare two kernels, make a \
             run under each",
            kernel_before.as_str().unwrap_or("unknown")
        );
    }
    Ok(())
}

/// The built-in experiment `name`, or the one in the file `name`.
fn load(name: &str) -> anyhow::Result<Definition> {
    if let Some(built_in) = BuiltIn::by_name(name) {
        return Ok(built_in.definition());
    }
    if !name.contains('/') && !Path::new(name).exists() {
        let known: Vec<&str> = BUILT_IN.iter().map(|built_in| built_in.name).collect();
        let known = lab::words::listed(&known);
        bail!(
            "there is no experiment '{name}', and no such file; the experiments are {known}; haulage bench \
             --list describes them"
        );
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read '{name}'"))?;
    Ok(Definition::parse(&text, name)?)
}

/// What tests `claim`: of the experiment, or of any built-in one.
fn only_claim(experiment: Option<&str>, claim: &str) -> anyhow::Result<Definition> {
    let definitions = match experiment {
        Some(name) => vec![load(name)?],
        None => BUILT_IN.iter().map(BuiltIn::definition).collect(),
    };
    let found = definitions.into_iter().find_map(|definition| definition.only_claim(claim));
    let unknown = || {
        let words = format!("there is no claim '{claim}'; see haulage bench --list claims");
        command::usage_error(words)
    };
    found.ok_or_else(unknown)
}

fn no_part(experiment: &str, part: &str, definition: &Definition) -> anyhow::Error {
    let names: Vec<&str> = definition.parts.iter().map(|part| part.name.as_str()).collect();
    let names = lab::words::listed(&names);
    command::usage_error(format!("{experiment} has no part '{part}'; its parts are {names}"))
}

/// Runs the experiment and prints its result.
fn measure(
    definition: &Definition,
    how: &HowRun,
    start: Start<'_>,
    details: bool,
) -> anyhow::Result<()> {
    let certificate = match &start {
        // δ must not change within a run.
        Start::Resume(run) => StoredCertificate::of_run(&run.path)?,
        Start::New { .. } => certificates::dir().and_then(|dir| {
            StoredCertificate::find(&dir, &Subject::of(&how.src_dir, &how.dst_dir))
        }),
    };
    let badge = certificate
        .as_ref()
        .map_or_else(Badge::none, |kept| kept.badge(&lab::environment::kernel(), VERSION));
    let purpose = Purpose {
        command: "bench",
        deltas: badge.deltas,
        certificate: certificate.as_ref(),
        note_on_interrupt: |run| {
            format!("; its samples are kept; continue with: haulage bench --resume {run}")
        },
    };
    let (text, has_samples) = ScratchGuard::around("bench", |guard| {
        experiment::run(definition, how, start, &purpose, guard, |conducted| {
            conclude(definition, how, &badge, conducted, details)
        })
    })?;
    output::print(&text)?;
    ensure!(has_samples, "nothing was measured: no run was counted");
    Ok(())
}

/// Computes the verdict from the samples, and writes it to the run directory. Returns it as text, and whether
/// any sample counts.
fn conclude(
    definition: &Definition,
    how: &HowRun,
    badge: &Badge,
    conducted: &Conductor<'_>,
    details: bool,
) -> anyhow::Result<(String, bool)> {
    let dir = conducted.dir();
    let mut steps = experiment::steps("bench", definition);
    steps.show("computing the verdict");
    let run = Run::read(dir.path())?;
    let verdict = badge.verdict(&run, conducted.cells(), how.rounds);
    steps.clear();
    dir.write(run_dir::files::VERDICT, &verdict)?;
    let columns = output::columns();
    let summary = summary::render(definition, &verdict, &run, columns);
    let all = format!("{}\n{summary}", table::render(definition, &verdict, columns));
    dir.write_text(run_dir::files::DETAILS, &output::without_styles(&all))?;
    let has_samples = run.samples.iter().any(|sample| sample.measured.counted);
    Ok((if details { all } else { summary }, has_samples))
}
