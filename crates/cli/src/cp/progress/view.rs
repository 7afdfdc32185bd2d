//! The lines of `--progress` and of the status that SIGUSR1 asks for: progress, rate, time left, and the
//! files being written. Pure: strings for a given width.

use std::time::{Duration, Instant};

use haulage::events::{CurrentFile, Progress, Totals};

use crate::cp::job::OtherRanks;
use crate::cp::messages::quote;
use crate::cp::progress::rate::RateEstimator;
use crate::cp::units::{bytes, bytes_of, clock, count, entry_rate, rate};
use crate::terminal::screen::{EMOJI_SELECTOR, width, width_of};

/// A run at one instant.
#[derive(Debug)]
pub(crate) struct View {
    progress: Progress,
    /// What the pre-scan has counted so far; `None` without a pre-scan.
    total: Option<Totals>,
    rate: Rate,
    left: Option<Duration>,
    /// All is copied, and a file system that does not tell how much of it is on the medium is waited for.
    syncs: bool,
    files: Vec<CurrentFile>,
    /// The ranks of the job, and those of them that have nothing to do.
    ranks: Option<(u32, u32)>,
}

/// Rate, a second.
#[derive(Clone, Copy, Debug)]
enum Rate {
    Bytes(f64),
    /// For small files the number of files says more than their bytes.
    Entries(f64),
}

/// Files with a smaller average size count as small.
const SMALL_BYTES: u64 = 4096;

impl View {
    pub(crate) fn new(
        now: Instant,
        estimator: &RateEstimator,
        progress: Progress,
        total: Option<Totals>,
        files: Vec<CurrentFile>,
    ) -> View {
        let gone = progress.bytes + progress.skipped_bytes;
        // Files that appear while the run lasts may be copied without having been counted.
        let total = total.map(|total| Totals {
            entries: total.entries.max(progress.entries),
            bytes: total.bytes.max(gone),
            ..total
        });
        // A pre-scan that the copy has overtaken does not say how much is left.
        let total = total.filter(|total| total.all || total.entries > progress.entries);
        let all_bytes = total.filter(|total| total.all).map_or(0, |total| total.bytes);
        let syncs = progress.unwritten_bytes > 0 && all_bytes > 0 && gone >= all_bytes;
        let left = total.and_then(|total| estimator.time_left(now, progress, total));
        View {
            progress,
            total,
            rate: if gone < progress.entries.saturating_mul(SMALL_BYTES) {
                Rate::Entries(estimator.entries_per_second(now, progress))
            } else {
                Rate::Bytes(estimator.bytes_per_second(now, progress))
            },
            left: left.filter(|_| !syncs),
            syncs,
            files,
            ranks: None,
        }
    }

    /// The view as the progress of a job of which `others` are the other ranks. Which files they write is
    /// not known here, so none is shown.
    pub(crate) fn with_other_ranks(self, others: Option<OtherRanks>) -> View {
        match others.filter(|others| others.ranks > 0) {
            Some(OtherRanks { ranks, waiting, .. }) => {
                View { files: Vec::new(), ranks: Some((ranks + 1, waiting)), ..self }
            }
            None => self,
        }
    }

    /// The bar, and below it the files being copied. No line is wider than `columns`, and there are no
    /// more lines than fit above the prompt of a terminal with `rows` rows.
    pub(crate) fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        // Terminals differ in whether a full last column wraps the line.
        let columns = columns.saturating_sub(1).max(1);
        let names = self.files.len().min(rows.saturating_sub(2)).min(NAMES_MAX);
        let mut lines = vec![self.bar(columns)];
        lines.extend(self.files[..names].iter().map(|file| name_line(file, columns)));
        lines
    }

    /// The status line for SIGUSR1, of any length.
    pub(crate) fn status(&self) -> String {
        let names: Vec<String> = self.files.iter().map(described).collect();
        let names =
            if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        format!("cp: {}{names}\n", self.figures(4))
    }

    /// The bar and the figures. A narrower terminal gets fewer figures.
    fn bar(&self, columns: usize) -> String {
        let share = self.share();
        let percent = share.map_or(String::new(), |share| format!("{:>3.0} % ", share * 100.0));
        let room = columns.saturating_sub(percent.len());
        let fitting =
            (0..=4).rev().map(|detail| self.figures(detail)).find(|text| text.len() <= room);
        let figures = fitting.unwrap_or_default();
        let bar_columns = room.saturating_sub(figures.len() + 3);
        let bar = match share {
            Some(share) if bar_columns >= BAR_COLUMNS_MIN => {
                let columns = bar_columns.min(BAR_COLUMNS_MAX);
                let full = (columns as f64 * share).floor();
                // A share is at most 1.
                let full = "#".repeat((0..columns).take_while(|&at| (at as f64) < full).count());
                format!("[{full:-<columns$}] ")
            }
            _ => String::new(),
        };
        format!("{percent}{bar}{figures}").trim_end().to_owned()
    }

    /// The figures up to `detail`, from 0 to 4.
    fn figures(&self, detail: usize) -> String {
        let Progress { entries, bytes: moved, skipped_bytes, .. } = self.progress;
        let gone = moved + skipped_bytes;
        let mut figures = Vec::new();
        match self.total {
            Some(all) if all.all => {
                figures.push((1, bytes_of(gone, all.bytes)));
                // For one file the bytes suffice.
                if all.entries > 1 {
                    let files = format!("{} of {} files", count(entries), count(all.entries));
                    figures.push((3, files));
                }
            }
            Some(some) if detail >= 4 => {
                figures.push((1, format!("{} of at least {}", bytes(gone), bytes(some.bytes))));
                let files = format!("{} of {}+ files", count(entries), count(some.entries));
                figures.push((3, files));
            }
            _ => {
                figures.push((1, bytes(gone)));
                figures.push((3, format!("{} files", count(entries))));
            }
        }
        let rate = match self.rate {
            Rate::Bytes(per_second) => rate(per_second),
            Rate::Entries(per_second) => entry_rate(per_second),
        };
        figures.push((2, rate));
        if let Some(left) = self.left {
            // Rounded up: "0:00 left" means that nothing is left.
            let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
            figures.push((0, format!("{} left", clock(Duration::from_secs(seconds)))));
        }
        if self.syncs {
            figures.push((0, String::from("waiting for the medium")));
        }
        if let Some((ranks, waiting)) = self.ranks {
            let waiting = match waiting {
                0 => String::new(),
                some => format!(" ({} waiting)", count(some.into())),
            };
            figures.push((2, format!("{} ranks{waiting}", count(ranks.into()))));
        }
        let shown = figures.into_iter().filter(|(from, _)| *from <= detail);
        shown.map(|(_, text)| text).collect::<Vec<_>>().join(", ")
    }

    /// The share that is done, once the total is known: by bytes, or by entries if all are empty.
    fn share(&self) -> Option<f64> {
        let all = self.total.filter(|total| total.all)?;
        let Progress { entries, bytes, skipped_bytes, .. } = self.progress;
        let share = match (all.bytes, all.entries) {
            (0, 0) => return None,
            (0, of) => entries as f64 / of as f64,
            (of, _) => (bytes + skipped_bytes) as f64 / of as f64,
        };
        // 100 % is shown only at the end.
        Some(if entries < all.entries { share.min(0.99) } else { share.min(1.0) })
    }
}

const BAR_COLUMNS_MIN: usize = 6;
const BAR_COLUMNS_MAX: usize = 40;

/// Names that are shown at once. The names of more workers on small files change too fast to read.
const NAMES_MAX: usize = 4;

fn name_line(file: &CurrentFile, columns: usize) -> String {
    let percent = percent_of(file).map_or(String::new(), |percent| format!("  {percent}"));
    let room = columns.saturating_sub(2 + percent.len());
    format!("  {}{percent}", cut_front(&without_formatting(&quoted(file)), room))
}

fn described(file: &CurrentFile) -> String {
    let percent = percent_of(file).map_or(String::new(), |percent| format!(" ({percent})"));
    format!("{}{percent}", quoted(file))
}

/// The size from which a file's own percentage is shown. A smaller file is complete before it is read.
const PERCENT_BYTES_MIN: u64 = 16 << 20;

fn percent_of(file: &CurrentFile) -> Option<String> {
    let CurrentFile { bytes, unwritten_bytes, bytes_expected, .. } = *file;
    let bytes = bytes.saturating_sub(unwritten_bytes);
    let is_large = bytes_expected >= PERCENT_BYTES_MIN;
    is_large.then(|| {
        format!("{:.0} %", 100.0 * bytes.min(bytes_expected) as f64 / bytes_expected as f64)
    })
}

/// The name as in messages: quoted, without control characters.
fn quoted(file: &CurrentFile) -> String {
    String::from_utf8_lossy(&quote::name(&file.dst)).into_owned()
}

/// `text` without the Unicode characters that change the writing direction, which could show a name
/// other than the file's.
fn without_formatting(text: &str) -> String {
    let marks = ['\u{61c}', '\u{200e}', '\u{200f}'];
    let spans = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_bidi = |c| marks.contains(&c) || spans(c);
    text.replace(is_bidi, "\u{fffd}")
}

/// `text`, or its end after dots if it is too wide: the names of one directory differ at their ends.
fn cut_front(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let dots = "...".get(..columns.min(3)).unwrap_or("");
    let mut room = columns - dots.len();
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let wide = width_of(c);
        if wide > room {
            break;
        }
        room -= wide;
        // A combining mark belongs to the character before it.
        if wide > 0 && c != EMOJI_SELECTOR {
            start = at;
        }
    }
    format!("{dots}{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn file(name: &[u8], bytes: u64, bytes_expected: u64) -> CurrentFile {
        CurrentFile {
            dst: OsStr::from_bytes(name).into(),
            bytes,
            unwritten_bytes: 0,
            bytes_expected,
            atomic: false,
        }
    }

    fn view(total: Option<Totals>, files: Vec<CurrentFile>) -> View {
        View {
            progress: Progress {
                entries: 1204,
                bytes: 2 * GIB,
                skipped_bytes: 100 * MIB,
                unwritten_bytes: 0,
            },
            total,
            rate: Rate::Bytes(412.0 * MIB as f64),
            left: total.filter(|total| total.all).map(|_| Duration::from_secs(67)),
            syncs: false,
            files,
            ranks: None,
        }
    }

    fn total(all: bool) -> Option<Totals> {
        Some(Totals { entries: 3000, bytes: 5 * GIB, all })
    }

    #[test]
    fn the_bar_says_what_there_is_room_for() {
        for (columns, total, expected) in [
            (
                200,
                total(true),
                " 42 % [################------------------------] 2.10 of 5.00 GiB, \
                 1,204 of 3,000 files, 412 MiB/s, 1:07 left",
            ),
            (
                80,
                total(true),
                " 42 % [####------] 2.10 of 5.00 GiB, 1,204 of 3,000 files, 412 MiB/s, 1:07 left",
            ),
            (40, total(true), " 42 % 2.10 of 5.00 GiB, 1:07 left"),
            (20, total(true), " 42 % 1:07 left"),
            (10, total(true), " 42 %"),
            (6, None, ""),
            (200, total(false), "2.10 GiB of at least 5.00 GiB, 1,204 of 3,000+ files, 412 MiB/s"),
            (80, total(false), "2.10 GiB of at least 5.00 GiB, 1,204 of 3,000+ files, 412 MiB/s"),
            (40, total(false), "2.10 GiB, 1,204 files, 412 MiB/s"),
            (80, None, "2.10 GiB, 1,204 files, 412 MiB/s"),
        ] {
            let lines = view(total, Vec::new()).lines(columns, 24);
            assert!(lines[0].len() < columns, "{lines:?}");
            assert_eq!(lines, [expected], "{columns}");
        }
    }

    #[test]
    fn names_are_quoted_and_cut_to_the_columns() {
        let names: &[&[u8]] = &[
            b"dst/plain",
            b"dst/with\nnewline\x1b[31m",
            b"dst/\xff\xfe",
            "dst/\u{202e}gpj.exe\u{2066}".as_bytes(),
            "dst/写真/とても長い名前のファイルがここにあります.jpeg".as_bytes(),
            &[b'n'; 300],
        ];
        for columns in [1, 3, 10, 40, 80, 200] {
            for name in names {
                let view = view(None, vec![file(name, 5 * MIB, 20 * MIB)]);
                let lines = view.lines(columns, 24);
                let shown = lines.last().expect("found");
                if columns >= 10 {
                    assert!(width(shown) < columns, "{columns}: {shown}");
                    assert!(shown.ends_with("  25 %"), "{shown}");
                }
                assert!(!shown.chars().any(char::is_control), "{shown:?}");
                assert!(!shown.contains(['\u{202e}', '\u{2066}']), "{shown:?}");
            }
        }
    }

    #[test]
    fn wide_characters_are_cut_between() {
        for (text, columns, expected) in [
            ("abc", 3, "abc"),
            ("abcdef", 5, "...ef"),
            ("写真写真", 8, "写真写真"),
            ("写真写真", 7, "...写真"),
            ("写真写真", 6, "...真"),
            ("abce\u{301}ff", 5, "...ff"),
            ("abce\u{301}f", 4, "...f"),
            ("abce\u{301}fgh", 6, "...fgh"),
            ("❤\u{fe0f}❤\u{fe0f}❤\u{fe0f}", 5, "...❤\u{fe0f}"),
            ("❤\u{fe0f}❤\u{fe0f}❤\u{fe0f}", 4, "..."),
            ("abcdef", 2, ".."),
            ("abcdef", 0, ""),
        ] {
            assert_eq!(cut_front(text, columns), expected, "{text} in {columns}");
            assert!(width(expected) <= columns);
        }
    }

    #[test]
    fn only_so_many_names_are_shown() {
        let files = vec![file(b"a", 0, 0); 9];
        assert_eq!(view(None, files.clone()).lines(80, 24).len(), 1 + NAMES_MAX);
        assert_eq!(view(None, files.clone()).lines(80, 3).len(), 2);
        assert_eq!(view(None, files).lines(80, 1).len(), 1);
    }

    #[test]
    fn the_status_line_names_all_that_is_at_hand() {
        let files = vec![file(b"d/a", 5 * MIB, 20 * MIB), file(b"d/b c", 0, 10)];
        assert_eq!(
            view(None, files).status(),
            "cp: 2.10 GiB, 1,204 files, 412 MiB/s: 'd/a' (25 %), 'd/b c'\n"
        );
        assert_eq!(
            view(total(true), Vec::new()).status(),
            "cp: 2.10 of 5.00 GiB, 1,204 of 3,000 files, 412 MiB/s, 1:07 left\n"
        );
    }

    #[test]
    fn the_progress_of_a_job_names_its_ranks_and_no_file() {
        let others = |waiting| Some(OtherRanks { ranks: 3, waiting, ..OtherRanks::default() });
        let view = |others| view(None, vec![file(b"d/a", 0, 0)]).with_other_ranks(others);
        let status = "cp: 2.10 GiB, 1,204 files, 412 MiB/s, 4 ranks";
        assert_eq!(view(others(0)).status(), format!("{status}\n"));
        assert_eq!(view(others(2)).status(), format!("{status} (2 waiting)\n"));
        assert_eq!(view(others(2)).lines(45, 24), ["2.10 GiB, 412 MiB/s, 4 ranks (2 waiting)"]);
        let alone = view(Some(OtherRanks::default())).status();
        assert_eq!(alone, "cp: 2.10 GiB, 1,204 files, 412 MiB/s: 'd/a'\n");
    }

    #[test]
    fn small_files_are_counted_and_not_weighed() {
        let begun = Instant::now();
        let now = begun + Duration::from_secs(2);
        let view = |entries, bytes| {
            let progress = Progress { entries, bytes, ..Progress::default() };
            View::new(now, &RateEstimator::new(begun), progress, None, Vec::new()).status()
        };
        assert_eq!(view(9000, 900_000), "cp: 879 KiB, 9,000 files, 4,500 files/s\n");
        assert_eq!(view(100, 20 * MIB), "cp: 20.0 MiB, 100 files, 10.0 MiB/s\n");
        assert_eq!(view(0, 0), "cp: 0 B, 0 files, 0 B/s\n");
    }

    #[test]
    fn a_sync_of_which_nothing_is_known_has_no_time_left() {
        let begun = Instant::now();
        let now = begun + Duration::from_secs(2);
        let status = |bytes, unwritten_bytes| {
            let progress = Progress { bytes, unwritten_bytes, ..Progress::default() };
            let total = Some(Totals { entries: 1, bytes: 20 * MIB, all: true });
            View::new(now, &RateEstimator::new(begun), progress, total, Vec::new()).status()
        };
        let copying = "cp: 10.0 of 20.0 MiB, 5.00 MiB/s, 0:03 left\n";
        assert_eq!(status(10 * MIB, 10 * MIB), copying);
        let waiting = "cp: 20.0 of 20.0 MiB, 10.0 MiB/s, waiting for the medium\n";
        assert_eq!(status(20 * MIB, 20 * MIB), waiting);
    }

    #[test]
    fn no_time_is_left_only_when_nothing_is() {
        let left = |millis| {
            let mut view = view(total(true), Vec::new());
            view.left = Some(Duration::from_millis(millis));
            view.figures(1).split(", ").last().expect("found").to_owned()
        };
        assert_eq!(
            [left(0), left(1), left(1000), left(59_001)],
            ["0:00 left", "0:01 left", "0:01 left", "1:00 left"]
        );
    }
}
