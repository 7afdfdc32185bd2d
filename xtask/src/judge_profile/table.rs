//! The table of a judgement.

use std::fmt::Write;

use lab::tune::record::Record;

use super::judge::{
    Guide, Judged, Judgement, Loss, SHARE_DEMANDED, Verdict, place, seed, verdicts,
};

/// The table, and what it comes to.
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
        for (guide, judgement) in &situation.ways {
            // What is built in is often what would be all the same.
            if *guide != Guide::Unseen || last != Some(judgement) {
                out.push_str(&row(*guide, judgement));
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
        let _ = writeln!(out, "{unanswered} situations have no answer in the long search.");
    }
    out
}

fn row(guide: Guide, Judgement { way, loss }: &Judgement) -> String {
    let percent = |ratio: f64| format!("{:.1}", (ratio - 1.0) * 100.0).replace("-0.0", "0.0");
    let what = match loss {
        Loss::None => "the best".to_owned(),
        Loss::Rounds(ratio, rounds) => {
            let (low, high) = (percent(ratio.interval.low), percent(ratio.interval.high));
            format!("{:>6} %  {low} to {high} %, {rounds} rounds", percent(ratio.estimate))
        }
        Loss::Heats(ratio) => format!("{:>6} %  by the heats alone", percent(*ratio)),
        Loss::Found(ratio) => format!("{:>6} %  as that search found", percent(*ratio)),
        Loss::Unknown => "not run by the long search".to_owned(),
    };
    let over = loss.ratio().is_none_or(|ratio| ratio > guide.allowed());
    let mark = if over { "*" } else { " " };
    format!("{mark} {:<9} {way:<32} {what}\n", guide.name())
}

pub(super) fn sentence(verdict: &Verdict) -> String {
    let Verdict { guide, situations, within, surely_over, worst } = verdict;
    let limit = (guide.allowed() - 1.0) * 100.0;
    let share = verdict.share() * 100.0;
    let demanded = match guide {
        _ if verdict.holds() => format!("; {:.0} % are demanded: it holds", SHARE_DEMANDED * 100.0),
        _ => format!("; {:.0} % are demanded: it does NOT hold", SHARE_DEMANDED * 100.0),
    };
    format!(
        "{:<9} within {limit:.0} % in {within} of {situations} situations, {share:.0} %{demanded}. \
         Surely beyond: {surely_over}. Worst: {:.1} %\n",
        format!("{}:", guide.name()),
        (worst - 1.0) * 100.0,
    )
}
