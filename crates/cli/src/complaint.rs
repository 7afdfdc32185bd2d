//! Errors in words, as the GNU tools have them: one line, no error numbers.

/// The chain of `error`, joined by colons, without the numbers that the standard library adds.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let mut text = format!("{error:#}");
    while let Some(start) = text.find(" (os error ") {
        let Some(len) = text[start..].find(')') else { break };
        text.replace_range(start..=start + len, "");
    }
    text
}

/// The first paragraph of clap's message, on one line: what follows is a usage text that
/// `command --help` shows better.
pub(crate) fn of_clap(error: &clap::Error, command: &str) -> String {
    let message = error.to_string();
    let paragraph = message.split("\n\n").next().unwrap_or(&message);
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let line = words.join(" ");
    format!("{}; see {command} --help", line.strip_prefix("error: ").unwrap_or(&line))
}

/// `text` from a file that anybody may have written: a terminal would obey what it holds.
pub(crate) fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::words;
    use anyhow::Context;

    #[test]
    fn numbers_are_left_out() {
        let error = std::io::Error::from_raw_os_error(2);
        let error = Err::<(), _>(error).context("cannot stat 'x'").unwrap_err();
        assert_eq!(words(&error), "cannot stat 'x': No such file or directory");
    }
}
