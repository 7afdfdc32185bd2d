//! An experiment as plain data: its parts, their variants and factors.

pub mod cell;
pub mod claim;
pub mod deltas;
pub mod reference;
mod scale;

use std::collections::BTreeMap;

use engines::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::page_cache::state::State;
pub use cell::Measure;
use cell::{Cell, Destination, Shape};
use claim::Claim;

/// The version of the form; it changes when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// An experiment: a question and the parts that answer it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The version of the form.
    pub schema: u32,
    /// What it is called on the command line.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// What it asks, in a sentence.
    pub question: String,
    /// What the figures mean, what was found before and what was not controlled then.
    pub analysis: String,
    /// Minutes that it gets by default.
    #[serde(default = "ten")]
    pub minutes: f64,
    /// The part that answers the question, whose cells get their time first. Empty if no part does
    /// more than the others.
    #[serde(default)]
    pub main: String,
    /// The parts of the experiment.
    #[serde(rename = "part")]
    pub parts: Vec<Part>,
    /// Published sentences that it tests.
    #[serde(default, rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// How a run of it was made; written into run directories and of no meaning here.
    #[serde(default, skip_serializing)]
    pub run: IgnoredAny,
}

/// A workload with its factors, whose combinations are cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What it is called within the experiment.
    pub name: String,
    /// What it asks, in a sentence.
    pub question: String,
    /// The workload, a row of `WORKLOADS`.
    pub workload: String,
    /// The variants that each round runs.
    pub variants: Vec<String>,
    /// The values of each `{name}` in the variants, which are expanded when the definition is read.
    #[serde(default, skip_serializing)]
    pub each: BTreeMap<String, Vec<String>>,
    /// Bytes of one file.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// Files of that length.
    #[serde(default = "claim::one")]
    pub files: u32,
    /// The layout of the files.
    #[serde(default)]
    pub shape: Shape,
    /// States of the page cache.
    #[serde(default = "warm")]
    pub states: Vec<State>,
    /// Numbers of runs at once.
    #[serde(default)]
    pub at_once: Vec<u32>,
    /// What is written to.
    #[serde(default = "fresh")]
    pub destinations: Vec<Destination>,
    /// Whether the time until all data is on the medium is measured too.
    #[serde(default)]
    pub durable: bool,
    /// How the runs of a round follow each other.
    #[serde(default)]
    pub order: Order,
    /// The variant with which the others are compared; empty for no comparison.
    #[serde(default)]
    pub baseline: String,
    /// Variants whose comparison answers the question; all when empty.
    #[serde(default)]
    pub compare: Vec<String>,
    /// What is compared.
    #[serde(default)]
    pub measure: Measure,
    /// Whether `--scale` changes sizes and numbers of files.
    #[serde(default)]
    pub scaled: bool,
    /// What is made of the samples besides the comparison.
    #[serde(default)]
    pub analyses: Vec<Analysis>,
    /// Variants that are slowed on purpose, for the certificate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slowed: BTreeMap<String, Slowed>,
    /// Published figures to stand beside these.
    pub reference: Option<Reference>,
}

/// Whether a variant is a floor: it moves no file and is there to compare with, never to be chosen.
pub fn is_floor(variant: &str) -> bool {
    let parsed = without_label(variant).parse::<engines::Variant>();
    parsed.is_ok_and(|variant| !variant.is_copier())
}

/// How a variant is slowed on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Slowed {
    /// The share by which every run is made longer.
    pub by: f64,
    /// The share of runs that take half as long again.
    pub sometimes: f64,
}

/// A variant without its label, which stands in brackets behind it: `read_write:64K [again]` is a
/// second variant that runs the same.
pub fn without_label(variant: &str) -> &str {
    match variant.strip_suffix(']').and_then(|text| text.rsplit_once(" [")) {
        Some((variant, _)) => variant,
        None => variant,
    }
}

/// How the runs of a round follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Every variant once a round, in an order of the round's own.
    #[default]
    Shuffled,
    /// All runs of the first variant, then all of the second: what most measurements do, kept here
    /// to show its errors.
    OneAfterAnother,
}

/// What is made of samples besides comparing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analysis {
    /// Time against file size: t = c + f n, one line or two, for each variant.
    SizeFit,
    /// Variants that differ in their buffer: where more of it gains nothing.
    Buffer,
    /// The cost of single calls against their size, and the buffer that keeps it small.
    PerCall,
    /// Files around the size of a page.
    Page,
    /// Processor time in user mode and in the kernel, waiting, and page faults.
    Split,
    /// Time against workers, or against runs at once.
    Scaling,
    /// What runs one after another, or with an unproved page cache, would have shown.
    Order,
    /// Time against that of a copy in memory, without files.
    Floor,
}

/// Published figures of an older study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The data: `copying-disk-bytes` or `earlier-measurements`.
    pub data: String,
    /// For each variant the series in it.
    pub series: BTreeMap<String, String>,
    /// What that study did not control, in a sentence.
    pub not_controlled: String,
    /// The page cache state that was, or was to be, then: cells in another one stand alone. All
    /// cells when none is given.
    pub state: Option<State>,
    /// Runs at once in that study.
    #[serde(default = "claim::one")]
    pub at_once: u32,
}

fn ten() -> f64 {
    10.0
}

fn warm() -> Vec<State> {
    vec![State::Warm]
}

fn fresh() -> Vec<Destination> {
    vec![Destination::Fresh]
}

impl Definition {
    /// The cells of the experiment, in the order of the definition, each with the index of its
    /// part.
    pub fn cells(&self) -> Vec<(usize, Cell)> {
        let parts = self.parts.iter().enumerate();
        parts
            .flat_map(|(index, part)| part.cells().into_iter().map(move |it| (index, it)))
            .collect()
    }

    /// The part that answers the question; the first one if none is named.
    ///
    /// # Panics
    /// If there is no part: such a definition cannot be parsed.
    pub fn main_part(&self) -> &Part {
        let main = self.parts.iter().find(|part| part.name == self.main);
        main.unwrap_or(&self.parts[0])
    }

    /// The experiment with only the parts called `names`, if there are any. If the main part is not
    /// among them, the first one of them takes its place.
    ///
    /// # Errors
    /// The first of `names` that no part has.
    pub fn only(mut self, names: &[String]) -> Result<Definition, &String> {
        if let Some(wrong) =
            names.iter().find(|name| self.parts.iter().all(|part| part.name != **name))
        {
            return Err(wrong);
        }
        if !names.is_empty() {
            self.parts.retain(|part| names.contains(&part.name));
            self.claims.retain(|claim| names.contains(&claim.part));
            self.main.clone_from(&self.main_part().name.clone());
        }
        Ok(self)
    }

    /// The definition with only what tests the claim `name`; `None` if there is none of that name.
    #[must_use]
    pub fn only_claim(mut self, name: &str) -> Option<Definition> {
        self.claims.retain(|claim| claim.name == name);
        let claim = self.claims.first()?.clone();
        self.parts.retain(|part| part.name == claim.part);
        self.main.clone_from(&claim.part);
        for part in &mut self.parts {
            part.sizes.retain(|size| claim.has_size(size));
            part.states = vec![claim.state];
            part.at_once = vec![claim.at_once];
            part.variants
                .retain(|variant| claim.variants.contains(variant) || *variant == claim.than);
            part.measure = claim.measure;
            part.baseline = claim.than.clone();
            // A comparison of sizes has no baseline among its variants.
            if part.compared().next().is_none() {
                part.baseline.clear();
            }
            part.compare.clear();
            part.analyses.clear();
            part.reference = None;
        }
        Some(self)
    }

    /// The definition as TOML, with everything filled in.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a definition is plain data")
    }
}

impl Part {
    /// The cells of the part, in the order of its sizes, states and so on.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for size in &self.sizes {
            for &state in &self.states {
                for &destination in &self.destinations {
                    for &at_once in &self.at_once {
                        cells.push(Cell {
                            part: self.name.clone(),
                            workload: self.workload.clone(),
                            file_bytes: size.parse::<Bytes>().map_or(0, |bytes| bytes.0),
                            files: self.files,
                            shape: self.shape,
                            state,
                            destination,
                            at_once,
                            durable: self.durable,
                        });
                    }
                }
            }
        }
        cells
    }

    /// The place of a variant among those of the part. `None` if it is none of them.
    pub fn index_of(&self, variant: &str) -> Option<usize> {
        self.variants.iter().position(|name| name == variant)
    }

    /// The variants whose comparison with the baseline answers the question.
    pub fn compared(&self) -> impl Iterator<Item = &String> {
        self.variants.iter().filter(|variant| {
            !self.baseline.is_empty()
                && **variant != self.baseline
                && if self.compare.is_empty() {
                    !self.is_beside(variant)
                } else {
                    self.compare.contains(variant)
                }
        })
    }

    /// The variants that are only there to compare with.
    pub fn floors(&self) -> impl Iterator<Item = &String> {
        let compares = !self.baseline.is_empty() && self.compare.is_empty();
        self.variants.iter().filter(move |v| compares && **v != self.baseline && self.is_beside(v))
    }

    /// Whether a variant is a floor beside others that move files. In a part of floors alone they
    /// are what is asked for.
    pub fn is_beside(&self, variant: &str) -> bool {
        is_floor(variant) && !self.variants.iter().all(|variant| is_floor(variant))
    }
}
