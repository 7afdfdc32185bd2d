//! Formats and parses numbers of bytes.

use std::fmt;
use std::str::FromStr;

/// A number of bytes in the shortest exact form: `256K`, `1M`, `4097`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bytes(bytes) = *self;
        for (shift, suffix) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
            if bytes != 0 && bytes.trailing_zeros() >= shift {
                return write!(f, "{}{suffix}", bytes >> shift);
            }
        }
        write!(f, "{bytes}")
    }
}

impl FromStr for Bytes {
    type Err = ();

    fn from_str(text: &str) -> Result<Bytes, ()> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match &text[digits.len()..] {
            "" => 0,
            "K" | "k" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            "T" | "TiB" => 40,
            _ => return Err(()),
        };
        let number = parse_count(digits).ok_or(())?;
        number.checked_mul(1 << shift).map(Bytes).ok_or(())
    }
}

/// A plain number. `parse` alone accepts a leading plus sign.
pub(crate) fn parse_count(digits: &str) -> Option<u64> {
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}
