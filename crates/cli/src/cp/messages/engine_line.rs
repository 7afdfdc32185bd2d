//! Which engines copied the data of a file, and why these, for `--debug` and the receipt.

use engines::{Stop, Variant};
use haulage::events::{Attempt, Chosen, ChosenBy, Errno};

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
    let moved: Vec<String> = moved.into_iter().map(ToString::to_string).collect();
    let mut why = match &chosen.by {
        ChosenBy::Profile(line) => format!("profile: {line}"),
        ChosenBy::Forced => String::from("forced"),
        ChosenBy::Rule(condition) => format!("default: {condition}"),
    };
    let tried = attempts.iter().any(|attempt| attempt.variant == chosen.variant);
    for (variant, errno) in refused {
        let name = errno_name(errno).map_or_else(|| errno.to_string(), str::to_owned);
        why.push_str(&format!("; {variant} was refused: {name}"));
    }
    if !tried {
        // A chain does not try again what these file systems refused before.
        why.push_str(&format!("; {} was refused before", chosen.variant));
    }
    format!("{} ({why})", moved.join(" and "))
}

#[cfg(test)]
mod tests {
    use engines::{Moved, Span};

    use super::*;

    fn variant(text: &str) -> Variant {
        text.parse().expect("parsed")
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
        let rule = || ChosenBy::Rule("64 KiB or more");
        check("read_write:256K", rule(), &[rw()], "read_write:256K (default: 64 KiB or more)");
        check(
            "read_write:256K",
            line(),
            &[rw(), rw()],
            "read_write:256K (profile: ext4 /a to xfs /b, 1M to 16M)",
        );
        check(
            "read_write:256K",
            rule(),
            &[attempt("reflink", 0, Stop::Refused(Errno::OPNOTSUPP)), rw()],
            "read_write:256K (default: 64 KiB or more; reflink was refused: EOPNOTSUPP)",
        );
        check(
            "direct",
            ChosenBy::Forced,
            &[attempt("direct", 8, Stop::Refused(Errno::INVAL)), rw()],
            "direct and read_write:256K (forced; direct was refused: EINVAL)",
        );
        check(
            "direct",
            ChosenBy::Forced,
            &[rw()],
            "read_write:256K (forced; direct was refused before)",
        );
    }
}
