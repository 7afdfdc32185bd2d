//! Copies during which signals interrupt the calls.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use engines::{ENGINES, Kind, Pair, Pos, Span, Stop, Variant};
use sys::interruption::interrupted;

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
