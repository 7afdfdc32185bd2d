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

    /// Where the files of the program's package are staged, from the root of the checkout.
    /// `package.metadata.deb` names it too.
    pub(super) fn stage_dir(self) -> PathBuf {
        self.stage_dir_of(self.name())
    }

    /// Where the files of another package are staged.
    pub(super) fn stage_dir_of(self, name: &str) -> PathBuf {
        Path::new("target/dist-packages/stage").join(name)
    }
}
