//! `haulage certify`: the protocol against itself.

mod args;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use lab::certificate::Certificate;
use lab::certificate::known_comparisons::{self, Choice};
use lab::certificate::prover_check::{self, ProverCheck};
use lab::certificate::store::{StoredCertificate, Subject};
use lab::definition::deltas::LEAST;
use lab::page_cache::prover::Prover;
use lab::run_dir::{self, HowRun};

use crate::bench::{self, Begin, Task};
use crate::interrupt::Interrupts;
use args::Request;

/// Runs the command. Exit status 1 when the machine is not certified, or that could not be found out;
/// 2 for bad usage.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    let request = match args::parse(args) {
        Ok(request) => request,
        Err(exit) => return exit,
    };
    match certify(&request) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("haulage certify: {}", crate::complaint::words(&error));
            ExitCode::FAILURE
        }
    }
}

fn certify(request: &Request) -> anyhow::Result<bool> {
    let interrupts = Interrupts::watch("certify").context("cannot watch for signals")?;
    let done = certify_guarded(request, &interrupts);
    interrupts.give_way();
    let (kept, text) = done?;
    bench::print(&text)?;
    Ok(kept.certificate.passes)
}

fn certify_guarded(
    request: &Request,
    interrupts: &Interrupts,
) -> anyhow::Result<(StoredCertificate, String)> {
    let how = HowRun {
        schema: run_dir::SCHEMA,
        src_dir: bench::absolute(&request.src_dir)?,
        dst_dir: bench::absolute(&request.dst_dir)?,
        seed: request.seed,
        seconds: Some(request.time.as_secs_f64()),
        rounds: None,
        scale: 1.0,
        haulage_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let (prover, checks) = try_prover(&how, interrupts)?;
    let definition = known_comparisons::experiment(&Choice {
        cold: prover.counts_pages && prover.drops_pages,
        file_bytes_max: request.file_bytes_max,
        cells_max: request.cells_max,
        minutes: request.time.as_secs_f64() / 60.0,
    });
    let task =
        Task { command: "certify", deltas: LEAST, certificate: None, makes_certificate: true };
    let begun = std::time::Instant::now();
    bench::carry_out(&definition, &how, Begin::In(&request.runs), &task, interrupts, |conducted| {
        let kept = StoredCertificate {
            subject: Subject::of(&how.src_dir, &how.dst_dir),
            made: lab::environment::utc_now(),
            kernel: lab::environment::kernel(),
            haulage_version: env!("CARGO_PKG_VERSION").to_owned(),
            seconds: begun.elapsed().as_secs_f64(),
            seed: how.seed,
            certificate: Certificate::of(&definition, conducted.cells(), checks, None),
        };
        conducted.dir().write(run_dir::files::CERTIFICATE, &kept)?;
        let file = bench::certificates_dir().map(|dir| kept.keep(&dir)).transpose()?;
        let text = if request.json {
            let mut json = serde_json::to_string_pretty(&kept).context("cannot write JSON")?;
            json.push('\n');
            json
        } else {
            words::render(&kept, conducted.dir().path(), file.as_deref())
        };
        Ok((kept, text))
    })
}

/// The prover on the file system of the sources, and what others say of it.
fn try_prover(how: &HowRun, interrupts: &Interrupts) -> anyhow::Result<(Prover, Vec<ProverCheck>)> {
    let scratch = bench::scratch_in(&how.src_dir, interrupts)?;
    Ok(prover_check::check(&scratch, how.seed)?)
}
