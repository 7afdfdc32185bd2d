//! The values of options: words from a list, which may be abbreviated, and numbers.

use std::ffi::{OsStr, OsString};
use std::num::{NonZeroU64, NonZeroUsize};
use std::os::unix::ffi::OsStrExt;

use engines::{ParseError, Variant};
use haulage::options::{BackupKind, Existing, Filter, Reflink, Rule, Sparse};

use crate::cp::messages::usage_error::UsageError;
use crate::docs::completions::Shell;

/// A type whose values have names on the command line.
pub(crate) trait Choices: Copy + PartialEq + 'static {
    /// The names, in the order of messages. The names of one value are adjacent.
    const TABLE: &'static [(&'static str, Self)];
}

/// The names of a type's values; synonyms are grouped.
pub(crate) fn names<T: Choices>() -> Vec<Vec<&'static str>> {
    T::TABLE
        .chunk_by(|(_, one), (_, other)| one == other)
        .map(|synonyms| synonyms.iter().map(|(name, _)| *name).collect())
        .collect()
}

/// The value that `given` names or unambiguously abbreviates. `context` is the option or variable, for
/// the error message.
pub(crate) fn choose<T: Choices>(given: &OsStr, context: &'static str) -> Result<T, UsageError> {
    let bytes = given.as_bytes();
    if let Some((_, value)) = T::TABLE.iter().find(|(name, _)| name.as_bytes() == bytes) {
        return Ok(*value);
    }
    let mut matching = T::TABLE.iter().filter(|(name, _)| name.as_bytes().starts_with(bytes));
    let bad = |ambiguous| UsageError::BadArgument {
        given: given.to_owned(),
        context,
        ambiguous,
        valid: names::<T>(),
    };
    let (_, first) = matching.next().ok_or_else(|| bad(false))?;
    if matching.any(|(_, other)| other != first) { Err(bad(true)) } else { Ok(*first) }
}

/// The values of a list separated by commas.
pub(crate) fn choose_each<T: Choices>(
    given: &OsStr,
    context: &'static str,
) -> Result<Vec<T>, UsageError> {
    given
        .as_bytes()
        .split(|&byte| byte == b',')
        .map(|item| choose(OsStr::from_bytes(item), context))
        .collect()
}

/// A whole number from 1 on.
pub(crate) fn number_from_one(
    given: &OsStr,
    option: &'static str,
) -> Result<NonZeroUsize, UsageError> {
    let number = given.to_str().and_then(|given| given.parse().ok());
    let reason = format!("must be a whole number from 1 to {}", usize::MAX);
    number.ok_or_else(|| UsageError::bad_value(option, given, &reason))
}

/// A rate: a number with an optional fraction and an optional unit.
pub(crate) fn bytes_per_second(given: &OsStr) -> Result<NonZeroU64, UsageError> {
    let bytes = given.to_str().and_then(bytes_in).and_then(NonZeroU64::new);
    let most = u64::MAX >> 40;
    let reason =
        format!("must be a number of bytes from 1 to {most}T, such as 500K, 50MB or 1.5GiB");
    bytes.ok_or_else(|| UsageError::bad_value("limit-rate", given, &reason))
}

fn bytes_in(text: &str) -> Option<u64> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let (base, letter) = match unit.to_ascii_uppercase().as_bytes() {
        [] => (1024, None),
        &[letter] | &[letter, b'I', b'B'] => (1024, Some(letter)),
        &[letter, b'B'] => (1000, Some(letter)),
        _ => return None,
    };
    let power = match letter {
        None => 0,
        Some(letter) => 1 + b"KMGT".iter().position(|l| *l == letter)?,
    };
    let unit = u128::pow(base, u32::try_from(power).ok()?);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // Further digits are worth less than a byte.
    let fraction = &fraction[..fraction.len().min(15)];
    let parts = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let (whole, fraction) = (whole.parse::<u64>().ok()?, fraction.parse::<u64>().ok()?);
    u64::try_from(u128::from(whole) * unit + u128::from(fraction) * unit / parts).ok()
}

/// The argument of `--engine`: a variant that copies files.
pub(crate) fn variant(given: &OsStr) -> Result<Variant, UsageError> {
    let bad = |reason: &str| UsageError::bad_value("engine", given, reason);
    let variant: Variant =
        given.to_string_lossy().parse().map_err(|error: ParseError| bad(&error.to_string()))?;
    if !variant.is_copier() {
        return Err(bad("it does not copy files; the lab compares engines with it"));
    }
    Ok(variant)
}

/// The rule that `--exclude` or `--include` adds.
pub(crate) fn rule(option: &'static str, glob: OsString) -> Result<Rule, UsageError> {
    let rule = Rule { include: option == "include", glob };
    match Filter::new(std::slice::from_ref(&rule), &[]) {
        Ok(_) => Ok(rule),
        Err(bad) => Err(UsageError::bad_value(option, &bad.glob, bad.reason)),
    }
}

/// A word of `--preserve` and `--no-preserve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// Permissions and access control lists.
    Mode,
    /// Times of last access and modification.
    Timestamps,
    /// Owner and group.
    Ownership,
    /// Hard links.
    Links,
    /// The security context.
    Context,
    /// Extended attributes.
    Xattr,
    /// All of these.
    All,
}

impl Choices for Attribute {
    const TABLE: &'static [(&'static str, Attribute)] = &[
        ("mode", Attribute::Mode),
        ("timestamps", Attribute::Timestamps),
        ("ownership", Attribute::Ownership),
        ("links", Attribute::Links),
        ("context", Attribute::Context),
        ("xattr", Attribute::Xattr),
        ("all", Attribute::All),
    ];
}

impl Choices for Sparse {
    const TABLE: &'static [(&'static str, Sparse)] =
        &[("never", Sparse::Never), ("auto", Sparse::Auto), ("always", Sparse::Always)];
}

impl Choices for Reflink {
    const TABLE: &'static [(&'static str, Reflink)] =
        &[("auto", Reflink::Auto), ("always", Reflink::Always), ("never", Reflink::Never)];
}

impl Choices for Existing {
    const TABLE: &'static [(&'static str, Existing)] = &[
        ("all", Existing::Replace),
        ("none", Existing::Skip),
        ("none-fail", Existing::Fail),
        ("older", Existing::ReplaceOlder),
    ];
}

/// Whether backups are made, and their kind.
impl Choices for Option<BackupKind> {
    const TABLE: &'static [(&'static str, Option<BackupKind>)] = &[
        ("none", None),
        ("off", None),
        ("simple", Some(BackupKind::Simple)),
        ("never", Some(BackupKind::Simple)),
        ("existing", Some(BackupKind::Existing)),
        ("nil", Some(BackupKind::Existing)),
        ("numbered", Some(BackupKind::Numbered)),
        ("t", Some(BackupKind::Numbered)),
    ];
}

/// The argument of `--generate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generated {
    /// The manual page, as roff.
    Man,
    /// A completion script for this shell.
    Completions(Shell),
}

impl Choices for Generated {
    const TABLE: &'static [(&'static str, Generated)] = &[
        ("man", Generated::Man),
        ("bash", Generated::Completions(Shell::Bash)),
        ("zsh", Generated::Completions(Shell::Zsh)),
        ("fish", Generated::Completions(Shell::Fish)),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_rates_are_refused() {
        // Letters are taken in either case.
        assert_eq!(["4k", "4KB", "4kb", "4kib"].map(bytes_in), [4096, 4000, 4000, 4096].map(Some));
        for text in [
            "", "0", "0.0K", "M", "-1", "+1", "1e9", "1.M", ".5M", "1..5", "1.2.3", "1X", "1MiBs",
            "1iB", "1BB", " 1", "0.0001",
        ] {
            assert!(bytes_per_second(OsStr::new(text)).is_err(), "{text}");
        }
        assert!(bytes_per_second(OsStr::new("99999999999T")).is_err());
    }
}
