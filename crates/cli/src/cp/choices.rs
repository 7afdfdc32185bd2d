//! Values of options that are words from a list, and how they may be abbreviated.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;

use engines::{ParseError, Variant};
use tree::{Filter, Rule};

use super::args::{BackupKind, Existing, Reflink, Sparse};
use super::usage_error::UsageError;

/// A type whose values have names on the command line.
pub(crate) trait Choices: Copy + PartialEq + 'static {
    /// The names, in the order in which messages list them. Names of one value stand together.
    const TABLE: &'static [(&'static str, Self)];
}

/// The names of a type's values, synonyms together.
pub(crate) fn names<T: Choices>() -> Vec<Vec<&'static str>> {
    T::TABLE
        .chunk_by(|(_, one), (_, other)| one == other)
        .map(|synonyms| synonyms.iter().map(|(name, _)| *name).collect())
        .collect()
}

/// The value that `given` names, in full or by an unambiguous beginning. `context` is what messages
/// call the place where it stood.
pub(crate) fn choose<T: Choices>(given: &OsStr, context: &'static str) -> Result<T, UsageError> {
    let bytes = given.as_bytes();
    if let Some((_, value)) = T::TABLE.iter().find(|(name, _)| name.as_bytes() == bytes) {
        return Ok(*value);
    }
    let mut begun = T::TABLE.iter().filter(|(name, _)| name.as_bytes().starts_with(bytes));
    let bad = |ambiguous| UsageError::BadArgument {
        given: given.to_owned(),
        context,
        ambiguous,
        valid: names::<T>(),
    };
    let (_, first) = begun.next().ok_or_else(|| bad(false))?;
    if begun.any(|(_, other)| other != first) { Err(bad(true)) } else { Ok(*first) }
}

/// The values of a list with commas between.
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

/// A whole number from one up, the argument of `--option`.
pub(crate) fn number_from_one(
    given: &OsStr,
    option: &'static str,
) -> Result<NonZeroUsize, UsageError> {
    let number = given.to_str().and_then(|given| given.parse().ok());
    number.ok_or_else(|| UsageError::BadValue {
        option,
        given: given.to_owned(),
        reason: String::from("a whole number from 1 up is wanted"),
    })
}

/// A way of moving data, as the lab calls it.
pub(crate) fn copier(given: &OsStr) -> Result<Variant, UsageError> {
    let bad = |reason| UsageError::BadValue { option: "engine", given: given.to_owned(), reason };
    let variant: Variant =
        given.to_string_lossy().parse().map_err(|error: ParseError| bad(error.to_string()))?;
    if !variant.is_copier() {
        return Err(bad(String::from("it copies no files; it is there to compare with")));
    }
    Ok(variant)
}

/// The rule that `--exclude` or `--include` adds.
pub(crate) fn rule(option: &'static str, glob: OsString) -> Result<Rule, UsageError> {
    let rule = Rule { include: option == "include", glob };
    match Filter::new(vec![rule.clone()], Vec::new()) {
        Ok(_) => Ok(rule),
        Err(bad) => Err(UsageError::BadValue { option, given: bad.glob, reason: bad.reason }),
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

/// What `--generate` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generated {
    /// The manual page, as roff.
    Man,
}

impl Choices for Generated {
    const TABLE: &'static [(&'static str, Generated)] = &[("man", Generated::Man)];
}
