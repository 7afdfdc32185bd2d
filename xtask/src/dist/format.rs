//! The kinds of packages.

use std::path::{Path, PathBuf};

/// A kind of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Deb,
    Rpm,
    Tar,
}

impl Format {
    /// As in the options.
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Deb => "deb",
            Format::Rpm => "rpm",
            Format::Tar => "tar",
        }
    }

    /// Where its files are staged, from the root of the checkout. `package.metadata.deb` names it too.
    pub(super) fn stage_dir(self) -> PathBuf {
        Path::new("target/dist-packages/stage").join(self.name())
    }
}
