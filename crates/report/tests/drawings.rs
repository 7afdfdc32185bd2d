//! What else becomes of a committed run: text, SVG and PNG.

mod hostile;

use std::path::Path;
use std::sync::LazyLock;

use haulage_report::drawing::Drawing;
use haulage_report::figure::EPSILON;
use haulage_report::plot::Entry;
use haulage_report::{Report, Source, drawing, page, text};
use lab::studies::Finding;
use lab::tune::record::Records;

/// The committed run, whose answers are made anew from its samples: once for all tests.
static SMALL: LazyLock<[Source; 1]> = LazyLock::new(|| {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/small");
    [Source::read(&run).expect("the committed run can be read")]
});

/// The report for a terminal of 80 columns, which it must fit, without its ANSI colours.
fn plain(report: &Report<'_>) -> String {
    let plain = testfs::without_control_sequences(&text::render(report, 80));
    let wide: Vec<&str> = plain.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    plain
}

/// The committed record of `haulage tune`.
fn tuned() -> Records {
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tuned/ext4-btrfs.json");
    let record = std::fs::read(record).expect("the committed record can be read");
    Records::parse(&record).expect("the committed record can be read")
}

/// The others of a figure have the same kinds of marks and names.
fn first_of_each<'d>(
    report: &'d Report<'_>,
    drawings: &'d [Drawing],
) -> impl Iterator<Item = &'d Drawing> {
    report.figures.iter().map(|figure| {
        let is_of_it = |it: &&Drawing| it.name.starts_with(figure.about.id);
        drawings.iter().find(is_of_it).expect("each figure has a drawing")
    })
}

#[test]
fn text_fits_eighty_columns() {
    let text = plain(&Report::of(&*SMALL, EPSILON));
    for expected in ["not certified", "├", "How large a buffer has to be", "Then and now"] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
}

#[test]
fn each_figure_is_drawn_as_svg_and_png() {
    let report = Report::of(&*SMALL, EPSILON);
    let drawings = drawing::drawings(&report);
    for figure in &report.figures {
        let of_it = drawings.iter().filter(|it| it.name.starts_with(figure.about.id)).count();
        assert_eq!(of_it, figure.groups.len(), "{}", figure.about.id);
    }
    for drawing in first_of_each(&report, &drawings) {
        let png = drawing.png(0.5).unwrap_or_else(|why| panic!("{}: {why}", drawing.name));
        assert!(png.starts_with(b"\x89PNG"), "{}", drawing.name);
    }
    for drawing in &drawings {
        assert!(!drawing.svg.contains("NaN") && !drawing.svg.contains("inf"), "{}", drawing.name);
    }
    let again = drawing::drawings(&Report::of(&*SMALL, EPSILON));
    let same = drawings.iter().zip(&again).all(|(one, other)| one.svg == other.svg);
    assert!(same, "the same samples give the same drawings");
}

#[test]
fn fits_are_those_of_the_answers() {
    let report = Report::of(&*SMALL, EPSILON);
    let findings = SMALL[0].verdict.parts.iter().flat_map(|part| &part.analyses);
    let lines = findings.filter_map(|finding| match finding {
        Finding::SizeFit { lines } => Some(lines),
        _ => None,
    });
    let lines: Vec<_> = lines.flatten().collect();
    assert!(!lines.is_empty(), "the committed run has sizes enough for lines");
    let tables = report.figures.iter().flat_map(|figure| &figure.tables);
    let rows = tables.filter(|it| it.title.contains("fits t = c")).flat_map(|it| &it.rows);
    let shown: Vec<_> = rows.map(|row| (row[0].as_ref(), row[1].clone(), row[2].clone())).collect();
    assert_eq!(shown.len(), lines.len());
    for (line, (variant, fixed, byte)) in lines.iter().zip(shown) {
        assert_eq!(line.variant, variant);
        for (of, entry) in [(line.fixed_ns, fixed), (line.byte_ns, byte)] {
            assert!(matches!(entry, Entry::Number { value, .. } if value == of.value), "{entry:?}");
        }
    }
}

#[test]
fn names_from_a_run_are_text_in_drawings_and_terminals() {
    let home = tempfile::tempdir().expect("created");
    hostile::run(home.path());
    let sources = [Source::read(home.path()).expect("the run can be read")];
    let report = Report::of(&sources, EPSILON);
    let drawings = drawing::drawings(&report);
    for drawing in &drawings {
        for tag in ["<img", "<script", "<a ", "<iframe"] {
            assert!(!drawing.svg.contains(tag), "{tag} in {}", drawing.name);
        }
    }
    for drawing in first_of_each(&report, &drawings) {
        if let Err(why) = drawing.png(0.2) {
            panic!("{} is no SVG: {why}", drawing.name);
        }
    }
    let text = plain(&report);
    assert!(text.contains("<svg onload="), "the question is there as it stands");
    let controls: Vec<char> = text.chars().filter(|c| c.is_control() && *c != '\n').collect();
    assert!(controls.is_empty(), "{controls:?} would be obeyed by a terminal");
}

#[test]
fn what_was_tuned_is_told_and_drawn() {
    let records = tuned();
    let finding = &records.pairs[0].situations[0];
    let (situation, way) = (finding.words.clone(), finding.choice.clone().expect("an answer"));
    let report = Report::of_tuning(records.pairs);
    let text = plain(&report);
    let row = text.lines().find(|line| line.starts_with(&situation) && line.contains(&way));
    assert!(row.is_some(), "{situation} and {way} are not told together:\n{text}");
    let drawings = drawing::drawings(&report);
    assert_eq!(drawings.len(), report.figures.len(), "a drawing a figure for one record");
    let named = format!(">{way}</text>");
    let bars = report.figures[0].groups[0].panels[0]
        .marks
        .iter()
        .filter(|it| it.variant.as_ref() == Some(&way));
    let expected = bars.count() + 1;
    let found = drawings[0].svg.matches(&named).count();
    assert_eq!(found, expected, "{way} stands at its bars, and once in the legend");
    drawings[0].png(0.5).expect("a drawing");
}

#[test]
fn a_record_without_losses_has_no_figure_of_them() {
    let mut records = tuned();
    for finding in &mut records.pairs[0].situations {
        (finding.default_loss, finding.gnu_cp_loss) = (None, None);
        finding.copy_file_range_loss = None;
    }
    let report = Report::of_tuning(records.pairs);
    let figures: Vec<&str> = report.figures.iter().map(|figure| figure.about.id).collect();
    assert_eq!(figures, ["best-variants"]);
    assert!(page::render(&report, Path::new(".")).contains("id=\"best-variants\""));
}
