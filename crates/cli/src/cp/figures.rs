//! Quantities with three digits.

use std::time::Duration;

use lab::words::{grouped, three_digits};

/// A number of bytes with three digits: `2.10 GiB`, `17 B`.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, bytes as f64)
}

/// Bytes a second.
pub(super) fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", scaled(bytes_per_second, bytes_per_second))
}

/// A whole number with commas.
pub(super) fn count(count: u64) -> String {
    grouped(&count.to_string())
}

/// A time with two digits after the point: `3.21 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn scaled(value: f64, by: f64) -> String {
    let (divisor, unit) = unit_of(by);
    match unit {
        "B" => format!("{value:.0} B"),
        _ => format!("{} {unit}", three_digits(value / divisor)),
    }
}

/// The largest unit that keeps `bytes` over one, as far as three digits show.
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
        assert_eq!(rate(0.0), "0 B/s");
        assert_eq!(rate(1.5 * 1024.0 * 1024.0), "1.50 MiB/s");
    }
}
