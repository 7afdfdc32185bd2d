//! The text form of a variant is one to one: a written text is read back as the same variant, for
//! every row of the table.

use engines::{ENGINES, ParamKind, Variant};
use proptest::prelude::*;

/// A value for each parameter of an engine, or its default. Flags are on or off.
fn texts() -> impl Strategy<Value = String> {
    (0..ENGINES.len(), proptest::collection::vec(any::<Option<u64>>(), 8), 1..=256_usize).prop_map(
        |(index, values, workers)| {
            let engine = ENGINES[index];
            let items: Vec<String> = engine
                .params
                .iter()
                .zip(values)
                .filter_map(|(param, value)| match param.kind {
                    ParamKind::Flag => value.map(|_| param.name.to_owned()),
                    ParamKind::Bytes { min, max, .. } | ParamKind::Count { min, max, .. } => {
                        value.map(|v| format!("{}={}", param.name, min + v % (max - min + 1)))
                    }
                    ParamKind::Offset { max } => {
                        value.map(|v| format!("{}={}", param.name, v % (max + 1)))
                    }
                })
                .collect();
            let separator = if items.is_empty() { "" } else { ":" };
            let workers =
                if engine.facts.positions { format!("@{workers}") } else { String::new() };
            format!("{}{separator}{}{workers}", engine.name, items.join(","))
        },
    )
}

proptest! {
    #[test]
    fn a_written_variant_is_read_back(text in texts()) {
        let variant: Variant = text.parse().unwrap();
        let written = variant.to_string();
        prop_assert_eq!(written.parse::<Variant>(), Ok(variant.clone()), "{}", written);
        prop_assert_eq!(written.parse::<Variant>().unwrap().to_string(), written);
    }

    #[test]
    fn no_text_close_to_a_variant_makes_the_parser_panic(
        text in "(read_write|mmap|io_uring)[:,=@a-z0-9KMGT]{0,20}"
    ) {
        if let Ok(variant) = text.parse::<Variant>() {
            prop_assert_eq!(variant.to_string().parse::<Variant>(), Ok(variant));
        }
    }
}

#[test]
fn proposed_variants_have_their_shortest_text() {
    for variant in Variant::proposed() {
        let texts = variant.engine.lab_variants;
        assert!(texts.contains(&variant.to_string().as_str()), "{variant} is not in {texts:?}");
    }
}

/// A text that an earlier version wrote is read, and is written in the current form.
#[test]
fn former_and_redundant_items_are_written_in_the_current_form() {
    for (text, now) in [
        ("read_write:aligned", "read_write"),
        ("read_write:256K,aligned", "read_write:256K"),
        ("read_write:aligned,4K@2", "read_write:4K@2"),
        ("read_write:4K,offset=0", "read_write:4K"),
        ("read_write:offset=0,buffer=4K", "read_write:4K"),
        ("read_write:4K,offset=2048", "read_write:4K,offset=2K"),
        ("stdio:4K,offset=16", "stdio:4K,offset=16"),
        ("memory:1M,unaligned", "memory:1M,offset=16"),
    ] {
        let variant: Variant = text.parse().expect(text);
        assert_eq!(variant.to_string(), now, "{text}");
        assert_eq!(now.parse::<Variant>().expect(now), variant, "{text}");
    }
}

#[test]
fn every_offset_has_page_alignment_as_a_neighbour() {
    let texts = |text: &str| -> Vec<String> {
        let variant: Variant = text.parse().expect(text);
        variant.neighbours(1).iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        texts("read_write:256K,offset=16"),
        ["read_write:128K,offset=16", "read_write:512K,offset=16", "read_write:256K"]
    );
    assert_eq!(texts("read_write:256K"), ["read_write:128K", "read_write:512K"]);
    // A short file does not change the offset.
    let variant: Variant = "read_write:256K,offset=16".parse().expect("parsed");
    assert_eq!(variant.within(8).to_string(), "read_write:8,offset=16");
}

#[test]
fn texts_that_are_no_variant() {
    for text in [
        "read_write:4K,offset=4096",
        "read_write:4K,offset=-1",
        "read_write:4K,offset",
        "read_write:4K,aligned,offset=16",
        "read_write:4K,aligned,aligned",
        "read_write:4K,aligned=1",
        "read_write:4K,unaligned",
        "stdio:4K,aligned",
        "read_write:+4K",
        "read_write@+2",
        "io_uring:depth=+8",
        "read_write@",
        "read_write@0",
        "read_write@-1",
        "io_uring:depth=",
        "read_write:",
        "read_write:4K,",
        ":",
        "@",
        "@2",
        "",
        "read_write:99999999999999999999999",
        "read_write@99999999999999999999999",
    ] {
        assert!(text.parse::<Variant>().is_err(), "{text}");
    }
}

/// A prediction about a variant before it starts must hold after it has started.
#[test]
fn a_variant_that_reads_past_the_page_cache_opens_its_source_so() {
    for variant in Variant::proposed().into_iter().filter(Variant::is_copier) {
        // A kernel without io_uring starts none.
        let Ok(copier) = variant.start() else { continue };
        let opened_so = copier.status_flags().src.contains(rustix::fs::OFlags::DIRECT);
        assert_eq!(variant.reads_past_cache(), opened_so, "{variant}");
    }
}
