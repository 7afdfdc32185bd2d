//! Rows of a CSV file (RFC 4180), written one at a time.

use std::io::Write;

use serde::Serialize;
use serde_json::{Map, Value};

/// Writes rows with the names of their fields above the first; nested structs that serde flattens
/// lie flat. Nothing is an empty field, and of a list the items are joined by blanks.
#[derive(Debug)]
pub struct Rows<W: Write> {
    out: W,
    head_written: bool,
}

impl<W: Write> Rows<W> {
    /// Rows with names above them.
    pub fn new(out: W) -> Rows<W> {
        Rows { out, head_written: false }
    }

    /// Rows that follow others, whose names stand above already.
    pub fn following(out: W) -> Rows<W> {
        Rows { out, head_written: true }
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
        let mut csv = csv::Writer::from_writer(Vec::new());
        self.head(&mut csv, &fields_of(row))?;
        self.hand_on(csv)?;
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
        let mut csv = csv::Writer::from_writer(Vec::new());
        for row in rows {
            let fields = fields_of(row);
            self.head(&mut csv, &fields)?;
            csv.write_record(fields.values().map(text_of))?;
        }
        self.hand_on(csv)
    }

    fn head(
        &mut self,
        csv: &mut csv::Writer<Vec<u8>>,
        fields: &Map<String, Value>,
    ) -> csv::Result<()> {
        if !self.head_written {
            csv.write_record(fields.keys())?;
            self.head_written = true;
        }
        Ok(())
    }

    /// A `csv::Writer` of the file itself would write what it failed to write once more when it is dropped, behind
    /// the part that a full disk took.
    fn hand_on(&mut self, csv: csv::Writer<Vec<u8>>) -> csv::Result<()> {
        let rows = csv.into_inner().unwrap_or_else(|_| unreachable!("there is memory"));
        self.out.write_all(&rows)?;
        Ok(self.out.flush()?)
    }

    /// The writer below.
    pub fn into_inner(self) -> W {
        self.out
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
        let mut rows = Rows::new(Vec::new());
        rows.add(&row).expect("written");
        let text = String::from_utf8(rows.into_inner()).expect("text");
        assert_eq!(text, "name,each_ns,none,last\n\"a,b\",18446744073709551615 2,,true\n");
        let mut rows = Rows::following(Vec::new());
        rows.add(&row).expect("written");
        assert_eq!(rows.into_inner().iter().filter(|&&byte| byte == b'\n').count(), 1);
    }

    /// A disk with so much room, which is full once.
    struct Disk<'d>(usize, &'d mut Vec<u8>);

    impl Write for Disk<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.1.extend(&bytes[..taken]);
            self.0 = if taken == 0 { usize::MAX } else { self.0 - taken };
            if taken == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_refused_is_not_written_later() {
        #[derive(Serialize)]
        struct Row {
            name: &'static str,
        }
        let mut written = Vec::new();
        let mut rows = Rows::following(Disk(3, &mut written));
        rows.add(&Row { name: "a word" }).expect_err("full");
        assert_eq!(written, b"a w");
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
