//! Verdicts are correct.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use engines::{Span, Verdict};
use testfs::{each_fs, random_bytes, skip, test_name};

use crate::trial::{Trial, source};
use crate::variants;

#[test]
fn an_engine_that_works_moves_bytes() {
    let bytes = random_bytes((1 << 20) + 1, 1);
    // For each engine the reasons why it does not work, by file system; `None` if it works on one.
    let mut idle: BTreeMap<&str, Option<Vec<String>>> = BTreeMap::new();
    each_fs(|kind, dir| {
        let src = source(dir, &bytes);
        for variant in variants::plain() {
            let name = variant.engine.name;
            match variants::verdict_in(variant.engine, dir) {
                Verdict::Yes => {
                    idle.insert(name, None);
                    let trial = Trial {
                        context: format!("{variant} on {kind}"),
                        variant: &variant,
                        src: &src,
                        src_bytes: &bytes,
                        dst: &dir.join("dst"),
                        dst_bytes: &[],
                        span: Span::whole(bytes.len() as u64),
                    };
                    let mut copier = variant.start().expect("an engine that works starts");
                    let moved = trial.run(copier.as_mut());
                    assert!(moved.bytes > 0, "{variant} on {kind}: works, yet {moved:?}");
                }
                Verdict::Maybe(why) | Verdict::No(why) => {
                    assert!(!why.is_empty(), "{variant} on {kind}: no reason");
                    if let Some(reasons) = idle.entry(name).or_insert_with(|| Some(Vec::new())) {
                        reasons.push(format!("{kind}: {why}"));
                    }
                }
            }
        }
    });
    for (name, reasons) in idle {
        if let Some(reasons) = reasons {
            skip(&test_name(), &format!("{name} works nowhere here ({})", reasons.join("; ")));
        }
    }
}

#[test]
fn workers_share_only_with_positions() {
    for variant in variants::plain() {
        for workers in [0, 2] {
            let started = variant.shared_by(workers).start();
            let sound = workers > 0 && variant.engine.facts.positions;
            let refused = started.as_ref().is_err_and(|e| e.kind() == ErrorKind::InvalidInput);
            assert!(sound || refused, "{variant}@{workers}");
        }
    }
}
