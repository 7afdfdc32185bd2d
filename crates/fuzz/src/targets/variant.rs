//! The text of a variant, as in `--engine`, profiles and CSV files.

use engines::{Bytes, Variant};

use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "variant",
    about: "the text of a variant, as --engine takes it",
    run,
    input_bytes_max: 256,
    words: &[
        "splice",
        "read_write",
        "copy_file_range",
        "sendfile",
        "mmap",
        "io_uring",
        "direct",
        "direct_read",
        "dontcache",
        "memory",
        "reflink",
        "stdio",
        "pipe=",
        "depth=",
        "populate",
        "presized",
        "fixed",
        "4K",
        "1M",
        "18446744073709551615",
        "16E",
        "@2",
        "@",
        ",",
        ":",
    ],
    starts_program: false,
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
