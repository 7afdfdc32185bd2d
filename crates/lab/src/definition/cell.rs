//! A cell: one combination of the factors of an experiment, in which variants are compared.

use serde::{Deserialize, Serialize};

use crate::page_cache::state::State;

/// The level of every factor but the variant. Runs of one cell are compared with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The part of the experiment that it belongs to.
    pub part: String,
    /// What is run: the name of a row of `WORKLOADS`.
    pub workload: String,
    /// Bytes of one file, on average if they differ.
    pub file_bytes: u64,
    /// Files of that length, or of that mean length, that one run goes through: 1, or those of a tree or directory.
    pub files: u32,
    /// The layout of the files.
    pub shape: Shape,
    /// The page cache before each run.
    pub state: State,
    /// What is written to.
    pub destination: Destination,
    /// Runs at the same time, each in a process and on files of its own.
    pub at_once: u32,
    /// Whether the time until all data is on the medium is measured too.
    pub durable: bool,
}

/// The layout of the files of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One file.
    #[default]
    File,
    /// All in one directory.
    Flat,
    /// In a tree of directories, 16 entries each.
    Tree,
    /// As `Flat`, of lengths from an 80th to six times the mean.
    MixedFlat,
    /// As `Tree`, of lengths from an 80th to six times the mean.
    MixedTree,
}

impl Shape {
    /// Whether the files are in a tree of directories.
    #[must_use]
    pub fn is_tree(self) -> bool {
        matches!(self, Shape::Tree | Shape::MixedTree)
    }

    /// Whether the files differ in length.
    #[must_use]
    pub fn is_mixed(self) -> bool {
        matches!(self, Shape::MixedFlat | Shape::MixedTree)
    }

    /// The word for it in experiments, samples and the names of cells.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Shape::File => "file",
            Shape::Flat => "flat",
            Shape::Tree => "tree",
            Shape::MixedFlat => "mixed_flat",
            Shape::MixedTree => "mixed_tree",
        }
    }
}

/// What a copy is written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// A new, empty file each time, so that no run inherits blocks or pages of an earlier one.
    #[default]
    Fresh,
    /// A file of the same length with other bytes, on the medium and in the page cache.
    Overwritten,
}

/// What is compared between variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Time until the last call returned.
    #[default]
    Elapsed,
    /// Time until all was on the medium.
    Durable,
    /// Processor time, user and system.
    Processor,
}

impl Measure {
    /// What is compared, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Measure::Elapsed => "time",
            Measure::Durable => "time until on the medium",
            Measure::Processor => "processor time",
        }
    }
}

impl Cell {
    /// The cell of one warm file of `file_bytes` bytes, copied alone to a new file.
    pub fn plain(part: &str, workload: &str, file_bytes: u64) -> Cell {
        Cell {
            part: part.to_owned(),
            workload: workload.to_owned(),
            file_bytes,
            files: 1,
            at_once: 1,
            ..Cell::default()
        }
    }

    /// Bytes that one run goes through.
    pub fn run_bytes(&self) -> u64 {
        self.file_bytes.saturating_mul(u64::from(self.files))
    }

    /// A short name that tells it from every other cell of its experiment.
    pub fn id(&self) -> String {
        let mut id = format!("{}/{}", self.part, engines::Bytes(self.file_bytes));
        if self.shape != Shape::File {
            id.push_str(&format!("x{}-{}", self.files, self.shape.word()));
        }
        match self.state {
            State::Warm => {}
            State::Cold => id.push_str("/cold"),
            State::AsItComes => id.push_str("/as-it-comes"),
        }
        if self.destination == Destination::Overwritten {
            id.push_str("/overwritten");
        }
        if self.at_once > 1 {
            id.push_str(&format!("/{}-at-once", self.at_once));
        }
        id
    }
}
