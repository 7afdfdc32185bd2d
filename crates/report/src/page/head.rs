//! The beginning and the end of the page.

use std::path::{Component, Path, PathBuf};

use lab::analysis::claims::{ClaimAnswer, TestedClaim};
use lab::certificate::store::CertificateStatus;
use lab::compare::Change;
use lab::environment::fields;
use lab::in_order::distinct;
use lab::run_dir::files;
use lab::studies::sheet::in_both_states;
use lab::tune::record::Record;
use lab::verdict::conclusion::{Conclusion, Row};
use lab::verdict::resolve;
use serde_json::Value;

use crate::escape::escaped;
use crate::figure;
use crate::headline;
use crate::machine;
use crate::report::Report;
use crate::summary::Summary;

/// More differences between two runs than these are folded, so that the first screen has a figure.
const AROUND_MAX: usize = 6;

pub(super) fn title(report: &Report<'_>) -> String {
    let tuned = (!report.tuned.is_empty()).then_some("The fastest variant");
    let runs = report.summaries.iter().map(|it| it.source.run.definition.title.as_str());
    tuned.into_iter().chain(distinct(runs)).collect::<Vec<_>>().join(" · ")
}

pub(super) fn head(report: &Report<'_>) -> String {
    let mut html = report.change.as_ref().map(changed).unwrap_or_default();
    if !report.tuned.is_empty() {
        html.push_str(&tuned(&report.tuned));
    }
    let alone = report.change.is_none();
    let run = |(index, summary): (usize, &Summary<'_>)| {
        let run = of_run(summary, alone && index == 0);
        let which = if index == 0 { "first" } else { "second" };
        let name = escaped(&summary.label);
        match alone {
            true => run,
            // The changes come first. The conclusions of each run are in a closed element.
            false => format!(
                "<details class=\"trust\"><summary>The {which} run: {name}</summary>{run}</details>"
            ),
        }
    };
    html.extend(report.summaries.iter().enumerate().map(run));
    html
}

/// A list of definitions; nothing without `items`.
fn list(class: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.collect();
    if items.is_empty() { items } else { format!("<dl class=\"{class}\">{items}</dl>\n") }
}

/// The answer of a run, and a row for each range of files if it depends on them.
fn answer(Conclusion { sentence, rows }: &Conclusion) -> String {
    let row = |Row { files, fastest, said }: &Row| {
        let [files, fastest, said] = [files, fastest, said].map(|text| escaped(text));
        let fastest = if fastest.is_empty() { fastest } else { format!("<b>{fastest}</b>") };
        format!("<dt>{files}</dt><dd>{fastest}{}</dd>", said.replace(" %", "&nbsp;%"))
    };
    let rows = list("answer", rows.iter().map(row));
    format!("<p class=\"verdict\">{}</p>\n{rows}", escaped(sentence))
}

/// Each claim: whether it holds here, what was published and what was measured.
fn claims(claims: &[TestedClaim]) -> String {
    let claim = |claim: &TestedClaim| {
        let class = match claim.answer {
            ClaimAnswer::Holds => "good",
            ClaimAnswer::CannotBeTold => "open",
            ClaimAnswer::DoesNotHold => "bad",
        };
        let [says, figures] = [&claim.says, &claim.figures()].map(|text| escaped(text));
        let words = claim.answer.words();
        format!(
            "<div><dt><span class=\"badge {class}\">{words}</span></dt><dd>{says} <small>{figures}</small></dd></div>"
        )
    };
    list("claims", claims.iter().map(claim))
}

/// The conclusions of `haulage tune`, a sentence for each pair of file systems.
fn tuned(records: &[Record]) -> String {
    let mut html = String::from("<div class=\"run\"><h1>Which variant is the fastest?</h1>\n");
    for record in records {
        let sentence = figure::tuning::sentence(record);
        html.push_str(&format!("<p class=\"verdict\">{}</p>\n", escaped(&sentence)));
        let seconds = lab::words::duration(record.seconds);
        let line = machine::line(&record.environment);
        let line = format!("{line} · measured {} in {seconds}", record.date);
        html.push_str(&format!("<p class=\"machine\">{}</p>\n", escaped(&line)));
    }
    html.push_str("</div>\n");
    html
}

/// The changes between two runs.
fn changed(change: &Change) -> String {
    let mut sentences = headline::of_change(change).into_iter();
    let mut html = String::from("<div class=\"run\"><h1>What changed between two runs?</h1>\n");
    if let Some(first) = sentences.next() {
        html.push_str(&format!("<p class=\"verdict\">{}</p>\n", escaped(&first)));
    }
    let sentences: Vec<String> = sentences.map(|it| format!("<li>{}</li>", escaped(&it))).collect();
    let shown = if sentences.len() > AROUND_MAX { 1 } else { sentences.len() };
    let (shown, folded) = sentences.split_at(shown);
    html.push_str(&format!("<ul class=\"around\">{}</ul>", shown.concat()));
    if !folded.is_empty() {
        html.push_str(&format!(
            "<details class=\"trust\"><summary>{} more differences between the runs</summary><ul>{}</ul>\
             </details>",
            folded.len(),
            folded.concat()
        ));
    }
    html.push_str("</div>\n");
    html
}

/// A command, which is broken between its words before it is within one. A browser would break it after
/// the hyphens of an option.
fn command_line(command: &str) -> String {
    let word = |word: &str| format!("<span>{}</span>", escaped(word));
    let words: Vec<String> = command.split(' ').map(word).collect();
    format!("<code>{}</code>", words.join(" "))
}

fn of_run(summary: &Summary<'_>, first: bool) -> String {
    let source = summary.source;
    let definition = &source.run.definition;
    let badge = &source.badge;
    let (class, status) = match badge.status {
        CertificateStatus::Certified => ("good", "certified"),
        CertificateStatus::Failed => ("bad", "certificate failed"),
        CertificateStatus::Stale | CertificateStatus::NotCertified => ("open", "not certified"),
    };
    let heading = if first { "h1" } else { "h2" };
    let title = match summary.label.as_str() {
        "" => definition.title.clone(),
        label => format!("{label}: {}", definition.title),
    };
    let mut html = format!(
        "<div class=\"run\"><p class=\"kicker\">{} <span class=\"badge {class}\" title=\"{}\">{status}</span>\
         </p>\n<{heading}>{}</{heading}>\n",
        escaped(&title),
        escaped(&badge.words),
        escaped(&definition.question),
    );
    html.push_str(&claims(&source.verdict.claims));
    html.push_str(&answer(&headline::of_run(source)));
    let open = source.verdict.unresolved(definition);
    if open.are_most() {
        html.push_str(&format!("<p class=\"note\">{}", escaped(&open.sentence())));
        if let Some(further) = open.further {
            let command = resolve::command(&source.run, further);
            html.push_str(&format!(" {}", command_line(&command)));
        }
        html.push_str("</p>\n");
    }
    html.push_str(&format!(
        "<p class=\"machine\">{}</p>\n\
         <details class=\"trust\"><summary>All conclusions, and their reliability</summary><dl>",
        escaped(&machine::line(&source.run.environment))
    ));
    for part in &source.verdict.parts {
        let Conclusion { sentence, rows } = headline::of_part(source, part);
        html.push_str(&format!(
            "<dt>{}: {}</dt><dd>{}</dd>",
            escaped(&part.part),
            escaped(&part.question),
            escaped(&sentence)
        ));
        for row in rows {
            html.push_str(&format!("<dd>{}: {}.</dd>", escaped(&row.files), escaped(&row.text())));
        }
        if !part.counts().is_empty() {
            let of = format!("{}, compared with {}", part.counts(), part.baseline);
            html.push_str(&format!("<dd class=\"count\">{}.</dd>", escaped(&of)));
        }
    }
    html.push_str("</dl><ul>");
    let delta = in_both_states(source.deltas());
    let from = &source.verdict.delta_from;
    let mut sentences = vec![
        capitalized(&badge.words),
        format!("Differences up to δ = {delta} do not matter ({from})"),
        "Sure to within 8 % means that no end of the 95 % interval is further from the ratio than 8 \
         % of it"
            .to_owned(),
    ];
    sentences.extend(source.verdict.notes.iter().map(|note| capitalized(note)));
    for sentence in sentences {
        html.push_str(&format!("<li>{}.</li>", escaped(sentence.trim_end_matches('.'))));
    }
    html.push_str("</ul></details></div>\n");
    html
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The experiment, the machine and the files, to check or repeat a run.
pub(super) fn end(report: &Report<'_>, home: &Path) -> String {
    let mut html = String::from(
        "<section class=\"end\" id=\"environment\" aria-labelledby=\"environment-title\">\
         <h2 id=\"environment-title\">The experiment, the machine and the samples</h2>\n",
    );
    for record in &report.tuned {
        html.push_str(&format!("<h3>{}</h3>\n", escaped(&figure::tuning::place(record))));
        push_facts(&mut html, facts_of(&record.environment));
    }
    for summary in &report.summaries {
        let source = summary.source;
        html.push_str(&format!("<h3>{}</h3>\n", escaped(&source.name())));
        for paragraph in source.run.definition.analysis.trim().split("\n\n") {
            html.push_str(&format!("<p>{}</p>\n", escaped(paragraph)));
        }
        push_facts(&mut html, facts(summary));
        let link = |name: &&str| {
            let href = link(&source.run.path.join(name), home);
            format!("<a href=\"{}\">{name}</a>", escaped(&href))
        };
        let names = [files::SAMPLES, files::ROUNDS, files::VERDICT, files::EXPERIMENT];
        let links: Vec<String> = names.iter().map(link).collect();
        html.push_str(&format!("<p>The files of this run: {}.</p>\n", links.join(", ")));
        refusals(&mut html, summary);
    }
    html.push_str("</section>\n");
    html
}

fn push_facts(html: &mut String, facts: impl IntoIterator<Item = (String, String)>) {
    html.push_str("<div class=\"scroll\"><table class=\"plain\"><tbody>");
    for (name, value) in facts {
        let (name, value) = (escaped(&name), escaped(&value));
        html.push_str(&format!("<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>"));
    }
    html.push_str("</tbody></table></div>\n");
}

fn facts(summary: &Summary<'_>) -> impl Iterator<Item = (String, String)> {
    let run = &summary.source.run;
    let own = [
        ("seed", run.how.seed.to_string()),
        ("scale of sizes", run.how.scale.to_string()),
        ("samples", lab::words::grouped(&run.samples.len().to_string())),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    // The seed is in the list already.
    own.into_iter().chain(facts_of(&run.environment).filter(|(name, _)| name != "seed"))
}

fn refusals(html: &mut String, summary: &Summary<'_>) {
    let refusals = summary.source.run.refusals.iter();
    let seen = distinct(refusals.map(|it| (it.variant.as_str(), it.refusals.as_str())));
    if !seen.is_empty() {
        html.push_str("<p>Variants that were refused:</p><ul>");
        for (variant, why) in seen {
            html.push_str(&format!("<li><b>{}</b>: {}</li>", escaped(variant), escaped(why)));
        }
        html.push_str("</ul>\n");
    }
}

/// The fields of an environment that are not empty, with spaces between the words of their names.
fn facts_of(environment: &Value) -> impl Iterator<Item = (String, String)> {
    let fields = fields(environment).into_iter().filter(|(_, text)| !text.is_empty());
    fields.map(|(name, text)| {
        let text = match text.as_str() {
            "true" => "yes".to_owned(),
            "false" => "no".to_owned(),
            _ => text,
        };
        (name.replace(['_', '.'], " "), text)
    })
}

/// The relative path from the directory `home` to `file`, so that the link stays valid if both are
/// moved together.
fn link(file: &Path, home: &Path) -> String {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (file, home) = (whole(file), whole(home));
    let shared = file.components().zip(home.components()).take_while(|(a, b)| a == b).count();
    let mut path = PathBuf::new();
    home.components().skip(shared).for_each(|_| path.push(".."));
    path.extend(file.components().skip(shared));
    let parts = path.components().map(|part| match part {
        Component::Normal(name) => percent_encoded(name.as_encoded_bytes()),
        _ => "..".to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The bytes of a name, percent-encoded for a URL.
fn percent_encoded(name: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let of = |&byte: &u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_differences_of_two_runs_are_folded() {
        for (fields, folded) in [(0, None), (AROUND_MAX, None), (AROUND_MAX + 1, Some(AROUND_MAX))]
        {
            let difference = |field| lab::compare::Difference {
                field: format!("field{field}"),
                first: "1".to_owned(),
                second: "<2>".to_owned(),
            };
            let html = changed(&Change {
                environment: (0..fields).map(difference).collect(),
                probe_ratio: None,
                cells: Vec::new(),
                only_in_first: Vec::new(),
                only_in_second: Vec::new(),
                deltas: lab::definition::deltas::Deltas { warm: 0.02, cold: 0.02 },
            });
            assert_eq!(html.matches("<li>").count(), fields, "{html}");
            assert_eq!(html.matches("&lt;2&gt;").count(), fields, "{html}");
            let summary = folded.map(|count| format!("<summary>{count} more differences"));
            assert_eq!(html.contains("<details"), folded.is_some(), "{html}");
            assert!(summary.is_none_or(|summary| html.contains(&summary)), "{html}");
        }
    }

    #[test]
    fn a_command_is_broken_between_its_words() {
        let html = command_line("haulage bench '<a b>' --part x");
        assert_eq!(
            html,
            "<code><span>haulage</span> <span>bench</span> <span>&#39;&lt;a</span> \
             <span>b&gt;&#39;</span> <span>--part</span> <span>x</span></code>"
        );
    }

    #[test]
    fn links_are_relative_to_the_page() {
        let check = |file: &str, home: &str, expected: &str| {
            assert_eq!(link(Path::new(file), Path::new(home)), expected);
        };
        check("/runs/a/samples.csv", "/runs/a", "samples.csv");
        check("/runs/a/samples.csv", "/home/me", "../../runs/a/samples.csv");
        check("/runs/a b#/x", "/runs", "a%20b%23/x");
    }
}
