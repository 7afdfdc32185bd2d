//! Rows of a CSV file (RFC 4180), as bytes.
//!
//! A row is a struct; nested structs that serde flattens lie flat. Nothing is an empty field, and of
//! a list the items are joined by blanks.

use serde::Serialize;
use serde_json::{Map, Value};

/// The names of the fields of `row`.
///
/// # Panics
/// When `row` is no struct.
pub fn head(row: &impl Serialize) -> Vec<u8> {
    line(fields_of(row).keys())
}

/// The fields of `row`.
///
/// # Panics
/// When `row` is no struct.
pub fn row(row: &impl Serialize) -> Vec<u8> {
    line(fields_of(row).values().map(text_of))
}

/// All of `rows` below the names of their fields; nothing without rows.
///
/// # Panics
/// When one is no struct.
pub fn table(rows: &[impl Serialize]) -> Vec<u8> {
    rows.first().map(head).into_iter().chain(rows.iter().map(row)).flatten().collect()
}

fn line<F: AsRef<[u8]>>(fields: impl Iterator<Item = F>) -> Vec<u8> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(fields).expect("there is memory");
    csv.into_inner().unwrap_or_else(|_| unreachable!("there is memory"))
}

fn fields_of(row: &impl Serialize) -> Map<String, Value> {
    let row = serde_json::to_value(row).expect("rows hold plain data");
    let Value::Object(fields) = row else { panic!("a row is a struct") };
    fields
}

/// How many bytes of `csv` are whole rows: those before the last end of a line that stands in no
/// quotes. A writer that was killed may have left part of another row.
pub fn whole_rows(csv: &[u8]) -> usize {
    let (mut whole, mut quoted, mut before) = (0, false, b'\n');
    for (index, &byte) in csv.iter().enumerate() {
        match byte {
            // A quote within quotes is written twice, and so leaves and enters them. In a field without quotes
            // around it, it is damage, which the reader tells.
            b'"' if quoted || matches!(before, b',' | b'\n' | b'"') => quoted = !quoted,
            b'\n' if !quoted => whole = index + 1,
            _ => {}
        }
        before = byte;
    }
    whole
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flattened_fields_lists_and_nothing() {
        #[derive(Serialize)]
        struct Inner {
            each_ns: Vec<u64>,
            none: Option<u64>,
        }
        #[derive(Serialize)]
        struct Outer {
            name: &'static str,
            #[serde(flatten)]
            inner: Inner,
            last: bool,
        }
        let row = Outer {
            name: "a,b",
            inner: Inner { each_ns: vec![u64::MAX, 2], none: None },
            last: true,
        };
        let text = String::from_utf8(table(&[row])).expect("text");
        assert_eq!(text, "name,each_ns,none,last\n\"a,b\",18446744073709551615 2,,true\n");
    }

    #[test]
    fn a_line_that_ends_within_quotes_is_no_row() {
        for (csv, whole) in [
            ("", 0),
            ("a,b", 0),
            ("a\n", 2),
            ("a\nb", 2),
            ("a\n\"b\nc", 2),
            ("a\n\"b\nc\"\n", 8),
            ("\"say \"\"b\nc\"\"\"\nd", 14),
            // Damage, which hides no row.
            ("a\nb\"c\nd\n", 8),
        ] {
            assert_eq!(whole_rows(csv.as_bytes()), whole, "{csv:?}");
        }
    }
}
