//! Variants in plain words, with as many of their parameters as tell them from the other variants of
//! their part: `read_write:64K` is "read and write" where it is the only one of its engine, and "read
//! and write with 64 KiB buffers" beside `read_write:4K`.

use engines::{ParamKind, Variant};

use crate::definition::{Part, without_label};
use crate::words;

/// Engines whose name is no plain word and no name of a system call.
const PLAIN_ENGINES: [(&str, &str); 5] = [
    ("read_write", "read and write"),
    ("direct", "direct I/O"),
    ("direct_read", "direct reads with cached writes"),
    ("dontcache", "uncached reads and writes"),
    ("memory", "a copy in memory"),
];

/// The numbers of workers that are written as words.
const WORKERS: [&str; 8] = ["two", "three", "four", "five", "six", "seven", "eight", "nine"];

/// The name of `variant`, one of those of `part`, in plain words.
pub(super) fn plain_name(part: &Part, variant: &str) -> String {
    let (text, label) = variant.split_at(without_label(variant).len());
    let name = match text.parse::<Variant>() {
        Ok(parsed) => of_engine(part, &parsed),
        Err(_) if part.workload == "command" => of_command(text),
        Err(_) => of_words(text),
    };
    name + label
}

/// An engine's variant: the parameters that other variants of the engine in the part have otherwise.
fn of_engine(part: &Part, variant: &Variant) -> String {
    let engine = variant.engine;
    let others: Vec<Variant> = part
        .variants
        .iter()
        .filter_map(|text| without_label(text).parse::<Variant>().ok())
        .filter(|other| other.engine.name == engine.name)
        .collect();
    let mut with = Vec::new();
    for param in engine.params {
        let value = variant.tuning.get(param.name);
        if others.iter().all(|other| other.tuning.get(param.name) == value) {
            continue;
        }
        with.push(match param.kind {
            ParamKind::Bytes { .. } => format!("{} {}s", words::file_size(value), param.name),
            ParamKind::Count { .. } => format!("{} {value}", param.name),
            ParamKind::Offset { .. } | ParamKind::Flag if value == 0 => continue,
            ParamKind::Offset { .. } => format!("{} {}", param.name, words::file_size(value)),
            ParamKind::Flag => param.name.to_owned(),
        });
    }
    if variant.workers > 1 {
        let count = WORKERS.get(variant.workers - 2).copied().map(str::to_owned);
        with.push(format!("{} workers", count.unwrap_or_else(|| variant.workers.to_string())));
    }
    let plain = PLAIN_ENGINES.iter().find(|(name, _)| *name == engine.name);
    let mut name = plain.map_or(engine.name, |(_, plain)| plain).to_owned();
    if !with.is_empty() {
        name.push_str(&format!(" with {}", words::listed(&with)));
    }
    name
}

/// A command line without the places of its operands.
fn of_command(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.contains(['{', '}']));
    words.collect::<Vec<_>>().join(" ")
}

/// Another workload's variant, as `read:64K,md5`: its numbers of bytes get their unit.
fn of_words(text: &str) -> String {
    let size = |item: &str| Some(words::file_size(item.parse::<engines::Bytes>().ok()?.0));
    let Some((name, items)) = text.split_once(':') else {
        return size(text).map_or_else(|| text.to_owned(), |size| format!("a buffer of {size}"));
    };
    let in_words = |item: &str| size(item).unwrap_or_else(|| item.to_owned());
    let items: Vec<String> = items.split(',').map(in_words).collect();
    format!("{name} ({})", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    #[test]
    fn a_variant_is_named_by_what_tells_it_from_the_others() {
        let check = |workload: &str, variants: &[&str], expected: &[&str]| {
            let mut made = Synthetic::new(workload, variants, &["1M"]);
            let names: Vec<String> =
                variants.iter().map(|variant| plain_name(made.part(), variant)).collect();
            assert_eq!(names, expected);
        };
        check(
            "copy",
            &["read_write:64K", "copy_file_range@2", "splice:1M,pipe=1M", "direct:8M"],
            &["read and write", "copy_file_range with two workers", "splice", "direct I/O"],
        );
        check(
            "copy",
            &["read_write:64K", "read_write:1M@12", "mmap:8M", "mmap:8M,populate", "mmap:256K,dst"],
            &[
                "read and write with 64 KiB buffers",
                "read and write with 1 MiB buffers and 12 workers",
                "mmap with 8 MiB windows",
                "mmap with 8 MiB windows and populate",
                "mmap with 256 KiB windows and dst",
            ],
        );
        check(
            "copy",
            &["read_write:4K", "read_write:4K,offset=16", "read_write:4K [again]"],
            &["read and write", "read and write with offset 16 B", "read and write [again]"],
        );
        check(
            "command",
            &["cp -r {src} {dst}", "haulage cp -r {src} {dst}"],
            &["cp -r", "haulage cp -r"],
        );
        check("read", &["read:64K", "mmap:whole"], &["read (64 KiB)", "mmap (whole)"]);
        check("calls", &["4K", "64K"], &["a buffer of 4 KiB", "a buffer of 64 KiB"]);
    }

    #[test]
    fn every_engine_is_known_here_or_is_named_like_what_it_calls() {
        for (name, _) in PLAIN_ENGINES {
            assert!(engines::ENGINES.iter().any(|engine| engine.name == name), "{name}");
        }
    }
}
