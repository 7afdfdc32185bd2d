//! Figures that earlier studies published. They are built in; `experiments/reference/README.md`
//! gives the source and the limits of each.

use std::sync::OnceLock;

use engines::Bytes;
use serde::{Deserialize, Serialize};

use crate::stats::median;

/// A collection of published figures.
#[derive(Debug)]
pub struct Data {
    /// What an experiment calls it.
    pub name: &'static str,
    /// What it is, for readers; `{years}` stands for the years of the figures shown.
    pub title: &'static str,
    /// How its series are named, for an error message.
    pub names: &'static str,
    text: &'static str,
    /// Adds to a figure of the text what all of them have in common.
    complete: fn(Figure) -> Figure,
    rows: OnceLock<Vec<Row>>,
}

/// All of them.
pub static DATA: [Data; 2] = [
    Data {
        name: "copying-disk-bytes",
        title: "\"Copying disk bytes in C\", 2025, computed from its raw measurements",
        names: "SERIES or SERIES@BUFFER, as size:sendfile or bufsiz:posix_buffered@4096",
        text: include_str!("../../experiments/reference/copying-disk-bytes.csv"),
        complete: of_the_article,
        rows: OnceLock::new(),
    },
    Data {
        name: "earlier-measurements",
        title: "figures published in {years}",
        names: "SOURCE/METHOD, where that is not enough with / and the experiment, system or state",
        text: include_str!("../../experiments/reference/earlier-measurements.csv"),
        complete: std::convert::identity,
        rows: OnceLock::new(),
    },
];

/// What was published of one method at one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figure {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the buffer, where the series is one over buffers.
    pub buffer_bytes: Option<u64>,
    /// Runs behind the figure, or calls; none where that was not said.
    pub runs: Option<u64>,
    /// The time; the median of several.
    pub elapsed_ns: f64,
    /// The 5 % quantile, where there were enough runs.
    pub elapsed_ns_p05: Option<f64>,
    /// The 95 % quantile.
    pub elapsed_ns_p95: Option<f64>,
    /// Processor time in user mode.
    pub user_ns: Option<f64>,
    /// Processor time in the kernel.
    pub system_ns: Option<f64>,
    /// Page faults that waited for a device.
    pub major_faults: Option<u64>,
    /// What was run.
    pub experiment: String,
    /// Where it was measured.
    pub system: String,
    /// What was said of the page cache.
    pub state: String,
    /// How it was measured, in words.
    pub note: String,
    /// The year.
    pub year: u32,
}

#[derive(Debug)]
struct Row {
    /// What a name has to say of it: the series, or source and method.
    name: String,
    figure: Figure,
}

/// The collection called `name`.
pub fn by_name(name: &str) -> Option<&'static Data> {
    DATA.iter().find(|data| data.name == name)
}

impl Data {
    /// The figures of a series, one a size and in ascending order; none when there is no such
    /// series.
    pub fn figures(&self, series: &str) -> Vec<Figure> {
        let rows = self.rows.get_or_init(|| self.read());
        let mut found: Vec<&Figure> =
            rows.iter().filter(|row| row.is_called(series)).map(|row| &row.figure).collect();
        found.sort_by_key(|figure| figure.file_bytes);
        found.chunk_by(|a, b| a.file_bytes == b.file_bytes).map(Figure::together).collect()
    }

    /// The rows of the text: the first column is the name, the others are fields of a figure.
    fn read(&self) -> Vec<Row> {
        let mut lines = csv::Reader::from_reader(self.text.as_bytes());
        let heads = lines.headers().expect(BUILT_IN).clone();
        let row = |line: csv::Result<csv::StringRecord>| {
            let line = line.expect(BUILT_IN);
            let figure = line.deserialize(Some(&heads)).expect(BUILT_IN);
            Row { name: line[0].to_owned(), figure: (self.complete)(figure) }
        };
        lines.records().map(row).collect()
    }
}

/// Why a text can be read.
const BUILT_IN: &str = "the file comes with the program";

impl Row {
    fn is_called(&self, series: &str) -> bool {
        let Figure { buffer_bytes, experiment, system, state, .. } = &self.figure;
        match buffer_bytes {
            Some(buffer) => series.rsplit_once('@').is_some_and(|(name, text)| {
                name == self.name && text.parse() == Ok(Bytes(*buffer))
            }),
            None if series == self.name => true,
            None => series
                .strip_prefix(&self.name)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| [experiment, system, state].iter().any(|&of| rest == of)),
        }
    }
}

impl Figure {
    /// Several figures of one method and size as one: medians.
    fn together(figures: &[&Figure]) -> Figure {
        let middle = |field: fn(&Figure) -> Option<f64>| {
            median(figures.iter().filter_map(|figure| field(figure)))
        };
        if let [one] = figures {
            return (*one).clone();
        }
        let notes: Vec<&str> = figures.iter().map(|figure| figure.note.as_str()).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Counts.
        let major_faults = middle(|f| f.major_faults.map(|n| n as f64)).map(|n| n.round() as u64);
        Figure {
            runs: figures.iter().map(|figure| figure.runs).sum(),
            elapsed_ns: middle(|f| Some(f.elapsed_ns)).expect("there is one"),
            user_ns: middle(|f| f.user_ns),
            system_ns: middle(|f| f.system_ns),
            major_faults,
            note: notes.join("; "),
            ..figures[0].clone()
        }
    }
}

/// What the figures of the article of 2025 have in common.
fn of_the_article(figure: Figure) -> Figure {
    let system =
        "Linux 6.12.38, Ryzen 3600X, 500 GB SSD, ext4 on LVM on LUKS2, gcc 15.2, glibc 2.41";
    let (experiment, system) = ("copy a file".to_owned(), system.to_owned());
    Figure { experiment, system, year: 2025, ..figure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(data: &str, series: &str) -> Vec<Figure> {
        by_name(data).expect("there").figures(series)
    }

    #[test]
    fn every_row_has_a_size_and_a_time() {
        for (data, expected) in DATA.iter().zip([575, 30]) {
            let rows = data.read();
            assert_eq!(rows.len(), expected, "{}", data.name);
            for Row { name, figure } in rows {
                assert!(figure.file_bytes > 0 && figure.elapsed_ns > 0.0, "{name}: {figure:?}");
            }
        }
    }

    #[test]
    fn a_series_is_found_by_its_name() {
        let sizes = figures("copying-disk-bytes", "size:sendfile");
        assert_eq!(sizes.len(), 15);
        assert_eq!((sizes[0].file_bytes, sizes[14].file_bytes), (64, 1 << 20));
        let buffer = figures("copying-disk-bytes", "bufsiz:posix_buffered@12K");
        assert_eq!((buffer.len(), buffer[0].elapsed_ns), (15, 16_760.0));
        assert_eq!(figures("copying-disk-bytes", "call_write@64K")[0].elapsed_ns, 37_180.0);
        assert!(figures("copying-disk-bytes", "call_write@4K").is_empty(), "it was lost");
        assert!(figures("copying-disk-bytes", "bufsiz:posix_buffered").is_empty());
        assert!(figures("copying-disk-bytes", "size:teleport").is_empty());
    }

    #[test]
    fn several_figures_of_a_method_become_their_median() {
        let both =
            figures("earlier-measurements", "teterin/mmap/FreeBSD dual P2 Xeon 450 2M cache");
        assert_eq!((both.len(), both[0].runs), (1, Some(2)));
        assert!((both[0].elapsed_ns / 1e9 - 68.175).abs() < 1e-9, "{both:?}");
        assert_eq!(both[0].major_faults, Some(4607));
        let warm = "closson-1-misha/read 8K + write 8K (GNU cp 4.0)/warm";
        let warm = figures("earlier-measurements", warm);
        assert_eq!((warm[0].runs, warm[0].elapsed_ns), (Some(1), 190_000_000.0));
    }
}
