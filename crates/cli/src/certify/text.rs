//! A certificate as text.

use std::path::Path;

use lab::certificate::Certificate;
use lab::certificate::store::StoredCertificate;
use lab::certificate::words::{percent, share_in_words};
use lab::definition::deltas::DELTA_LEAST;
use lab::studies::sheet::in_both_states;
use lab::words;

use report::columns::wrapped_each;

/// The criteria and their results, the figures, and the conclusion.
pub(super) fn render(
    kept: &StoredCertificate,
    run: &Path,
    file: Option<&Path>,
    columns: usize,
) -> String {
    let certificate = &kept.certificate;
    let badge = kept.badge(&kept.kernel, &kept.haulage_version);
    let cells = certificate.cells.len();
    let mut lines = vec![
        "Can measurements on this machine be trusted?".to_owned(),
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
        Some(file) => {
            lines.push(format!("Kept for later verdicts: {}", file.display()));
        }
        None => lines.push(
            "Not kept for later verdicts: neither XDG_STATE_HOME nor HOME is an absolute path"
                .to_owned(),
        ),
    }
    wrapped_each(&lines, columns)
}

fn figures(certificate: &Certificate) -> Vec<String> {
    let mut lines = Vec::new();
    let p95 = [certificate.same_distance_p95, certificate.same_distance_cold_p95];
    let distances: Vec<String> = ["warm", "cold"]
        .iter()
        .zip(p95)
        .filter_map(|(state, p95)| Some(format!("{} {state}", percent(p95?))))
        .collect();
    if !distances.is_empty() {
        lines.push(format!(
            "Of equal variants that are measured to within 5 %, 95 % differ by less than {}. Differences up to {} \
             do not matter (the larger of that and {}).",
            distances.join(" and "),
            in_both_states(certificate.deltas),
            percent(DELTA_LEAST)
        ));
    }
    if let (Some(median), Some(p90)) =
        (certificate.smallest_effect_median, certificate.smallest_effect_p90)
    {
        lines.push(format!(
            "In its time, half of the cells find a difference of {} with a probability of 80 %, and 90 % of the \
             cells find one of {}.",
            percent(median),
            percent(p90)
        ));
    }
    if certificate.same_held.of > 0 {
        lines.push(format!(
            "95 % intervals contain the true ratio of equal variants in {}.",
            share_in_words(certificate.same_held)
        ));
    }
    for slower in certificate.slower.iter().filter(|slower| slower.found.of > 0) {
        lines.push(format!(
            "Slower by {}: found {}; shown to differ {}{}.",
            percent(slower.by),
            share_in_words(slower.found),
            share_in_words(slower.told_from_none),
            match slower.held.of {
                0 => String::new(),
                _ => format!("; intervals contain the true ratio {}", share_in_words(slower.held)),
            }
        ));
    }
    if certificate
        .slower
        .iter()
        .any(|slower| slower.by <= certificate.deltas.warm && slower.found.of > 0)
    {
        lines.push("(A difference that does not matter is not reported.)".to_owned());
    }
    lines
}

/// What the user can do if the machine is not certified.
fn advice(certificate: &Certificate) -> String {
    let missed = certificate.criteria.iter().any(|it| it.passed.is_none());
    let words = if missed {
        "Some criteria were not measured: they need more time (--time) or more space."
    } else {
        "An idle machine, or more time (--time), may help. Until then, do not trust small differences on \
         this machine."
    };
    words.to_owned()
}
