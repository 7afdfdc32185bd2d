//! The layers of each crate.

/// What is demanded of the imports within a crate.
pub(super) struct CrateRule {
    /// From the root of the repository.
    pub(super) folder: &'static str,
    pub(super) rule: Rule,
}

impl CrateRule {
    /// The last part of the folder's name.
    pub(super) fn name(&self) -> &'static str {
        self.folder.rsplit('/').next().unwrap_or(self.folder)
    }
}

/// How strict the check is.
pub(super) enum Rule {
    /// Not checked, for this reason.
    #[allow(dead_code)]
    Skipped(&'static str),
    /// No files import each other in a circle.
    NoCircle,
    /// No circle, and files import only from their own layer and those below it. The first is the top.
    #[allow(dead_code)]
    Layers(&'static [Layer]),
}

/// Files of one rank, and what they hold.
pub(super) struct Layer {
    files: &'static str,
}

impl Layer {
    /// The folders and files of this layer, below `src/` and without `.rs`. A longer one that another layer
    /// lists is taken out of a shorter one.
    pub(super) fn members(&self) -> impl Iterator<Item = &'static str> {
        self.files.split_whitespace()
    }
}

const UNTIL_MOVED: &str = "its files are being moved to layers";

/// The crates whose imports are checked.
pub(super) const CRATES: &[CrateRule] = &[
    CrateRule { folder: "crates/engines", rule: Rule::Skipped(UNTIL_MOVED) },
    CrateRule { folder: "crates/tree", rule: Rule::Skipped(UNTIL_MOVED) },
    CrateRule { folder: "crates/lab", rule: Rule::Skipped(UNTIL_MOVED) },
    CrateRule { folder: "crates/report", rule: Rule::Skipped(UNTIL_MOVED) },
    CrateRule { folder: "crates/cli", rule: Rule::Skipped(UNTIL_MOVED) },
    CrateRule { folder: "xtask", rule: Rule::Skipped(UNTIL_MOVED) },
];
