//! Errors as GNU tools print them: one line, without error numbers.

/// The chain of `error`, joined by colons, without the numbers that the standard library adds.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut text = format!("{error:#}");
    while let Some(start) = text.find(" (os error ") {
        let Some(len) = text[start..].find(')') else { break };
        text.replace_range(start..=start + len, "");
    }
    text
}

/// The first paragraph of clap's message on one line, with a reference to `command --help` instead of
/// the usage.
pub(crate) fn of_clap(error: &clap::Error, command: &str) -> String {
    let message = error.to_string();
    let paragraph = message.split("\n\n").next().unwrap_or(&message);
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let line = words.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    // Such as "a similar argument exists: '--engines'".
    let tip = message.lines().find_map(|line| line.trim_start().strip_prefix("tip: "));
    let tip = tip.filter(|tip| tip.contains("similar")).map(|tip| format!("; {tip}"));
    format!("{line}{}; see {command} --help", tip.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::one_line;
    use anyhow::Context;

    #[test]
    fn error_numbers_are_left_out() {
        let error = std::io::Error::from_raw_os_error(2);
        let error = Err::<(), _>(error).context("cannot stat 'x'").unwrap_err();
        assert_eq!(one_line(&error), "cannot stat 'x': No such file or directory");
    }
}
