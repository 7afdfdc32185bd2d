//! Text as roff, and manual pages of it.

use crate::version::{DATE, VERSION};

/// The first line of a page.
pub(crate) fn title(page: &str) -> String {
    let page = dashes(&page.to_uppercase());
    format!(".TH {page} 1 \"{DATE}\" \"haulage {VERSION}\"\n")
}

/// The references of a page to other pages, with their sections.
pub(crate) fn see_also(pages: &[(String, u8)]) -> String {
    let last = pages.len().saturating_sub(1);
    let lines = pages.iter().enumerate().map(|(index, (page, section))| {
        let comma = if index == last { "" } else { "," };
        format!(".BR {} ({section}){comma}\n", dashes(page))
    });
    format!(".SH SEE ALSO\n{}", lines.collect::<String>())
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

/// Escapes `-`, which roff would print as a hyphen, and a dot at the start of a word, which would be a
/// request if the line were broken before it.
pub(crate) fn dashes(text: &str) -> String {
    text.replace('-', "\\-").replace(" .", " \\&.")
}

#[cfg(test)]
mod tests {
    use super::*;

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
