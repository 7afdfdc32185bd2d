//! Receipts on their way to rank 0: one message at a time, so that rank 0, which writes them to a
//! file, has little to keep.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What rank 0 keeps of all ranks together, about. Ranks that have so much to send wait.
const ALL_RANKS_BYTES: usize = 16 << 20;

/// Bytes of a message, from which it is sent at once.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
const MESSAGE_BYTES_MIN: usize = 4 << 10;

/// Lines that are not sent yet.
#[derive(Default)]
pub(crate) struct ReceiptLines {
    state: Mutex<State>,
    sent: Condvar,
    message_bytes: usize,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// Rank 0 has not written the last message yet.
    is_under_way: bool,
    /// Nothing is taken any more.
    closed: bool,
}

impl ReceiptLines {
    /// For one of so many ranks.
    pub(crate) fn new(ranks: u32) -> ReceiptLines {
        let each = ALL_RANKS_BYTES / ranks as usize;
        let message_bytes = each.clamp(MESSAGE_BYTES_MIN, MESSAGE_BYTES_MAX);
        ReceiptLines { message_bytes, ..ReceiptLines::default() }
    }

    /// Adds a line. Waits while there is a whole message of them, which cannot be sent yet.
    pub(crate) fn put(&self, line: &[u8]) {
        let mut state = self.lock();
        while state.lines.len() >= self.message_bytes && !state.closed {
            state = self.sent.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.closed {
            state.lines.extend_from_slice(line);
        }
    }

    /// The next message: a full one, or with `all` whatever there is. `None` also while the last one
    /// is under way.
    pub(crate) fn next(&self, all: bool) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let least = if all { 1 } else { self.message_bytes };
        if state.is_under_way || state.lines.len() < least {
            return None;
        }
        state.is_under_way = true;
        self.sent.notify_all();
        Some(std::mem::take(&mut state.lines))
    }

    /// Rank 0 has written the last message.
    pub(crate) fn arrived(&self) {
        self.lock().is_under_way = false;
    }

    /// What is left at the end.
    pub(crate) fn rest(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        state.closed = true;
        self.sent.notify_all();
        Some(std::mem::take(&mut state.lines)).filter(|lines| !lines.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_is_under_way_and_every_line_is_sent_once() {
        let lines = ReceiptLines::new(2);
        let line = vec![b'x'; MESSAGE_BYTES_MAX / 4];
        assert_eq!(lines.next(true), None);
        let sent = std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..64).for_each(|_| lines.put(&line)));
            let mut sent = Vec::new();
            while !writer.is_finished() {
                let Some(message) = lines.next(false) else { continue };
                assert!(message.len() <= MESSAGE_BYTES_MAX + line.len(), "{}", message.len());
                assert_eq!(lines.next(true), None, "the last one has not arrived");
                sent.extend(message);
                lines.arrived();
            }
            sent.extend(lines.rest().unwrap_or_default());
            sent
        });
        assert_eq!(sent.len(), 64 * line.len());
        // Nobody waits after the end.
        (0..64).for_each(|_| lines.put(&line));
        assert_eq!(lines.rest(), None);
    }
}
