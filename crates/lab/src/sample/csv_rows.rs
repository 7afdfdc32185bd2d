//! Rows of a CSV file (RFC 4180), written one at a time.

use std::io::Write;

use serde::Serialize;
use serde_json::{Map, Value};

/// Writes rows with the names of their fields above the first; nested structs that serde flattens
/// lie flat. Nothing is an empty field, and of a list the items are joined by blanks.
#[derive(Debug)]
pub struct Rows<W: Write> {
    csv: csv::Writer<W>,
    head_written: bool,
}

impl<W: Write> Rows<W> {
    /// Rows with names above them.
    pub fn new(out: W) -> Rows<W> {
        Rows { csv: csv::Writer::from_writer(out), head_written: false }
    }

    /// Rows that follow others, whose names stand above already.
    pub fn following(out: W) -> Rows<W> {
        Rows { csv: csv::Writer::from_writer(out), head_written: true }
    }

    /// The rows with the names of `row`'s fields above rows that are still to come: a file without
    /// any is then one that others open, too.
    ///
    /// # Errors
    /// When they cannot be written.
    ///
    /// # Panics
    /// When `row` is no struct.
    pub fn headed_as(mut self, row: &impl Serialize) -> csv::Result<Rows<W>> {
        self.head(&fields_of(row))?;
        self.csv.flush()?;
        Ok(self)
    }

    /// Adds `row`, a struct, and hands it to the writer below at once.
    ///
    /// # Errors
    /// When that cannot be written.
    ///
    /// # Panics
    /// When `row` is no struct.
    pub fn add(&mut self, row: &impl Serialize) -> csv::Result<()> {
        self.add_all([row])
    }

    /// Adds several rows and hands them to the writer below together.
    ///
    /// # Errors
    /// When they cannot be written.
    ///
    /// # Panics
    /// When one is no struct.
    pub fn add_all<'r, T: Serialize + 'r>(
        &mut self,
        rows: impl IntoIterator<Item = &'r T>,
    ) -> csv::Result<()> {
        rows.into_iter().try_for_each(|row| self.put(row))?;
        self.csv.flush()?;
        Ok(())
    }

    fn put(&mut self, row: &impl Serialize) -> csv::Result<()> {
        let fields = fields_of(row);
        self.head(&fields)?;
        self.csv.write_record(fields.values().map(text_of))
    }

    fn head(&mut self, fields: &Map<String, Value>) -> csv::Result<()> {
        if !self.head_written {
            self.csv.write_record(fields.keys())?;
            self.head_written = true;
        }
        Ok(())
    }

    /// The writer below.
    ///
    /// # Panics
    /// Never: all rows have been handed to it.
    pub fn into_inner(self) -> W {
        self.csv.into_inner().unwrap_or_else(|_| unreachable!("nothing is left to be written"))
    }
}

fn fields_of(row: &impl Serialize) -> Map<String, Value> {
    let row = serde_json::to_value(row).expect("rows hold plain data");
    let Value::Object(fields) = row else { panic!("a row is a struct") };
    fields
}

/// How many bytes of `csv` are whole rows: those before the last end of a line that stands in no
/// quotes. A writer that was killed may have left part of another row.
pub fn whole_rows(csv: &[u8]) -> usize {
    let (mut whole, mut quoted) = (0, false);
    for (index, byte) in csv.iter().enumerate() {
        match byte {
            // A quote within quotes is written twice, and so leaves and enters them.
            b'"' => quoted = !quoted,
            b'\n' if !quoted => whole = index + 1,
            _ => {}
        }
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
        let mut rows = Rows::new(Vec::new());
        rows.add(&row).expect("written");
        let text = String::from_utf8(rows.into_inner()).expect("text");
        assert_eq!(text, "name,each_ns,none,last\n\"a,b\",18446744073709551615 2,,true\n");
        let mut rows = Rows::following(Vec::new());
        rows.add(&row).expect("written");
        assert_eq!(rows.into_inner().iter().filter(|&&byte| byte == b'\n').count(), 1);
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
        ] {
            assert_eq!(whole_rows(csv.as_bytes()), whole, "{csv:?}");
        }
    }
}
