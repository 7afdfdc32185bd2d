//! Which engines copied the data of a file, and why these, for `--debug` and the receipt.

use engines::{Stop, Variant};
use haulage::events::{Attempt, Chosen, ChosenBy, Errno, MeasuredRate};

use crate::cp::messages::errno_name::errno_name;

/// For `--debug`: `read_write:256K@2 (profile: ext4 /data to xfs /backup, 16M to 256M, resident)`.
pub(crate) fn words(chosen: &Chosen, attempts: &[Attempt]) -> String {
    let mut moved: Vec<&Variant> = Vec::new();
    let mut refused: Vec<(&Variant, Errno)> = Vec::new();
    for Attempt { variant, moved: result, .. } in attempts {
        if result.bytes > 0 && !moved.contains(&variant) {
            moved.push(variant);
        }
        if let Stop::Refused(errno) = result.stop
            && !refused.contains(&(variant, errno))
        {
            refused.push((variant, errno));
        }
    }
    if moved.is_empty() {
        moved.extend(attempts.last().map(|last| &last.variant));
    }
    let is_trial = matches!(chosen.by, ChosenBy::Trial(_));
    if is_trial {
        // Trials have moved data by all of them. The best one moved the rest.
        moved = vec![&chosen.variant];
    }
    let moved: Vec<String> = moved.into_iter().map(ToString::to_string).collect();
    let mut why = match &chosen.by {
        ChosenBy::Profile(line) => format!("profile: {line}"),
        ChosenBy::BuiltIn(line) => format!("default: {line}"),
        ChosenBy::Forced => String::from("forced"),
        ChosenBy::Rule => String::from("default"),
        ChosenBy::Trial(rates) => format!("measured: {}", rates_text(rates)),
    };
    let tried = attempts.iter().any(|attempt| attempt.variant == chosen.variant);
    for (variant, errno) in refused {
        let name = errno_name(errno).map_or_else(|| errno.to_string(), str::to_owned);
        why.push_str(&format!("; {variant} was refused: {name}"));
    }
    if !tried && !is_trial {
        // A chain does not try again what these file systems refused before.
        why.push_str(&format!("; {} was refused before", chosen.variant));
    }
    format!("{} ({why})", moved.join(" and "))
}

/// The rates of the candidates of a trial: `read_write:256K@2 8.1 GB/s, splice:1M 6.3 GB/s`.
fn rates_text(rates: &[MeasuredRate]) -> String {
    let text = |rate: &MeasuredRate| match rate.bytes_per_second {
        Some(bytes) => format!("{} {:.2} GB/s", rate.variant, bytes as f64 / 1e9),
        None => format!("{} not tried", rate.variant),
    };
    rates.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use engines::{Moved, Span};

    use super::*;

    fn variant(text: &str) -> Variant {
        text.parse().expect("a variant")
    }

    fn attempt(text: &str, bytes: u64, stop: Stop) -> Attempt {
        Attempt { variant: variant(text), span: Span::at(0, 9), moved: Moved { bytes, stop } }
    }

    #[test]
    fn the_words_tell_what_moved_the_data_and_why() {
        let check = |chosen: &str, by: ChosenBy, attempts: &[Attempt], expected: &str| {
            let chosen = Chosen { variant: variant(chosen), by };
            assert_eq!(words(&chosen, attempts), expected);
        };
        let line = || ChosenBy::Profile("ext4 /a to xfs /b, 1M to 16M".into());
        let rw = || attempt("read_write:256K", 9, Stop::Done);
        check("read_write:256K", ChosenBy::Rule, &[rw()], "read_write:256K (default)");
        check(
            "read_write:256K",
            line(),
            &[rw(), rw()],
            "read_write:256K (profile: ext4 /a to xfs /b, 1M to 16M)",
        );
        check(
            "read_write:256K",
            ChosenBy::BuiltIn("tmpfs to tmpfs".into()),
            &[attempt("reflink", 0, Stop::Refused(Errno::OPNOTSUPP)), rw()],
            "read_write:256K (default: tmpfs to tmpfs; reflink was refused: EOPNOTSUPP)",
        );
        check(
            "direct",
            ChosenBy::Forced,
            &[attempt("direct", 8, Stop::Refused(Errno::INVAL)), rw()],
            "direct and read_write:256K (forced; direct was refused: EINVAL)",
        );
        let rate = |text: &str, bytes_per_second| MeasuredRate {
            variant: variant(text),
            bytes_per_second,
        };
        let rates = [rate("read_write:256K", Some(2_345_000_000)), rate("splice", None)];
        check(
            "read_write:256K",
            ChosenBy::Trial(rates.into()),
            &[attempt("copy_file_range", 5, Stop::Done), rw()],
            "read_write:256K (measured: read_write:256K 2.35 GB/s, splice not tried)",
        );
        check(
            "direct",
            ChosenBy::Forced,
            &[rw()],
            "read_write:256K (forced; direct was refused before)",
        );
    }
}
