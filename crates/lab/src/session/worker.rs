//! Worker processes: one for each of several runs at once. All start at the same instant of the
//! monotonic clock.

use std::cell::RefCell;
use std::io::{BufRead, StdinLock};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};
use serde::{Deserialize, Serialize};

use super::protocol::Order;
use super::start::start_variants;
use crate::clock::{Barrier, Clock, hardware_counters, now_ns};
use crate::error::Error;
use crate::process::{Group, LabProcess, own_pid, report};
use crate::sample::call_times::CallTimes;
use crate::sample::measurement::Measurement;
use crate::trial::NotRun;
use crate::workload::interface::ReadyVariant;

/// Time between "all are ready" and the start, in which each of them goes to sleep.
const LEAD_NS: u64 = 2_000_000;

/// A request to a worker process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WorkerRequest {
    /// Get ready to run a variant.
    Prepare { variant: usize, slowed_by: f64 },
    /// Start when the monotonic clock says so.
    Start { at_ns: u64 },
}

/// The reply of a worker process.
#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum WorkerReply {
    Ready,
    Ran { measured: Box<Measurement>, times: Option<CallTimes> },
    Refused { why: String },
    Failed { why: String },
}

/// A variant that runs in several worker processes at once.
pub(crate) struct AtOnce {
    variant: usize,
    /// The processes of the session, which all of its variants share.
    workers: Rc<RefCell<Vec<WorkerProcess>>>,
    /// Of the last run, all worker processes together.
    call_times: Option<CallTimes>,
}

struct WorkerProcess(LabProcess);

impl AtOnce {
    /// Starts as many processes as there are runs at once. Returns the variants of the order, which
    /// none of the processes has refused yet.
    pub(crate) fn of_variants(order: &Order) -> Result<Vec<Option<Box<dyn ReadyVariant>>>, Error> {
        let workers = (0..order.cell.at_once).map(|nth| WorkerProcess::start(order, nth));
        let workers = Rc::new(RefCell::new(workers.collect::<Result<_, _>>()?));
        let ready = |variant| -> Option<Box<dyn ReadyVariant>> {
            Some(Box::new(AtOnce { variant, workers: Rc::clone(&workers), call_times: None }))
        };
        Ok((0..order.variants.len()).map(ready).collect())
    }
}

impl ReadyVariant for AtOnce {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        let mut workers = self.workers.borrow_mut();
        let Clock { slowed_by, .. } = clock;
        for worker in workers.iter_mut() {
            worker.request(&WorkerRequest::Prepare { variant: self.variant, slowed_by })?;
        }
        let mut ready = Vec::new();
        let mut refusal = None;
        for worker in workers.iter_mut() {
            match worker.answer()? {
                WorkerReply::Ready => ready.push(worker),
                WorkerReply::Refused { why } => refusal = Some(why),
                WorkerReply::Ran { .. } | WorkerReply::Failed { .. } => return Err(gone().into()),
            }
        }
        let at_ns = now_ns() + LEAD_NS;
        for worker in &mut ready {
            worker.request(&WorkerRequest::Start { at_ns })?;
        }
        let (mut runs, mut call_times) = (Vec::new(), Vec::new());
        for worker in ready {
            match worker.answer()? {
                WorkerReply::Ran { measured, times } => {
                    runs.push(*measured);
                    call_times.extend(times);
                }
                WorkerReply::Refused { why } => refusal = Some(why),
                WorkerReply::Ready | WorkerReply::Failed { .. } => return Err(gone().into()),
            }
        }
        self.call_times = call_times.into_iter().reduce(|mut sum, times| {
            sum.merge(&times);
            sum
        });
        refusal.map_or_else(|| Ok(Measurement::together(&runs)), |why| Err(why.into()))
    }

    fn helpers(&self) -> Vec<u32> {
        self.workers.borrow().iter().map(|worker| worker.0.id()).collect()
    }

    fn take_call_times(&mut self) -> Option<CallTimes> {
        self.call_times.take()
    }
}

impl WorkerProcess {
    fn start(order: &Order, nth: u32) -> Result<WorkerProcess, Error> {
        let cannot = |error: std::io::Error| Error::Unknown(format!("cannot start a run: {error}"));
        let mut process = LabProcess::start(Group::Parents).map_err(cannot)?;
        let own = Order { worker: Some(nth), parent: Some(own_pid()), ..order.clone() };
        process.send(&own).map_err(|_| gone())?;
        Ok(WorkerProcess(process))
    }

    fn request(&mut self, request: &WorkerRequest) -> Result<(), Error> {
        self.0.send(request).map_err(|_| gone())
    }

    /// The answer of the worker. It is never waited for in the middle of a run that is no longer
    /// wanted: dropping kills the process.
    fn answer(&mut self) -> Result<WorkerReply, Error> {
        match self.0.receive().ok().flatten() {
            Some(WorkerReply::Failed { why }) => Err(Error::Unknown(why)),
            reply => reply.ok_or_else(gone),
        }
    }
}

fn gone() -> Error {
    Error::Unknown("a process that runs beside others ended or answered out of turn".to_owned())
}

/// Waits for the request to start, once for each run.
#[derive(Debug)]
struct Start<'i> {
    input: RefCell<StdinLock<'i>>,
    waited: std::cell::Cell<bool>,
}

impl Barrier for Start<'_> {
    fn wait(&self) {
        if self.waited.replace(true) {
            return;
        }
        report(&WorkerReply::Ready);
        let mut line = String::new();
        let read = self.input.borrow_mut().read_line(&mut line);
        match (read, serde_json::from_str(&line)) {
            (Ok(_), Ok(WorkerRequest::Start { at_ns })) => sleep_until(at_ns),
            // The session is gone.
            _ => std::process::exit(1),
        }
    }
}

fn sleep_until(at_ns: u64) {
    let at = Timespec {
        tv_sec: i64::try_from(at_ns / 1_000_000_000).unwrap_or(0),
        tv_nsec: i64::try_from(at_ns % 1_000_000_000).unwrap_or(0),
    };
    // A signal may end the sleep early.
    while clock_nanosleep_absolute(ClockId::Monotonic, &at) == Err(Errno::INTR) {}
}

/// The main function of a worker process.
pub(crate) fn main(order: &Order, nth: u32, input: StdinLock<'_>) -> Result<(), Error> {
    let mut ready = start_variants(order, nth)?;
    hardware_counters::open();
    let start = Start { input: RefCell::new(input), waited: false.into() };
    loop {
        let mut line = String::new();
        let read = start.input.borrow_mut().read_line(&mut line);
        let Ok(WorkerRequest::Prepare { variant, slowed_by }) = serde_json::from_str(&line) else {
            // The end of the session.
            return if matches!(read, Ok(0)) { Ok(()) } else { Err(gone()) };
        };
        start.waited.set(false);
        match &mut ready[variant] {
            Err(why) => report(&WorkerReply::Refused { why: why.clone() }),
            Ok(started) => match started.run(Clock { barrier: Some(&start), slowed_by }) {
                Ok(measured) => {
                    let (measured, times) = (Box::new(measured), started.take_call_times());
                    report(&WorkerReply::Ran { measured, times });
                }
                Err(not_run) => report(&WorkerReply::Refused { why: not_run.refusal()? }),
            },
        }
    }
}
