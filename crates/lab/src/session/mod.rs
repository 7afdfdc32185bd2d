//! The session process: runs rounds of one cell and reports each run.
//!
//! It reads an [`Order`] from its standard input and writes [`Event`]s to its standard output, one
//! JSON object a line. If the cell has several runs at once, each runs in a [worker
//! process](worker) with its own memory map and files.

pub mod gates;
pub mod protocol;
mod start;
pub(crate) mod watchdog;
pub mod worker;

use std::io::BufRead;
use std::os::fd::AsFd;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::Deserialize;

use crate::clock::speed_probe::Probe;
use crate::clock::{Clock, hardware_counters, now_ns};
use crate::error::Error;
use crate::process::report;
use crate::sample::call_times::CallTimes;
use crate::sample::measurement::Measurement;
use crate::sample::record::{Place, RoundRecord};
use crate::scratch::WorkDir;
use crate::scratch::inode_reclaim::InodesInUse;
use crate::trial::Outcome;
use crate::workload::interface::ReadyVariant;
use crate::workload::peer;
use gates::Gates;
use protocol::{Event, Order};
use start::{dirs, start_variants};
use worker::WorkerProcesses;

/// The field that every order has.
#[derive(Deserialize)]
struct AnyOrder {
    #[serde(default)]
    parent: Option<i32>,
}

/// The share by which a run of the slow mode is made longer.
const SLOW_MODE: f64 = 0.5;

/// The main function of every process of the lab. The first line of standard input is its order:
/// that of a session or worker process, of a peer, or of a watchdog. Returns whether it succeeded;
/// a failure was reported as an event.
pub fn main() -> bool {
    // After the end of the conductor, no process reads the events or removes the files.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    if input.read_line(&mut line).is_err() {
        return false;
    }
    // The parent may have ended before the request for its death signal was made.
    let Ok(AnyOrder { parent }) = serde_json::from_str(&line) else { return false };
    if parent.is_some() && parent != getppid().map(|parent| parent.as_raw_nonzero().get()) {
        return false;
    }
    if let Ok(order) = serde_json::from_str(&line) {
        return peer::main(&order);
    }
    if let Ok(watch) = serde_json::from_str(&line) {
        return watchdog::main(watch, input);
    }
    let Ok(order) = serde_json::from_str::<Order>(&line) else { return false };
    let carried_out = match order.worker {
        Some(nth) => worker::main(&order, nth, input),
        None => carry_out(&order),
    };
    let Err(error) = carried_out else { return true };
    report(&Event::Failed { why: error.to_string() });
    false
}

/// Runs variants, here or in worker processes.
enum VariantRunner {
    InProcess { ready: Vec<Option<Box<dyn ReadyVariant>>> },
    WorkerProcesses(WorkerProcesses),
}

fn carry_out(order: &Order) -> Result<(), Error> {
    let mut runner = VariantRunner::start(order)?;
    let dst = WorkDir::open(&order.dst_dir)?;
    hardware_counters::open();
    let mut calls = vec![None; order.variants.len()];
    if order.warm_up {
        for &variant in order.rounds.first().into_iter().flatten() {
            runner.run_and_clear(&dst, variant, 0.0)?;
            if order.count_calls {
                calls[variant] = runner.count_calls(variant)?;
            }
        }
    }
    let probe = Probe::new();
    let mut rng = fastrand::Rng::with_seed(order.seed);
    let started_ns = now_ns();
    let is_over =
        |limit_ns: Option<u64>| limit_ns.is_some_and(|limit_ns| now_ns() - started_ns > limit_ns);
    for (round, variants) in (1..).zip(&order.rounds) {
        if round > 1 && is_over(order.rounds_ns) {
            break;
        }
        for repeat in 0..=order.repeats {
            let gates = Gates::open(runner.helpers());
            for (order_in_round, &variant) in (1..).zip(variants) {
                let slowed_by = order.slowed_by(variant, &mut rng);
                let (session, probe_ns) = (order.session, probe.run());
                let place = Place { session, round, repeat, order_in_round, probe_ns };
                let run = runner.run_and_clear(&dst, variant, slowed_by)?;
                let Some(mut measured) = run else { continue };
                measured.calls = measured.calls.or(calls[variant]);
                let mut times = runner.take_call_times(variant);
                if (round, repeat) != (1, 0) {
                    times.iter_mut().for_each(CallTimes::forget_sequences);
                }
                report(&Event::Ran { variant, place, measured, times });
            }
            let found = gates.close();
            let may_repeat = repeat < order.repeats && !is_over(order.repeats_ns);
            let again = !found.breach.is_empty() && may_repeat;
            let (cell, session) = (order.cell.id(), order.session);
            let record = RoundRecord { cell, session, round, repeat, again, ..found };
            report(&Event::Round { record });
            if !again {
                break;
            }
        }
    }
    Ok(())
}

impl Order {
    fn slowed_by(&self, variant: usize, rng: &mut fastrand::Rng) -> f64 {
        let of = |list: &[f64]| list.get(variant).copied().unwrap_or(0.0);
        let slow_share = of(&self.slow_share);
        let slow_mode = slow_share > 0.0 && rng.f64() < slow_share;
        of(&self.slowed_by) + if slow_mode { SLOW_MODE } else { 0.0 }
    }
}

impl VariantRunner {
    fn start(order: &Order) -> Result<VariantRunner, Error> {
        if order.cell.at_once > 1 {
            return Ok(VariantRunner::WorkerProcesses(WorkerProcesses::start(order)?));
        }
        let dirs = dirs(order)?;
        let mut ready = Vec::new();
        for (variant, started) in start_variants(order, &dirs, 0)?.into_iter().enumerate() {
            ready.push(started.map_err(|why| refuse(variant, why)).ok());
        }
        Ok(VariantRunner::InProcess { ready })
    }

    /// As [`VariantRunner::run`]; the files that it removed are freed when this returns.
    fn run_and_clear(
        &mut self,
        dst: &WorkDir,
        variant: usize,
        slowed_by: f64,
    ) -> Result<Option<Box<Measurement>>, Error> {
        let inodes_before = InodesInUse::now(dst.dir().as_fd());
        let run = self.run(variant, slowed_by)?;
        inodes_before.wait_until_again(dst.dir().as_fd());
        Ok(run)
    }

    /// Runs a variant; `None` when it no longer takes part.
    fn run(&mut self, variant: usize, slowed_by: f64) -> Result<Option<Box<Measurement>>, Error> {
        match self {
            VariantRunner::WorkerProcesses(workers) => workers.run(variant, slowed_by),
            VariantRunner::InProcess { ready } => {
                let Some(started) = &mut ready[variant] else { return Ok(None) };
                match started.run(Clock { barrier: None, slowed_by })? {
                    Outcome::Measured(measured) => Ok(Some(measured)),
                    Outcome::Refused(why) => {
                        refuse(variant, why);
                        ready[variant] = None;
                        Ok(None)
                    }
                }
            }
        }
    }

    /// Processes of the lab whose times are not part of this one's.
    fn helpers(&self) -> Vec<u32> {
        match self {
            VariantRunner::InProcess { ready } => {
                ready.iter().flatten().flat_map(|started| started.helpers()).collect()
            }
            VariantRunner::WorkerProcesses(workers) => workers.ids(),
        }
    }

    fn take_call_times(&mut self, variant: usize) -> Option<CallTimes> {
        match self {
            VariantRunner::InProcess { ready } => ready[variant].as_mut()?.take_call_times(),
            VariantRunner::WorkerProcesses(workers) => workers.take_call_times(),
        }
    }

    fn count_calls(&mut self, variant: usize) -> Result<Option<u64>, Error> {
        match self {
            VariantRunner::InProcess { ready } => {
                ready[variant].as_mut().map_or(Ok(None), |started| started.count_calls())
            }
            VariantRunner::WorkerProcesses(_) => Ok(None),
        }
    }
}

/// Reports that a variant does not work. A variant that no round contains has no reason.
fn refuse(variant: usize, why: String) {
    if !why.is_empty() {
        report(&Event::Refused { variant, why });
    }
}
