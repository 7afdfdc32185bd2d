//! The text of a variant, as in `--engine`, profiles and CSV files.

use engines::{Bytes, Variant};

use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "variant",
    about: "the text of a variant, as --engine takes it",
    run,
    input_bytes_max: 256,
    dictionary: "variant",
};

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = text.parse::<Bytes>();
    match text.parse::<Variant>() {
        Ok(variant) => {
            let again: Variant = variant.to_string().parse().expect("its own text is right");
            assert_eq!(again.to_string(), variant.to_string(), "the text of a variant is stable");
        }
        Err(error) => drop(error.to_string()),
    }
}
