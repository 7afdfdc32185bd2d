//! Measures how fast the machine is at this moment, with a fixed piece of work.
//!
//! The probe runs just before a run and outside its time, so no variant can influence it. A
//! comparison can therefore correct for what it measures without removing the effect.

use super::now_ns;

/// Bytes copied: more than a processor's own caches hold, so that the memory's speed is in it too.
const BYTES: usize = 1 << 20;

/// Calls into the kernel.
const CALLS: u32 = 100;

/// The buffers of the probe.
#[derive(Debug)]
pub(crate) struct Probe {
    src: Vec<u8>,
    dst: Vec<u8>,
}

impl Probe {
    /// Allocates and touches the buffers.
    pub(crate) fn new() -> Probe {
        Probe { src: vec![1; BYTES], dst: vec![2; BYTES] }
    }

    /// Runs it and returns the nanoseconds that it took: about 0.1 ms.
    pub(crate) fn run(&mut self) -> u64 {
        let started_ns = now_ns();
        self.dst.copy_from_slice(&self.src);
        std::hint::black_box(&mut self.dst);
        for _ in 0..CALLS {
            std::hint::black_box(rustix::process::getppid());
        }
        now_ns() - started_ns
    }
}
