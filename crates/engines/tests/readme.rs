//! Compares the README's statements about engines with the table.

use engines::{Variant, by_name};

#[test]
fn readme_rows_are_rows_of_the_table() {
    let rows: Vec<Vec<&str>> = README
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(!rows.is_empty());
    for row in rows {
        let name = row[0].trim_matches('`');
        let engine = by_name(name).unwrap_or_else(|| panic!("no engine is called {name}"));
        let params: Vec<&str> = in_code_marks(row[2]).collect();
        let known: Vec<&str> = engine.params.iter().map(|param| param.name).collect();
        assert_eq!(params, known, "the tuning of {name}");
    }
}

#[test]
fn readme_variants_can_be_parsed() {
    let variants: Vec<&str> = in_code_marks(README)
        .filter(|text| text.split_once([':', '@']).is_some_and(|(name, _)| by_name(name).is_some()))
        .collect();
    assert!(variants.len() >= 4, "{variants:?}");
    for text in variants {
        let variant: Variant = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(variant.to_string(), text);
    }
}

const README: &str = include_str!("../../../README.md");

fn in_code_marks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
