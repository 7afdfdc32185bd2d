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
pub struct Probe {
    src: Vec<u8>,
    dst: std::cell::RefCell<Vec<u8>>,
}

impl Probe {
    /// Allocates and touches the buffers.
    pub fn new() -> Probe {
        Probe { src: vec![1; BYTES], dst: std::cell::RefCell::new(vec![2; BYTES]) }
    }

    /// Runs it and returns the nanoseconds that it took: about 0.1 ms.
    pub fn run(&self) -> u64 {
        let mut dst = self.dst.borrow_mut();
        let started_ns = now_ns();
        dst.copy_from_slice(&self.src);
        std::hint::black_box(&mut *dst);
        for _ in 0..CALLS {
            std::hint::black_box(rustix::process::getppid());
        }
        now_ns() - started_ns
    }
}

impl Default for Probe {
    fn default() -> Probe {
        Probe::new()
    }
}
