//! What a target is.

use std::path::{Path, PathBuf};

/// One kind of input.
#[derive(Debug)]
pub struct Target {
    /// The name, which is that of its folder in `corpus/` too.
    pub name: &'static str,
    /// What the bytes are, in a phrase.
    pub about: &'static str,
    /// Parses them, and does what the product does with the result.
    pub run: fn(&[u8]),
    /// The longest input to try. A parser that is slow by the byte gets shorter ones.
    pub input_bytes_max: usize,
    /// The name of the dictionary in `dictionaries/`: words of the format, which the search inserts.
    pub dictionary: &'static str,
}

impl Target {
    /// The folder of its committed inputs.
    #[must_use]
    pub fn corpus(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name)
    }

    /// The file of its dictionary, in the form that libFuzzer reads.
    #[must_use]
    pub fn dictionary(&self) -> PathBuf {
        let name = format!("{}.dict", self.dictionary);
        Path::new(env!("CARGO_MANIFEST_DIR")).join("dictionaries").join(name)
    }
}
