//! Keeps messages about operands that are copied in parallel in the order of the operands.
//!
//! Messages about the first unfinished operand are passed on at once. Messages about a later one
//! are held until all operands before it are finished. With `--durable` an operand is finished when
//! it is synced, which may be long after it was written.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;

use super::diagnostic::Diagnostic;
use super::observer::Observer;
use crate::lock::lock;

thread_local! {
    /// The index of the operand that this thread copies, if several are copied in parallel.
    static AT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The messages that are held.
#[derive(Debug, Default)]
pub(crate) struct MessageOrder(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The index of the first unfinished operand.
    first: usize,
    /// The operands after it, by index.
    later: BTreeMap<usize, Operand>,
}

#[derive(Debug, Default)]
struct Operand {
    messages: Vec<Diagnostic>,
    done: bool,
    /// Files of it whose sync may still fail.
    pending: usize,
}

/// The index of an operand with a file that may still have messages.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct PendingMessages(Option<usize>);

impl MessageOrder {
    /// Passes `diagnostic` on, or holds it until its turn.
    pub(crate) fn send(&self, observer: &dyn Observer, diagnostic: Diagnostic) {
        match AT.get() {
            Some(at) => lock(&self.0).send(observer, at, diagnostic),
            None => observer.diagnose(diagnostic),
        }
    }

    /// Keeps the operand of this thread unfinished until [`MessageOrder::release`].
    pub(crate) fn hold(&self) -> PendingMessages {
        let at = AT.get();
        if let Some(at) = at {
            lock(&self.0).later.entry(at).or_default().pending += 1;
        }
        PendingMessages(at)
    }

    /// Passes on the last messages about a file, in the turn of its operand.
    pub(crate) fn release(
        &self,
        observer: &dyn Observer,
        pending: PendingMessages,
        messages: Vec<Diagnostic>,
    ) {
        let PendingMessages(Some(at)) = pending else {
            return messages.into_iter().for_each(|message| observer.diagnose(message));
        };
        let mut kept = lock(&self.0);
        messages.into_iter().for_each(|message| kept.send(observer, at, message));
        kept.later.entry(at).or_default().pending -= 1;
        kept.send_ready(observer);
    }

    /// Calls `act`, which copies the operand of index `at`. Indices start at zero without gaps.
    pub(crate) fn for_operand(&self, observer: &dyn Observer, at: usize, act: impl FnOnce()) {
        AT.set(Some(at));
        act();
        AT.set(None);
        let mut kept = lock(&self.0);
        kept.later.entry(at).or_default().done = true;
        kept.send_ready(observer);
    }

    /// Passes on all held messages, of operands after one that was not copied. The next index is
    /// zero.
    pub(crate) fn flush(&self, observer: &dyn Observer) {
        let kept = std::mem::take(&mut *lock(&self.0));
        for operand in kept.later.into_values() {
            operand.messages.into_iter().for_each(|message| observer.diagnose(message));
        }
    }
}

impl Kept {
    fn send(&mut self, observer: &dyn Observer, at: usize, diagnostic: Diagnostic) {
        if at == self.first {
            observer.diagnose(diagnostic);
        } else {
            self.later.entry(at).or_default().messages.push(diagnostic);
        }
    }

    fn send_ready(&mut self, observer: &dyn Observer) {
        while let Some(operand) = self.later.get_mut(&self.first) {
            operand.messages.drain(..).for_each(|message| observer.diagnose(message));
            if !operand.done || operand.pending > 0 {
                // Further messages about this operand are passed on at once.
                return;
            }
            self.later.remove(&self.first);
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Observer for Recorder {
        fn diagnose(&self, diagnostic: Diagnostic) {
            let Diagnostic::CyclicSymlink { src } = diagnostic else { unreachable!() };
            lock(&self.0).push(src.display().to_string());
        }
    }

    impl Recorder {
        fn received(&self) -> String {
            lock(&self.0).join(" ")
        }
    }

    fn message(text: &str) -> Diagnostic {
        Diagnostic::CyclicSymlink { src: PathBuf::from(text) }
    }

    /// Sends the messages `said`, by index and text, in this order. Each operand ends with its last.
    fn send_all(order: &MessageOrder, observer: &Recorder, said: &[(usize, &str)]) {
        for (index, &(at, text)) in said.iter().enumerate() {
            AT.set(Some(at));
            order.send(observer, message(text));
            AT.set(None);
            if said[index + 1..].iter().all(|(later, _)| *later != at) {
                order.for_operand(observer, at, || ());
            }
        }
    }

    #[test]
    fn messages_of_later_operands_are_held() {
        for (said, expected) in [
            (&[(0, "a"), (1, "b"), (2, "c")][..], "a b c"),
            (&[(2, "c"), (1, "b"), (0, "a")], "a b c"),
            (&[(1, "b"), (0, "a"), (1, "b2"), (0, "a2"), (2, "c")], "a a2 b b2 c"),
            (&[(1, "b"), (0, "a"), (2, "c"), (1, "b2"), (2, "c2")], "a b b2 c c2"),
        ] {
            let (order, observer) = (MessageOrder::default(), Recorder::default());
            send_all(&order, &observer, said);
            assert_eq!(observer.received(), expected, "{said:?}");
            order.flush(&observer);
            assert_eq!(observer.received(), expected, "{said:?}");
        }
    }

    #[test]
    fn messages_of_the_first_operand_are_passed_on_at_once() {
        let (order, observer) = (MessageOrder::default(), Recorder::default());
        order.for_operand(&observer, 0, || {
            order.send(&observer, message("a"));
            assert_eq!(observer.received(), "a");
        });
        order.send(&observer, message("without an operand"));
        assert_eq!(observer.received(), "a without an operand");
    }

    #[test]
    fn an_operand_with_pending_files_is_not_finished() {
        let (order, observer) = (MessageOrder::default(), Recorder::default());
        let mut held = Vec::new();
        order.for_operand(&observer, 0, || held.push(order.hold()));
        order.for_operand(&observer, 1, || held.push(order.hold()));
        order.for_operand(&observer, 2, || order.send(&observer, message("c")));
        order.release(&observer, held.pop().expect("found"), vec![message("b")]);
        assert_eq!(observer.received(), "");
        let first = held.pop().expect("found");
        order.release(&observer, first, vec![message("a"), message("a2")]);
        assert_eq!(observer.received(), "a a2 b c");
        let none = order.hold();
        order.release(&observer, none, vec![message("without an operand")]);
        assert_eq!(observer.received(), "a a2 b c without an operand");
    }

    #[test]
    fn held_messages_are_flushed() {
        let (order, observer) = (MessageOrder::default(), Recorder::default());
        for at in [3, 1] {
            order.for_operand(&observer, at, || order.send(&observer, message(&at.to_string())));
        }
        assert_eq!(observer.received(), "");
        order.flush(&observer);
        assert_eq!(observer.received(), "1 3");
        order.for_operand(&observer, 0, || order.send(&observer, message("anew")));
        assert_eq!(observer.received(), "1 3 anew");
    }
}
