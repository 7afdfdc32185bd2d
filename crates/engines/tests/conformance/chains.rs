//! How a chain handles a refusal by a real engine.

use std::os::fd::AsFd;

use engines::{Chain, Moved, Pair, Span, Stop};
use testfs::random_bytes;

use crate::trial::{empty_dst_for, source};
use crate::variants;

#[test]
fn a_refusal_of_one_file_does_not_affect_the_next() {
    for variant in variants::all().into_iter().filter(|v| v.engine.facts.dst_readable) {
        let dir = tempfile::tempdir().unwrap();
        let src = source(dir.path(), &random_bytes(5000, 14));
        let mut chain = Chain::exactly([variant.clone()]);
        let mut copy = |readable: bool| {
            let dst = empty_dst_for(readable, dir.path().join("dst"));
            let pair = Pair::new(src.as_fd(), dst.as_fd());
            chain.file(pair).copy(Span::whole(5000), &mut |_, _, _| {})
        };
        let first = copy(false);
        assert!(matches!(first.stop, Stop::Done | Stop::Refused(_)), "{variant}: {first:?}");
        assert_eq!(copy(true), Moved { bytes: 5000, stop: Stop::Done }, "{variant}");
    }
}
