//! Multiplies the sizes and numbers of files of an experiment.

use engines::Bytes;

use super::Definition;
use crate::in_order::distinct;

impl Definition {
    /// The experiment with the sizes and numbers of files of its scaled parts multiplied by
    /// `scale`.
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Definition {
        for part in self.parts.iter_mut().filter(|part| part.scaled) {
            if part.files > 1 {
                part.files = scaled_count(part.files, scale);
            } else {
                let claims = self.claims.iter_mut().filter(|claim| claim.part == part.name);
                for size in claims.flat_map(|it| it.sizes.iter_mut().chain(&mut it.than_size)) {
                    *size = scaled_size(size, scale);
                }
                part.sizes = distinct(part.sizes.iter().map(|size| scaled_size(size, scale)));
            }
        }
        self
    }
}

/// Sizes stay whole blocks where they were.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive, below 2^63.
fn scaled_size(size: &str, scale: f64) -> String {
    let bytes = size.parse::<Bytes>().map_or(1, |bytes| bytes.0);
    let block = if bytes.is_multiple_of(1 << 20) && bytes as f64 * scale >= f64::from(1 << 20) {
        1 << 20
    } else if bytes.is_multiple_of(4096) {
        4096
    } else {
        1
    };
    let blocks = (bytes as f64 * scale / block as f64).round().max(1.0) as u64;
    Bytes(blocks.saturating_mul(block)).to_string()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive.
fn scaled_count(files: u32, scale: f64) -> u32 {
    (f64::from(files) * scale).round().max(2.0) as u32
}
