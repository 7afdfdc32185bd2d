//! Messages about operands that are copied together come in the order of the operands.
//!
//! What is said of the first of those that are not done with is told at once. What is said of a
//! later one is kept until all before it are done with. Where copies have to be on the medium one
//! is done with when it is there, which may be long after it was written.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;

use super::diagnostic::Diagnostic;
use super::observer::Observer;
use crate::lock::lock;

thread_local! {
    /// The place of the operand that this thread is at, while several are copied together.
    static AT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What is yet to be told.
#[derive(Debug, Default)]
pub(crate) struct MessageOrder(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The place of the first operand that is not done with.
    first: usize,
    /// Those behind it, by their places.
    later: BTreeMap<usize, Operand>,
}

#[derive(Debug, Default)]
struct Operand {
    messages: Vec<Diagnostic>,
    done: bool,
    /// Files of it of which something may yet be said.
    owed: usize,
}

/// Whose turn it is to be told of, for somebody who may have to say something of a file later.
#[derive(Debug)]
#[must_use]
pub(crate) struct PendingMessages(Option<usize>);

impl MessageOrder {
    /// Tells `observer` of `diagnostic`, or keeps it until it is its turn.
    pub(crate) fn send(&self, observer: &dyn Observer, diagnostic: Diagnostic) {
        match AT.get() {
            Some(at) => lock(&self.0).send(observer, at, diagnostic),
            None => observer.diagnose(diagnostic),
        }
    }

    /// Keeps the operand that this thread is at from being done with before
    /// [`MessageOrder::release`].
    pub(crate) fn hold(&self) -> PendingMessages {
        let at = AT.get();
        if let Some(at) = at {
            lock(&self.0).later.entry(at).or_default().owed += 1;
        }
        PendingMessages(at)
    }

    /// Tells `observer` what was still to be said of an operand, in its turn.
    pub(crate) fn release(
        &self,
        observer: &dyn Observer,
        owed: PendingMessages,
        messages: Vec<Diagnostic>,
    ) {
        let PendingMessages(Some(at)) = owed else {
            return messages.into_iter().for_each(|message| observer.diagnose(message));
        };
        let mut kept = lock(&self.0);
        messages.into_iter().for_each(|message| kept.send(observer, at, message));
        kept.later.entry(at).or_default().owed -= 1;
        kept.send_ready(observer);
    }

    /// Does what is to be done about the operand whose place is `at`. Places are counted from zero,
    /// and none is left out.
    pub(crate) fn for_operand<T>(
        &self,
        observer: &dyn Observer,
        at: usize,
        act: impl FnOnce() -> T,
    ) -> T {
        AT.set(Some(at));
        let done = act();
        AT.set(None);
        let mut kept = lock(&self.0);
        kept.later.entry(at).or_default().done = true;
        kept.send_ready(observer);
        done
    }

    /// Tells what is left, of operands behind one that nothing was done about. The next are counted
    /// from zero again.
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
            if !operand.done || operand.owed > 0 {
                // From here on it speaks for itself.
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
    struct Heard(Mutex<Vec<String>>);

    impl Observer for Heard {
        fn diagnose(&self, diagnostic: Diagnostic) {
            let Diagnostic::CyclicSymlink { src } = diagnostic else { unreachable!() };
            lock(&self.0).push(src.display().to_string());
        }
    }

    impl Heard {
        fn so_far(&self) -> String {
            lock(&self.0).join(" ")
        }
    }

    fn message(text: &str) -> Diagnostic {
        Diagnostic::CyclicSymlink { src: PathBuf::from(text) }
    }

    /// Has threads of their own say what is `said`, by place and text, one after another, each of
    /// which ends with its last word.
    fn say(order: &MessageOrder, heard: &Heard, said: &[(usize, &str)]) {
        let mut places: Vec<usize> = said.iter().map(|(at, _)| *at).collect();
        places.sort_unstable();
        places.dedup();
        std::thread::scope(|scope| {
            let speakers: BTreeMap<_, _> = places
                .iter()
                .map(|&at| {
                    let (words, hears) = std::sync::mpsc::channel::<String>();
                    let (acts, acted) = std::sync::mpsc::channel::<()>();
                    let thread = scope.spawn(move || {
                        order.for_operand(heard, at, || {
                            for word in hears {
                                order.send(heard, message(&word));
                                acts.send(()).expect("somebody waits");
                            }
                        });
                    });
                    (at, (words, acted, thread))
                })
                .collect();
            let mut speakers = speakers;
            for (index, (at, text)) in said.iter().enumerate() {
                let (words, acted, _) = &speakers[at];
                words.send((*text).to_owned()).expect("it listens");
                acted.recv().expect("it was said");
                if said[index + 1..].iter().all(|(later, _)| later != at) {
                    let (words, _, thread) = speakers.remove(at).expect("it was there");
                    drop(words);
                    thread.join().expect("it has ended");
                }
            }
        });
    }

    #[test]
    fn later_operands_wait_for_those_before() {
        for (said, expected) in [
            (&[(0, "a"), (1, "b"), (2, "c")][..], "a b c"),
            (&[(2, "c"), (1, "b"), (0, "a")], "a b c"),
            (&[(1, "b"), (0, "a"), (1, "b2"), (0, "a2"), (2, "c")], "a a2 b b2 c"),
            (&[(1, "b"), (0, "a"), (2, "c"), (1, "b2"), (2, "c2")], "a b b2 c c2"),
        ] {
            let (order, heard) = (MessageOrder::default(), Heard::default());
            say(&order, &heard, said);
            assert_eq!(heard.so_far(), expected, "{said:?}");
            order.flush(&heard);
            assert_eq!(heard.so_far(), expected, "{said:?}");
        }
    }

    #[test]
    fn the_first_is_heard_at_once() {
        let (order, heard) = (MessageOrder::default(), Heard::default());
        order.for_operand(&heard, 0, || {
            order.send(&heard, message("a"));
            assert_eq!(heard.so_far(), "a");
        });
        order.send(&heard, message("of none"));
        assert_eq!(heard.so_far(), "a of none");
    }

    #[test]
    fn what_is_owed_is_waited_for() {
        let (order, heard) = (MessageOrder::default(), Heard::default());
        let first = order.for_operand(&heard, 0, || order.hold());
        let second = order.for_operand(&heard, 1, || order.hold());
        order.for_operand(&heard, 2, || order.send(&heard, message("c")));
        order.release(&heard, second, vec![message("b")]);
        assert_eq!(heard.so_far(), "");
        order.release(&heard, first, vec![message("a"), message("a2")]);
        assert_eq!(heard.so_far(), "a a2 b c");
        let none = order.hold();
        order.release(&heard, none, vec![message("of none")]);
        assert_eq!(heard.so_far(), "a a2 b c of none");
    }

    #[test]
    fn what_is_left_is_told_in_the_end() {
        let (order, heard) = (MessageOrder::default(), Heard::default());
        for at in [3, 1] {
            order.for_operand(&heard, at, || order.send(&heard, message(&at.to_string())));
        }
        assert_eq!(heard.so_far(), "");
        order.flush(&heard);
        assert_eq!(heard.so_far(), "1 3");
        order.for_operand(&heard, 0, || order.send(&heard, message("anew")));
        assert_eq!(heard.so_far(), "1 3 anew");
    }
}
