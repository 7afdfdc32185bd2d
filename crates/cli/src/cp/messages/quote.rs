//! Names in messages, quoted so that they can be pasted into a shell, whatever their bytes.
//!
//! GNU cp writes names in two styles. File names are quoted for the shell, always: `'a'`, `"it's"`,
//! `'a'$'\n''b'`. Words of the command line are put between quotation marks with C escapes:
//! `'m\nq'`, in a UTF-8 locale `‘m\nq’`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// The character set of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    /// Bytes above 127 are not printable.
    Ascii,
    /// Valid UTF-8 is printable.
    Utf8,
}

impl Charset {
    /// The character set of the locale (LC_CTYPE).
    pub(crate) fn of_locale() -> Charset {
        static CHARSET: OnceLock<Charset> = OnceLock::new();
        *CHARSET.get_or_init(|| match sys::codeset().as_deref() {
            Some("UTF-8") => Charset::Utf8,
            _ => Charset::Ascii,
        })
    }
}

/// A file name as messages show it, in the character set of the locale.
pub(crate) fn name(name: impl AsRef<OsStr>) -> Vec<u8> {
    for_shell(name.as_ref().as_bytes(), Charset::of_locale())
}

/// `name` in single quotes, with `$'…'` around what is not printable; in double quotes if that avoids
/// the escaping of single quotes.
pub(crate) fn for_shell(name: &[u8], charset: Charset) -> Vec<u8> {
    if name.contains(&b'\'') && fits_double_quotes(name, charset) {
        return [b"\"", name, b"\""].concat();
    }
    let mut out = vec![b'\''];
    let mut escaping = false;
    for piece in pieces(name, charset) {
        match piece {
            Piece::Printable(b"'") => {
                // Closes the open quotes, and opens single quotes again.
                out.extend_from_slice(b"'\\''");
                escaping = false;
            }
            Piece::Printable(text) => {
                if escaping {
                    out.extend_from_slice(b"''");
                }
                out.extend_from_slice(text);
                escaping = false;
            }
            Piece::Unprintable(bytes) => {
                if !escaping {
                    out.extend_from_slice(b"'$'");
                }
                bytes.iter().for_each(|&byte| escape(byte, &mut out));
                escaping = true;
            }
        }
    }
    out.push(b'\'');
    out
}

/// An argument in quotation marks, with C escapes for what is not printable.
pub(crate) fn word(word: &[u8], charset: Charset) -> Vec<u8> {
    let (open, close) = match charset {
        Charset::Ascii => ("'", "'"),
        Charset::Utf8 => ("‘", "’"),
    };
    let mut out = open.as_bytes().to_vec();
    for piece in pieces(word, charset) {
        match piece {
            Piece::Printable(text) if text == b"\\" || text == close.as_bytes() => {
                out.push(b'\\');
                out.extend_from_slice(text);
            }
            Piece::Printable(text) => out.extend_from_slice(text),
            Piece::Unprintable(bytes) => bytes.iter().for_each(|&byte| escape(byte, &mut out)),
        }
    }
    out.extend_from_slice(close.as_bytes());
    out
}

/// A character that is shown as it is, or bytes that are not.
enum Piece<'n> {
    Printable(&'n [u8]),
    Unprintable(&'n [u8]),
}

fn pieces(name: &[u8], charset: Charset) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let &first = rest.first()?;
        let (len, printable) = match charset {
            _ if first.is_ascii() => (1, !first.is_ascii_control()),
            Charset::Ascii => (1, false),
            Charset::Utf8 => match first_char(rest) {
                Ok(c) => (c.len_utf8(), is_printable(c)),
                Err(len) => (len, false),
            },
        };
        let (piece, after) = rest.split_at(len);
        rest = after;
        Some(if printable { Piece::Printable(piece) } else { Piece::Unprintable(piece) })
    })
}

/// The first character of `bytes`, or the length of the invalid sequence at its start.
fn first_char(bytes: &[u8]) -> Result<char, usize> {
    let chunk = bytes.utf8_chunks().next().expect("there are bytes");
    match chunk.valid().chars().next() {
        Some(c) => Ok(c),
        None => Err(chunk.invalid().len()),
    }
}

/// The result of iswprint(3) in a UTF-8 locale, except for unassigned code points within blocks, which
/// differ between versions of Unicode.
fn is_printable(c: char) -> bool {
    let code = u32::from(c);
    let line_or_paragraph_separator = matches!(c, '\u{2028}' | '\u{2029}');
    let noncharacter = code & 0xfffe == 0xfffe || matches!(code, 0xfdd0..=0xfdef);
    let in_empty_planes = matches!(code, 0x4_0000..=0xd_ffff);
    !(c.is_control() || line_or_paragraph_separator || noncharacter || in_empty_planes)
}

/// Whether `name` can be put in double quotes: it has no character with a meaning within them, for the
/// history or for patterns of some shell.
fn fits_double_quotes(name: &[u8], charset: Charset) -> bool {
    let harmless = |(at, piece)| match piece {
        // As in GNU cp: allowed at the start of a name, not elsewhere.
        Piece::Printable([b'#' | b'~']) => at == 0,
        Piece::Printable([byte]) => !b"!\"$&()*;<=>?[\\^`{|}".contains(byte),
        Piece::Printable(_) => true,
        Piece::Unprintable(_) => false,
    };
    pieces(name, charset).enumerate().all(harmless)
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        0x07 => b'a',
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0b => b'v',
        0x0c => b'f',
        b'\r' => b'r',
        _ => return out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::cp::tests::gnu_on_this_machine;

    /// Names, and how they are shown in ASCII and in UTF-8.
    const NAMES: &[(&[u8], &str, &str)] = &[
        (b"a", "'a'", "'a'"),
        (b"", "''", "''"),
        (b"-x y", "'-x y'", "'-x y'"),
        (b"$x`y`\\*\"!", "'$x`y`\\*\"!'", "'$x`y`\\*\"!'"),
        (b"it's", "\"it's\"", "\"it's\""),
        (b"'", "\"'\"", "\"'\""),
        (b"it's $x", "'it'\\''s $x'", "'it'\\''s $x'"),
        (b"it's\\", "'it'\\''s\\'", "'it'\\''s\\'"),
        (b"' %@,:+-./]_", "\"' %@,:+-./]_\"", "\"' %@,:+-./]_\""),
        (b"#'", "\"#'\"", "\"#'\""),
        (b"a#'", "'a#'\\'''", "'a#'\\'''"),
        (b"a\nb", "'a'$'\\n''b'", "'a'$'\\n''b'"),
        (b"\n", "''$'\\n'", "''$'\\n'"),
        (b"it's\n", "'it'\\''s'$'\\n'", "'it'\\''s'$'\\n'"),
        (b"\nit's", "''$'\\n''it'\\''s'", "''$'\\n''it'\\''s'"),
        (b"'\n'", "''\\'''$'\\n'\\'''", "''\\'''$'\\n'\\'''"),
        (
            b"\x01\x07\x08\t\x0b\x0c\r\x1b\x7f0",
            "''$'\\001\\a\\b\\t\\v\\f\\r\\033\\177''0'",
            "''$'\\001\\a\\b\\t\\v\\f\\r\\033\\177''0'",
        ),
        (b"\xff7", "''$'\\377''7'", "''$'\\377''7'"),
        ("é".as_bytes(), "''$'\\303\\251'", "'é'"),
        ("é'".as_bytes(), "''$'\\303\\251'\\'''", "\"é'\""),
        (b"\xe2\x82x", "''$'\\342\\202''x'", "''$'\\342\\202''x'"),
        (b"\xed\xa0\x80", "''$'\\355\\240\\200'", "''$'\\355\\240\\200'"),
        ("\u{85}".as_bytes(), "''$'\\302\\205'", "''$'\\302\\205'"),
        ("\u{2028}".as_bytes(), "''$'\\342\\200\\250'", "''$'\\342\\200\\250'"),
        ("\u{a0}\u{200b}".as_bytes(), "''$'\\302\\240\\342\\200\\213'", "'\u{a0}\u{200b}'"),
        ("😀".as_bytes(), "''$'\\360\\237\\230\\200'", "'😀'"),
        ("\u{ffff}".as_bytes(), "''$'\\357\\277\\277'", "''$'\\357\\277\\277'"),
    ];

    #[test]
    fn names_are_shown_as_a_shell_reads_them() {
        for &(name, ascii, utf8) in NAMES {
            let shown = |charset| String::from_utf8(for_shell(name, charset)).expect("UTF-8");
            assert_eq!(shown(Charset::Ascii), ascii);
            assert_eq!(shown(Charset::Utf8), utf8);
        }
    }

    #[test]
    fn the_machines_cp_shows_them_the_same() {
        let Some(program) = gnu_on_this_machine() else { return };
        let mut names: Vec<Vec<u8>> = NAMES.iter().map(|(name, _, _)| name.to_vec()).collect();
        for byte in 1..=255_u8 {
            for (before, after) in
                [("", ""), ("", "'"), ("'", ""), ("a", "a"), ("a'", "a"), ("", "7")]
            {
                names.push([before.as_bytes(), &[byte], after.as_bytes()].concat());
            }
        }
        // Where a name holds a single quotation mark and something unprintable, GNU cp 9.1 puts two
        // marks too many at the front.
        names.retain(|name| {
            !name.contains(&b'\'') || name.iter().all(|byte| (b' '..=b'~').contains(byte))
        });
        let empty = tempfile::tempdir().expect("created");
        for (locale, charset) in [("C", Charset::Ascii), ("C.UTF-8", Charset::Utf8)] {
            let output = Command::new(program)
                .arg0("cp")
                .arg("--")
                .args(names.iter().map(|name| OsStr::from_bytes(name)))
                .arg(empty.path())
                .env_clear()
                .env("LC_ALL", locale)
                .current_dir(empty.path())
                .output()
                .expect("cp can be run");
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(told.lines().count(), names.len());
            for (line, name) in told.lines().zip(&names) {
                let shown = for_shell(name, charset);
                let shown = String::from_utf8_lossy(&shown);
                // `.` and `/` exist, and are complained of in other words.
                assert!(line.contains(&format!(" {shown}")), "{line} lacks {shown}");
            }
        }
    }
}
