//! The looks and colours of drawings as CSS, and the symbols as elements.

use crate::palette::{DASHES, ROWS};

/// The rules for all drawings. Their colours are custom properties.
const CSS: &str = include_str!("../../assets/drawing.css");

/// Names of colours, each on a light and on a dark background.
const COLOURS: [(&str, &str, &str); 6] = [
    ("ground", "#ffffff", "#14181d"),
    ("ink", "#1b1f24", "#e8ebee"),
    ("soft", "#4a545e", "#a3adb8"),
    ("grid", "#e3e6e9", "#2a3038"),
    ("hot", "#b5451b", "#f0813a"),
    ("warning", "#d55e00", "#f0813a"),
];

/// The style of the page: each colour is that of the colour scheme.
pub(crate) fn of_page() -> String {
    let both = |light: &str, dark: &str| format!("light-dark({light}, {dark})");
    let mut css = String::from(":root {");
    for (name, light, dark) in COLOURS {
        css.push_str(&format!(" --{name}: {};", both(light, dark)));
    }
    css.push_str(" }\n");
    css.push_str(CSS);
    css.push_str(&variants(|row| both(ROWS[row].light, ROWS[row].dark)));
    css
}

/// The style of a file, in light colours.
pub(super) fn of_file() -> String {
    let mut css = CSS.to_owned();
    for (name, light, _) in COLOURS {
        css = css.replace(&format!("var(--{name})"), light);
    }
    // Panels that are not the first of their line have no names, as have no ticks for narrow ones.
    css.push_str(".rest .name, .narrow { display: none; }\n");
    css.push_str(&variants(|row| ROWS[row].light.to_owned()));
    css
}

/// The colours of engines, and the patterns of the lines of their variants.
fn variants(colour: impl Fn(usize) -> String) -> String {
    let mut css = String::new();
    for row in 0..ROWS.len() {
        css.push_str(&format!(".e{row} {{ color: {}; }}\n", colour(row)));
    }
    for (index, dash) in DASHES.iter().enumerate() {
        css.push_str(&format!(".d{index} {{ stroke-dasharray: {dash}; }}\n"));
    }
    css
}

/// The symbols that drawings use by their ids.
pub(crate) fn symbols() -> String {
    let mut svg = String::from("<defs>");
    for (index, row) in ROWS.iter().enumerate() {
        svg.push_str(&format!("<path id=\"s{index}\" d=\"{}\"/>", row.symbol));
    }
    svg.push_str(
        "<path id=\"median\" d=\"M-3.5 0h7\"/><circle id=\"run\" r=\"1.5\"/>\
         <path id=\"flag\" d=\"M-4 0h8l-4 6z\"/></defs>",
    );
    svg
}
