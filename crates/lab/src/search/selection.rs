//! Parses the list of variants that a user asks for.

use engines::{ENGINES, Engine, ParseError, Variant, by_name};

use crate::in_order::distinct;

/// The variants of `list`, in its order and each once.
///
/// Variants are separated by commas and contain commas themselves. The rule: an item after a
/// variant's colon that is a number or one of that engine's options belongs to it; every other item
/// starts the next variant. A name alone stands for all the variants that the table proposes for
/// that engine.
///
/// # Errors
/// When an item names no variant.
pub fn parse(list: &str) -> Result<Vec<Variant>, ParseError> {
    let found = split(list).into_iter().map(|text| match by_name(&text) {
        Some(engine) => proposed_for(engine),
        None => Ok(vec![text.parse()?]),
    });
    let found = found.collect::<Result<Vec<_>, ParseError>>()?;
    Ok(distinct(found.into_iter().flatten()))
}

fn proposed_for(engine: &'static Engine) -> Result<Vec<Variant>, ParseError> {
    match engine.lab_variants {
        [] => Ok(vec![Variant::plain(engine)]),
        texts => texts.iter().map(|text| text.parse()).collect(),
    }
}

fn split(list: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for item in list.split(',').map(str::trim) {
        match texts.last_mut() {
            Some(open) if continues(open, item) => {
                open.push(',');
                open.push_str(item);
            }
            _ => texts.push(item.to_owned()),
        }
    }
    texts
}

/// Whether `item` is one more option of the variant `open`.
fn continues(open: &str, item: &str) -> bool {
    // Workers stand last in a variant's text; before the colon there are no options.
    let (Some((name, _)), false) = (open.split_once(':'), open.contains('@')) else {
        return false;
    };
    let option = item.split(['=', '@']).next().unwrap_or_default();
    let starts_a_number = option.starts_with(|c: char| c.is_ascii_digit());
    let is_option = || {
        let engine = ENGINES.iter().find(|engine| engine.name == name);
        engine.is_some_and(|engine| engine.has_param(option))
    };
    // A misspelt option with a value is reported as one, and not as an engine that does not exist.
    starts_a_number || is_option() || (item.contains('=') && !option.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, expected: &[&str]) {
        let texts: Vec<String> = parse(list).expect(list).iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected, "{list}");
    }

    #[test]
    fn commas_within_and_between_variants() {
        check("read_write:4K", &["read_write:4K"]);
        check("read_write:4K,aligned,copy_file_range:1M", &["read_write:4K", "copy_file_range:1M"]);
        check("read_write:aligned,4K@2,read_write:8K", &["read_write:4K@2", "read_write:8K"]);
        check(
            "read_write:offset=16,4K@2,read_write:8K",
            &["read_write:4K,offset=16@2", "read_write:8K"],
        );
        check(
            "copy_file_range@2,read_write:buffer=64K,offset=16",
            &["copy_file_range@2", "read_write:64K,offset=16"],
        );
        check("read_write:4K, read_write:4K", &["read_write:4K"]);
    }

    #[test]
    fn a_name_alone_stands_for_all_its_proposed_variants() {
        for engine in ENGINES {
            let count = parse(engine.name).expect(engine.name).len();
            assert_eq!(count, engine.lab_variants.len().max(1), "{}", engine.name);
        }
        let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
        assert_eq!(parse(&names.join(",")).expect("parsed").len(), Variant::proposed().len());
    }

    /// Every proposed variant survives being listed between two others.
    #[test]
    fn every_proposed_variant_can_stand_in_a_list() {
        let more_than_a_name = |variant: &Variant| by_name(&variant.to_string()).is_none();
        for variant in Variant::proposed().into_iter().filter(more_than_a_name) {
            let list = format!("read_write:3,{variant},read_write:5");
            let found = parse(&list).expect(&list);
            assert_eq!(found.len(), 3, "{list}");
            assert_eq!(found[1], variant, "{list}");
        }
    }

    #[test]
    fn what_names_nothing_is_said() {
        for (list, expected) in [
            ("warp", "no engine is called 'warp'"),
            ("read_write:4K,warp", "no engine is called 'warp'"),
            ("read_write:4K,pipe=1M", "no option 'pipe'"),
            ("", "no engine is called ''"),
            ("read_write:4K,,", "no engine is called ''"),
        ] {
            let error = parse(list).expect_err(list).to_string();
            assert!(error.contains(expected), "{list}: {error}");
        }
    }
}
