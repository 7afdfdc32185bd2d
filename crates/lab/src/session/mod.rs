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
use crate::in_order::distinct;
use crate::process::report;
use crate::sample::call_times::CallTimes;
use crate::sample::measurement::Measurement;
use crate::sample::record::{RoundRecord, Sample};
use crate::scratch::WorkDir;
use crate::scratch::inode_reclaim::InodesInUse;
use crate::workload::interface::ReadyVariant;
use crate::workload::peer;
use gates::Gates;
use protocol::{Event, Order};
use start::start_variants;
use worker::AtOnce;

/// The field that every order has.
#[derive(Deserialize)]
struct AnyOrder {
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

fn carry_out(order: &Order) -> Result<(), Error> {
    let mut ready = start(order)?;
    let dst = WorkDir::open(&order.dst_dir)?;
    hardware_counters::open();
    let mut calls = vec![None; order.variants.len()];
    if order.warm_up {
        for &variant in order.rounds.first().into_iter().flatten() {
            run_and_clear(&mut ready[variant], &dst, (variant, 0.0))?;
            if let Some(started) = ready[variant].as_mut().filter(|_| order.count_calls) {
                calls[variant] = started.count_calls()?;
            }
        }
    }
    let mut probe = Probe::new();
    let mut rng = fastrand::Rng::with_seed(order.seed);
    let started_ns = now_ns();
    let is_over =
        |limit_ns: Option<u64>| limit_ns.is_some_and(|limit_ns| now_ns() - started_ns > limit_ns);
    for (round, variants) in (1..).zip(&order.rounds) {
        if round > 1 && is_over(order.rounds_ns) {
            break;
        }
        for repeat in 0..=order.repeats {
            let gates = Gates::open(helpers(&ready));
            for (order_in_round, &variant) in (1..).zip(variants) {
                let slowed_by = order.slowed_by(variant, &mut rng);
                let probe_ns = probe.run();
                let run = run_and_clear(&mut ready[variant], &dst, (variant, slowed_by))?;
                let Some(mut measured) = run else { continue };
                measured.calls = measured.calls.or(calls[variant]);
                let mut times = ready[variant].as_mut().and_then(|it| it.take_call_times());
                if (round, repeat) != (1, 0) {
                    times.iter_mut().for_each(CallTimes::forget_sequences);
                }
                let sample = Box::new(Sample {
                    cell: order.cell.id(),
                    variant: order.variants[variant].clone(),
                    session: order.session,
                    round,
                    repeat,
                    order_in_round,
                    probe_ns,
                    measured,
                });
                report(&Event::Ran { variant, sample, times });
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
        let slowed = self.slowed.get(&self.variants[variant]).copied().unwrap_or_default();
        let slow_mode = slowed.sometimes > 0.0 && rng.f64() < slowed.sometimes;
        slowed.by + if slow_mode { SLOW_MODE } else { 0.0 }
    }
}

/// The variants of the order, ready to run here or in worker processes; `None` for one that takes no part.
fn start(order: &Order) -> Result<Vec<Option<Box<dyn ReadyVariant>>>, Error> {
    if order.cell.at_once > 1 {
        return AtOnce::of_variants(order);
    }
    let started = start_variants(order, 0)?.into_iter().enumerate();
    Ok(started.map(|(variant, it)| it.map_err(|why| refuse(variant, why)).ok()).collect())
}

/// Runs the variant of this index, unless it takes no part; it takes no further part if it refuses.
/// The files that the run removed are freed when this returns.
fn run_and_clear(
    ready: &mut Option<Box<dyn ReadyVariant>>,
    dst: &WorkDir,
    (variant, slowed_by): (usize, f64),
) -> Result<Option<Measurement>, Error> {
    let Some(started) = ready else { return Ok(None) };
    let inodes_before = InodesInUse::now(dst.dir().as_fd());
    let run = started.run(Clock { barrier: None, slowed_by });
    inodes_before.wait_until_again(dst.dir().as_fd());
    match run {
        Ok(measured) => Ok(Some(measured)),
        Err(not_run) => {
            refuse(variant, not_run.refusal()?);
            *ready = None;
            Ok(None)
        }
    }
}

/// Processes of the lab whose times are not part of this one's.
fn helpers(ready: &[Option<Box<dyn ReadyVariant>>]) -> Vec<u32> {
    // Variants that run in worker processes have the same ones.
    distinct(ready.iter().flatten().flat_map(|started| started.helpers()))
}

/// Reports that a variant does not work. A variant that no round contains has no reason.
fn refuse(variant: usize, why: String) {
    if !why.is_empty() {
        report(&Event::Refused { variant, why });
    }
}
