//! The files of a run directory, one of them hostile: what `haulage report` and `haulage compare`
//! make of them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lab::compare::Change;
use lab::run_dir::files;
use report::{Report, Source, drawing};

use crate::scratch;
use crate::target::Target;

/// Each file of a run directory.
pub(crate) static TARGETS: [Target; 9] = [
    target("samples", files::SAMPLES, "csv", |input| check(files::SAMPLES, input)),
    target("rounds", files::ROUNDS, "csv", |input| check(files::ROUNDS, input)),
    target("calls", files::CALLS, "csv", |input| check(files::CALLS, input)),
    target("sequences", files::SEQUENCES, "csv", |input| check(files::SEQUENCES, input)),
    target("refusals", files::REFUSALS, "csv", |input| check(files::REFUSALS, input)),
    target("environment", files::ENVIRONMENT, "json", |input| check(files::ENVIRONMENT, input)),
    target("run_definition", files::EXPERIMENT, "experiment", |input| {
        check(files::EXPERIMENT, input);
    }),
    target("verdict", files::VERDICT, "json", |input| check(files::VERDICT, input)),
    target("certificate", files::CERTIFICATE, "json", |input| check(files::CERTIFICATE, input)),
];

const fn target(
    name: &'static str,
    about: &'static str,
    dictionary: &'static str,
    run: fn(&[u8]),
) -> Target {
    Target { name, about, run, input_bytes_max: 16 << 10, dictionary }
}

/// A run of few samples, in which one file is replaced by `input`.
fn check(hostile: &'static str, input: &[u8]) {
    let run = run_with(hostile);
    std::fs::write(run.join(hostile), input).expect("a scratch file");
    let source = match Source::read(&run) {
        Ok(source) => source,
        Err(error) => return drop(error.to_string()),
    };
    let change = Change::of(&source.run, &source.run, source.deltas());
    let _ = change.slower();
    let sources = [source];
    draw(&Report::of(&sources, report::figure::EPSILON), input);
    let [source] = sources;
    if input.len() % 4 == 1 {
        let other = Source::read(committed()).expect("the committed run is right");
        draw(&Report::comparing(&[source, other], report::figure::EPSILON), input);
    }
}

/// The report as text and drawings, and some as a page.
pub(super) fn draw(report: &Report<'_>, input: &[u8]) {
    let text = report::text::render(report, 100);
    assert!(!has_control(&text), "a report as text holds no control character but its own styles");
    let _ = drawing::drawings(report);
    // A page has all figures and tables, and takes long.
    if input.len().is_multiple_of(8) {
        let page = report::page::render(report, Path::new("."));
        assert!(page.ends_with("</html>\n"), "a page is whole");
    }
}

/// Whether `text` holds a control character besides ends of lines and the start of a style,
/// `ESC [ NUMBERS m`.
fn has_control(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n') {
        let Some(style) = rest[at..].strip_prefix("\x1b[") else { return true };
        let after = style.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        let Some(after) = after.strip_prefix('m') else { return true };
        rest = after;
    }
    false
}

fn committed() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run"))
}

/// A copy of the committed run, whose file `hostile` an earlier input may have replaced.
fn run_with(hostile: &str) -> PathBuf {
    let run = scratch::dir(&format!("run-{hostile}"));
    if !run.join(files::ENVIRONMENT).exists() || hostile == files::ENVIRONMENT {
        for entry in std::fs::read_dir(committed()).expect("the committed run") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("it has a name");
            std::fs::copy(&path, run.join(name)).expect("copied");
        }
    }
    run
}
