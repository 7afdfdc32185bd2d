//! One colour and one symbol for each engine, in all drawings. Variants of an engine differ in the
//! pattern of their lines.
//!
//! The colours are from Okabe and Ito (2008) and Tol (2021). They can be told apart with the common
//! kinds of colour blindness. Colour is never the only difference: symbols and names differ too.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::in_order::distinct;

/// How the marks of a variant look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Style {
    /// The engine, or the first word of the variant in workloads without engines.
    pub engine: String,
    /// The colour on a light background, `#rrggbb`.
    pub light: &'static str,
    /// The colour on a dark background.
    pub dark: &'static str,
    /// The symbol of its points.
    pub symbol: Symbol,
    /// The pattern of its lines. The first variant of an engine is solid.
    pub dash: Dash,
}

/// Symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The names say it.
pub enum Symbol {
    Circle,
    Square,
    Diamond,
    TriangleUp,
    TriangleDown,
    Pentagon,
    Star,
    Cross,
    Hexagon,
    X,
    TriangleRight,
    TriangleLeft,
}

/// Patterns of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // The names say it.
pub enum Dash {
    Solid,
    Dash,
    Dot,
    DashDot,
    LongDash,
    LongDashDot,
}

struct Row {
    engine: &'static str,
    light: &'static str,
    dark: &'static str,
    symbol: Symbol,
}

const ROWS: [Row; 12] = [
    row("read_write", "#0072b2", "#4aa8e0", Symbol::Circle),
    row("copy_file_range", "#d55e00", "#f0813a", Symbol::Square),
    row("splice", "#009e73", "#2fc49a", Symbol::Diamond),
    row("sendfile", "#cc79a7", "#e29bc4", Symbol::TriangleUp),
    row("mmap", "#c98a00", "#e6b43c", Symbol::TriangleDown),
    row("io_uring", "#882255", "#cf5c96", Symbol::Pentagon),
    row("stdio", "#56b4e9", "#9bd4f5", Symbol::Hexagon),
    row("direct", "#332288", "#9a8cf0", Symbol::Star),
    row("direct_read", "#6a4c2f", "#c39a72", Symbol::TriangleLeft),
    row("dontcache", "#999933", "#c6c65e", Symbol::Cross),
    row("reflink", "#117733", "#5fae78", Symbol::X),
    row("memory", "#6b6b6b", "#a9a9a9", Symbol::TriangleRight),
];

const DASHES: [Dash; 6] =
    [Dash::Solid, Dash::Dash, Dash::Dot, Dash::DashDot, Dash::LongDash, Dash::LongDashDot];

const fn row(engine: &'static str, light: &'static str, dark: &'static str, symbol: Symbol) -> Row {
    Row { engine, light, dark, symbol }
}

/// The styles of all variants of a report. A variant without an engine gets a row that no engine of
/// the report uses.
#[must_use]
pub fn styles<'v>(variants: impl IntoIterator<Item = &'v str>) -> BTreeMap<String, Style> {
    let unique = distinct(variants);
    let known = |engine: &str| ROWS.iter().position(|row| row.engine == engine);
    let mut taken: Vec<(&str, usize)> = Vec::new();
    for engine in unique.iter().map(|variant| engine_of(variant)) {
        if let Some(row) = known(engine) {
            taken.push((engine, row));
        }
    }
    let mut variants_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut styles = BTreeMap::new();
    for variant in unique {
        let engine = engine_of(variant);
        let row = match taken.iter().find(|(name, _)| *name == engine) {
            Some((_, row)) => *row,
            None => {
                let free = (0..ROWS.len()).find(|row| taken.iter().all(|(_, used)| used != row));
                let row = free.unwrap_or(taken.len() % ROWS.len());
                taken.push((engine, row));
                row
            }
        };
        let count = variants_of.entry(engine).or_default();
        let Row { light, dark, symbol, .. } = ROWS[row];
        let dash = DASHES[*count % DASHES.len()];
        *count += 1;
        let style = Style { engine: engine.to_owned(), light, dark, symbol, dash };
        styles.insert(variant.to_owned(), style);
    }
    styles
}

/// The text of a variant before its parameters: `splice` of `splice:1M,pipe=1M@2`. It is `buffer`
/// if the variant is only a number of bytes.
#[must_use]
pub fn engine_of(variant: &str) -> &str {
    let end = variant.find([':', '@', ' ', ',']).unwrap_or(variant.len());
    let engine = &variant[..end];
    if engine.parse::<engines::Bytes>().is_ok() { "buffer" } else { engine }
}

/// Whether a variant is a floor to compare with, which copies no file.
#[must_use]
pub fn is_floor(variant: &str) -> bool {
    engine_of(variant) == "memory"
}

/// Black or white, whichever has the higher contrast to `background`.
#[must_use]
pub fn ink_on(background: &str) -> &'static str {
    let luminance = luminance(background);
    if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 { "#ffffff" } else { "#000000" }
}

/// The relative luminance of a colour, 0 to 1 (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("hexadecimal");
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_has_one_colour_and_its_variants_have_patterns() {
        let styles = styles(["read_write:64K", "other", "read_write:4K", "splice@2", "4K", "8K"]);
        let of = |name: &str| &styles[name];
        assert_eq!(of("read_write:64K").light, of("read_write:4K").light);
        assert_ne!(of("read_write:64K").dash, of("read_write:4K").dash);
        assert_eq!(of("4K").light, of("8K").light);
        let engines = ["read_write:64K", "other", "splice@2", "4K"];
        for (index, one) in engines.iter().enumerate() {
            for other in &engines[index + 1..] {
                assert_ne!(of(one).light, of(other).light, "{one} and {other}");
                assert_ne!(of(one).symbol, of(other).symbol, "{one} and {other}");
            }
        }
    }

    #[test]
    fn every_engine_has_a_row() {
        for engine in engines::ENGINES {
            assert!(ROWS.iter().any(|row| row.engine == engine.name), "{}", engine.name);
        }
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
            // WCAG requires a contrast of 4.5 for text.
            for background in [row.light, row.dark] {
                let ink = luminance(ink_on(background));
                let background = luminance(background);
                assert!(
                    (background.max(ink) + 0.05) / (background.min(ink) + 0.05) > 4.5,
                    "{}",
                    row.engine
                );
            }
        }
    }
}
