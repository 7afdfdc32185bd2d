//! For tests: runs code that signals interrupt repeatedly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs `work` while this thread gets a signal every millisecond. The handler does nothing and is
/// installed without SA_RESTART, so blocking calls return EINTR.
pub(crate) fn interrupted<T>(work: impl FnOnce() -> T) -> T {
    extern "C" fn ignore(_: libc::c_int) {}
    // SAFETY: all zeros is a valid sigaction: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ignore as *const () as usize;
    // SAFETY: the handler has the signature of one without SA_SIGINFO, and does nothing.
    let result = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    assert_eq!(result, 0, "sigaction takes a handler for SIGUSR1");
    // SAFETY: only returns the ID of the calling thread.
    let thread = unsafe { libc::pthread_self() };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                // SAFETY: that thread waits for this one at the end of the scope, so it is alive.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::contract::Kind;
    use crate::{ENGINES, Pair, Pos, Span, Stop, Variant};

    /// More than the capacity of a pipe, so that writes block.
    const LEN: usize = 500_001;

    #[test]
    fn interruptions_lose_no_bytes() {
        let bytes = testfs::random_bytes(LEN, 1);
        let src = tempfile::tempfile().unwrap();
        src.write_all_at(&bytes, 0).unwrap();
        for engine in ENGINES.iter().filter(|e| matches!(e.kind, Kind::Copier { .. })) {
            if !engine.facts.dst.pipe {
                continue;
            }
            let mut copier = Variant::plain(engine).start().unwrap();
            let (mut reader, writer) = std::io::pipe().unwrap();
            let (moved, found) = std::thread::scope(|scope| {
                let found = scope.spawn(move || {
                    let mut found = Vec::new();
                    let mut piece = vec![0; 50_000];
                    loop {
                        std::thread::sleep(Duration::from_millis(5));
                        let got = reader.read(&mut piece).unwrap();
                        if got == 0 {
                            return found;
                        }
                        found.extend_from_slice(&piece[..got]);
                    }
                });
                let span = Span { src: Pos::At(0), dst: Pos::Here, len: LEN as u64 };
                let pair = Pair::new(src.as_fd(), writer.as_fd());
                let moved = interrupted(|| copier.copy(pair, span));
                drop(writer);
                (moved, found.join().unwrap())
            });
            let count = usize::try_from(moved.bytes).unwrap();
            assert!(found.starts_with(&bytes[..count]), "{}: {moved:?}", engine.name);
            let whole = moved.stop == Stop::Done && found.len() == LEN;
            let failed = matches!(moved.stop, Stop::Failed { .. }) && engine.name == "stdio";
            assert!(whole || failed, "{}: {} bytes came of {moved:?}", engine.name, found.len());
        }
    }
}
