//! What a case says about the default.

use std::fmt::Write;

use lab::stats::median;

use crate::peers::outcome::{Report, Row};

/// The default may take this ratio of the time of the fastest variant.
const LOSS_MAX: f64 = 1.10;

/// And this ratio of the time of GNU cp.
const CP_MAX: f64 = 1.03;

/// The name of the copier without an option in the rows.
const DEFAULT: &str = "default";

/// One case at one place.
#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    case: &'static str,
    place: String,
    /// The variant with the least median.
    best: String,
    /// Ratios of times within rounds.
    best_to_cp: f64,
    default_to_cp: f64,
    loss: f64,
}

impl Verdict {
    /// `None` if a copier that is needed has no run that counts.
    pub(crate) fn of(report: &Report) -> Option<Verdict> {
        let default = report.rows.iter().find(|row| row.copier.name == DEFAULT)?;
        let is_variant = |row: &&Row| !row.copier.is_cp() && row.copier.name != DEFAULT;
        let timed = report.rows.iter().filter(is_variant).filter_map(|row| {
            let times: Vec<f64> = row.counted().map(|sample| sample.elapsed_ns as f64).collect();
            Some((median(&times)?, row))
        });
        let (_, best) = timed.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        let ratio = |row: &Row, base: &Row| Some(row.ratio_to(base)?.estimate);
        Some(Verdict {
            case: report.case.name,
            place: report.place.clone(),
            best: best.copier.name.clone(),
            best_to_cp: ratio(best, report.base())?,
            default_to_cp: ratio(default, report.base())?,
            loss: ratio(default, best)?,
        })
    }

    fn holds(&self) -> bool {
        self.loss <= LOSS_MAX && self.default_to_cp <= CP_MAX
    }
}

/// A table in Markdown, for docs/speed.md, and how many hold.
pub(crate) fn render(verdicts: &[Verdict]) -> String {
    let mut text = String::from(
        "| place | file | default, x GNU cp | fastest variant | it, x GNU cp | default, x fastest |\n\
         |---|---|---|---|---|---|\n",
    );
    for Verdict { case, place, best, best_to_cp, default_to_cp, loss } in verdicts {
        let _ = writeln!(
            text,
            "| {place} | {case} | {default_to_cp:.2} | `{best}` | {best_to_cp:.2} | {loss:.2} |"
        );
    }
    let holding = verdicts.iter().filter(|verdict| verdict.holds()).count();
    let _ = writeln!(
        text,
        "\n{holding} of {}: at most {LOSS_MAX:.2} of the fastest variant and {CP_MAX:.2} of GNU cp",
        verdicts.len()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_and_a_slow_copy_do_not_hold() {
        let verdict = |default_to_cp, loss| Verdict {
            case: "1G-warm",
            place: "ext4".to_owned(),
            best: "splice@2".to_owned(),
            best_to_cp: 0.7,
            default_to_cp,
            loss,
        };
        let verdicts = [verdict(0.71, 1.01), verdict(0.9, 1.29), verdict(1.04, 1.0)];
        assert_eq!(verdicts.each_ref().map(Verdict::holds), [true, false, false]);
        let text = render(&verdicts);
        assert!(text.contains("| ext4 | 1G-warm | 0.71 | `splice@2` | 0.70 | 1.01 |\n"), "{text}");
        assert!(
            text.ends_with("\n1 of 3: at most 1.10 of the fastest variant and 1.03 of GNU cp\n")
        );
    }
}
