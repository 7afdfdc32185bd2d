//! Quantities as text: bytes, times, counts, lists.

/// An estimated number of bytes, rounded, as [`bytes`] writes it; nothing for less than nothing.
pub fn about_bytes(about: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Bytes.
    bytes(about.max(0.0).round() as u64)
}

/// A number of bytes in the largest binary unit that keeps it over one: `1.5 GiB`, `256 MiB`,
/// `100 B`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let tenths = (value * 10.0).round() / 10.0;
    if tenths < 10.0 && tenths.fract() > 0.0 {
        format!("{tenths:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// A time with three digits: `95.0 ns`, `12.3 µs`, `341 ms`, `2.05 s`.
pub fn nanoseconds(ns: f64) -> String {
    if ns < 1.0 {
        return "0 µs".to_owned();
    }
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "µs"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A length of time as one plans it: `40 seconds`, `3 minutes`, `1 h 37 min`, `15 hours`, `12 days`.
pub fn duration(seconds: f64) -> String {
    // Rounded first, so that no time has 60 minutes beside its hours.
    let minutes = (seconds / 60.0).round();
    let (hours, rest) = ((minutes / 60.0).floor(), minutes % 60.0);
    if seconds >= 90.0 * 60.0 && hours < 10.0 && rest > 0.0 {
        return format!("{hours:.0} h {rest:.0} min");
    }
    let (value, unit) = match seconds {
        s if s < 90.0 => (s, "second"),
        s if s < 90.0 * 60.0 => (s / 60.0, "minute"),
        s if s < 36.0 * 3600.0 => (s / 3600.0, "hour"),
        s => (s / 86_400.0, "day"),
    };
    let value = value.round().max(1.0);
    let plural = if value == 1.0 { "" } else { "s" };
    format!("{} {unit}{plural}", grouped(&format!("{value:.0}")))
}

/// A number with three digits, and more only before the point: `0.12`, `3.41`, `34.1`, `3,412`.
pub fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => grouped(&format!("{value:.0}")),
    }
}

/// Digits with a comma before each group of three.
pub fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Names joined for a sentence: `a`, `a and b`, `a, b and c`.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    listed_with("and", names)
}

/// Names joined for a sentence by `conjunction`: `a`, `a or b`, `a, b or c`.
pub fn listed_with<S: AsRef<str>>(conjunction: &str, names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} {conjunction} {}", first.join(", "), last.as_ref())
        }
    }
}

/// A file size as [`bytes`] writes it, but in bytes where its unit would round: `4 KiB`, `4,097 B`.
pub fn file_size(size: u64) -> String {
    match size {
        1025..1_048_576 if !size.is_multiple_of(1024) => {
            format!("{} B", grouped(&size.to_string()))
        }
        size => bytes(size),
    }
}

/// The lengths over `over` and up to `last`: `up to 64 KiB`, `64 KiB to 16 MiB`, `over 16 MiB`.
pub fn lengths(over: Option<u64>, last: Option<u64>) -> String {
    match (over.map(bytes), last.map(bytes)) {
        (None, None) => "of any length".to_owned(),
        (None, Some(last)) => format!("up to {last}"),
        (Some(over), None) => format!("over {over}"),
        (Some(over), Some(last)) => format!("{over} to {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        for (given, expected) in [
            (0, "0 B"),
            (100, "100 B"),
            (1 << 10, "1 KiB"),
            (1536, "1.5 KiB"),
            (256 << 20, "256 MiB"),
            ((1 << 30) - 1, "1 GiB"),
            (23 << 30, "23 GiB"),
        ] {
            assert_eq!(bytes(given), expected);
        }
        for (given, expected) in [
            (0.0, "0 µs"),
            (30.0, "30.0 ns"),
            (12_345.0, "12.3 µs"),
            (341e6, "341 ms"),
            (2.05e9, "2.05 s"),
        ] {
            assert_eq!(nanoseconds(given), expected);
        }
        assert_eq!(
            [0.2, 89.0, 125.0, 5820.0, 7170.0, 7220.0, 35_980.0, 36_060.0, 55_000.0].map(duration),
            [
                "1 second",
                "89 seconds",
                "2 minutes",
                "1 h 37 min",
                "2 hours",
                "2 hours",
                "10 hours",
                "10 hours",
                "15 hours"
            ]
        );
        assert_eq!(duration(1e9), "11,574 days");
        assert_eq!(three_digits(3412.4), "3,412");
        assert_eq!(grouped("1234567"), "1,234,567");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed_with("or", &["a", "b"]), "a or b");
        assert_eq!([4096, 4097, 1 << 20].map(file_size), ["4 KiB", "4,097 B", "1 MiB"]);
    }
}
