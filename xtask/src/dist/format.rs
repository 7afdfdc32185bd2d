//! The kinds of packages.

use std::path::{Path, PathBuf};

use anyhow::ensure;

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

    /// The program of the distribution that makes such packages, and its package in Debian.
    fn tool(self) -> Option<(&'static str, &'static str)> {
        match self {
            Format::Deb => Some(("dpkg-shlibdeps", "dpkg-dev")),
            Format::Rpm => Some(("rpmbuild", "rpm")),
            Format::Tar => None,
        }
    }

    /// An error that names all programs that are missing for `formats` and for a check of them, before a
    /// build of some minutes.
    pub(super) fn require_tools(
        formats: &[Format],
        check: bool,
        is_found: impl Fn(&str) -> bool,
    ) -> anyhow::Result<()> {
        let of_format = |format: &Format| Some((format.name(), format.tool()?));
        let of_check = check.then_some(("check", ("debootstrap", "debootstrap")));
        let missing: Vec<String> = formats
            .iter()
            .filter_map(of_format)
            .chain(of_check)
            .filter(|(_, (program, _))| !is_found(program))
            .map(|(option, (program, package))| {
                format!("--{option} needs {program}, which Debian has in {package}")
            })
            .collect();
        ensure!(missing.is_empty(), "{}", missing.join("; "));
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_are_named_together() {
        let asked = [Format::Deb, Format::Rpm, Format::Tar];
        assert!(Format::require_tools(&asked, true, |_| true).is_ok());
        assert!(Format::require_tools(&[Format::Tar], false, |_| false).is_ok());
        let error = Format::require_tools(&asked, true, |_| false).unwrap_err().to_string();
        let expected = "--deb needs dpkg-shlibdeps, which Debian has in dpkg-dev; \
                        --rpm needs rpmbuild, which Debian has in rpm; \
                        --check needs debootstrap, which Debian has in debootstrap";
        assert_eq!(error, expected);
    }
}
