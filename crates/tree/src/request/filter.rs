//! Which entries of a tree are left out, by rules of the command line and ignore files.
//!
//! Both have the syntax of gitignore(5), and match the path below the operand. The first rule that
//! matches decides, as in rsync. If none matches, the ignore files decide, the last one first; in
//! each the last pattern that matches decides, as in git.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use gix_glob::pattern::Case;
use gix_glob::{Pattern, wildmatch};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The first that matches decides.
    decisions: Vec<Decision>,
}

/// What is decided for the entries that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decision {
    pattern: Pattern,
    is_left_out: bool,
}

/// A rule whose pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadGlob {
    /// The pattern.
    pub glob: OsString,
    /// The reason, in words.
    pub reason: &'static str,
}

impl Filter {
    /// A filter of these rules and files, each in the order of the command line.
    ///
    /// # Errors
    /// The first rule whose pattern cannot be used. What git finds nothing in is passed over in a file.
    pub fn new(rules: &[Rule], files: &[IgnoreFile]) -> Result<Filter, BadGlob> {
        let mut decisions = Vec::new();
        for Rule { include, glob } in rules {
            let patterns = alternatives(glob.as_bytes());
            let patterns = patterns.map_err(|reason| BadGlob { glob: glob.clone(), reason })?;
            decisions.extend(patterns.iter().filter_map(|glob| {
                let pattern = Pattern::from_bytes_without_negation(glob)?;
                Some(Decision { pattern, is_left_out: !include })
            }));
        }
        for file in files.iter().rev() {
            let lines: Vec<&[u8]> = lines_of(&file.text).collect();
            decisions.extend(lines.iter().rev().filter_map(|line| {
                let pattern = Pattern::from_bytes(line)?;
                let is_left_out = !pattern.is_negative();
                Some(Decision { pattern, is_left_out })
            }));
        }
        Ok(Filter { decisions })
    }

    /// Whether nothing is left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.decisions.is_empty()
    }

    /// Whether the entry at `path` below the operand is left out.
    pub(crate) fn leaves_out(&self, path: &[u8], is_directory: bool) -> bool {
        let name = path.iter().rposition(|&byte| byte == b'/').map(|slash| slash + 1);
        let mode = wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
        let matches = |Decision { pattern, .. }: &&Decision| {
            let (path, is_directory) = (path.into(), Some(is_directory));
            pattern.matches_repo_relative_path(path, name, is_directory, Case::Sensitive, mode)
        };
        self.decisions.iter().find(matches).is_some_and(|decision| decision.is_left_out)
    }
}

/// The patterns in an ignore file.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#"));
    lines.map(|line| without_blanks(line.strip_suffix(b"\r").unwrap_or(line)))
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

/// Patterns that a rule stands for at most. Each is tried with each entry.
const ALTERNATIVES_MAX: usize = 1000;

/// The patterns that a rule with `{a,b}` stands for.
///
/// # Errors
/// Why the rule matches nothing, or too many patterns.
fn alternatives(glob: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    if glob.is_empty() {
        return Err("it is empty, and would match nothing");
    }
    let (mut open, mut patterns) = (vec![glob.to_vec()], Vec::new());
    while let Some(glob) = open.pop() {
        let bounds = first_braces(&glob)?;
        match bounds[..] {
            [first, .., last] => {
                let (before, after) = (&glob[..first], &glob[last + 1..]);
                let parts = bounds.windows(2).map(|ends| &glob[ends[0] + 1..ends[1]]);
                open.extend(parts.map(|part| [before, part, after].concat()));
            }
            // Of blanks alone, the library makes no pattern.
            _ if glob.iter().all(u8::is_ascii_whitespace) => {
                patterns.push([b"\\", &glob[..]].concat());
            }
            _ => patterns.push(glob),
        }
        if open.len() + patterns.len() > ALTERNATIVES_MAX {
            return Err("over 1,000 alternatives");
        }
    }
    Ok(patterns)
}

/// The places of the first braces that are not in others, and of the commas between them.
fn first_braces(glob: &[u8]) -> Result<Vec<usize>, &'static str> {
    let (mut at, mut depth, mut bounds) = (0, 0, Vec::new());
    while at < glob.len() {
        match (glob[at], depth) {
            (b'{', _) => depth += 1,
            (b'}', 1..) => depth -= 1,
            _ => {}
        }
        let is_bound = match glob[at] {
            b'{' | b',' => depth == 1,
            b'}' => depth == 0 && !bounds.is_empty(),
            _ => false,
        };
        if is_bound {
            bounds.push(at);
            if glob[at] == b'}' {
                // What follows is looked at with each alternative.
                return Ok(bounds);
            }
        }
        at += element_bytes(&glob[at..])?;
    }
    if depth > 0 { Err("unclosed alternatives; missing '}'") } else { Ok(Vec::new()) }
}

/// The length of the first element of a pattern: a byte, an escaped one or a class.
fn element_bytes(glob: &[u8]) -> Result<usize, &'static str> {
    match glob {
        [b'\\'] => return Err("dangling '\\'"),
        [b'\\', ..] => return Ok(2),
        [b'[', ..] => {}
        _ => return Ok(1),
    }
    let start = if matches!(glob.get(1), Some(b'!' | b'^')) { 2 } else { 1 };
    let mut at = start;
    loop {
        at += match glob.get(at..).unwrap_or_default() {
            [] => return Err("unclosed character class; missing ']'"),
            // In the first place it is a member.
            [b']', ..] if at > start => return Ok(at + 1),
            [b'\\', ..] => 2,
            [b'[', b':', rest @ ..] => {
                let end = rest.iter().position(|&byte| byte == b']').unwrap_or(rest.len());
                match rest[..end].strip_suffix(b":") {
                    Some(name) if CLASSES.contains(&name) => end + 3,
                    Some(_) => return Err("a character class of no known name"),
                    None => 1,
                }
            }
            _ => 1,
        };
    }
}

/// The names of POSIX for classes of characters.
const CLASSES: [&[u8]; 12] = [
    b"alnum", b"alpha", b"blank", b"cntrl", b"digit", b"graph", b"lower", b"print", b"punct",
    b"space", b"upper", b"xdigit",
];

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// `+glob` includes, `-glob` excludes.
    fn filter(rules: &[&str], files: &[&str]) -> Result<Filter, BadGlob> {
        let rule = |text: &&str| Rule { include: text.starts_with('+'), glob: text[1..].into() };
        let file = |(number, text): (usize, &&str)| IgnoreFile {
            path: format!("file{number}").into(),
            text: text.as_bytes().into(),
        };
        let files: Vec<_> = files.iter().enumerate().map(file).collect();
        Filter::new(&rules.iter().map(rule).collect::<Vec<_>>(), &files)
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
            let filter = Filter::new(&[glob(pattern)], &[]).expect("a pattern");
            assert_eq!(filter.leaves_out(name, false), left_out, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn a_bad_glob_is_named() {
        let many = format!("-{}", "{a,b}".repeat(10));
        for rule in ["-[a", "-{a", "-", "-x\\", "-[[:none:]]", "-x{a,[}", &many] {
            let bad = filter(&["-ok", rule], &[]).expect_err(rule);
            assert_eq!(bad.glob.to_str(), Some(&rule[1..]));
        }
    }

    #[test]
    fn braces_of_rules_are_alternatives() {
        check(&["-{a,b{c,d}}.o"], &[], "bd.o", true);
        check(&["-{a,b{c,d}}.o"], &[], "b.o", false);
        check(&["-{a,d/}"], &[], "d/", true);
        check(&["-{a,d/}"], &[], "d", false);
        check(&["-x{,.o}"], &[], "x", true);
        check(&["-[{]a\\,b\\}"], &[], "{a,b}", true);
        check(&["-a,b}"], &[], "a,b}", true);
        check(&["- "], &[], " ", true);
    }
}
