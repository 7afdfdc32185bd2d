//! Regular files: lengths around the page and above most buffers, holes, and spans at unaligned offsets.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use engines::{Copier, Pos, Span, Variant};
use testfs::{FsKind, each_fs, random_bytes};

use crate::trial::Trial;
use crate::variants;

/// Lengths of sources in bytes.
const SIZES: &[usize] = &[0, 1, 4095, 4096, 4097, (512 << 10) + 1];

/// A length that two workers share: two stripes and a remainder.
const SHARED_BYTES: usize = (16 << 20) + 4097;

/// The byte that fills a destination that is not empty. No source consists of this byte alone.
const FILLING: u8 = 0xa5;

#[test]
fn every_size_and_span() {
    each_fs(|kind, dir| {
        let mut sources: Vec<Source> =
            SIZES.iter().map(|&len| Source::new(dir, &format!("{len} bytes"), len)).collect();
        sources.push(Source::sparse(dir));
        for variant in variants::on(kind) {
            let Some(mut copier) = variants::start(&variant) else { continue };
            let bytes_max = variants::bytes_max(&variant);
            for source in sources.iter().filter(|source| source.bytes.len() as u64 <= bytes_max) {
                for (empty_dst, span) in spans(source.bytes.len() as u64) {
                    try_span(&variant, copier.as_mut(), kind, dir, source, empty_dst, span);
                }
            }
        }
    });
}

#[test]
fn several_workers_share_one_file() {
    each_fs(|kind, dir| {
        let source = Source::new(dir, "stripes and a rest", SHARED_BYTES);
        let len = SHARED_BYTES as u64;
        for variant in variants::on(kind).iter().filter(|variant| variant.workers > 1) {
            let Some(mut copier) = variants::start(variant) else { continue };
            for (empty_dst, span) in [
                (true, span(0, 0, len)),
                (true, span(0, 10_000, Span::TO_EOF)),
                (false, span(513, 4097, len - 2000)),
            ] {
                try_span(variant, copier.as_mut(), kind, dir, &source, empty_dst, span);
            }
        }
    });
}

/// A file and its content.
struct Source {
    name: String,
    file: File,
    bytes: Vec<u8>,
}

impl Source {
    fn new(dir: &Path, name: &str, len: usize) -> Source {
        let bytes = random_bytes(len, len as u64);
        let path = dir.join(name);
        std::fs::write(&path, &bytes).unwrap();
        Source { name: name.to_owned(), file: File::open(path).unwrap(), bytes }
    }

    /// Holes at the start, in the middle and at the end, with bounds on and off page boundaries.
    fn sparse(dir: &Path) -> Source {
        let mut bytes = vec![0; (256 << 10) + 77];
        let path = dir.join("sparse");
        let file = File::create(&path).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        for (at, len) in [(65_536, 4096), (200_000, 10_001)] {
            let data = random_bytes(len, at as u64);
            file.write_all_at(&data, at as u64).unwrap();
            bytes[at..at + len].copy_from_slice(&data);
        }
        Source { name: "sparse".to_owned(), file: File::open(path).unwrap(), bytes }
    }
}

/// Copies `span` of `source` to a file that is empty before, or longer than the source.
fn try_span(
    variant: &Variant,
    copier: &mut dyn Copier,
    kind: FsKind,
    dir: &Path,
    source: &Source,
    empty_dst: bool,
    span: Span,
) {
    let filling = if empty_dst { 0 } else { source.bytes.len() + 3 * 4096 };
    let trial = Trial {
        context: format!("{variant} on {kind}, {}, {span:?}", source.name),
        variant,
        src: &source.file,
        src_bytes: &source.bytes,
        dst: &dir.join("dst"),
        dst_bytes: &vec![FILLING; filling],
        span,
    };
    let _checked = trial.run(copier);
}

fn span(src: u64, dst: u64, len: u64) -> Span {
    Span { src: Pos::At(src), dst: Pos::At(dst), len }
}

/// Spans of a source of `len` bytes, and whether the destination is empty before.
fn spans(len: u64) -> Vec<(bool, Span)> {
    vec![
        (true, span(0, 0, len)),
        (true, span(0, 0, Span::TO_EOF)),
        (false, span(0, 0, len)),
        // Unaligned in the source, in the destination, and in both by different offsets.
        (false, span(1, 0, len / 2)),
        (false, span(0, 1, len / 2)),
        (false, span(513, 4097, (len / 3) | 1)),
        // Aligned on both sides, not at the start, with an end inside a block.
        (false, span(4096, 8192, (len / 2) | 1)),
        // Beyond a hole that the copy itself creates.
        (true, span(0, 10_000, len)),
        // Longer than the source, from the middle and from beyond the end.
        (false, span(len / 2, 3, len + 100)),
        (false, span(len + 10, 0, 100)),
        (true, span(0, 0, 0)),
    ]
}
