//! `haulage certify`: runs the protocol of `bench` on comparisons whose truth is known.

mod args;
mod text;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::anyhow;
use engines::profile::may_be_changed;
use lab::certificate::Certificate;
use lab::certificate::known_comparisons::{self, Choice};
use lab::certificate::prover_check::{self, ProverCheck};
use lab::certificate::store::{StoredCertificate, Subject};
use lab::definition::deltas::LEAST;
use lab::experiment::space::SpaceNeeded;
use lab::page_cache::prover::Prover;
use lab::run_dir::{self, HowRun};

use crate::bench::certificates;
use crate::bench::experiment::{self, Purpose, Start};
use crate::scratch::ScratchGuard;
use crate::terminal::output;
use crate::version::VERSION;
pub(crate) use args::Args;

/// Runs the command. Exit status 1 if the machine is not certified or nothing could be measured, 2 for
/// bad usage.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (kept, text) = ScratchGuard::around("certify", |guard| certify(args, guard))?;
    output::print(&text)?;
    Ok(if kept.certificate.passes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn certify(args: &Args, guard: &ScratchGuard) -> anyhow::Result<(StoredCertificate, String)> {
    require_a_place_to_keep_it()?;
    let mut how = experiment::new_run(&args.dirs, args.seed)?;
    how.seconds = Some(args.time.as_secs_f64());
    let with_cold = |cold| {
        known_comparisons::experiment(&Choice {
            cold,
            file_bytes_max: args.max_size,
            cells_max: args.cells.map_or(usize::MAX, usize::from),
            minutes: args.time.as_secs_f64() / 60.0,
        })
    };
    // The prover needs room too, before the experiment is known.
    let needed = SpaceNeeded::of(&with_cold(false));
    experiment::require_space(&needed, &how, Some("--max-size"))?;
    let (prover, checks) = try_prover(&how, guard)?;
    let definition = with_cold(prover.counts_pages && prover.drops_pages);
    let start = Start::New { runs: &args.runs };
    let started = Instant::now();
    let purpose = Purpose {
        command: "certify",
        deltas: LEAST,
        certificate: None,
        // It cannot be resumed.
        note_on_interrupt: |run| format!("; its samples are kept in '{run}'"),
    };
    experiment::run(&definition, &how, start, &purpose, guard, |conducted| {
        let kept = StoredCertificate {
            subject: Subject::of(&how.src_dir, &how.dst_dir),
            made: lab::environment::utc_now(),
            kernel: lab::environment::kernel(),
            haulage_version: VERSION.to_owned(),
            seconds: started.elapsed().as_secs_f64(),
            seed: how.seed,
            certificate: Certificate::of(&definition, conducted.cells(), checks),
        };
        let run = conducted.dir();
        run.write(run_dir::files::CERTIFICATE, &kept)?;
        let file = certificates::dir().map(|dir| kept.keep(&dir)).transpose()?;
        let text = match args.json {
            true => output::json(&kept)?,
            false => text::render(&kept, run.path(), file.as_deref(), output::columns()),
        };
        Ok((kept, text))
    })
}

/// Fails if a certificate could not be kept: to learn that at the end would waste the time of the
/// measurement.
fn require_a_place_to_keep_it() -> anyhow::Result<()> {
    let Some(dir) = certificates::dir() else { return Ok(()) };
    may_be_changed(&dir.join(run_dir::files::CERTIFICATE)).map_err(|why| {
        let dir = dir.display();
        anyhow!("cannot keep a certificate in '{dir}': {why}; XDG_STATE_HOME=DIR names another directory")
    })
}

/// The prover of the page cache state on the file system of the sources, and independent checks of it.
fn try_prover(how: &HowRun, guard: &ScratchGuard) -> anyhow::Result<(Prover, Vec<ProverCheck>)> {
    let scratch = guard.create_scratch(&how.src_dir, &how.scratch)?;
    Ok(prover_check::check(&scratch, how.seed)?)
}
