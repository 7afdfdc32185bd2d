//! Which entries of a tree are left out, by rules of the command line and ignore files.
//!
//! Both have the syntax of gitignore(5), and match the path below the operand. The first rule that
//! matches decides, as in rsync. If none matches, the ignore files decide, the last one first; in
//! each the last pattern that matches decides, as in git.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use self::class::{Class, InvalidGlob};

mod class;

/// Whether the entries that a glob matches are copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Copy them.
    pub include: bool,
    /// A pattern of gitignore(5). A leading `#` or `!` has no special meaning.
    pub glob: OsString,
}

/// The contents of an ignore file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreFile {
    /// The name of the file.
    pub path: PathBuf,
    /// The contents of the file.
    pub text: Vec<u8>,
}

/// Which entries of a tree are left out. Operands never are.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    rules: Vec<Rule>,
    files: Vec<IgnoreFile>,
    /// In the order of precedence.
    matchers: Vec<Matcher>,
}

/// The matchers follow from the texts.
impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        (&self.rules, &self.files) == (&other.rules, &other.files)
    }
}

impl Eq for Filter {}

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadGlob {
    /// The file and the number of its line, counted from one; `None` for a rule.
    pub place: Option<(PathBuf, usize)>,
    /// The pattern.
    pub glob: OsString,
    /// The reason, in words.
    pub reason: String,
}

impl Filter {
    /// A filter of these rules and files, each in the order of the command line.
    ///
    /// # Errors
    /// The first pattern that cannot be used.
    pub fn new(rules: Vec<Rule>, files: Vec<IgnoreFile>) -> Result<Filter, BadGlob> {
        let mut matchers = Vec::new();
        if !rules.is_empty() {
            // A matcher lets the last pattern win.
            let lines = rules.iter().rev().map(rule_line).collect::<Result<Vec<_>, _>>()?;
            let bad = |index: usize, reason| {
                let glob = rules[rules.len() - 1 - index].glob.clone();
                BadGlob { place: None, glob, reason }
            };
            matchers.push(Matcher::new(&lines, bad)?);
        }
        for file in files.iter().rev() {
            let given: Vec<_> = lines_of(&file.text).collect();
            // A pattern that matches nothing is ignored, as in git.
            let line = |given: &&[u8]| for_matcher(given, Braces::Letters).unwrap_or_default();
            let lines: Vec<_> = given.iter().map(line).collect();
            let bad = |index: usize, reason| {
                let glob = OsStr::from_bytes(given[index]).to_owned();
                BadGlob { place: Some((file.path.clone(), index + 1)), glob, reason }
            };
            matchers.push(Matcher::new(&lines, bad)?);
        }
        Ok(Filter { rules, files, matchers })
    }

    /// Whether nothing is left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.matchers.is_empty()
    }

    /// Whether the entry at `path` below the operand is left out.
    pub(crate) fn leaves_out(&self, path: &[u8], is_directory: bool) -> bool {
        let decisions = self.matchers.iter().map(|matcher| matcher.decision(path, is_directory));
        decisions.flatten().next().unwrap_or(false)
    }
}

/// Patterns. The last one that matches decides.
#[derive(Clone, Debug)]
struct Matcher {
    globs: Gitignore,
    /// A substitution of bytes, in patterns and in names.
    substitution: Option<Box<[u8; 256]>>,
}

impl Matcher {
    /// `bad` makes an error of the index of a line and the reason.
    fn new(lines: &[Vec<u8>], bad: impl Fn(usize, String) -> BadGlob) -> Result<Matcher, BadGlob> {
        let mut builder = GitignoreBuilder::new("");
        let foreign = lines.iter().position(|line| std::str::from_utf8(line).is_err());
        let substitution = foreign
            .map(|index| substitution(lines).map_err(|reason| bad(index, reason)))
            .transpose()?;
        for (index, line) in lines.iter().enumerate() {
            let line = replaced(line, substitution.as_deref());
            let line = std::str::from_utf8(&line).expect("no byte beyond ASCII is left in it");
            builder.add_line(None, line).map_err(|error| bad(index, reason(error)))?;
        }
        let globs = builder.build().map_err(|error| bad(0, reason(error)))?;
        Ok(Matcher { globs, substitution })
    }

    /// Whether the entry is left out, if any pattern matches it.
    fn decision(&self, path: &[u8], is_directory: bool) -> Option<bool> {
        let path = replaced(path, self.substitution.as_deref());
        match self.globs.matched(OsStr::from_bytes(&path), is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}

fn reason(error: ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err,
        error => error.to_string(),
    }
}

/// The matcher takes patterns of text, while names are bytes. If a pattern is not UTF-8, each byte
/// beyond ASCII is exchanged with a control character that no pattern contains, in patterns and
/// names. Wildcards keep their meaning, except for a range between two such bytes.
fn substitution(lines: &[Vec<u8>]) -> Result<Box<[u8; 256]>, String> {
    let used = |byte: &u8| lines.iter().any(|line| line.contains(byte));
    // Blanks are special at the end of a line.
    let mut free = (1..=8).chain(14..=27).chain([127]).filter(|byte| !used(byte));
    let mut table = Box::new(std::array::from_fn(|byte| u8::try_from(byte).unwrap_or(0)));
    for byte in (0x80..=0xff).filter(used) {
        let Some(free) = free.next() else {
            return Err(String::from("not UTF-8, and too many different bytes beyond ASCII"));
        };
        table.swap(usize::from(byte), usize::from(free));
    }
    Ok(table)
}

fn replaced(bytes: &[u8], substitution: Option<&[u8; 256]>) -> Vec<u8> {
    match substitution {
        None => bytes.to_vec(),
        Some(table) => bytes.iter().map(|&byte| table[usize::from(byte)]).collect(),
    }
}

/// The line of an ignore file with the meaning of the rule.
fn rule_line(rule: &Rule) -> Result<Vec<u8>, BadGlob> {
    let mut glob = rule.glob.clone().into_vec();
    if glob.is_empty() {
        let reason = String::from("it is empty, and would match nothing");
        return Err(BadGlob { place: None, glob: rule.glob.clone(), reason });
    }
    // The matcher would drop a blank at the end.
    if let Some(&last) = glob.last()
        && last.is_ascii_whitespace()
        && glob.len().checked_sub(2).is_none_or(|at| glob[at] != b'\\')
    {
        glob.pop();
        glob.extend([b'[', last, b']']);
    }
    if matches!(glob[0], b'!' | b'#') {
        glob.insert(0, b'\\');
    }
    let glob = for_matcher(&glob, Braces::Alternatives).map_err(|invalid| BadGlob {
        place: None,
        glob: rule.glob.clone(),
        reason: invalid.reason().to_owned(),
    })?;
    Ok(if rule.include { [b"!", &glob[..]].concat() } else { glob })
}

fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The meaning of `{a,b}`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Braces {
    /// Alternatives, as in the matcher.
    Alternatives,
    /// Braces, as in git: a file that git keeps must be copied.
    Letters,
}

/// The pattern that means for the matcher what `line` means for git.
///
/// # Errors
/// Why it matches nothing.
fn for_matcher(line: &[u8], braces: Braces) -> Result<Vec<u8>, InvalidGlob> {
    let (negation, pattern) = match line {
        [b'#', ..] => return Ok(line.to_vec()),
        [b'!', pattern @ ..] => (&b"!"[..], pattern),
        pattern => (&b""[..], pattern),
    };
    let pattern = without_blanks(pattern);
    let (pattern, slash) = match pattern.strip_suffix(b"/") {
        Some(pattern) => (pattern, &b"/"[..]),
        None => (pattern, &b""[..]),
    };
    let plain = with_plain_classes(pattern, braces)?;
    // A slash in a class makes the pattern relative to the operand for only one of the two.
    let front: &[u8] = match (pattern.contains(&b'/'), plain.contains(&b'/')) {
        (true, false) => b"/",
        (false, true) => b"**/",
        _ => b"",
    };
    Ok([negation, front, &plain, slash].concat())
}

/// The pattern without trailing blanks, unless one is escaped.
fn without_blanks(pattern: &[u8]) -> &[u8] {
    let (mut at, mut end) = (0, 0);
    while at < pattern.len() {
        let escaped = pattern[at] == b'\\';
        at = (at + if escaped { 2 } else { 1 }).min(pattern.len());
        if escaped || pattern[at - 1] != b' ' {
            end = at;
        }
    }
    &pattern[..end]
}

/// Writes classes, braces and stars in the syntax of the matcher. Blanks and backslashes, which it
/// would drop at the end, become classes.
fn with_plain_classes(pattern: &[u8], braces: Braces) -> Result<Vec<u8>, InvalidGlob> {
    let mut plain = Vec::with_capacity(pattern.len());
    let mut left = pattern;
    while let [first, rest @ ..] = left {
        let taken = match first {
            b'\\' if rest.is_empty() => return Err(InvalidGlob::Dangling),
            b'\\' if rest[0] == b'\\' || rest[0].is_ascii_whitespace() => {
                plain.extend([b'[', rest[0], b']']);
                2
            }
            blank if blank.is_ascii_whitespace() => {
                plain.extend([b'[', *blank, b']']);
                1
            }
            b'\\' => {
                plain.extend_from_slice(&left[..2]);
                2
            }
            b'[' => {
                let class = Class::read(left)?;
                class.write(&left[..class.bytes], &mut plain);
                class.bytes
            }
            b'*' => {
                // For git, more than two stars are two.
                let stars = left.iter().take_while(|&&byte| byte == b'*').count();
                plain.extend(&left[..stars.min(2)]);
                stars
            }
            b'{' | b'}' if braces == Braces::Letters => {
                plain.extend([b'\\', *first]);
                1
            }
            _ => {
                plain.push(*first);
                1
            }
        };
        left = &left[taken..];
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+glob` includes, `-glob` excludes.
    fn filter(rules: &[&str], files: &[&str]) -> Result<Filter, BadGlob> {
        let rule = |text: &&str| Rule { include: text.starts_with('+'), glob: text[1..].into() };
        let file = |(number, text): (usize, &&str)| IgnoreFile {
            path: format!("file{number}").into(),
            text: text.as_bytes().into(),
        };
        let files = files.iter().enumerate().map(file).collect();
        Filter::new(rules.iter().map(rule).collect(), files)
    }

    fn check(rules: &[&str], files: &[&str], path: &str, left_out: bool) {
        let filter = filter(rules, files).expect("the patterns are well formed");
        let (path, is_directory) = match path.strip_suffix('/') {
            Some(path) => (path, true),
            None => (path, false),
        };
        let found = filter.leaves_out(path.as_bytes(), is_directory);
        assert_eq!(found, left_out, "{rules:?} {files:?} {path}");
    }

    #[test]
    fn the_first_matching_rule_and_the_last_matching_line_decide() {
        check(&[], &[], "a", false);
        check(&["-*.o"], &[], "d/e/a.o", true);
        check(&["-*.o"], &[], "d/e/a.c", false);
        check(&["-/a"], &[], "a", true);
        check(&["-/a"], &[], "d/a", false);
        check(&["-d/a"], &[], "e/d/a", false);
        check(&["-a/"], &[], "a/", true);
        check(&["-a/"], &[], "a", false);
        check(&["-*.{o,a}"], &[], "x.a", true);
        check(&["+*.c", "-*"], &[], "a.c", false);
        check(&["+*.c", "-*"], &[], "a.o", true);
        check(&["-*", "+*.c"], &[], "a.c", true);
        check(&[], &["*\n!*.c\n"], "a.c", false);
        check(&[], &["!*.c\n*\n"], "a.c", true);
        // A later file beats an earlier one, and a rule beats both.
        check(&[], &["a", "!a"], "a", false);
        check(&[], &["!a", "a"], "a", true);
        check(&["+a"], &["a"], "a", false);
        check(&["+b"], &["a"], "a", true);
    }

    #[test]
    fn rules_have_no_comments_and_no_negation() {
        check(&["-!a"], &[], "!a", true);
        check(&["-!a"], &[], "a", false);
        check(&["-#a"], &[], "#a", true);
        check(&["+!a", "-*"], &[], "!a", false);
        check(&["+#a", "-*"], &[], "#a", false);
        check(&["-a "], &[], "a ", true);
        check(&["-a "], &[], "a", false);
        check(&["-a\t"], &[], "a\t", true);
        check(&["-a\\ "], &[], "a ", true);
    }

    #[test]
    fn lines_of_ignore_files_are_read_as_by_git() {
        check(&[], &["\u{feff}a\r\n# b\n\n  \n\\#c"], "a", true);
        check(&[], &["\u{feff}a\r\n# b\n\n  \n\\#c"], "#c", true);
        check(&[], &["# b\n"], "# b", false);
        check(&[], &["*.{o,a}"], "x.a", false);
        check(&[], &["*.{o,a}"], "x.{o,a}", true);
        check(&[], &["[{]a}"], "{a}", true);
        check(&[], &["[]{]\\}"], "{}", true);
        check(&[], &["\\\\/"], "\\/", true);
        check(&[], &["\\\\/"], "\\", false);
        check(&[], &["a\\\\"], "a\\", true);
        check(&["-a\\\\/"], &[], "d/a\\/", true);
        // What git finds nothing in is passed over, and what is around it holds.
        for invalid in ["[{", "a[", "**[b", "[/]", "[[:none:]]", "\\", "\\/", "x\\"] {
            for name in [invalid, "a[", "[b", "z", "x", "x/"] {
                check(&[], &[invalid], name, false);
            }
            check(&[], &[&format!("{invalid}\nx\n{invalid}")], "x", true);
        }
        check(&[], &["[[:digit:]][\\]]"], "7]", true);
        check(&[], &["[[:digit:]][\\]]"], ":]]", false);
        check(&[], &["a[b/]c"], "abc", true);
        check(&[], &["a[b/]c"], "d/abc", false);
        check(&[], &["?[!c]?"], "b/a", false);
        check(&[], &["?[!c]?"], "d/b.a", true);
        check(&[], &["!?[^]c]/"], "d/ba", false);
        check(&[], &["a[!]]b"], "a/b", false);
        check(&[], &["a[!]]b"], "x/a-b", true);
        check(&["-a[!x]b"], &[], "a/b", false);
        check(&["-/a/***/b"], &[], "a/b", true);
        check(&[], &["****/**/"], "a/", true);
        check(&[], &["a***b/c"], "a/b/c", false);
    }

    #[test]
    fn names_are_bytes() {
        let glob = |bytes: &[u8]| Rule { include: false, glob: OsStr::from_bytes(bytes).into() };
        for (pattern, name, left_out) in [
            (&b"caf\xe9*"[..], &b"caf\xe9.txt"[..], true),
            (b"caf\xe9*", b"caf\xc3\xa9.txt", false),
            (b"caf?\xff", b"caf\xe9\xff", true),
            (b"[\x80\xff]", b"\xff", true),
            (b"*.o", b"\xff\xfe.o", true),
            (b"\xe9", b"\x01", false),
            ("é*".as_bytes(), "éa".as_bytes(), true),
        ] {
            let filter = Filter::new(vec![glob(pattern)], vec![]).expect("a pattern");
            assert_eq!(filter.leaves_out(name, false), left_out, "{pattern:?} {name:?}");
        }
        let all: Vec<u8> = (0x80..=0xff).collect();
        let bad = Filter::new(vec![glob(&all)], vec![]).expect_err("more than there is room for");
        assert_eq!(bad.glob.as_bytes(), all);
    }

    #[test]
    fn a_bad_glob_is_named() {
        for rule in ["-[a", "-{a", "-", "-x\\", "-[[:none:]]"] {
            let bad = filter(&["-ok", rule], &[]).expect_err(rule);
            assert_eq!((bad.glob.to_str(), bad.place), (Some(&rule[1..]), None));
        }
        let bytes: Vec<u8> = (0x80..=0xff).collect();
        let file = IgnoreFile { path: "file".into(), text: [b"x\n", &bytes[..]].concat() };
        let bad = Filter::new(vec![], vec![file]).expect_err("more than there is room for");
        assert_eq!(bad.place.map(|(path, _)| path), Some(PathBuf::from("file")));
    }
}
