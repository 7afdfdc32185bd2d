//! Positions that a descriptor cannot use: no bytes are written elsewhere and reported as moved.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use engines::{Errno, Moved, Pair, Pos, Side, Span, Stop};
use testfs::{each_fs, random_bytes};

use crate::trial::source;
use crate::variants;

/// The content of an appending destination before the copy.
const OLD: &[u8] = &[0xa5; 100];

/// Enough for two workers to share.
const LEN: usize = 16 << 20;

/// Enough for one.
const ALONE_BYTES: u64 = 1 << 20;

#[test]
fn an_appending_destination_has_no_positions() {
    let random = random_bytes(LEN, 11);
    each_fs(|kind, dir| {
        for variant in variants::on(kind) {
            let Some(mut copier) = variants::start(&variant) else { continue };
            let len = if variant.workers > 1 { LEN as u64 } else { ALONE_BYTES };
            let len = variants::bytes_max(&variant).min(len);
            let bytes = &random[..usize::try_from(len).unwrap()];
            let src = source(dir, bytes);
            for dst_pos in [Pos::At(0), Pos::At(100), Pos::Here] {
                let context = format!("{variant} on {kind}, {dst_pos:?}");
                std::fs::write(dir.join("dst"), OLD).unwrap();
                let dst = File::options().read(true).append(true).open(dir.join("dst")).unwrap();
                // At a cursor one worker copies all.
                let len = if dst_pos == Pos::Here { len.min(ALONE_BYTES) } else { len };
                let span = Span { src: Pos::At(0), dst: dst_pos, len };
                let moved = copier.copy(Pair::new(src.as_fd(), dst.as_fd()), span);
                if let Pos::At(_) = dst_pos {
                    assert_eq!(moved, Moved::failed(Side::Dst, Errno::BADF), "{context}");
                }
                assert!(!matches!(moved.stop, Stop::Eof), "{context}: {moved:?}");
                let found = std::fs::read(dir.join("dst")).unwrap();
                let count = usize::try_from(moved.bytes).unwrap();
                assert!(found == [OLD, &bytes[..count]].concat(), "{context}: after {moved:?}");
            }
        }
    });
}

#[test]
fn offsets_beyond_any_file_fail() {
    const MAX: u64 = i64::MAX as u64;
    let bytes = random_bytes(LEN, 12);
    each_fs(|kind, dir| {
        let src = source(dir, &bytes);
        for variant in variants::on(kind) {
            let Some(mut copier) = variants::start(&variant) else { continue };
            for far in [MAX - 5, MAX, MAX + 1, u64::MAX - 4096, u64::MAX] {
                for (src_at, dst_at) in [(far, 0), (0, far)] {
                    for len in [10, LEN as u64, Span::TO_EOF] {
                        let span = Span { src: Pos::At(src_at), dst: Pos::At(dst_at), len };
                        let dst = tempfile::tempfile_in(dir).unwrap();
                        let pair = Pair::new(src.as_fd(), dst.as_fd());
                        let moved = copier.copy(pair, span);
                        let context = format!("{variant} on {kind}, {span:?}: {moved:?}");
                        assert!(!matches!(moved.stop, Stop::Done), "{context}");
                        assert!(!matches!(moved.stop, Stop::Eof) || far == src_at, "{context}");
                        assert!(moved.bytes <= MAX - far.min(MAX), "{context}");
                    }
                }
            }
        }
    });
}

#[test]
fn a_pipe_has_no_offsets() {
    for variant in variants::all() {
        let Some(mut copier) = variants::start(&variant) else { continue };
        let file = tempfile::tempfile().unwrap();
        file.set_len(5000).unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[1; 5000]).unwrap();
        for (side, pair) in [
            ("source", Pair::new(reader.as_fd(), file.as_fd())),
            ("destination", Pair::new(file.as_fd(), writer.as_fd())),
        ] {
            let moved = copier.copy(pair, Span::whole(5000));
            let nothing = moved.bytes == 0 && !matches!(moved.stop, Stop::Done | Stop::Eof);
            assert!(nothing, "{variant}, a pipe as {side}: {moved:?}");
        }
    }
}
