//! What the copy of a rank and the thread that communicates have in common.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use haulage::events::Progress;
use haulage::partners::Inbox;
use haulage_cli::{Collector, Ended};

use crate::frame::RankProgress;
use crate::receipt_lines::ReceiptLines;
use crate::waiting_time::WaitingTime;

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) number: u32,
    pub(crate) ranks: u32,
    pub(crate) host: String,
    pub(crate) boot_id: Vec<u8>,
    pub(crate) inbox: Arc<Inbox>,
    /// Ranks that wait for work from this one.
    pub(crate) waiting: AtomicUsize,
    /// One of them wants to know soon if there is none.
    pub(crate) wants_answer: AtomicBool,
    /// While the copy runs.
    pub(crate) collector: Mutex<Option<Arc<dyn Collector>>>,
    pub(crate) waiting_time: Mutex<WaitingTime>,
    /// On rank 0: how far each of the others is.
    pub(crate) others: Mutex<Vec<RankProgress>>,
    /// On rank 0: the others that have ended.
    pub(crate) ended: Mutex<Vec<Ended>>,
    pub(crate) receipt_lines: ReceiptLines,
    /// What this rank tells at the end.
    pub(crate) summary: Mutex<Vec<u8>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(number: u32, ranks: u32, (host, boot_id): (String, Vec<u8>)) -> Shared {
        Shared {
            number,
            ranks,
            host,
            boot_id,
            others: Mutex::new(vec![RankProgress::default(); ranks as usize]),
            receipt_lines: ReceiptLines::new(ranks),
            ..Shared::default()
        }
    }

    /// Whether the user has interrupted this rank.
    pub(crate) fn is_interrupted(&self) -> bool {
        lock(&self.collector).as_ref().is_some_and(|observer| observer.interrupted())
    }

    /// Writes messages of a rank to standard error. On rank 0.
    pub(crate) fn tell(&self, lines: &[u8]) {
        match self.collector() {
            Some(collector) => collector.tell(lines),
            None => {
                let _ = rustix::io::write(rustix::stdio::stderr(), lines);
            }
        }
    }

    /// What rank 0 does with what others send. While its copy runs, as the others' do.
    pub(crate) fn collector(&self) -> Option<Arc<dyn Collector>> {
        lock(&self.collector).clone()
    }

    /// Counts the time from now on as time without work, or with it.
    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        let (mut time, now) = (lock(&self.waiting_time), Instant::now());
        if is_waiting { time.begin(now) } else { time.end(now) }
    }

    /// How far this rank is. While its copy runs.
    pub(crate) fn progress(&self) -> Option<RankProgress> {
        let observer = lock(&self.collector);
        // What other hosts have not written yet says nothing about this one.
        let progress = Progress { unwritten_bytes: 0, ..observer.as_ref()?.progress()?.progress() };
        Some(RankProgress { progress, is_waiting: lock(&self.waiting_time).is_waiting() })
    }

    /// `lines`, each with host and rank in front.
    pub(crate) fn named(&self, lines: &[u8]) -> Vec<u8> {
        if self.ranks == 1 {
            return lines.into();
        }
        let name = format!("[{} {}] ", self.host, self.number);
        let lines = lines.split_inclusive(|&byte| byte == b'\n');
        lines.flat_map(|line| [name.as_bytes(), line].concat()).collect()
    }
}
