//! How messages travel.

use std::sync::mpsc::{Receiver, Sender, channel};

/// The connection of one rank with the others. Messages from one rank to another arrive in the order
/// in which they were sent; none is lost. One thread uses it.
pub trait Transport {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;

    /// How many ranks there are.
    fn ranks(&self) -> u32;

    /// The name of the host of this rank.
    fn host(&self) -> String;

    /// Differs between hosts, and between two starts of one. Empty if it is unknown.
    fn boot_id(&self) -> Vec<u8> {
        this_boot_id()
    }

    /// Sends the messages. Meanwhile messages may arrive, and are kept.
    fn send(&mut self, messages: Vec<(u32, Vec<u8>)>);

    /// The next message that has arrived, and its sender. Does not wait.
    fn receive(&mut self) -> Option<(u32, Vec<u8>)>;

    /// Ends all ranks at once, if this one cannot go on.
    fn abort(&self) -> !;
}

fn this_boot_id() -> Vec<u8> {
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Ranks that are threads of one process.
pub struct Threads {
    rank: u32,
    other_host: Option<Vec<u8>>,
    senders: Vec<Sender<(u32, Vec<u8>)>>,
    receiver: Receiver<(u32, Vec<u8>)>,
}

impl Threads {
    /// So many ranks.
    pub fn connected(ranks: u32) -> Vec<Threads> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..ranks).map(|_| channel()).unzip();
        let senders = |_| senders.clone();
        let connected = (0..ranks).zip(receivers).map(|(rank, receiver)| Threads {
            rank,
            other_host: None,
            senders: senders(rank),
            receiver,
        });
        connected.collect()
    }

    /// The same rank, as if it were on another host.
    #[must_use]
    pub fn with_boot_id(self, boot_id: &[u8]) -> Threads {
        Threads { other_host: Some(boot_id.into()), ..self }
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
        self.other_host.clone().unwrap_or_else(this_boot_id)
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
