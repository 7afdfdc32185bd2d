//! The machine and the file systems of a recorded environment, in words.

use serde_json::Value;

/// The file systems of the sources and of the copies.
pub(crate) fn sides(environment: &Value) -> [&str; 2] {
    ["src", "dst"].map(|side| text(environment, &[side, "fs_type"]).unwrap_or("?"))
}

/// The file system of the copies, preceded by that of the sources if it differs.
pub(crate) fn file_systems(environment: &Value) -> String {
    let [src, dst] = sides(environment);
    if src == dst { dst.to_owned() } else { format!("{src} to {dst}") }
}

/// Machine, kernel and file system in a line.
pub(crate) fn line(environment: &Value) -> String {
    let number = |key: &str| environment.get(key).and_then(Value::as_u64);
    let mut words =
        vec![text(environment, &["cpu_model"]).unwrap_or("processor unknown").to_owned()];
    if let Some(count) = number("cpu_count") {
        words.push(format!("{count} processor{}", if count == 1 { "" } else { "s" }));
    }
    if let Some(bytes) = number("memory_bytes") {
        words.push(lab::words::bytes(bytes));
    }
    if environment.get("virtual_machine").and_then(Value::as_bool) == Some(true) {
        words.push("virtual machine".to_owned());
    }
    let kernel = text(environment, &["kernel"]).unwrap_or("kernel unknown");
    words.push(kernel.split(' ').take(2).collect::<Vec<_>>().join(" "));
    words.push(file_systems(environment));
    words.join(", ")
}

/// The string at `path` in the environment.
pub(crate) fn text<'e>(environment: &'e Value, path: &[&str]) -> Option<&'e str> {
    path.iter().try_fold(environment, |value, key| value.get(key))?.as_str()
}
