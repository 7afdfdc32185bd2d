//! Pipes and sockets as sources and destinations. An engine whose facts list them copies them. Any
//! other engine refuses them without moving a byte, or copies them correctly.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use engines::{Copier, Ends, Moved, Pair, Pos, Span, Stop, Variant};
use testfs::{each_fs, random_bytes};

use crate::trial::{empty_dst, source};
use crate::variants;
use crate::watchdog::watched;

/// The type of one end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Regular,
    Pipe,
    Socket,
}

impl End {
    fn is_among(self, ends: Ends) -> bool {
        match self {
            End::Regular => true,
            End::Pipe => ends.pipe,
            End::Socket => ends.socket,
        }
    }

    /// The read end and the write end.
    fn channel(self) -> (OwnedFd, OwnedFd) {
        match self {
            End::Regular => panic!("a regular file is no channel"),
            End::Pipe => {
                let (reader, writer) = io::pipe().unwrap();
                (reader.into(), writer.into())
            }
            End::Socket => {
                let (reader, writer) = UnixStream::pair().unwrap();
                (reader.into(), writer.into())
            }
        }
    }
}

#[test]
fn a_stream_and_a_file() {
    each_fs(|kind, dir| {
        for variant in variants::on(kind) {
            for stream in [End::Pipe, End::Socket] {
                let ends = [(stream, End::Regular), (End::Regular, stream)];
                run_courses(&variant, &format!("{variant} on {kind}"), dir, &ends);
            }
        }
    });
}

#[test]
fn streams_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    for variant in variants::all() {
        for src in [End::Pipe, End::Socket] {
            let ends = [(src, End::Pipe), (src, End::Socket)];
            run_courses(&variant, &variant.to_string(), dir.path(), &ends);
        }
    }
}

/// Copies between each pair of `ends`, with the length, an unknown one and a shorter one.
fn run_courses(variant: &Variant, context: &str, dir: &Path, ends: &[(End, End)]) {
    let Some(mut copier) = variants::start(variant) else { return };
    let len = usize::try_from(300_001.min(variants::bytes_max(variant))).unwrap();
    let bytes = random_bytes(len, 6);
    // Facts describe an engine. A flag of a variant may change what it supports.
    let promises = !variants::has_flag(variant) && variants::works_in(variant.engine, dir);
    for &(src, dst) in ends {
        for asked in [len as u64, Span::TO_EOF, len as u64 / 2] {
            let context = format!("{context}, {src:?} to {dst:?}, {asked}");
            let course =
                Course { context, variant, ends: (src, dst), bytes: &bytes, asked, promises };
            watched(&course.context, || course.run(copier.as_mut(), dir));
        }
    }
}

#[test]
fn a_pipe_without_a_reader_fails() {
    each_fs(|kind, dir| {
        let all = variants::on(kind);
        // Facts describe an engine. A flag of a variant may change what it supports.
        let named = |v: &&Variant| v.engine.facts.dst.pipe && !variants::has_flag(v);
        for variant in all.iter().filter(named) {
            let Some(mut copier) = variants::start(variant) else { continue };
            let context = format!("{variant} on {kind}");
            let src = source(dir, &random_bytes(5000, 7));
            let (reader, dst) = End::Pipe.channel();
            drop(reader);
            let pair = Pair::new(src.as_fd(), dst.as_fd());
            let span = Span { src: Pos::At(0), dst: Pos::Here, len: 5000 };
            let moved = watched(&context, || copier.copy(pair, span));
            let Stop::Failed { side, errno } = moved.stop else { panic!("{context}: {moved:?}") };
            assert_eq!((moved.bytes, errno), (0, engines::Errno::PIPE), "{context}");
            assert_ne!(side, engines::Side::Src, "{context}");
        }
    });
}

/// One copy with a stream at one end or both.
struct Course<'v> {
    context: String,
    variant: &'v Variant,
    ends: (End, End),
    bytes: &'v [u8],
    asked: u64,
    /// The engine works here, and its facts hold for this variant.
    promises: bool,
}

impl Course<'_> {
    fn run(&self, copier: &mut dyn Copier, dir: &Path) {
        let (src_end, dst_end) = self.ends;
        let (moved, taken_back, written) = std::thread::scope(|scope| {
            let src: OwnedFd = if src_end == End::Regular {
                source(dir, self.bytes).into()
            } else {
                let (reader, writer) = src_end.channel();
                scope.spawn(move || write_in_odd_pieces(writer.into(), self.bytes));
                reader
            };
            let (dst, reader) = if dst_end == End::Regular {
                (empty_dst(dir.join("dst")).into(), None)
            } else {
                let (reader, writer) = dst_end.channel();
                (writer, Some(scope.spawn(move || read_all(reader.into()))))
            };
            let pos = |end| if end == End::Regular { Pos::At(0) } else { Pos::Here };
            let span = Span { src: pos(src_end), dst: pos(dst_end), len: self.asked };
            let moved = copier.copy(Pair::new(src.as_fd(), dst.as_fd()), span);
            drop(dst);
            // Bytes that were not read are still in the stream. Reading them also lets its writer
            // end.
            let rest = if src_end == End::Regular { Vec::new() } else { read_all(src.into()) };
            let written = match reader {
                Some(reader) => reader.join().unwrap(),
                None => std::fs::read(dir.join("dst")).unwrap(),
            };
            (moved, rest, written)
        });
        self.check(moved, &taken_back, &written);
    }

    fn check(&self, moved: Moved, rest: &[u8], written: &[u8]) {
        let context = &self.context;
        let available = self.bytes.len() as u64;
        let (src_end, dst_end) = self.ends;
        match moved.stop {
            Stop::Done => assert_eq!(moved.bytes, self.asked, "{context}"),
            Stop::Eof => assert_eq!(moved.bytes, available, "{context}: {moved:?}"),
            Stop::Refused(_) => {
                let facts = self.variant.engine.facts;
                let named = src_end.is_among(facts.src) && dst_end.is_among(facts.dst);
                assert!(
                    moved.bytes > 0 || !(named && self.promises),
                    "{context}: {moved:?}, though its facts name both ends"
                );
            }
            Stop::Failed { .. } => panic!("{context}: {moved:?}"),
        }
        let count = usize::try_from(moved.bytes).unwrap();
        assert!(written == &self.bytes[..count], "{context}: wrong bytes, {moved:?}");
        if src_end != End::Regular {
            assert!(rest == &self.bytes[count..], "{context}: took more than {moved:?}");
        }
    }
}

/// Writes all of `bytes` in pieces that match no page and no buffer, then closes.
fn write_in_odd_pieces(mut writer: File, bytes: &[u8]) {
    let mut left = bytes;
    for piece_bytes in [1, 7, 4096, 65_537, 3, 1000].iter().cycle() {
        if left.is_empty() {
            return;
        }
        let (piece, rest) = left.split_at(left.len().min(*piece_bytes));
        writer.write_all(piece).unwrap();
        left = rest;
    }
}

fn read_all(mut reader: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}
