//! The committed run with names that somebody chose who wants more of a report than to be shown.

use std::path::Path;

use serde_json::json;

/// Names of variants and what they stand in place of. What is no engine is refused, but a label in
/// brackets may say anything.
pub(crate) const VARIANTS: [(&str, &str); 3] = [
    ("sendfile", "sendfile [<img src=x onerror=\"window.pwned=1\">]"),
    ("copy_file_range", "copy_file_range [</script><script>window.pwned=1</script>]"),
    ("read_write:4K", "read_write:4K [<a href=\"javascript:window.pwned=1\">|&lt;%{x}</a>]"),
];

/// The title: it ends the page's own, and holds an escape sequence for terminals.
pub(crate) const TITLE: &str = "</title><script>window.pwned=1</script>\u{1b}]0;pwned\u{7}";

const QUESTION: &str = "<svg onload=\"window.pwned=1\">\u{1b}[2J";

const PROCESSOR: &str = "\"><iframe src=\"javascript:window.pwned=1\">";

/// Makes the run in `home`.
pub(crate) fn run(home: &Path) {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/small");
    let read = |name: &str| std::fs::read_to_string(committed.join(name)).expect("read");
    let write = |name: &str, text: &str| std::fs::write(home.join(name), text).expect("written");
    // Strings of JSON are strings of TOML.
    let quoted = |text: &str| json!(text).to_string();
    let mut definition: Vec<String> = read("experiment.toml").lines().map(str::to_owned).collect();
    for line in &mut definition {
        if line.starts_with("title = ") {
            *line = format!("title = {}", quoted(TITLE));
        } else if line.starts_with("question = ") {
            *line = format!("question = {}", quoted(QUESTION));
        }
        for (name, hostile) in VARIANTS {
            if line.starts_with(&format!("{name} = ")) {
                *line = line.replacen(name, &quoted(hostile), 1);
            }
            *line = line.replace(&format!("\"{name}\""), &quoted(hostile));
        }
    }
    write("experiment.toml", &definition.join("\n"));
    let mut samples = read("samples.csv");
    for (name, hostile) in VARIANTS {
        let field = format!("\"{}\"", hostile.replace('"', "\"\""));
        samples = samples.replace(&format!(",{name},"), &format!(",{field},"));
    }
    write("samples.csv", &samples);
    let mut environment: serde_json::Value =
        serde_json::from_str(&read("environment.json")).expect("parsed");
    environment["cpu_model"] = json!(PROCESSOR);
    write("environment.json", &environment.to_string());
    for name in ["rounds.csv", "calls.csv", "sequences.csv"] {
        write(name, &read(name));
    }
}
