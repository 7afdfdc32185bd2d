//! `haulage bench EXPERIMENT`: a whole experiment, every sample kept.

mod args;
mod plan;
mod progress;
mod short;
pub(crate) mod table;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use lab::certificate::store::{Badge, StoredCertificate, Subject};
use lab::conduct::{Conductor, Limits, Places, session_process};
use lab::definition::Definition;
use lab::definition::deltas::Deltas;
use lab::environment::Environment;
use lab::experiment::library::{BUILT_IN, BuiltIn};
use lab::experiment::space::SpaceNeeded;
use lab::page_cache::prover::Prover;
use lab::page_cache::state::State;
use lab::run_dir::{self, HowRun, Run, RunDir};
use lab::scratch::{self, Scratch};
use lab::source::Source;
use lab::verdict::{Delta, Verdict};

use crate::interrupt::{Interrupts, tell_of_abandoned};
use args::{Request, ResumeRequest, RunRequest};
use progress::Line;

/// The commit that this program was built from, where the build could tell.
const COMMIT: Option<&str> = option_env!("HAULAGE_COMMIT");

/// Bytes of the file on which the prover of the page cache state tries itself.
const PROVER_BYTES: usize = 4 << 20;

/// Runs the command. Exit status 1 when the experiment could not be run or something that a run made
/// was wrong, 2 for bad usage.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    let request = match args::parse(args) {
        Ok(request) => request,
        Err(exit) => return exit,
    };
    let done = match request {
        Request::List => print(&plan::list(BUILT_IN)),
        Request::Run(request) => run(&request),
        Request::Resume(request) => resume(&request),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("haulage bench: {}", crate::complaint::words(&error));
            ExitCode::FAILURE
        }
    }
}

/// One session of an experiment, or one of several runs at once: what this program is for its own
/// children.
pub(crate) fn session() -> ExitCode {
    if lab::session::main() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(request: &RunRequest) -> anyhow::Result<()> {
    let definition = load(&request.experiment)?.scaled(request.scale);
    let time = match (request.time, request.rounds) {
        (None, None) => Some(Duration::from_secs_f64(definition.minutes * 60.0)),
        (time, _) => time,
    };
    if request.dry_run {
        return print(&plan::of(&definition, request.rounds, time)?);
    }
    let how = HowRun {
        schema: run_dir::SCHEMA,
        // Whoever takes it up again may stand elsewhere.
        src_dir: absolute(&request.src_dir)?,
        dst_dir: absolute(&request.dst_dir)?,
        seed: request.seed,
        seconds: time.map(|time| time.as_secs_f64()),
        rounds: request.rounds,
        scale: request.scale,
        haulage_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    conduct(&definition, &how, Begin::In(&request.runs), request.details)
}

fn resume(request: &ResumeRequest) -> anyhow::Result<()> {
    let path = &request.run;
    let before = Run::read(path)?;
    let mut how = before.how.clone();
    if request.rounds.is_some() || request.time.is_some() {
        how.rounds = request.rounds;
        how.seconds = request.time.map(|time| time.as_secs_f64());
    } else if let Some(seconds) = &mut how.seconds {
        *seconds = (*seconds - before.measured_for().as_secs_f64()).max(0.0);
    }
    if request.dry_run {
        let time = how.seconds.map(Duration::from_secs_f64);
        return print(&plan::of(&before.definition, how.rounds, time)?);
    }
    if how.haulage_version != env!("CARGO_PKG_VERSION") {
        bail!(
            "'{}' was begun by haulage {} and cannot be gone on with by {}",
            path.display(),
            how.haulage_version,
            env!("CARGO_PKG_VERSION")
        );
    }
    let kernel = lab::environment::kernel();
    if before.environment["kernel"] != kernel.as_str() {
        bail!(
            "'{}' was begun under another kernel, {}, and this is {kernel}: two runs are needed to \
             compare the two",
            path.display(),
            before.environment["kernel"].as_str().unwrap_or("unknown")
        );
    }
    let definition = before.definition.clone();
    conduct(&definition, &how, Begin::Again(Box::new(before)), request.details)
}

pub(crate) fn absolute(dir: &Path) -> anyhow::Result<PathBuf> {
    std::fs::canonicalize(dir).with_context(|| format!("cannot open '{}'", dir.display()))
}

/// The experiment called `name`, or in the file of that name.
fn load(name: &str) -> anyhow::Result<Definition> {
    if let Some(built_in) = BuiltIn::by_name(name) {
        return Ok(built_in.definition()?);
    }
    if !name.contains('/') && !Path::new(name).exists() {
        let known: Vec<&str> = BUILT_IN.iter().map(|built_in| built_in.name).collect();
        bail!(
            "no experiment is called '{name}', and no file; there is {}",
            lab::words::listed(&known)
        );
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read '{name}'"))?;
    Ok(Definition::parse(&text, name)?)
}

/// A run that is new, or was begun before.
pub(crate) enum Begin<'b> {
    /// A new one, whose directory is made in this one.
    In(&'b Path),
    /// One that was interrupted.
    Again(Box<Run>),
}

fn conduct(
    definition: &Definition,
    how: &HowRun,
    begin: Begin<'_>,
    details: bool,
) -> anyhow::Result<()> {
    let interrupts = Interrupts::watch("bench").context("cannot watch for signals")?;
    let kept = match &begin {
        // What δ was when it was begun it remains.
        Begin::Again(run) => StoredCertificate::read(&run.path.join(run_dir::files::CERTIFICATE)),
        Begin::In(_) => certificate_for(how),
    };
    let badge = kept.as_ref().map_or_else(Badge::none, |kept| {
        kept.badge(&lab::environment::kernel(), env!("CARGO_PKG_VERSION"))
    });
    let task = Task {
        command: "bench",
        deltas: badge.deltas,
        certificate: kept.as_ref(),
        makes_certificate: false,
    };
    let done =
        carry_out(definition, how, begin, &task, &interrupts, |conducted| {
            let delta = Delta { shares: badge.deltas, from: badge.delta_from.clone() };
            let dir = conducted.dir();
            let mut line = Line::new("bench", &definition.name);
            line.say("what the samples come to is worked out");
            let samples = Run::read(dir.path())?;
            let mut verdict = Verdict::of(definition, conducted.cells(), &delta, how.rounds)
                .analysed(definition, samples.samples(), how.rounds);
            line.clear();
            verdict.certificate.clone_from(&badge.words);
            dir.write(run_dir::files::VERDICT, &verdict)?;
            let columns = columns();
            let tables = table::render(definition, &verdict, columns);
            let short = short::render(definition, &verdict, dir.path(), columns);
            dir.write_text(run_dir::files::DETAILS, &format!("{tables}\n{short}"))?;
            Ok(if details { format!("{tables}\n{short}") } else { short })
        });
    interrupts.give_way();
    print(&done?)
}

/// The certificate of this machine and the file systems of a run, where there is one.
fn certificate_for(how: &HowRun) -> Option<StoredCertificate> {
    let subject = Subject::of(&how.src_dir, &how.dst_dir);
    let (kernel, version) = (lab::environment::kernel(), env!("CARGO_PKG_VERSION"));
    Badge::find(certificates_dir().as_deref(), &subject, &kernel, version).1
}

/// Where certificates are kept, by the XDG Base Directory Specification: `haulage/certificates` in the
/// directory for state. `None` for a user without a home.
pub(crate) fn certificates_dir() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("haulage/certificates"))
}

/// What an experiment is carried out for.
pub(crate) struct Task<'t> {
    /// What begins messages.
    pub(crate) command: &'static str,
    /// Differences up to these shares do not matter.
    pub(crate) deltas: Deltas,
    /// What is copied into the run directory.
    pub(crate) certificate: Option<&'t StoredCertificate>,
    /// Whether it makes a certificate, which cannot be gone on with.
    pub(crate) makes_certificate: bool,
}

/// Carries an experiment out in scratch directories of its own, which are removed in the end, and
/// returns what `finish` makes of it.
pub(crate) fn carry_out<T>(
    definition: &Definition,
    how: &HowRun,
    begin: Begin<'_>,
    task: &Task<'_>,
    interrupts: &Interrupts,
    finish: impl FnOnce(&Conductor<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let (src, dst) = (&how.src_dir, &how.dst_dir);
    let command = task.command;
    let dirs = if src == dst { vec![dst] } else { vec![src, dst] };
    if let Begin::Again(run) = &begin {
        let run = absolute(&run.path)?;
        dirs.iter().for_each(|dir| scratch::remove_left_by(&run, dir));
    }
    tell_of_abandoned(command, dirs);
    let src_scratch = scratch_in(src, interrupts)?;
    let dst_scratch = if src == dst { None } else { Some(scratch_in(dst, interrupts)?) };
    let room = SpaceNeeded::of(definition);
    let dst_work = dst_scratch.as_ref().unwrap_or(&src_scratch);
    // Two directories may share one file system and its room.
    if device_of(src)? == device_of(dst)? {
        src_scratch.require_space(room.src_bytes + room.dst_bytes)?;
    } else {
        src_scratch.require_space(room.src_bytes)?;
        dst_work.require_space(room.dst_bytes)?;
    }
    plan::require_memory(&room)?;

    let (dir, before) = match begin {
        Begin::In(runs) => {
            let environment = environment(definition, how, &src_scratch)?;
            (RunDir::create(runs, definition, how, &environment)?, None)
        }
        Begin::Again(run) => (RunDir::open(run.path.clone())?, Some(run)),
    };
    if let Some(certificate) = task.certificate {
        dir.write(run_dir::files::CERTIFICATE, certificate)?;
    }
    let path = dir.path().to_owned();
    let owner = absolute(&path)?;
    src_scratch.belongs_to(&owner)?;
    dst_scratch.as_ref().map_or(Ok(()), |scratch| scratch.belongs_to(&owner))?;
    let time = how.seconds.map(Duration::from_secs_f64);
    let limits = Limits { time, rounds: how.rounds, deltas: task.deltas };
    let places = Places { src: src_scratch.path(), dst: dst_work.path() };
    let mut conducted =
        Conductor::new(definition, dir, places, limits, how.seed, before.as_deref());
    let running = conducted.running();
    let kept = match task.makes_certificate {
        true => format!("; what was measured is kept in '{}'", path.display()),
        false => {
            format!(
                "; what was measured is kept: haulage bench --resume {} goes on",
                path.display()
            )
        }
    };
    interrupts.stopping(move || session_process::end_session(&running), kept.clone());
    let mut line = Line::new(command, &definition.name);
    let result = conducted.run(&mut |progress| line.draw(progress));
    line.clear();
    interrupts.give_way();
    result.map_err(|error| anyhow::anyhow!("{error}{kept}"))?;
    finish(&conducted)
}

fn device_of(dir: &Path) -> anyhow::Result<u64> {
    let metadata = std::fs::metadata(dir);
    Ok(metadata.with_context(|| format!("cannot stat '{}'", dir.display()))?.dev())
}

/// A scratch directory in `dir` that is removed when a signal comes, too.
pub(crate) fn scratch_in(dir: &Path, interrupts: &Interrupts) -> anyhow::Result<Scratch> {
    let scratch = interrupts.guard(|| {
        let scratch = Scratch::create(dir, "bench")?;
        let remover = scratch.remover()?;
        Ok((scratch, remover))
    });
    Ok(scratch?)
}

fn environment(
    definition: &Definition,
    how: &HowRun,
    scratch: &Scratch,
) -> anyhow::Result<Environment> {
    const NAME: &str = "prover";
    let mut file = std::fs::File::from(scratch.create_file(NAME)?);
    let mut bytes = vec![0; PROVER_BYTES];
    fastrand::Rng::with_seed(how.seed).fill(&mut bytes);
    let path = scratch.path().join(NAME);
    file.write_all(&bytes).with_context(|| format!("cannot write '{}'", path.display()))?;
    let cold = definition.parts.iter().any(|part| part.states.contains(&State::Cold));
    let wanted = if cold { State::Cold } else { State::Warm };
    let prover = Prover::try_on(&Source::open(&path)?, wanted)?;
    scratch.remove_file(NAME)?;
    Ok(Environment::look(&how.src_dir, &how.dst_dir, prover, how.seed, COMMIT))
}

pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Columns that a text for standard output may take.
pub(crate) fn columns() -> usize {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok());
    terminal.flatten().map_or(100, |size| usize::from(size.ws_col).max(40))
}
