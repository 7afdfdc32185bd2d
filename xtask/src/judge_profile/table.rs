//! Prints the judgements as a table.

use std::fmt::Write;

use lab::tune::record::Record;

use super::judge::{
    Judged, Judgement, Loss, ProfileKind, SHARE_REQUIRED, Verdict, place, seed, verdicts,
};

/// The table, and a verdict for each profile.
pub(super) fn render(long: &Record, tuned: Option<&Record>, judged: &[Judged]) -> String {
    let mut out = format!("{}\n", place(long));
    let of = |record: &Record| {
        let seed = seed(record).map_or("?".to_owned(), |seed| seed.to_string());
        let commit = record.environment.get("haulage_commit").and_then(|it| it.as_str());
        let commit = commit.unwrap_or("an unknown commit");
        format!("{:.0} s, seed {seed}, {commit}, {}", record.seconds, record.date)
    };
    let _ = writeln!(out, "long search:  {}", of(long));
    if let Some(tuned) = tuned {
        let _ = writeln!(out, "tuned by:     {}", of(tuned));
    }
    for situation in judged {
        let _ = writeln!(out, "\n{}; best {}", situation.words, situation.best);
        let mut last: Option<&Judgement> = None;
        for (kind, judgement) in &situation.judgements {
            // The unseen profile often has the same variant as the built-in one.
            if *kind != ProfileKind::Unseen || last != Some(judgement) {
                out.push_str(&row(*kind, judgement));
            }
            last = Some(judgement);
        }
    }
    out.push('\n');
    for verdict in verdicts(judged) {
        out.push_str(&sentence(&verdict));
    }
    let unanswered = long.situations.len() - judged.len();
    if unanswered > 0 {
        let _ = writeln!(out, "The long search found no best variant in {unanswered} situations.");
    }
    out
}

fn row(kind: ProfileKind, Judgement { variant, loss }: &Judgement) -> String {
    let percent = |ratio: f64| format!("{:.1}", (ratio - 1.0) * 100.0).replace("-0.0", "0.0");
    let what = match loss {
        Loss::None => "the best".to_owned(),
        Loss::Rounds(ratio, rounds) => {
            let (low, high) = (percent(ratio.interval.low), percent(ratio.interval.high));
            format!("{:>6} %  {low} to {high} %, {rounds} rounds", percent(ratio.estimate))
        }
        Loss::Elimination(ratio) => format!("{:>6} %  from elimination rounds", percent(*ratio)),
        Loss::Found(ratio) => format!("{:>6} %  as the search recorded", percent(*ratio)),
        Loss::Unknown => "not run by the long search".to_owned(),
    };
    let over = loss.ratio().is_none_or(|ratio| ratio > kind.allowed());
    let mark = if over { "*" } else { " " };
    format!("{mark} {:<9} {variant:<32} {what}\n", kind.name())
}

pub(super) fn sentence(verdict: &Verdict) -> String {
    let Verdict { kind, situations, within, surely_over, worst } = verdict;
    let limit = (kind.allowed() - 1.0) * 100.0;
    let share = verdict.share() * 100.0;
    let demanded = match kind {
        _ if verdict.holds() => format!("; {:.0} % are demanded: it holds", SHARE_REQUIRED * 100.0),
        _ => format!("; {:.0} % are demanded: it does NOT hold", SHARE_REQUIRED * 100.0),
    };
    format!(
        "{:<9} within {limit:.0} % in {within} of {situations} situations, {share:.0} %{demanded}. \
         Surely beyond: {surely_over}. Worst: {:.1} %\n",
        format!("{}:", kind.name()),
        (worst - 1.0) * 100.0,
    )
}
