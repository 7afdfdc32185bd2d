//! The machine and the file systems of a recorded environment, in words.

use serde_json::Value;

/// The file systems of the sources and of the copies.
pub(crate) fn sides(environment: &Value) -> [&str; 2] {
    ["src", "dst"].map(|side| environment[side]["fs_type"].as_str().unwrap_or("?"))
}

/// The file system of the copies, preceded by that of the sources if it differs.
pub(crate) fn file_systems(environment: &Value) -> String {
    let [src, dst] = sides(environment);
    if src == dst { dst.to_owned() } else { format!("{src} to {dst}") }
}

/// Machine, kernel and file system in a line.
pub(crate) fn line(environment: &Value) -> String {
    let text = |key: &str, unknown| environment[key].as_str().unwrap_or(unknown);
    let mut words = vec![text("cpu_model", "processor unknown").to_owned()];
    if let Some(count) = environment["cpu_count"].as_u64() {
        words.push(format!("{count} processor{}", if count == 1 { "" } else { "s" }));
    }
    if let Some(bytes) = environment["memory_bytes"].as_u64() {
        words.push(lab::words::bytes(bytes));
    }
    if environment["virtual_machine"] == true {
        words.push("virtual machine".to_owned());
    }
    let kernel = text("kernel", "kernel unknown");
    words.push(kernel.split(' ').take(2).collect::<Vec<_>>().join(" "));
    words.push(file_systems(environment));
    words.join(", ")
}
