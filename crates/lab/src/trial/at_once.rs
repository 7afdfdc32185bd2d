//! Several copies at once, each with a source and a destination directory of its own.

use std::cell::Cell;

use super::{Bench, NotRun, Runner, Task};
use crate::clock::{Barrier, Clock};
use crate::sample::measurement::Measurement;

/// Runs a variant once on each of `benches`, at the same time, with a runner of `start` and the task of
/// the same index for each. The time is the mean of all: until fsync(2) came back where a bench is durable.
///
/// # Errors
/// As [`Bench::run`].
pub(crate) fn run(
    benches: &[Bench<'_>],
    tasks: &[Task],
    start: impl Fn() -> Result<Runner, String>,
) -> Result<Measurement, NotRun> {
    let mut runners = benches.iter().map(|_| start()).collect::<Result<Vec<_>, _>>()?;
    let runs = match (benches, tasks, runners.as_mut_slice()) {
        ([bench], [task], [runner]) => vec![bench.run(runner, task, Clock::default())],
        _ => {
            // All sources before any copy: a bench that still reads its source would disturb the others.
            for (bench, task) in benches.iter().zip(tasks) {
                bench.prover.reach(bench.state, bench.source, &task.load)?;
            }
            together(benches, tasks, &mut runners)
        }
    };
    let mut all = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let time = |measured: &Measurement| match benches[0].durable {
        true => measured.durable_ns.unwrap_or(measured.elapsed_ns),
        false => measured.elapsed_ns,
    };
    let mean_ns = (all.iter().map(time).sum::<u64>() / all.len() as u64).max(1);
    let measured = match all.len() {
        1 => all.remove(0),
        _ => Measurement::together(&all),
    };
    Ok(Measurement { elapsed_ns: mean_ns, ..measured })
}

fn together(
    benches: &[Bench<'_>],
    tasks: &[Task],
    runners: &mut [Runner],
) -> Vec<Result<Measurement, NotRun>> {
    let all = std::sync::Barrier::new(benches.len());
    std::thread::scope(|scope| {
        let copying: Vec<_> = benches
            .iter()
            .zip(tasks)
            .zip(runners)
            .map(|((bench, task), runner)| {
                let all = &all;
                scope.spawn(move || {
                    let gate = Gate { all, passed: Cell::new(0) };
                    let clock = Clock { barrier: Some(&gate), ..Clock::default() };
                    bench.run(runner, task, clock)
                })
            })
            .collect();
        let joined = copying.into_iter().map(|thread| thread.join());
        joined.map(|run| run.expect("a copy does not panic")).collect()
    })
}

/// A copy's way past the others: all wait for each other before and after their timed parts. One that ends
/// early, also by a panic, keeps no other waiting.
#[derive(Debug)]
struct Gate<'g> {
    all: &'g std::sync::Barrier,
    passed: Cell<u8>,
}

impl Gate<'_> {
    fn pass(&self, place: u8) {
        while self.passed.get() < place {
            self.passed.set(self.passed.get() + 1);
            self.all.wait();
        }
    }
}

impl Barrier for Gate<'_> {
    fn wait(&self) {
        self.pass(1);
    }

    fn wait_behind(&self) {
        self.pass(2);
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.pass(2);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Three threads pass a gate, of which the last leaves after `last_passes` passes. No thread
    /// waits for ever, and none passes before the threads that still take part.
    fn check(last_passes: usize) {
        let all = std::sync::Barrier::new(3);
        let (ready, behind) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let least = |passed: usize| if last_passes >= passed { 3 } else { 2 };
        std::thread::scope(|scope| {
            for nth in 0..3 {
                let (all, ready, behind) = (&all, &ready, &behind);
                scope.spawn(move || {
                    let gate = Gate { all, passed: Cell::new(0) };
                    let passes = if nth == 2 { last_passes } else { 2 };
                    if passes >= 1 {
                        std::thread::sleep(std::time::Duration::from_millis(5 * nth));
                        ready.fetch_add(1, Ordering::SeqCst);
                        gate.wait();
                        assert!(ready.load(Ordering::SeqCst) >= least(1));
                        // Each file of a copy asks; only the first waits.
                        gate.wait();
                    }
                    if passes >= 2 {
                        behind.fetch_add(1, Ordering::SeqCst);
                        gate.wait_behind();
                        assert!(behind.load(Ordering::SeqCst) >= least(2));
                    }
                });
            }
        });
    }

    #[test]
    fn a_copy_that_left_is_not_waited_for() {
        (0..=2).for_each(check);
    }
}
