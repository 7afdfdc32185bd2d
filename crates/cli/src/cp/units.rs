//! Quantities as text with a steady width: a figure that is redrawn ten times a second must not jump.

use std::time::Duration;

use lab::words::{grouped, three_digits};

/// A number of bytes with three digits: `2.10 GiB`, `17 B`.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64)
}

/// A part of a total, in the unit of the total: `0.31 of 2.10 GiB`.
pub(super) fn bytes_of(bytes: u64, total: u64) -> String {
    let (divisor, unit) = unit_of(total as f64);
    let part = match unit {
        "B" => bytes.to_string(),
        _ => three_digits(bytes as f64 / divisor),
    };
    format!("{part} of {}", self::bytes(total))
}

/// Bytes a second.
pub(super) fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", scaled(bytes_per_second))
}

/// Entries a second, rounded to three digits.
pub(super) fn entry_rate(entries_per_second: f64) -> String {
    let digits = entries_per_second.max(1.0).log10().floor();
    let step = 10_f64.powf((digits - 2.0).max(0.0));
    format!("{} files/s", grouped(&format!("{:.0}", (entries_per_second / step).round() * step)))
}

/// A whole number with commas.
pub(super) fn count(count: u64) -> String {
    grouped(&count.to_string())
}

/// A time with two digits after the point: `3.21 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// A time in hours, minutes and seconds: `0:07`, `1:02:03`; in days from a hundred hours on.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        1..=99 => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{} days", count(hours / 24)),
    }
}

fn scaled(value: f64) -> String {
    let (divisor, unit) = unit_of(value);
    match unit {
        "B" => format!("{value:.0} B"),
        _ => format!("{} {unit}", three_digits(value / divisor)),
    }
}

/// The largest unit in which `bytes` is at least one, rounded to three digits.
fn unit_of(bytes: f64) -> (f64, &'static str) {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut divisor, mut unit) = (1.0, "B");
    for larger in units {
        if bytes / divisor < 999.5 {
            break;
        }
        divisor *= 1024.0;
        unit = larger;
    }
    (divisor, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_keep_their_width() {
        for (given, expected) in [
            (0, "0 B"),
            (17, "17 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (1024, "1.00 KiB"),
            (150 << 10, "150 KiB"),
            (5 << 30, "5.00 GiB"),
            (u64::MAX, "16,384 PiB"),
        ] {
            assert_eq!(bytes(given), expected);
        }
        assert_eq!(bytes_of(300 << 20, 5 << 30), "0.29 of 5.00 GiB");
        assert_eq!(bytes_of(3, 70), "3 of 70 B");
        assert_eq!(rate(0.0), "0 B/s");
        for (given, expected) in [
            (0.0, "0 files/s"),
            (0.6, "1 files/s"),
            (99.7, "100 files/s"),
            (1234.0, "1,230 files/s"),
            (9996.0, "10,000 files/s"),
            (45_678.9, "45,700 files/s"),
        ] {
            assert_eq!(entry_rate(given), expected);
        }
        assert_eq!(rate(1.5 * 1024.0 * 1024.0), "1.50 MiB/s");
        for (seconds, expected) in [
            (0, "0:00"),
            (67, "1:07"),
            (3600 + 62, "1:01:02"),
            (99 * 3600, "99:00:00"),
            (100 * 3600, "4 days"),
        ] {
            assert_eq!(clock(Duration::from_secs(seconds)), expected);
        }
    }
}
