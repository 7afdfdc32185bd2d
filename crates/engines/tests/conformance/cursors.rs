//! `Pos::Here` advances a descriptor's cursor by the bytes copied. `Pos::At` does not move it if
//! the facts include positions.

use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsFd;

use engines::{Pair, Pos, Span, Stop};
use testfs::{each_fs, random_bytes};

use crate::trial::{empty_dst_for, source};
use crate::variants;

/// The cursors before the copy.
const SRC_CURSOR: u64 = 777;
const DST_CURSOR: u64 = 4099;

#[test]
fn cursors_advance_by_the_bytes_copied() {
    let random = random_bytes(300_000, 2);
    each_fs(|kind, dir| {
        for variant in variants::on(kind) {
            let Some(mut copier) = variants::start(&variant) else { continue };
            let len = 300_000.min(variants::bytes_max(&variant));
            for (src_pos, dst_pos) in [
                (Pos::Here, Pos::Here),
                (Pos::Here, Pos::At(50)),
                (Pos::At(50), Pos::Here),
                (Pos::At(0), Pos::At(0)),
            ] {
                let span = Span { src: src_pos, dst: dst_pos, len: len - 5000 };
                let context = format!("{variant} on {kind}, {span:?}");
                let bytes = &random[..usize::try_from(len).unwrap()];
                let mut src = source(dir, bytes);
                src.seek(SeekFrom::Start(SRC_CURSOR)).unwrap();
                let readable = variant.engine.facts.dst_readable;
                let mut dst = empty_dst_for(readable, dir.join("dst"));
                dst.write_all(&vec![0; usize::try_from(DST_CURSOR).unwrap()]).unwrap();

                let moved = copier.copy(Pair::new(src.as_fd(), dst.as_fd()), span);

                let is_right = matches!(moved.stop, Stop::Done | Stop::Refused(_));
                assert!(is_right, "{context}: {moved:?}");
                let positions = variant.engine.facts.positions;
                for (side, file, pos, before) in [
                    ("source", &mut src, src_pos, SRC_CURSOR),
                    ("destination", &mut dst, dst_pos, DST_CURSOR),
                ] {
                    let after = file.stream_position().unwrap();
                    match pos {
                        Pos::Here => assert_eq!(after, before + moved.bytes, "{context}: {side}"),
                        Pos::At(_) if positions => assert_eq!(after, before, "{context}: {side}"),
                        Pos::At(_) => {}
                    }
                }
                let offset = |pos, cursor| match pos {
                    Pos::Here => cursor,
                    Pos::At(offset) => offset,
                };
                let found = std::fs::read(dir.join("dst")).unwrap();
                let piece = |of: &[u8], at: u64| {
                    let at = usize::try_from(at).unwrap();
                    of[at..at + usize::try_from(moved.bytes).unwrap()].to_vec()
                };
                assert!(
                    piece(&found, offset(dst_pos, DST_CURSOR))
                        == piece(bytes, offset(src_pos, SRC_CURSOR)),
                    "{context}: wrong bytes"
                );
            }
        }
    });
}
