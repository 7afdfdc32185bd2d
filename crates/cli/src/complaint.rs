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
