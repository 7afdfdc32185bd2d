//! Ranks that are threads of this process.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use haulage::events::Observer;
use haulage::options::{Options, Request};
use haulage_mpi::rank;
use haulage_mpi::transport::Transport;

/// What other ranks send is not looked at.
struct Ignored;

impl haulage_cli::Collector for Ignored {
    fn tell(&self, _: &[u8]) {}

    fn add_receipts(&self, _: &[u8]) {}

    fn flush_receipts(&self) {}
}

/// Copies with a rank for each transport and observer. A rank that does not `takes_part` gives up at
/// the start. Returns the exit status of rank 0.
///
/// # Panics
/// If a rank does.
pub(crate) fn run_ranks<T, O>(
    ranks: impl IntoIterator<Item = (T, Arc<O>)>,
    request: &Request,
    options: &Options,
    takes_part: fn(&O) -> bool,
) -> u8
where
    T: Transport + Send + 'static,
    O: Observer + Send + 'static,
{
    let start = |(mut transport, observer): (T, Arc<O>)| {
        let (request, options) = (request.clone(), options.clone());
        std::thread::spawn(move || {
            rank::run_with(&mut transport, move |job| {
                if !takes_part(&observer) {
                    return ExitCode::FAILURE;
                }
                let collector: Arc<dyn haulage_cli::Collector> = Arc::new(Ignored);
                let observer: Arc<dyn Observer + Send> = observer;
                let outcome = job.copy(request, options, &observer, &collector);
                if outcome.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            })
        })
    };
    let threads: Vec<_> = ranks.into_iter().map(start).collect();
    let statuses: Vec<u8> =
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    statuses[0]
}

/// Ranks that are threads of one process.
pub(crate) struct Threads {
    rank: u32,
    /// If it is as if it were on another host.
    pub(crate) other_boot_id: Option<Vec<u8>>,
    senders: Vec<Sender<(u32, Vec<u8>)>>,
    receiver: Receiver<(u32, Vec<u8>)>,
}

impl Threads {
    /// So many ranks.
    pub(crate) fn connected(ranks: u32) -> Vec<Threads> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..ranks).map(|_| channel()).unzip();
        let senders = |_| senders.clone();
        let connected = (0..ranks).zip(receivers).map(|(rank, receiver)| Threads {
            rank,
            other_boot_id: None,
            senders: senders(rank),
            receiver,
        });
        connected.collect()
    }
}

impl Transport for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        u32::try_from(self.senders.len()).expect("it was a u32")
    }

    fn host(&self) -> String {
        String::from("threads")
    }

    fn boot_id(&self) -> Vec<u8> {
        self.other_boot_id
            .clone()
            .unwrap_or_else(|| std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default())
    }

    fn send(&mut self, messages: Vec<(u32, Vec<u8>)>) {
        for (to, message) in messages {
            // A rank that has ended needs no messages.
            let _ = self.senders[to as usize].send((self.rank, message));
        }
    }

    fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        self.receiver.try_recv().ok()
    }

    fn abort(&self) -> ! {
        std::process::abort();
    }
}
