//! Draws SVG as PNG, with the embedded fonts only, so that a drawing is the same on every machine.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

const FONTS: [&[u8]; 2] = [
    include_bytes!("../../assets/DejaVuSans-subset.ttf"),
    include_bytes!("../../assets/DejaVuSans-Bold-subset.ttf"),
];

static LOADED: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    FONTS.into_iter().for_each(|font| fonts.load_font_data(font.to_vec()));
    Arc::new(fonts)
});

/// The complete file of a drawing, with `scale` pixels for each of its units.
///
/// # Errors
/// If there is no memory for so many pixels, with the reason in words.
pub(super) fn file(svg: &str, scale: f32) -> Result<Vec<u8>, String> {
    let options = Options { fontdb: LOADED.clone(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    // A size that does not fit saturates, and is then refused.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let [width, height] =
        [tree.size().width(), tree.size().height()].map(|units| (units * scale).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or("the drawing is too large, or empty")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
