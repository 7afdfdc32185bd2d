//! What `haulage tune` found: the best variant in each situation, and what others cost.

use lab::tune::record::{Finding, Loss, Record};
use lab::words::three_digits;

use crate::machine;
use crate::plot::{
    About, Along, Axis, Dot, Entry, Facets, Figure, Group, Height, Look, Mark, Panel, Shape, Table,
    Unit,
};

const BEST: About = About {
    id: "best-variants",
    title: "The best variant in each situation",
    reading: "Each bar is a situation: files of that size, resident in the page cache or absent from it, \
              copied alone or several at once. Its colour and text are the best variant: the fastest, or a \
              simpler one that is as fast. Its length is the rate for one file, in megabytes per second. \
              Situations that are not listed were not measured. The axis is linear.",
    keys: &[(Look::Medium, "megabytes per second of the best variant")],
};

const LOSSES: About = About {
    id: "losses",
    title: "What not using it costs",
    reading: "Each dot is the time of another variant divided by the time of the best one in the same rounds; \
              bars are 95 % intervals. The line is at 1: no loss. A hollow symbol is not shown to differ \
              from the best: its interval includes 1, or it is the best itself. 'default' is what haulage \
              uses without a measurement. 'as GNU cp' tries a reflink and then copy_file_range. Without a \
              dot, the variant does not work there, shares extents, or was not measured precisely enough. \
              The axis is logarithmic.",
    keys: &[
        (Look::Full, "differs from the best"),
        (Look::Hollow, "not shown to differ"),
        (Look::Rule, "the best"),
    ],
};

/// The figures of these records. Empty if nothing was measured.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let measured: Vec<&Record> =
        records.iter().filter(|record| !answered(record).is_empty()).collect();
    let mut figures = vec![best(&measured), losses(&measured)];
    figures.retain(|figure| !figure.groups.is_empty());
    figures
}

/// The file systems of a record, as `ext4 to xfs`.
pub fn place(record: &Record) -> String {
    let [src, dst] = machine::sides(&record.environment);
    if src == dst { format!("within {dst}") } else { format!("{src} to {dst}") }
}

/// The situations with a choice, by residency and concurrency, then by file size.
fn answered(record: &Record) -> Vec<&Finding> {
    let mut found: Vec<&Finding> =
        record.situations.iter().filter(|finding| finding.choice.is_some()).collect();
    found.sort_by_key(|it| {
        (it.no_cache, it.residency != "resident", it.in_flight != "one", it.file_bytes)
    });
    found
}

/// A row for each situation: the colour of its bar is the best variant, its length the rate.
fn best(records: &[&Record]) -> Figure {
    let group = |record: &&Record| {
        let panels = vec![best_panel(&answered(record))];
        Group { title: place(record), panels, height: Height::Rows }
    };
    Figure {
        about: &BEST,
        groups: records.iter().map(group).collect(),
        notes: records.iter().flat_map(|record| record.slow_modes()).collect(),
        tables: records.iter().map(|record| table(record, &answered(record))).collect(),
    }
}

fn best_panel(found: &[&Finding]) -> Panel {
    let bar = |(row, finding): (usize, &&Finding)| {
        let chosen = finding.chosen()?;
        let length = chosen.megabytes_per_second.unwrap_or(0.0);
        let text = format!("{}: {}, {} MB/s", finding.words, chosen.name, three_digits(length));
        let bar = Shape::Bar { row: row as f64, length, text, strength: 0.4, named: true };
        Some(Mark::of(&chosen.name, bar))
    };
    Panel {
        title: String::new(),
        alt: "The best variant and its rate in each situation.".to_owned(),
        facets: Facets::default(),
        x: Axis::amount("MB/s of one file", Unit::Count),
        y: Axis::names("situation", found.iter().map(|finding| finding.words.clone())),
        marks: found.iter().enumerate().filter_map(bar).collect(),
    }
}

/// Something to compare with: its name and its loss.
type Compared = (&'static str, fn(&Finding) -> Option<Loss>);

/// What every choice is compared with.
const COMPARED: [Compared; 3] = [
    ("default", |finding| finding.default_loss),
    ("as GNU cp", |finding| finding.gnu_cp_loss),
    ("copy_file_range", |finding| finding.copy_file_range_loss),
];

/// The cost of not using the best variant.
fn losses(records: &[&Record]) -> Figure {
    let groups = records.iter().filter_map(|record| {
        let found = answered(record);
        let rows: Vec<String> = found.iter().map(|finding| finding.words.clone()).collect();
        let panels = COMPARED.iter();
        let panels: Vec<Panel> =
            panels.filter_map(|(name, loss)| loss_panel(name, *loss, &rows, &found)).collect();
        Group::of_rows(place(record), panels)
    });
    let note = "The best variant was selected from the same measurements, so losses are slightly overestimated";
    let notes = vec![note.to_owned()];
    Figure { about: &LOSSES, groups: groups.collect(), notes, tables: Vec::new() }
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
            let [shown, from, to] = [ratio, low, high].map(three_digits);
            let text = format!("{}: {shown} ({from} to {to})", finding.words);
            let dot = Dot::at(ratio, row as f64, text).within(low, high);
            let kind = if low <= 1.0 && high >= 1.0 { &mut unresolved } else { &mut resolved };
            kind.push(dot);
        }
    }
    if resolved.is_empty() && unresolved.is_empty() {
        return None;
    }
    let dots = |dots, hollow| Mark::neutral(Shape::Dots { dots, along: Along::X, hollow });
    Some(Panel {
        title: name.to_owned(),
        alt: format!("The time of {name} divided by that of the best variant, in each situation."),
        facets: Facets::default(),
        x: Axis::ratio("time / time of the best"),
        y: Axis::names("", rows.iter().cloned()),
        marks: vec![Mark::neutral(Shape::rule(1.0)), dots(resolved, false), dots(unresolved, true)],
    })
}

fn table(record: &Record, found: &[&Finding]) -> Table {
    let loss = |loss: Option<Loss>| match loss {
        Some(Loss::Ratio { ratio, .. }) => Entry::digits(ratio),
        Some(Loss::SharesExtents) => Entry::words("shares extents"),
        Some(Loss::Refused) => Entry::words("refused"),
        Some(Loss::Unknown) | None => Entry::Nothing,
    };
    let chosen = found.iter().filter_map(|finding| Some((*finding, finding.chosen()?)));
    Table::of(
        &format!("Every situation, {}", place(record)),
        chosen,
        &[
            ("situation", &|(finding, _)| Entry::words(&finding.words)),
            ("best variant", &|(_, chosen)| Entry::words(&chosen.name)),
            ("MB/s", &|(_, chosen)| Entry::count(chosen.megabytes_per_second.unwrap_or(0.0))),
            ("default", &|(finding, _)| loss(finding.default_loss)),
            ("GNU cp", &|(finding, _)| loss(finding.gnu_cp_loss)),
            ("copy_file_range", &|(finding, _)| loss(finding.copy_file_range_loss)),
            ("rounds", &|(finding, _)| Entry::count(f64::from(finding.rounds))),
        ],
    )
}

/// The conclusion of a record, in a sentence.
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
        None => {
            format!("{measured} In none of them is a variant shown to be faster than the default.")
        }
        Some((ratio, words)) => format!(
            "{measured} In {} of them another variant is faster than the default. The largest \
             loss is in '{words}', where the default takes {} times as long.",
            lost.len(),
            three_digits(*ratio)
        ),
    }
}
