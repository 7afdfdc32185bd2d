//! A certificate as text.

use std::path::Path;

use lab::certificate::Certificate;
use lab::certificate::store::StoredCertificate;
use lab::certificate::words::{percent, share_in_words};
use lab::definition::deltas::{DELTA_LEAST, Deltas};
use lab::words;

use crate::bench::table::{in_both_states, wrapped};

/// What was asked and found, and what follows.
pub(super) fn render(kept: &StoredCertificate, run: &Path, file: Option<&Path>) -> String {
    let certificate = &kept.certificate;
    let badge = kept.badge(&kept.kernel, &kept.haulage_version);
    let cells = certificate.cells.len();
    let mut lines = vec![
        "Can what is measured here be believed?".to_owned(),
        format!("{cells} comparisons whose truth is known, in {}.", words::duration(kept.seconds)),
        String::new(),
    ];
    for criterion in &certificate.criteria {
        let mark = match criterion.passed {
            Some(true) => "yes ",
            Some(false) => "NO  ",
            None => "?   ",
        };
        lines.push(format!("{mark}{}.", criterion.words));
    }
    lines.push(String::new());
    lines.extend(figures(certificate));
    lines.push(String::new());
    lines.push(format!("This machine is {}.", badge.words));
    if !certificate.passes {
        lines.push(advice(certificate));
    }
    lines.push(format!("Samples and certificate: {}", run.display()));
    match file {
        Some(file) => lines.push(format!("Kept for later verdicts: {}", file.display())),
        None => lines.push(
            "Not kept for later verdicts: neither XDG_STATE_HOME nor HOME says where".to_owned(),
        ),
    }
    let columns = crate::bench::columns();
    lines.iter().flat_map(|line| wrapped(line, columns)).map(|line| line + "\n").collect()
}

fn figures(certificate: &Certificate) -> Vec<String> {
    let mut lines = Vec::new();
    let p95 = [certificate.same_distance_p95, certificate.same_distance_cold_p95];
    let said: Vec<String> = ["warm", "cold"]
        .iter()
        .zip(p95)
        .filter_map(|(state, p95)| Some(format!("{} {state}", percent(p95?))))
        .collect();
    if !said.is_empty() {
        let Deltas { warm, cold } = certificate.deltas;
        lines.push(format!(
            "Nineteen of twenty equal arms measured to within 5 % differ by less than {}; differences up to {} do not matter \
             (the larger of that and {}).",
            said.join(" and "),
            in_both_states(warm, cold),
            percent(DELTA_LEAST)
        ));
    }
    if let (Some(median), Some(p90)) =
        (certificate.smallest_effect_median, certificate.smallest_effect_p90)
    {
        lines.push(format!(
            "In the time that each had, half of the cells would find a difference of {} in four \
             cases of five, and nine of ten cells one of {}.",
            percent(median),
            percent(p90)
        ));
    }
    lines.push(format!(
        "95 % intervals hold the truth: of equal arms in {}.",
        share_in_words(certificate.same_held)
    ));
    for slower in certificate.slower.iter().filter(|slower| slower.found.of > 0) {
        lines.push(format!(
            "Slower by {}: found {}; told from no difference {}; intervals hold the truth {}.",
            percent(slower.by),
            share_in_words(slower.found),
            share_in_words(slower.told_from_none),
            share_in_words(slower.held)
        ));
    }
    if certificate
        .slower
        .iter()
        .any(|slower| slower.by <= certificate.deltas.warm && slower.found.of > 0)
    {
        lines.push(
            "(What is not larger than the difference that matters is not to be found.)".to_owned(),
        );
    }
    lines
}

/// What can be done about a failure.
fn advice(certificate: &Certificate) -> String {
    let missed = certificate.criteria.iter().any(|it| it.passed.is_none());
    let words = if missed {
        "Not everything was measured: more time (--time), or more room, would tell."
    } else {
        "A quieter machine, or more time (--time), may help; until then take small differences here for \
         none."
    };
    words.to_owned()
}
