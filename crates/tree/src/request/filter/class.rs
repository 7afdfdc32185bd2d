//! Character classes of patterns, `[a-c]`. The matcher differs from git: it has neither backslashes
//! nor names such as `[:digit:]` in them, and its negated classes match a slash.

use std::ops::RangeInclusive;

/// Why a pattern matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidGlob {
    /// A class without its end.
    Unclosed,
    /// A class with an unknown name.
    Unnamed,
    /// A class that matches no character of a name.
    Empty,
    /// A backslash at the end.
    Dangling,
}

impl InvalidGlob {
    /// The reason in words.
    pub(super) fn reason(self) -> &'static str {
        match self {
            InvalidGlob::Unclosed => "unclosed character class; missing ']'",
            InvalidGlob::Unnamed => "a character class of no known name",
            InvalidGlob::Empty => "a character class that holds nothing",
            InvalidGlob::Dangling => "dangling '\\'",
        }
    }
}

/// A class at the start of a pattern.
#[derive(Debug)]
pub(super) struct Class {
    negated: bool,
    /// The ASCII characters in it.
    holds: [bool; 128],
    /// The class contains bytes beyond ASCII, and is passed to the matcher unchanged.
    foreign: bool,
    /// The length of the class in the pattern.
    pub(super) bytes: usize,
}

impl Class {
    /// Reads the class at the start of `pattern`.
    ///
    /// # Errors
    /// Why nothing matches it.
    pub(super) fn read(pattern: &[u8]) -> Result<Class, InvalidGlob> {
        let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
        let start = if negated { 2 } else { 1 };
        let mut class = Class { negated, holds: [false; 128], foreign: false, bytes: 0 };
        let byte = |at: usize| pattern.get(at).copied().ok_or(InvalidGlob::Unclosed);
        let (mut at, mut before) = (start, None);
        // A bracket in the first place is a member.
        while at == start || byte(at)? != b']' {
            match byte(at)? {
                b'\\' => {
                    at += 1;
                    before = Some(byte(at)?);
                    class.add(byte(at)?..=byte(at)?);
                }
                b'-' if before.is_some() && byte(at + 1)? != b']' => {
                    at += if byte(at + 1)? == b'\\' { 2 } else { 1 };
                    class.add(before.take().unwrap_or_default()..=byte(at)?);
                }
                b'[' if pattern.get(at + 1) == Some(&b':') => {
                    let rest = &pattern[at + 2..];
                    let end =
                        rest.iter().position(|&byte| byte == b']').ok_or(InvalidGlob::Unclosed)?;
                    match rest[..end].strip_suffix(b":") {
                        Some(name) => {
                            let is_in = named(name).ok_or(InvalidGlob::Unnamed)?;
                            (0..128).filter(is_in).for_each(|byte| class.add(byte..=byte));
                            before = None;
                            at += 2 + end;
                        }
                        None => {
                            class.add(b'['..=b'[');
                            before = Some(b'[');
                        }
                    }
                }
                letter => {
                    class.add(letter..=letter);
                    before = Some(letter);
                }
            }
            at += 1;
        }
        class.bytes = at + 1;
        // Only a slash matches a slash.
        class.holds[usize::from(b'/')] = negated;
        let invalid = !negated && !class.foreign && !class.holds.contains(&true);
        if invalid { Err(InvalidGlob::Empty) } else { Ok(class) }
    }

    fn add(&mut self, letters: RangeInclusive<u8>) {
        self.foreign |= !letters.is_empty() && *letters.end() >= 0x80;
        letters.filter(u8::is_ascii).for_each(|letter| self.holds[usize::from(letter)] = true);
    }

    /// Writes the class for the matcher. `given` is the text that it was read from.
    pub(super) fn write(&self, given: &[u8], out: &mut Vec<u8>) {
        if self.foreign {
            return self.write_foreign(given, out);
        }
        out.extend_from_slice(if self.negated { b"[!" } else { b"[" });
        let holds = |letter: u8| self.holds[usize::from(letter)];
        // A bracket is a member only in the first place, a hyphen only in the last.
        let first = holds(b']');
        if first {
            out.push(b']');
        }
        let letters: Vec<u8> =
            (0..128).filter(|&letter| holds(letter) && !matches!(letter, b']' | b'-')).collect();
        if !first && !self.negated && matches!(letters.first(), Some(b'!' | b'^')) {
            // Avoids a negation; no name has a zero byte.
            out.push(0);
        }
        for run in letters.chunk_by(|left, right| left + 1 == *right) {
            match run {
                [from, _, .., to] => out.extend([*from, b'-', *to]),
                few => out.extend_from_slice(few),
            }
        }
        if holds(b'-') {
            out.push(b'-');
        }
        out.push(b']');
    }

    fn write_foreign(&self, given: &[u8], out: &mut Vec<u8>) {
        let [b'[', b'!' | b'^', class @ .., b']'] = given else {
            return out.extend_from_slice(given);
        };
        let (start, end) = if class.starts_with(b"]") { ("[!", "/]") } else { ("[!/", "]") };
        out.extend([start.as_bytes(), class, end.as_bytes()].concat());
    }
}

/// The test for the class of this name.
fn named(name: &[u8]) -> Option<fn(&u8) -> bool> {
    let is_in: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |letter| matches!(letter, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |letter| matches!(letter, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |letter| matches!(letter, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    Some(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: Result<&str, InvalidGlob>) {
        let written = Class::read(given.as_bytes()).map(|class| {
            assert_eq!(class.bytes, given.len(), "{given}");
            let mut out = Vec::new();
            class.write(given.as_bytes(), &mut out);
            String::from_utf8(out).expect("text")
        });
        assert_eq!(written.as_deref(), expected.as_ref().map(|expected| *expected), "{given}");
    }

    #[test]
    fn classes_are_written_as_the_matcher_reads_them() {
        for (given, expected) in [
            ("[ab]", Ok("[ab]")),
            ("[a-c]", Ok("[a-c]")),
            ("[!a]", Ok("[!/a]")),
            ("[^a-c/]", Ok("[!/a-c]")),
            ("[]a]", Ok("[]a]")),
            ("[!]]", Ok("[!]/]")),
            ("[\\]]", Ok("[]]")),
            ("[a\\-c]", Ok("[ac-]")),
            ("[+--]", Ok("[+,-]")),
            ("[-a]", Ok("[a-]")),
            ("[\\!a]", Ok("[\0!a]")),
            ("[[:digit:]x]", Ok("[0-9x]")),
            ("[[:x]", Ok("[:[x]")),
            ("[é]", Ok("[é]")),
            ("[!é]", Ok("[!/é]")),
            ("[/]", Err(InvalidGlob::Empty)),
            // The first character of a range counts even if the range is empty.
            ("[z-a]", Ok("[z]")),
            ("[a", Err(InvalidGlob::Unclosed)),
            ("[]", Err(InvalidGlob::Unclosed)),
            ("[a\\", Err(InvalidGlob::Unclosed)),
            ("[[:nothing:]]", Err(InvalidGlob::Unnamed)),
        ] {
            check(given, expected);
        }
    }
}
