//! One colour and one symbol for each engine, in all drawings. Variants of an engine differ in the
//! pattern of their lines.
//!
//! The colours are from Okabe and Ito (2008) and Tol (2021). They can be told apart with the common
//! kinds of colour blindness. Colour is never the only difference: symbols and names differ too.

use std::collections::BTreeMap;

use lab::in_order::{distinct, gathered};

/// How the marks of a variant look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Its place among the variants of the report.
    pub number: usize,
    /// The engine, or the first word of the variant in workloads without engines.
    pub engine: String,
    /// The place of its colour and symbol in [`ROWS`].
    pub row: usize,
    /// The pattern of its lines, an index into [`DASHES`].
    pub dash: usize,
}

/// The variants of a report, in the order of their numbers.
pub type Styles = BTreeMap<String, Style>;

/// The look of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    engine: &'static str,
    /// The colour on a light background, `#rrggbb`.
    pub light: &'static str,
    /// The colour on a dark background.
    pub dark: &'static str,
    /// The outline of its symbol as path data of SVG, around the origin.
    pub symbol: &'static str,
}

/// The looks of all engines.
pub const ROWS: [Row; 12] = [
    row("read_write", "#0072b2", "#4aa8e0", "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z"),
    row("copy_file_range", "#d55e00", "#f0813a", "M-3.1-3.1h6.2v6.2h-6.2z"),
    row("splice", "#009e73", "#2fc49a", "M0-4.3 4.3 0 0 4.3-4.3 0z"),
    row("sendfile", "#cc79a7", "#e29bc4", "M0-3.9 3.4 2h-6.8z"),
    row("mmap", "#c98a00", "#e6b43c", "M0 3.9 3.4-2h-6.8z"),
    row("io_uring", "#882255", "#cf5c96", "M0-3.9 3.7-1.2 2.3 3.2h-4.6L-3.7-1.2z"),
    row("stdio", "#56b4e9", "#9bd4f5", "M0-3.9 3.4-2v4L0 3.9-3.4 2v-4z"),
    row(
        "direct",
        "#332288",
        "#9a8cf0",
        "M0-4.4 1.2-1.6 4.2-1.4 1.9.6 2.6 3.6 0 2-2.6 3.6-1.9.6-4.2-1.4-1.2-1.6z",
    ),
    row("direct_read", "#6a4c2f", "#c39a72", "M-3.9 0 2 3.4v-6.8z"),
    row(
        "dontcache",
        "#999933",
        "#c6c65e",
        "M-1.4-3.7h2.8v2.3h2.3v2.8h-2.3v2.3h-2.8v-2.3h-2.3v-2.8h2.3z",
    ),
    row(
        "reflink",
        "#117733",
        "#5fae78",
        "M-3.6-1.6-1.6-3.6 0-2 1.6-3.6 3.6-1.6 2 0 3.6 1.6 1.6 3.6 0 2-1.6 3.6-3.6 1.6-2 0z",
    ),
    row("memory", "#6b6b6b", "#a9a9a9", "M3.9 0-2 3.4v-6.8z"),
];

/// The lengths of dashes and gaps in turn. The first variant of an engine has a solid line.
pub const DASHES: [&str; 6] = ["none", "5 3", "1.5 2", "5 2 1.5 2", "9 3", "9 2 1.5 2"];

const fn row(
    engine: &'static str,
    light: &'static str,
    dark: &'static str,
    symbol: &'static str,
) -> Row {
    Row { engine, light, dark, symbol }
}

/// The styles of all variants of a report. A variant without an engine gets a row that no engine of
/// the report uses.
pub fn styles<'v>(variants: impl IntoIterator<Item = &'v str>) -> Styles {
    let unique = distinct(variants);
    let known = |engine: &str| ROWS.iter().position(|row| row.engine == engine);
    let mut taken: Vec<usize> = unique.iter().filter_map(|it| known(engine_of(it))).collect();
    let mut styles = BTreeMap::new();
    for (engine, variants) in gathered(unique, |variant| engine_of(variant)) {
        let row = known(engine).unwrap_or_else(|| {
            let free = (0..ROWS.len()).find(|row| !taken.contains(row));
            taken.push(free.unwrap_or(taken.len() % ROWS.len()));
            taken[taken.len() - 1]
        });
        for (index, variant) in variants.into_iter().enumerate() {
            let dash = index % DASHES.len();
            let style = Style { number: 0, engine: engine.to_owned(), row, dash };
            styles.insert(variant.to_owned(), style);
        }
    }
    styles.values_mut().enumerate().for_each(|(number, style)| style.number = number);
    styles
}

/// The text of a variant before its parameters: `splice` of `splice:1M,pipe=1M@2`. It is `buffer`
/// if the variant is only a number of bytes.
pub fn engine_of(variant: &str) -> &str {
    let end = variant.find([':', '@', ' ', ',']).unwrap_or(variant.len());
    let engine = &variant[..end];
    if engine.parse::<engines::Bytes>().is_ok() { "buffer" } else { engine }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of a colour, 0 to 1 (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("hexadecimal");
            let share = f64::from(value) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn an_engine_has_one_colour_and_its_variants_have_patterns() {
        let styles = styles(["read_write:64K", "other", "read_write:4K", "splice@2", "4K", "8K"]);
        let of = |name: &str| &styles[name];
        assert_eq!(of("read_write:64K").row, of("read_write:4K").row);
        assert_ne!(of("read_write:64K").dash, of("read_write:4K").dash);
        assert_eq!(of("4K").row, of("8K").row);
        let engines = ["read_write:64K", "other", "splice@2", "4K"].map(|name| of(name).row);
        assert_eq!(distinct(engines), engines, "each engine has a row of its own");
    }

    #[test]
    fn every_engine_has_a_row() {
        for engine in engines::ENGINES {
            assert!(ROWS.iter().any(|row| row.engine == engine.name), "{}", engine.name);
        }
    }

    #[test]
    fn no_two_rows_look_alike() {
        let (colours, symbols) = (ROWS.map(|row| row.light), ROWS.map(|row| row.symbol));
        assert_eq!(distinct(colours), colours);
        assert_eq!(distinct(symbols), symbols);
    }

    /// WCAG 2.2 requires a contrast of 3 for graphics. Light blue has 2.3; its symbol and name
    /// identify it too.
    #[test]
    fn colours_have_contrast_to_their_background() {
        for row in &ROWS {
            let light = 1.05 / (luminance(row.light) + 0.05);
            let dark = (luminance(row.dark) + 0.05) / (luminance("#14181d") + 0.05);
            assert!(light > 2.2, "{}: {light}", row.engine);
            assert!(dark > 4.0, "{}: {dark}", row.engine);
        }
    }
}
