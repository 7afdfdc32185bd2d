//! The files of a run directory, one of them hostile: what `haulage report` and `haulage compare`
//! make of them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lab::compare::Change;
use lab::run_dir::files;
use report::{Report, Source, drawing};

use super::experiment;
use crate::scratch;
use crate::target::Target;

pub(crate) const SAMPLES: Target = target("samples", files::SAMPLES, CSV_WORDS, |input| {
    check(files::SAMPLES, input);
});
pub(crate) const ROUNDS: Target = target("rounds", files::ROUNDS, CSV_WORDS, |input| {
    check(files::ROUNDS, input);
});
pub(crate) const CALLS: Target = target("calls", files::CALLS, CSV_WORDS, |input| {
    check(files::CALLS, input);
});
pub(crate) const SEQUENCES: Target = target("sequences", files::SEQUENCES, CSV_WORDS, |input| {
    check(files::SEQUENCES, input);
});
pub(crate) const REFUSALS: Target = target("refusals", files::REFUSALS, CSV_WORDS, |input| {
    check(files::REFUSALS, input);
});
pub(crate) const ENVIRONMENT: Target =
    target("environment", files::ENVIRONMENT, JSON_WORDS, |input| {
        check(files::ENVIRONMENT, input);
    });
pub(crate) const DEFINITION: Target =
    target("run_definition", files::EXPERIMENT, experiment::WORDS, |input| {
        check(files::EXPERIMENT, input);
    });
pub(crate) const VERDICT: Target = target("verdict", files::VERDICT, JSON_WORDS, |input| {
    check(files::VERDICT, input);
});
pub(crate) const CERTIFICATE: Target =
    target("certificate", files::CERTIFICATE, JSON_WORDS, |input| {
        check(files::CERTIFICATE, input);
    });

const fn target(
    name: &'static str,
    about: &'static str,
    words: &'static [&'static str],
    run: fn(&[u8]),
) -> Target {
    Target { name, about, run, input_bytes_max: 16 << 10, words, starts_program: false }
}

const CSV_WORDS: &[&str] = &[
    "methods/64K",
    "methods/1M",
    "calls/256K",
    "page/4097",
    "buffers/64K",
    "at_once/1M/2 at once",
    "read_write:64K",
    "read_write:4K",
    "copy_file_range",
    "calls",
    "copy",
    "warm",
    "cold",
    "true",
    "false",
    "read",
    "write",
    ",,",
    "\"",
    "\"\"",
    "\n",
    "0",
    "1",
    "-1",
    "18446744073709551615",
    "4294967295",
    "9007199254740993",
    "nan",
    "inf",
    "1e308",
    "0.0",
];

const JSON_WORDS: &[&str] = &[
    "\"cells\":",
    "\"parts\":",
    "\"delta\":",
    "\"delta_cold\":",
    "\"notes\":",
    "\"certificate\":",
    "\"kernel\":",
    "\"cpu_model\":",
    "\"src\":",
    "\"dst\":",
    "\"fs_type\":",
    "\"ratio\":",
    "null",
    "[]",
    "{}",
    "1e308",
    "-1",
    "0",
    "18446744073709551615",
    "\"\\u0000\"",
    "\"</script>\"",
    "\"\\u001b]0;x\\u0007\"",
];

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
