//! What `haulage tune` found: which way is the best where, and what others cost.

use lab::tune::record::{Finding, Loss, Record};
use lab::words::{grouped, three_digits};

use super::{
    Along, Axis, Category, Dot, Facets, Figure, Group, Height, Key, Look, Mark, Panel, Shape,
    Stroke,
};
use crate::machine;
use crate::table::{Entry, Table};

/// The figures of these records; none where nothing was measured.
#[must_use]
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let measured: Vec<&Record> =
        records.iter().filter(|record| !answered(record).is_empty()).collect();
    if measured.is_empty() {
        return Vec::new();
    }
    vec![best(&measured), losses(&measured)]
}

/// The file systems of a record, as `ext4 to xfs`.
#[must_use]
pub fn place(record: &Record) -> String {
    let [src, dst] = machine::sides(&record.environment);
    if src == dst { format!("within {dst}") } else { format!("{src} to {dst}") }
}

/// The situations with an answer, those of one state together and in these the shortest files first.
fn answered(record: &Record) -> Vec<&Finding> {
    let mut found: Vec<&Finding> =
        record.situations.iter().filter(|finding| finding.choice.is_some()).collect();
    found.sort_by_key(|it| {
        (it.no_cache, it.residency != "resident", it.in_flight != "one", it.file_bytes)
    });
    found
}

/// A row a situation, the colour of its bar for the best way and its length for the rate.
fn best(records: &[&Record]) -> Figure {
    let group = |record: &&Record| {
        let panels = vec![best_panel(&answered(record))];
        Group { title: place(record), panels, height: Height::Rows }
    };
    Figure {
        id: "best-ways",
        title: "The best way in each situation".to_owned(),
        reading: "Each bar is a situation: files of that size, resident in the page cache or \
                  absent from it, copied one alone or several at once. Its colour and the words \
                  at it are the way that was the fastest, or as fast as the fastest and simpler; \
                  its length is how many megabytes of one file it copies in a second. What is \
                  not listed was not measured. The axis is linear."
            .to_owned(),
        keys: vec![Key::new(Look::Strong, "megabytes a second of the best way")],
        groups: records.iter().map(group).collect(),
        notes: Vec::new(),
        tables: records.iter().map(|record| table(record, &answered(record))).collect(),
    }
}

fn best_panel(found: &[&Finding]) -> Panel {
    let mut marks: Vec<Mark> = Vec::new();
    for (row, finding) in found.iter().enumerate() {
        let Some(way) = finding.chosen() else { continue };
        let rate = way.megabytes_per_second.unwrap_or(0.0);
        let text = format!("{}: {}, {} MB/s", finding.words, way.name, three_digits(rate));
        let (bars, texts) = (vec![[row as f64, rate]], vec![text]);
        marks.push(Mark::of(&way.name, Shape::Bars { bars, texts, strength: 1.0, named: true }));
    }
    Panel {
        title: String::new(),
        alt: "The best way and its rate in each situation.".to_owned(),
        facets: Facets::default(),
        x: Axis { label: "MB/s of one file".to_owned(), reach: Some(0.0), ..Axis::default() },
        y: Axis::names("situation", found.iter().map(|finding| finding.words.clone())),
        marks,
    }
}

/// A way of comparison: what it is called, and its loss.
type Compared = (&'static str, fn(&Finding) -> Option<Loss>);

/// The ways that everything is compared with.
const COMPARED: [Compared; 3] = [
    ("default", |finding| finding.default_loss),
    ("GNU cp's way", |finding| finding.gnu_cp_loss),
    ("copy_file_range", |finding| finding.copy_file_range_loss),
];

/// What it costs to go another way.
fn losses(records: &[&Record]) -> Figure {
    let groups = records.iter().map(|record| {
        let found = answered(record);
        let rows: Vec<String> = found.iter().map(|finding| finding.words.clone()).collect();
        let panels =
            COMPARED.iter().filter_map(|(name, loss)| loss_panel(name, *loss, &rows, &found));
        Group { title: place(record), panels: panels.collect(), height: Height::Rows }
    });
    Figure {
        id: "losses",
        title: "What not using it costs".to_owned(),
        reading: "Each dot is the time of a copy that goes another way, divided by the time of \
                  the best way found, taken within rounds; bars are 95 % intervals. The line is \
                  1: nothing lost. A hollow symbol is not shown to differ from the best: its \
                  interval reaches to 1, or it is itself the best. 'default' is what haulage \
                  does where nobody has measured; GNU cp tries a reflink and then leaves the \
                  copying to the kernel. No dot: it does not work there, shares extents, or was \
                  not measured well enough. The axis is logarithmic."
            .to_owned(),
        keys: vec![
            Key::new(Look::Full, "differs from the best"),
            Key::new(Look::Hollow, "not shown to"),
            Key::new(Look::Rule, "the best"),
        ],
        groups: groups.collect(),
        notes: vec![
            "The best of several was the best also by luck, so that losses are a little too large"
                .to_owned(),
        ],
        tables: Vec::new(),
    }
}

fn loss_panel(
    name: &str,
    loss: fn(&Finding) -> Option<Loss>,
    rows: &[String],
    found: &[&Finding],
) -> Option<Panel> {
    let (mut resolved, mut unresolved) = (Vec::new(), Vec::new());
    for (row, finding) in found.iter().enumerate() {
        if let Some(Loss::Ratio { ratio, low, high }) = loss(finding) {
            let text = format!(
                "{}: {} ({} to {})",
                finding.words,
                three_digits(ratio),
                three_digits(low),
                three_digits(high)
            );
            let dot = Dot { x: ratio, y: row as f64, low: Some(low), high: Some(high), text };
            let kind = if low <= 1.0 && high >= 1.0 { &mut unresolved } else { &mut resolved };
            kind.push(dot);
        }
    }
    if resolved.is_empty() && unresolved.is_empty() {
        return None;
    }
    let best = Shape::Rule { cuts: Along::X, at: 1.0, text: String::new(), stroke: Stroke::Thin };
    let dots = |dots, hollow| Mark::neutral(name, Shape::Dots { dots, along: Along::X, hollow });
    let category = |label: &String| Category { label: label.clone(), variant: None };
    Some(Panel {
        title: name.to_owned(),
        alt: format!("The time of {name} over that of the best way, in each situation."),
        facets: Facets::default(),
        x: Axis::ratio("time over that of the best"),
        y: Axis { categories: rows.iter().map(category).collect(), ..Axis::default() },
        marks: vec![Mark::neutral("the best", best), dots(resolved, false), dots(unresolved, true)],
    })
}

fn table(record: &Record, found: &[&Finding]) -> Table {
    let columns =
        ["situation", "best way", "MB/s", "default", "GNU cp", "copy_file_range", "rounds"];
    let mut table = Table::new(&format!("Every situation, {}", place(record)), &columns);
    for finding in found {
        let Some(way) = finding.chosen() else { continue };
        let loss = |loss: Option<Loss>| match loss {
            Some(Loss::Ratio { ratio, .. }) => Entry::digits(Some(ratio)),
            Some(Loss::SharesExtents) => Entry::words("shares extents"),
            Some(Loss::Refused) => Entry::words("refused"),
            Some(Loss::Unknown) | None => Entry::Nothing,
        };
        let rate = way.megabytes_per_second.unwrap_or(0.0);
        table.rows.push(vec![
            Entry::words(&finding.words),
            Entry::words(&way.name),
            Entry::Number { value: rate, shown: grouped(&format!("{rate:.0}")) },
            loss(finding.default_loss),
            loss(finding.gnu_cp_loss),
            loss(finding.copy_file_range_loss),
            Entry::Number { value: f64::from(finding.rounds), shown: finding.rounds.to_string() },
        ]);
    }
    table
}

/// What a record comes to, in a sentence.
#[must_use]
pub fn sentence(record: &Record) -> String {
    let found = answered(record);
    let all = record.situations.len();
    let lost = |finding: &&Finding| match finding.default_loss {
        Some(Loss::Ratio { ratio, low, .. }) if low > 1.0 => Some((ratio, finding.words.clone())),
        _ => None,
    };
    let mut lost: Vec<(f64, String)> = found.iter().filter_map(lost).collect();
    lost.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let measured = format!("{}: {} of {all} situations measured.", place(record), found.len());
    match lost.first() {
        None => format!("{measured} Nowhere was anything shown to be faster than the default."),
        Some((ratio, words)) => format!(
            "{measured} In {} of them another way than the default is faster, most of all in this \
             one: {words}, where the default takes {} times as long.",
            lost.len(),
            three_digits(*ratio)
        ),
    }
}
