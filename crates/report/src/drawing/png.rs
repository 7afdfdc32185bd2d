//! Draws SVG as PNG, with the embedded fonts only, so that a drawing is the same on every machine.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::Drawing;

const FONTS: [&[u8]; 2] = [
    include_bytes!("../../assets/DejaVuSans-subset.ttf"),
    include_bytes!("../../assets/DejaVuSans-Bold-subset.ttf"),
];

static LOADED: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    FONTS.into_iter().for_each(|font| fonts.load_font_data(font.to_vec()));
    Arc::new(fonts)
});

impl Drawing {
    /// The drawing as PNG, with `scale` pixels for each of its units, of which 96 are an inch.
    ///
    /// # Errors
    /// If the size is invalid or there is no memory for it, with the reason in words.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, String> {
        let drawable = self.svg.chars().map(|c| if is_drawable(c) { c } else { '?' });
        let options = Options { fontdb: LOADED.clone(), ..Options::default() };
        let tree = Tree::from_str(&drawable.collect::<String>(), &options)
            .map_err(|error| error.to_string())?;
        // A size that does not fit saturates, and is then refused.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let [width, height] =
            [tree.size().width(), tree.size().height()].map(|units| (units * scale).ceil() as u32);
        let mut pixels = Pixmap::new(width, height).ok_or("the drawing is too large, or empty")?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}

/// Whether the embedded fonts have a character. What they lack would be missing from a name.
fn is_drawable(c: char) -> bool {
    matches!(
        c,
        '\n' | ' '..='~' | '\u{a0}'..='ÿ' | 'Δ' | 'Σ' | 'α'..='ω' | '\u{2010}'..='…' | '‰' | '←'..='↓'
            | '−' | '≈' | '≠' | '≤' | '≥'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(svg: String) -> Drawing {
        Drawing { name: String::new(), svg }
    }

    /// The pixels of words on a white ground.
    fn drawn(words: &str) -> Vec<u8> {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"20\" font-family=\"DejaVu \
             Sans\"><text x=\"2\" y=\"15\">{words}</text></svg>"
        );
        let png = drawing(svg).png(1.0).expect("a small drawing");
        Pixmap::decode_png(&png).expect("a PNG").take()
    }

    #[test]
    fn the_fonts_have_what_is_drawable_and_the_rest_is_a_question_mark() {
        let nothing = drawn("");
        for c in ['H', 'ÿ', 'Δ', 'ω', '…', '‰', '→', '−', '≥'] {
            assert_ne!(drawn(&c.to_string()), nothing, "{c}");
        }
        assert_eq!(drawn("\u{4e2d}"), drawn("?"));
        assert_ne!(drawn("?"), drawn("H"));
    }

    #[test]
    fn no_drawing_is_made_of_a_bad_size() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>";
        for scale in [0.0, f32::NAN, 1e9] {
            drawing(svg.to_owned()).png(scale).expect_err("no such picture");
        }
    }
}
