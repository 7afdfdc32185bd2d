//! The variants under test: those of the table, and some derived from its parameters.

use std::os::fd::AsFd;
use std::path::Path;

use engines::{Copier, ENGINES, Engine, Kind, Pair, ParamKind, Variant, Verdict};
use testfs::{FsKind, skip, test_name};

/// An odd length.
const ODD_BYTES: u64 = 12_345;

/// With smaller steps the copy of a mebibyte needs too many calls for a test.
const SMALL_STEP_BYTES: u64 = 512;

/// Every copier with default parameters.
pub(crate) fn plain() -> Vec<Variant> {
    copiers().map(Variant::plain).collect()
}

/// The variants of the table, and for each engine: its defaults, each parameter at its minimum,
/// each length odd, an odd offset, each flag on, and two workers if it takes positions.
pub(crate) fn all() -> Vec<Variant> {
    let table = copiers().flat_map(|engine| engine.lab_variants);
    let mut variants: Vec<Variant> = table.map(|text| parsed(text)).collect();
    for variant in copiers().flat_map(texts).map(|text| parsed(&text)) {
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    variants
}

/// The variants that are tried on the file system `kind`: each engine's defaults, and every fourth of the others, so
/// that each of those is tried on one file system.
pub(crate) fn on(kind: FsKind) -> Vec<Variant> {
    let turn = FsKind::ALL.iter().position(|&other| other == kind).expect("one of them");
    let mut variants = plain();
    let mut others = all();
    others.retain(|variant| !variants.contains(variant));
    variants.extend(others.into_iter().skip(turn).step_by(FsKind::ALL.len()));
    variants
}

fn parsed(text: &str) -> Variant {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The most bytes that `variant` copies within the time of a test.
pub(crate) fn bytes_max(variant: &Variant) -> u64 {
    let smallest = variant
        .engine
        .params
        .iter()
        .filter(|param| matches!(param.kind, ParamKind::Bytes { .. }))
        .map(|param| variant.tuning.get(param.name))
        .filter(|&bytes| bytes > 0)
        .min();
    match smallest {
        Some(bytes) if bytes < SMALL_STEP_BYTES => 8 << 10,
        _ => u64::MAX,
    }
}

/// Whether `variant` has any flag on.
pub(crate) fn has_flag(variant: &Variant) -> bool {
    let params = variant.engine.params.iter();
    params
        .filter(|param| matches!(param.kind, ParamKind::Flag))
        .any(|param| variant.tuning.flag(param.name))
}

/// Starts `variant`. Prints a message and returns `None` if this kernel cannot start it.
pub(crate) fn start(variant: &Variant) -> Option<Box<dyn Copier>> {
    match variant.start() {
        Ok(copier) => Some(copier),
        Err(error) => {
            skip(&test_name(), &format!("{variant} does not start: {error}"));
            None
        }
    }
}

/// Whether the engine's verdict for `dir` is [`Verdict::Yes`].
pub(crate) fn works_in(engine: &Engine, dir: &Path) -> bool {
    verdict_in(engine, dir) == Verdict::Yes
}

/// The engine's verdict for two files in `dir`.
pub(crate) fn verdict_in(engine: &Engine, dir: &Path) -> Verdict {
    let src = tempfile::tempfile_in(dir).unwrap();
    engines::write_sample(src.as_fd(), 5 * 4096 + 123).unwrap();
    let dst = tempfile::tempfile_in(dir).unwrap();
    let verdict = engines::probe(engine, Pair::new(src.as_fd(), dst.as_fd()));
    assert_eq!(dst.metadata().unwrap().len(), 0, "{}: the probe left something", engine.name);
    verdict.expect("floors are not among the copiers")
}

fn copiers() -> impl Iterator<Item = &'static Engine> {
    ENGINES.iter().copied().filter(|engine| matches!(engine.kind, Kind::Copier { .. }))
}

/// The derived variants of `engine`.
fn texts(engine: &'static Engine) -> Vec<String> {
    let name = engine.name;
    let mut texts = vec![name.to_owned()];
    for param in engine.params {
        let key = param.name;
        match param.kind {
            ParamKind::Flag => texts.push(format!("{name}:{key}")),
            ParamKind::Offset { max } => texts.push(format!("{name}:{key}={max}")),
            ParamKind::Count { min, .. } => texts.push(format!("{name}:{key}={min}")),
            ParamKind::Bytes { min, max, .. } => {
                texts.push(format!("{name}:{key}={min}"));
                if (min..=max).contains(&ODD_BYTES) {
                    texts.push(format!("{name}:{key}={ODD_BYTES}"));
                }
            }
        }
    }
    if engine.facts.positions {
        texts.push(format!("{name}@2"));
    }
    texts
}
