//! The cost of an empty system call.
//!
//! A run makes so many calls that reading the clock does not matter. Its time is that of all calls;
//! their number is one of its figures. The file size has no effect.

use std::os::fd::OwnedFd;

use rustix::time::{ClockId, clock_gettime};

use super::interface::{Needs, ReadyVariant, Setting, StartResult, Workload};
use crate::clock::{Clock, Counters};
use crate::error::Error;
use crate::sample::measurement::Measurement;
use crate::trial::NotRun;

pub(crate) static SYSCALL: Workload = Workload {
    name: "syscall",
    variants: "getppid, read0 (a read of no bytes) or clock (clock_gettime, without a switch)",
    check: |variant| Call::parse(variant).map(drop),
    start,
    needs: |_| Needs::default(),
    has_state: false,
    can_be_durable: false,
    calls_of_run: Some(CALLS),
};

/// Calls of a run.
const CALLS: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// getppid(2), the cost of entering and leaving the kernel.
    Getppid,
    /// read(2) of no bytes from a regular file: the cost of a call on a file apart from its bytes.
    Read0,
    /// clock_gettime(2), which most machines answer without entering the kernel.
    Clock,
}

impl Call {
    fn parse(text: &str) -> Result<Call, String> {
        match text {
            "getppid" => Ok(Call::Getppid),
            "read0" => Ok(Call::Read0),
            "clock" => Ok(Call::Clock),
            _ => Err(format!("'{text}' is no call of this workload")),
        }
    }
}

struct Calling {
    call: Call,
    file: OwnedFd,
}

fn start(setting: &Setting<'_>, text: &str) -> StartResult {
    let call = Call::parse(text)?;
    let dst = &setting.dirs.dst;
    let name = format!("syscall-{}-{}", std::process::id(), fastrand::u32(..));
    let file = dst.create_file(&name)?;
    dst.remove_file(&name)?;
    rustix::io::pwrite(&file, &[1; 100], 0).map_err(Error::path("cannot write in", dst.path()))?;
    Ok(Box::new(Calling { call, file }))
}

impl Calling {
    fn call_often(&self) -> rustix::io::Result<()> {
        for _ in 0..CALLS {
            match self.call {
                Call::Getppid => drop(std::hint::black_box(rustix::process::getppid())),
                Call::Read0 => drop(rustix::io::read(&self.file, &mut [0_u8; 0][..])?),
                Call::Clock => drop(std::hint::black_box(clock_gettime(ClockId::Monotonic))),
            }
        }
        Ok(())
    }
}

impl ReadyVariant for Calling {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        let counters = Counters::read();
        let mut measured = Measurement::without_source();
        let called = clock.time(&mut measured, || self.call_often());
        called.map_err(|errno| {
            Error::Unknown(format!("reading no bytes: {}", engines::describe(errno)))
        })?;
        counters.fill_since(&mut measured);
        measured.calls = Some(CALLS);
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::TestCell;

    #[test]
    fn a_call_costs_something_and_not_much() {
        let mut trial = TestCell::new(&SYSCALL, 1);
        for variant in ["getppid", "read0", "clock"] {
            let measured = trial.run(variant);
            let each_ns = measured.elapsed_ns / measured.calls.expect("they are counted");
            assert!((1..50_000).contains(&each_ns), "{variant}: {each_ns}");
        }
    }
}
