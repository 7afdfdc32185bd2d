//! CHANGELOG.md in the form of Keep a Changelog.

/// The kinds of changes that the form knows.
const KINDS: &[&str] = &["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// The date of the first release in `text`, which has to be `version`.
///
/// # Errors
/// What is wrong, and what to do.
pub(super) fn date_of_first_release(text: &str, version: &str) -> Result<String, String> {
    let mut sections = sections(text)?.into_iter();
    let unreleased = sections.next().filter(|section| section.title == "[Unreleased]");
    let unreleased = unreleased.ok_or("its first section is not '## [Unreleased]'")?;
    let heading = format!("'## [{version}] - YEAR-MONTH-DAY'");
    let first = sections
        .next()
        .ok_or(format!("it has no release: write {heading} below '## [Unreleased]'"))?;
    let date = first.title.strip_prefix(&format!("[{version}] - ")).ok_or(format!(
        "its first release is '{}': write {heading} below '## [Unreleased]'",
        first.title
    ))?;
    if !is_date(date) {
        return Err(format!("'{date}' is no date such as 2026-01-31"));
    }
    if unreleased.has_text {
        return Err(format!("changes are left in '## [Unreleased]': move them to {heading}"));
    }
    if !first.has_text {
        return Err(format!("{heading} has no changes"));
    }
    Ok(date.to_owned())
}

struct Section<'t> {
    title: &'t str,
    has_text: bool,
}

/// The sections, without the introduction.
fn sections(text: &str) -> Result<Vec<Section<'_>>, String> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push(Section { title: title.trim_end(), has_text: false });
        } else if let Some(kind) = line.strip_prefix("### ") {
            if !KINDS.contains(&kind.trim_end()) {
                return Err(format!("'### {kind}' is none of {}", KINDS.join(", ")));
            }
        } else if let Some(section) = sections.last_mut() {
            section.has_text |= !line.trim().is_empty();
        }
    }
    Ok(sections)
}

/// Whether `text` is such as 2026-01-31.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let in_range = |part: &str, len, range: std::ops::RangeInclusive<u32>| {
        part.len() == len && part.parse().is_ok_and(|number| range.contains(&number))
    };
    in_range(year, 4, 2000..=9999) && in_range(month, 2, 1..=12) && in_range(day, 2, 1..=31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_release_is_the_version_with_a_date_and_changes() {
        let head = "# Changelog\n\nText.\n\n";
        for (text, expected) in [
            (
                "## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\n### Added\n\n- It.\n",
                Ok("2026-01-31"),
            ),
            ("## [1.2.3] - 2026-01-31\n\n- It.\n", Err("its first section is not")),
            ("## [Unreleased]\n", Err("it has no release")),
            ("## [Unreleased]\n## [1.2.2] - 2026-01-31\n", Err("first release is '[1.2.2] - 2026")),
            ("## [Unreleased]\n## [1.2.3] - 31.1.2026\n- It.\n", Err("'31.1.2026' is no date")),
            ("## [Unreleased]\n## [1.2.3] - 2026-13-31\n- It.\n", Err("is no date")),
            ("## [Unreleased]\n- New.\n## [1.2.3] - 2026-01-31\n- It.\n", Err("changes are left")),
            (
                "## [Unreleased]\n### Added\n## [1.2.3] - 2026-01-31\n### Fixed\n",
                Err("has no changes"),
            ),
            ("## [Unreleased]\n### Improved\n", Err("'### Improved' is none of Added, ")),
        ] {
            let found = date_of_first_release(&format!("{head}{text}"), "1.2.3");
            match (&found, expected) {
                (Ok(date), Ok(expected)) => assert_eq!(date, expected, "{text}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{text}: {why}"),
                _ => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn the_changelog_of_this_repository_has_the_form() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../CHANGELOG.md");
        let text = std::fs::read_to_string(path).expect("read");
        let sections = sections(&text).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(sections.first().map(|section| section.title), Some("[Unreleased]"));
    }
}
