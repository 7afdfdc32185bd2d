//! The words of `--progress` and of the line that SIGUSR1 asks for: how far a run is, how fast, what
//! is left, and which files are being written. Nothing here knows a terminal.

use std::time::{Duration, Instant};

use tree::{CurrentFile, Progress, Totals};
use unicode_width::UnicodeWidthChar;

use super::figures::{bytes, bytes_of, clock, count, entry_rate, rate};
use super::quote;
use super::speed::Speed;

/// A run at one instant.
#[derive(Debug)]
pub(super) struct View {
    progress: Progress,
    /// What there is to do, as far as it was counted; `None` when nobody counts.
    counted: Option<Totals>,
    rate: Rate,
    left: Option<Duration>,
    in_hand: Vec<CurrentFile>,
}

/// How fast it goes, a second.
#[derive(Clone, Copy, Debug)]
enum Rate {
    Bytes(f64),
    /// Of small files bytes say little.
    Entries(f64),
}

/// An average file of less is a small one.
const SMALL_BYTES: u64 = 4096;

impl View {
    pub(super) fn new(
        now: Instant,
        speed: &Speed,
        progress: Progress,
        counted: Option<Totals>,
        in_hand: Vec<CurrentFile>,
    ) -> View {
        let gone = progress.bytes + progress.skipped_bytes;
        // What comes to be while the run lasts was not there to be counted.
        let counted = counted.map(|counted| Totals {
            entries: counted.entries.max(progress.entries),
            bytes: counted.bytes.max(gone),
            ..counted
        });
        // A count that the copy has overtaken says nothing of what is to come.
        let counted = counted.filter(|counted| counted.all || counted.entries > progress.entries);
        View {
            progress,
            counted,
            rate: if gone < progress.entries.saturating_mul(SMALL_BYTES) {
                Rate::Entries(speed.entries_per_second(now, progress))
            } else {
                Rate::Bytes(speed.bytes_per_second(now, progress))
            },
            left: counted.and_then(|counted| speed.left(now, progress, counted)),
            in_hand,
        }
    }

    /// The bar and below it the names of files at hand, none wider than `columns`, and no more
    /// lines than fit above the prompt of a terminal of so many `rows`.
    pub(super) fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        // Terminals differ in what they do when the last column is filled.
        let columns = columns.saturating_sub(1).max(1);
        let names = self.in_hand.len().min(rows.saturating_sub(2)).min(NAMES_MAX);
        let mut lines = vec![self.bar(columns)];
        lines.extend(self.in_hand[..names].iter().map(|file| name_line(file, columns)));
        lines
    }

    /// One line without a limit, for those who asked once.
    pub(super) fn status(&self) -> String {
        let names: Vec<String> = self.in_hand.iter().map(described).collect();
        let names =
            if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        format!("cp: {}{names}\n", self.figures(4))
    }

    /// A bar with the figures behind it. Where there is little room, less is said.
    fn bar(&self, columns: usize) -> String {
        let share = self.share();
        let percent = share.map_or(String::new(), |share| format!("{:>3.0} % ", share * 100.0));
        let room = columns.saturating_sub(percent.len());
        let fitting = (0..=4).rev().map(|much| self.figures(much)).find(|text| text.len() <= room);
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

    /// The figures, the more of them the higher `much` is, up to 4.
    fn figures(&self, much: usize) -> String {
        let Progress { entries, bytes: moved, skipped_bytes } = self.progress;
        let gone = moved + skipped_bytes;
        let mut figures = Vec::new();
        match self.counted {
            Some(all) if all.all => {
                figures.push((1, bytes_of(gone, all.bytes)));
                // Of one file the bytes say all.
                if all.entries > 1 {
                    let files = format!("{} of {} files", count(entries), count(all.entries));
                    figures.push((3, files));
                }
            }
            Some(some) if much >= 4 => {
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
            // Nothing is done in no time: what has begun of a second is a whole one.
            let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
            figures.push((0, format!("{} left", clock(Duration::from_secs(seconds)))));
        }
        let shown = figures.into_iter().filter(|(from, _)| *from <= much);
        shown.map(|(_, text)| text).collect::<Vec<_>>().join(", ")
    }

    /// How much of the whole is done, once the whole is known: by bytes, and by entries where none
    /// of them has any.
    fn share(&self) -> Option<f64> {
        let all = self.counted.filter(|counted| counted.all)?;
        let Progress { entries, bytes, skipped_bytes } = self.progress;
        let share = match (all.bytes, all.entries) {
            (0, 0) => return None,
            (0, of) => entries as f64 / of as f64,
            (of, _) => (bytes + skipped_bytes) as f64 / of as f64,
        };
        // Only the end is the end.
        Some(if entries < all.entries { share.min(0.99) } else { share.min(1.0) })
    }
}

const BAR_COLUMNS_MIN: usize = 6;
const BAR_COLUMNS_MAX: usize = 40;

/// Names that are shown at once. More than so many workers on small files say nothing to anybody.
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

/// What is worth a figure of its own: less than that is done before anybody has read it.
const FIGURE_BYTES_MIN: u64 = 16 << 20;

fn percent_of(file: &CurrentFile) -> Option<String> {
    let CurrentFile { bytes, bytes_expected, .. } = *file;
    let worth = bytes_expected >= FIGURE_BYTES_MIN;
    worth.then(|| {
        format!("{:.0} %", 100.0 * bytes.min(bytes_expected) as f64 / bytes_expected as f64)
    })
}

/// The name as messages have it, which holds nothing that a terminal would act on.
fn quoted(file: &CurrentFile) -> String {
    String::from_utf8_lossy(&quote::name(&file.dst)).into_owned()
}

/// `text` without what turns the rest of a line around, which in lines that change ten times a
/// second nobody would find out.
fn without_formatting(text: &str) -> String {
    let marks = ['\u{61c}', '\u{200e}', '\u{200f}'];
    let spans = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let turns = |c| marks.contains(&c) || spans(c);
    text.replace(turns, "\u{fffd}")
}

/// The end of `text`, with dots in front of it, where the whole is too wide: files of one directory
/// differ in the ends of their names.
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
        // A mark belongs to what stands before it.
        if wide > 0 && c != EMOJI_SELECTOR {
            start = at;
        }
    }
    format!("{dots}{}", &text[start..])
}

/// The columns that `text` takes, or more: terminals differ in what they put together, and none may
/// break a line.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// Makes the letter before it an emoji, which is wider.
const EMOJI_SELECTOR: char = '\u{fe0f}';

fn width_of(c: char) -> usize {
    if c == EMOJI_SELECTOR { 1 } else { c.width().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn file(name: &[u8], bytes: u64, bytes_expected: u64) -> CurrentFile {
        CurrentFile { dst: OsStr::from_bytes(name).into(), bytes, bytes_expected, atomic: false }
    }

    fn view(counted: Option<Totals>, in_hand: Vec<CurrentFile>) -> View {
        View {
            progress: Progress { entries: 1204, bytes: 2 * GIB, skipped_bytes: 100 * MIB },
            counted,
            rate: Rate::Bytes(412.0 * MIB as f64),
            left: counted.filter(|counted| counted.all).map(|_| Duration::from_secs(67)),
            in_hand,
        }
    }

    fn counted(all: bool) -> Option<Totals> {
        Some(Totals { entries: 3000, bytes: 5 * GIB, all })
    }

    #[test]
    fn the_bar_says_what_there_is_room_for() {
        for (columns, counted, expected) in [
            (
                200,
                counted(true),
                " 42 % [################------------------------] 2.10 of 5.00 GiB, \
                 1,204 of 3,000 files, 412 MiB/s, 1:07 left",
            ),
            (
                80,
                counted(true),
                " 42 % [####------] 2.10 of 5.00 GiB, 1,204 of 3,000 files, 412 MiB/s, 1:07 left",
            ),
            (40, counted(true), " 42 % 2.10 of 5.00 GiB, 1:07 left"),
            (20, counted(true), " 42 % 1:07 left"),
            (10, counted(true), " 42 %"),
            (6, None, ""),
            (
                200,
                counted(false),
                "2.10 GiB of at least 5.00 GiB, 1,204 of 3,000+ files, 412 MiB/s",
            ),
            (80, counted(false), "2.10 GiB of at least 5.00 GiB, 1,204 of 3,000+ files, 412 MiB/s"),
            (40, counted(false), "2.10 GiB, 1,204 files, 412 MiB/s"),
            (80, None, "2.10 GiB, 1,204 files, 412 MiB/s"),
        ] {
            let lines = view(counted, Vec::new()).lines(columns, 24);
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
                let shown = lines.last().expect("a line");
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
            view(counted(true), Vec::new()).status(),
            "cp: 2.10 of 5.00 GiB, 1,204 of 3,000 files, 412 MiB/s, 1:07 left\n"
        );
    }

    #[test]
    fn small_files_are_counted_and_not_weighed() {
        let begun = Instant::now();
        let now = begun + Duration::from_secs(2);
        let view = |entries, bytes| {
            let progress = Progress { entries, bytes, skipped_bytes: 0 };
            View::new(now, &Speed::new(begun), progress, None, Vec::new()).status()
        };
        assert_eq!(view(9000, 900_000), "cp: 879 KiB, 9,000 files, 4,500 files/s\n");
        assert_eq!(view(100, 20 * MIB), "cp: 20.0 MiB, 100 files, 10.0 MiB/s\n");
        assert_eq!(view(0, 0), "cp: 0 B, 0 files, 0 B/s\n");
    }

    #[test]
    fn no_time_is_left_only_when_nothing_is() {
        let left = |millis| {
            let mut view = view(counted(true), Vec::new());
            view.left = Some(Duration::from_millis(millis));
            view.figures(1).split(", ").last().expect("figures").to_owned()
        };
        assert_eq!(
            [left(0), left(1), left(1000), left(59_001)],
            ["0:00 left", "0:01 left", "0:01 left", "1:00 left"]
        );
    }
}
