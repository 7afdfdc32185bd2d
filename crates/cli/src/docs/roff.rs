//! Text as roff, and manual pages of it.

use crate::version::{DATE, VERSION};

/// The manual page `name`: its purpose in a phrase, its sections, and the pages to see besides, such as
/// `cp(1)`.
pub(crate) fn page(name: &str, about: &str, sections: &str, others: &[String]) -> String {
    let title = dashes(&name.to_uppercase());
    let (name, about) = (dashes(name), dashes(about));
    let others: Vec<String> = others.iter().map(|page| reference(page)).collect();
    filled(&format!(
        ".TH {title} 1 \"{DATE}\" \"haulage {VERSION}\"\n.SH NAME\n{name} \\- {about}\n{sections}\
         .SH SEE ALSO\n{}\n",
        others.join(",\n")
    ))
}

/// A reference to another page, such as `cp(1)`.
pub(crate) fn reference(page: &str) -> String {
    format!(".BR {}", dashes(page).replace('(', " ("))
}

/// The name of an option, as it is typed.
pub(crate) fn bold(name: &str) -> String {
    format!("\\fB{}\\fR", dashes(name))
}

/// The name of an argument.
pub(crate) fn italic(name: &str) -> String {
    format!("\\fI{}\\fR", dashes(name))
}

/// `text` with what roff would take for a request or an escape sequence escaped, as one paragraph.
/// What is between backticks is bold.
pub(crate) fn paragraph(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let escaped = dashes(&words.join(" ").replace('\\', "\\e"));
    let mut roff = String::new();
    for (index, part) in escaped.split('`').enumerate() {
        roff.push_str(match (index, index % 2) {
            (0, _) => "",
            (_, 1) => "\\fB",
            (_, _) => "\\fR",
        });
        roff.push_str(part);
    }
    let guard = if roff.starts_with(['.', '\'']) { "\\&" } else { "" };
    format!("{guard}{roff}\n")
}

/// A phrase, which may be in lower case, as a sentence.
pub(crate) fn sentence(phrase: &str) -> String {
    let mut letters = phrase.trim_end_matches('.').chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Escapes `-`, which roff would print as a hyphen, and a dot at the start of a word, which would be a
/// request if the line were broken before it.
pub(crate) fn dashes(text: &str) -> String {
    text.replace('-', "\\-").replace(" .", " \\&.")
}

/// The bytes of a line of text, which mandoc's lint allows.
const LINE_BYTES: usize = 80;

/// `page` with its long lines of text broken: after each sentence, and where a line is full. Requests and
/// what is printed as it is keep their lines.
fn filled(page: &str) -> String {
    let mut filled = String::with_capacity(page.len());
    let (mut as_it_is, mut is_tag) = (false, false);
    for line in page.lines() {
        as_it_is = line == ".nf" || as_it_is && line != ".fi";
        if line.len() <= LINE_BYTES || line.starts_with('.') || as_it_is || is_tag {
            filled.push_str(line);
        } else {
            filled.push_str(&broken(line));
        }
        filled.push('\n');
        is_tag = line == ".TP";
    }
    filled
}

/// `line` as several lines, none of which roff takes for a request.
fn broken(line: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut current = String::new();
    for word in line.split(' ') {
        let begins_sentence =
            current.ends_with('.') && word.starts_with(|c: char| c.is_uppercase());
        let is_full = current.len() + 1 + word.len() > LINE_BYTES;
        if !current.is_empty() && (begins_sentence || is_full) {
            lines.push(std::mem::take(&mut current));
            if word.starts_with(['.', '\'']) {
                current.push_str("\\&");
            }
        } else if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_where_roff_reads_the_same() {
        let word = "word ".repeat(15);
        let word = word.trim_end();
        for (page, expected) in [
            (format!("{word}. A b."), format!("{word}. A b.\n")),
            (format!("{word}. A b. And so on"), format!("{word}.\nA b.\nAnd so on\n")),
            (format!("{word} 'x y' and more text"), format!("{word} 'x y'\nand more text\n")),
            (format!("{word} long 'x y' more"), format!("{word} long\n\\&'x y' more\n")),
            (
                format!(".TP\n{word} of a tag that is long"),
                format!(".TP\n{word} of a tag that is long\n"),
            ),
            (
                format!(".nf\n{word} of an example\n.fi"),
                format!(".nf\n{word} of an example\n.fi\n"),
            ),
        ] {
            assert_eq!(filled(&page), expected, "{page}");
        }
    }

    #[test]
    fn text_is_never_a_request_or_an_escape() {
        for (text, expected) in [
            ("a-b  c\nd", "a\\-b c d\n"),
            ("'haulage' it", "\\&'haulage' it\n"),
            (".x and .y", "\\&.x and \\&.y\n"),
            ("a `-` b", "a \\fB\\-\\fR b\n"),
            ("a\\b", "a\\eb\n"),
        ] {
            assert_eq!(paragraph(text), expected, "{text}");
        }
    }
}
