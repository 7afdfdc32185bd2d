//! One copy, whose states are tried.

use anyhow::Context;

/// The file systems that have a disk.
pub(super) const KINDS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// A copy on a disk whose power is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) kind: &'static str,
    pub(super) seed: u64,
    pub(super) options: String,
}

impl Case {
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.split(' ').any(|word| word == option)
    }

    /// The text from which it is parsed again.
    pub(super) fn text(&self) -> String {
        format!("{}; seed={}; {}", self.kind, self.seed, self.options)
    }

    pub(super) fn parse(text: &str) -> anyhow::Result<Case> {
        let parts: Vec<&str> = text.split("; ").collect();
        let &[kind, seed, options] = parts.as_slice() else {
            anyhow::bail!("a case is FS; seed=N; OPTIONS, not '{text}'");
        };
        let kind = KINDS.into_iter().find(|known| *known == kind);
        let seed = seed.strip_prefix("seed=").and_then(|seed| seed.parse().ok());
        Ok(Case {
            kind: kind.with_context(|| format!("the file systems are {}", KINDS.join(", ")))?,
            seed: seed.with_context(|| format!("no seed: {text}"))?,
            options: options.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_parsed_from_its_text() {
        let case = Case { kind: "xfs", seed: 7, options: "-a --durable --jobs=4".to_owned() };
        assert_eq!(Case::parse(&case.text()).expect("its own text"), case);
        for text in ["", "xfs", "zfs; seed=1; -a", "xfs; seed=; -a", "xfs; 1; -a"] {
            assert!(Case::parse(text).is_err(), "{text}");
        }
    }
}
