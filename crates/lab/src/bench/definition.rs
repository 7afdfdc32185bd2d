//! Experiments as data: the TOML form, checked so that a mistake is told by file and line.

use std::collections::BTreeMap;
use std::ops::Range;

use engines::Bytes;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::cell::{Cell, Shape};
use super::{reference, workload};
use crate::state::State;
use crate::trial::Destination;

/// The version of the form; it changes when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// An experiment: a question and the parts that answer it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Minutes that it gets where nobody says how long.
    pub minutes: f64,
    /// Its parts.
    #[serde(rename = "part")]
    pub parts: Vec<Part>,
}

/// A workload with its factors, whose combinations are cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is called within the experiment.
    pub name: String,
    /// What it asks, in a sentence.
    pub question: String,
    /// The workload, a row of `WORKLOADS`.
    pub workload: String,
    /// The variants that each round runs.
    pub variants: Vec<String>,
    /// Bytes of one file.
    pub sizes: Vec<String>,
    /// Files of that length.
    pub files: u32,
    /// How they lie.
    pub shape: Shape,
    /// States of the page cache.
    pub states: Vec<State>,
    /// Numbers of runs at once.
    pub at_once: Vec<u32>,
    /// What is written to.
    pub destinations: Vec<Destination>,
    /// Whether the time until all is on the medium is measured too.
    pub durable: bool,
    /// How the runs of a round follow each other.
    pub order: Order,
    /// The variant with which the others are compared; empty for no comparison.
    pub baseline: String,
    /// Those whose comparison answers the question; all when empty.
    pub compare: Vec<String>,
    /// What is compared.
    pub measure: Measure,
    /// Whether `--scale` changes sizes and numbers of files.
    pub scaled: bool,
    /// What is made of the samples besides the comparison.
    pub analyses: Vec<Analysis>,
    /// Variants that are slowed on purpose, for the certificate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slowed: BTreeMap<String, Slowed>,
    /// Published figures to stand beside these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// Whether a variant is a floor: it moves no file and is there to compare with, never to be chosen.
#[must_use]
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
/// second arm that runs the same thing.
#[must_use]
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
    /// to show what becomes of it.
    OneAfterAnother,
}

/// What is compared between variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// What the order of runs and an unproved cache would have made of it.
    Order,
    /// Time against that of a copy in memory, without files.
    Floor,
}

/// Published figures of an older study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// The data: `copying-disk-bytes` or `earlier-measurements`.
    pub data: String,
    /// For each variant the series in it.
    pub series: BTreeMap<String, String>,
    /// What was not controlled then, in a sentence.
    pub not_controlled: String,
    /// The page cache state that was, or was to be, then: cells in another one stand alone. All cells
    /// when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// How many ran at once then.
    pub at_once: u32,
}

/// A definition that is wrong, and where.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct DefinitionError {
    /// The file, or the name of a built-in experiment.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what was expected.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDefinition {
    schema: Spanned<u32>,
    name: Spanned<String>,
    title: String,
    question: String,
    analysis: String,
    #[serde(default = "default_minutes")]
    minutes: f64,
    part: Vec<Spanned<RawPart>>,
    /// How a run of it was made; written into run directories and of no meaning here.
    #[serde(default, rename = "run")]
    _run: Option<toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    name: Spanned<String>,
    question: String,
    workload: Spanned<String>,
    variants: Vec<Spanned<String>>,
    #[serde(default)]
    each: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    sizes: Vec<Spanned<String>>,
    #[serde(default = "one")]
    files: Spanned<u32>,
    #[serde(default)]
    shape: Shape,
    #[serde(default = "warm")]
    states: Spanned<Vec<State>>,
    #[serde(default)]
    at_once: Vec<Spanned<u32>>,
    #[serde(default)]
    destinations: Vec<Destination>,
    #[serde(default)]
    durable: bool,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    baseline: Option<Spanned<String>>,
    #[serde(default)]
    compare: Vec<Spanned<String>>,
    #[serde(default)]
    measure: Measure,
    #[serde(default)]
    scaled: bool,
    #[serde(default)]
    analyses: Vec<Analysis>,
    #[serde(default)]
    slowed: BTreeMap<Spanned<String>, Slowed>,
    #[serde(default)]
    reference: Option<RawReference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReference {
    data: Spanned<String>,
    series: BTreeMap<Spanned<String>, Spanned<String>>,
    not_controlled: String,
    #[serde(default)]
    state: Option<State>,
    #[serde(default = "one")]
    at_once: Spanned<u32>,
}

fn default_minutes() -> f64 {
    10.0
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn warm() -> Spanned<Vec<State>> {
    Spanned::new(0..0, vec![State::Warm])
}

/// The most runs at once: more processes than this measure the scheduler.
const AT_ONCE_MAX: u32 = 256;

/// The most variants of one part after its `each` is expanded.
const VARIANTS_MAX: usize = 500;

impl Definition {
    /// The experiment in `text`, which stands in `file`.
    ///
    /// # Errors
    /// What is wrong, where, and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Definition, DefinitionError> {
        let at = |span: Range<usize>, problem: String| DefinitionError {
            file: file.to_owned(),
            line: line_of(text, span.start),
            problem,
        };
        let raw: RawDefinition = toml::from_str(text).map_err(|error| {
            let problem = error.message().trim().replace('\n', "; ");
            at(error.span().unwrap_or(0..0), problem)
        })?;
        if *raw.schema.get_ref() != SCHEMA {
            let found = raw.schema.get_ref();
            let problem = format!("schema {found} is not known here, expected {SCHEMA}");
            return Err(at(raw.schema.span(), problem));
        }
        if !is_name(raw.name.get_ref()) {
            return Err(at(raw.name.span(), not_a_name(raw.name.get_ref())));
        }
        let mut parts: Vec<Part> = Vec::new();
        for part in raw.part {
            let span = part.span();
            let part =
                part.into_inner().checked().map_err(|Wrong { span, problem }| at(span, problem))?;
            if parts.iter().any(|earlier| earlier.name == part.name) {
                return Err(at(span, format!("there is another part called '{}'", part.name)));
            }
            parts.push(part);
        }
        if parts.is_empty() {
            return Err(at(0..0, "an experiment has at least one [[part]]".to_owned()));
        }
        Ok(Definition {
            schema: SCHEMA,
            name: raw.name.into_inner(),
            title: raw.title,
            question: raw.question,
            analysis: raw.analysis,
            minutes: raw.minutes,
            parts,
        })
    }

    /// The same with the sizes and numbers of files of its scaled parts multiplied by `scale`.
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Definition {
        for part in self.parts.iter_mut().filter(|part| part.scaled) {
            if part.files > 1 {
                part.files = scaled_count(part.files, scale);
            } else {
                let mut sizes: Vec<String> = Vec::new();
                for size in &part.sizes {
                    let size = scaled_size(size, scale);
                    if !sizes.contains(&size) {
                        sizes.push(size);
                    }
                }
                part.sizes = sizes;
            }
        }
        self
    }

    /// Its cells, in the order of the definition, each with the index of its part.
    #[must_use]
    pub fn cells(&self) -> Vec<(usize, Cell)> {
        let mut cells = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            for size in &part.sizes {
                for &state in &part.states {
                    for &destination in &part.destinations {
                        for &at_once in &part.at_once {
                            let cell = Cell {
                                part: part.name.clone(),
                                workload: part.workload.clone(),
                                file_bytes: size.parse::<Bytes>().map_or(0, |bytes| bytes.0),
                                files: part.files,
                                shape: part.shape,
                                state,
                                destination,
                                at_once,
                                durable: part.durable,
                            };
                            cells.push((index, cell));
                        }
                    }
                }
            }
        }
        cells
    }

    /// The definition as TOML, with everything filled in.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a definition is plain data")
    }
}

impl Part {
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

    /// Whether a variant is a floor beside others that move files. In a part of floors alone they are
    /// what is asked for.
    #[must_use]
    pub fn is_beside(&self, variant: &str) -> bool {
        is_floor(variant) && !self.variants.iter().all(|variant| is_floor(variant))
    }
}

/// A fault and its place in the text.
struct Wrong {
    span: Range<usize>,
    problem: String,
}

impl RawPart {
    fn checked(self) -> Result<Part, Wrong> {
        let wrong = |span: Range<usize>, problem: String| Wrong { span, problem };
        let name = self.name.get_ref().clone();
        if !is_name(&name) {
            return Err(wrong(self.name.span(), not_a_name(&name)));
        }
        let Some(workload) = workload::by_name(self.workload.get_ref()) else {
            let known: Vec<&str> = workload::WORKLOADS.iter().map(|row| row.name).collect();
            let problem = format!(
                "no workload is called '{}', expected one of {}",
                self.workload.get_ref(),
                known.join(", ")
            );
            return Err(wrong(self.workload.span(), problem));
        };
        let variants = self.expanded_variants(workload)?;
        let listed = |variant: &Spanned<String>| match variants.contains(variant.get_ref()) {
            true => Ok(variant.get_ref().clone()),
            false => {
                let problem = format!("'{}' is not among the variants", variant.get_ref());
                Err(wrong(variant.span(), problem))
            }
        };
        let named = self.baseline.as_ref().filter(|name| !name.get_ref().is_empty());
        let baseline = named.map(listed).transpose()?.unwrap_or_default();
        let compare = self.compare.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
        let slowed = self
            .slowed
            .iter()
            .map(|(variant, slowed)| Ok((listed(variant)?, *slowed)))
            .collect::<Result<BTreeMap<_, _>, Wrong>>()?;
        let mut sizes = Vec::new();
        for size in &self.sizes {
            let parsed = size.get_ref().parse::<Bytes>();
            if !parsed.is_ok_and(|bytes| bytes.0 > 0) {
                let problem = format!(
                    "'{}' is no size, expected bytes as 4096, 64K, 10M or 1G",
                    size.get_ref()
                );
                return Err(wrong(size.span(), problem));
            }
            sizes.push(size.get_ref().clone());
        }
        if sizes.is_empty() {
            let needs = (workload.needs)(&blank_cell(workload.name));
            if needs.src_bytes + needs.dst_bytes + needs.memory_bytes > 0 {
                let problem = format!("the workload {} needs sizes, as [\"1M\"]", workload.name);
                return Err(wrong(self.workload.span(), problem));
            }
            sizes.push("1".to_owned());
        }
        let files = *self.files.get_ref();
        if files == 0 || (files > 1) != (self.shape != Shape::File) {
            let problem =
                "several files need shape = \"flat\" or \"tree\", and one file has neither";
            return Err(wrong(self.files.span(), problem.to_owned()));
        }
        if self.states.get_ref().is_empty() {
            let problem = "expected at least one of warm, cold, as_it_comes";
            return Err(wrong(self.states.span(), problem.to_owned()));
        }
        if let Some(many) = self.at_once.iter().find(|n| !(1..=AT_ONCE_MAX).contains(n.get_ref())) {
            return Err(wrong(many.span(), format!("expected 1 to {AT_ONCE_MAX} runs at once")));
        }
        let reference = self.reference.map(|raw| raw.checked(&self.each, &variants)).transpose()?;
        let at_once: Vec<u32> = self.at_once.iter().map(|n| *n.get_ref()).collect();
        Ok(Part {
            name,
            question: self.question,
            workload: workload.name.to_owned(),
            variants,
            sizes,
            files,
            shape: self.shape,
            states: self.states.into_inner(),
            at_once: if at_once.is_empty() { vec![1] } else { at_once },
            destinations: match self.destinations.is_empty() {
                true => vec![Destination::Fresh],
                false => self.destinations,
            },
            durable: self.durable || self.measure == Measure::Durable,
            order: self.order,
            baseline,
            compare,
            measure: self.measure,
            scaled: self.scaled,
            analyses: self.analyses,
            slowed,
            reference,
        })
    }

    /// The variants with every `{name}` replaced by each of its values in turn.
    fn expanded_variants(&self, workload: &workload::Workload) -> Result<Vec<String>, Wrong> {
        let mut all = Vec::new();
        for variant in &self.variants {
            for [text] in expanded([variant.get_ref()], &self.each) {
                if let Err(why) = (workload.check)(without_label(&text)) {
                    let problem =
                        format!("variant '{text}': {why}; expected {}", workload.variants);
                    return Err(Wrong { span: variant.span(), problem });
                }
                if !all.contains(&text) {
                    all.push(text);
                }
            }
        }
        if all.is_empty() || all.len() > VARIANTS_MAX {
            let problem = format!("expected 1 to {VARIANTS_MAX} variants, found {}", all.len());
            return Err(Wrong { span: self.name.span(), problem });
        }
        Ok(all)
    }
}

impl RawReference {
    fn checked(
        self,
        each: &BTreeMap<String, Vec<String>>,
        variants: &[String],
    ) -> Result<Reference, Wrong> {
        let Some(data) = reference::by_name(self.data.get_ref()) else {
            let known: Vec<&str> = reference::DATA.iter().map(|data| data.name).collect();
            let problem = format!(
                "no reference is called '{}', expected one of {}",
                self.data.get_ref(),
                known.join(", ")
            );
            return Err(Wrong { span: self.data.span(), problem });
        };
        let mut series = BTreeMap::new();
        for (variant, name) in &self.series {
            for [variant_text, name_text] in expanded([variant.get_ref(), name.get_ref()], each) {
                if !variants.contains(&variant_text) {
                    let problem = format!("'{variant_text}' is not among the variants");
                    return Err(Wrong { span: variant.span(), problem });
                }
                if data.figures(&name_text).is_empty() {
                    let problem = format!(
                        "'{name_text}' is no series of {}, expected {}",
                        data.name, data.names
                    );
                    return Err(Wrong { span: name.span(), problem });
                }
                series.insert(variant_text, name_text);
            }
        }
        Ok(Reference {
            data: data.name.to_owned(),
            series,
            not_controlled: self.not_controlled,
            state: self.state,
            at_once: *self.at_once.get_ref(),
        })
    }
}

/// The texts with every `{name}` in any of them replaced by each of its values in turn, in all of
/// them alike.
fn expanded<const N: usize>(
    texts: [&String; N],
    each: &BTreeMap<String, Vec<String>>,
) -> Vec<[String; N]> {
    let mut all = vec![texts.map(Clone::clone)];
    for (name, values) in each {
        let placeholder = format!("{{{name}}}");
        if texts.iter().any(|text| text.contains(&placeholder)) {
            let of = |texts: &[String; N]| -> Vec<[String; N]> {
                let put = |value: &String| texts.each_ref().map(|t| t.replace(&placeholder, value));
                values.iter().map(put).collect()
            };
            all = all.iter().flat_map(of).collect();
        }
    }
    all
}

fn blank_cell(workload: &str) -> Cell {
    Cell {
        part: String::new(),
        workload: workload.to_owned(),
        file_bytes: 1,
        files: 1,
        shape: Shape::File,
        state: State::Warm,
        destination: Destination::Fresh,
        at_once: 1,
        durable: false,
    }
}

/// Names become parts of file names and of links.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

fn not_a_name(text: &str) -> String {
    format!("'{text}' is no name, expected small letters, digits, '-' and '_'")
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
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
    Bytes(blocks * block).to_string()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive.
fn scaled_count(files: u32, scale: f64) -> u32 {
    (f64::from(files) * scale).round().max(2.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"schema = 1
name = "small"
title = "A small one"
question = "Which?"
analysis = "None."

[[part]]
name = "sizes"
question = "Which buffer?"
workload = "copy"
variants = ["read_write:{buffer}", "sendfile"]
each = { buffer = ["4K", "64K"] }
sizes = ["64", "1M"]
states = ["warm", "cold"]
baseline = "read_write:64K"
scaled = true

[part.reference]
data = "copying-disk-bytes"
not_controlled = "Order."
series = { "read_write:{buffer}" = "bufsiz:posix_buffered@{buffer}", "sendfile" = "size:sendfile" }
"#;

    #[test]
    fn variants_are_expanded_and_cells_are_all_combinations() {
        let small = Definition::parse(SMALL, "small.toml").expect("right");
        assert_eq!(small.parts[0].variants, ["read_write:4K", "read_write:64K", "sendfile"]);
        let cells = small.cells();
        assert_eq!(cells.len(), 4);
        let ids: Vec<String> = cells.iter().map(|(_, cell)| cell.id()).collect();
        assert_eq!(ids, ["sizes/64", "sizes/64/cold", "sizes/1M", "sizes/1M/cold"]);
        let compared: Vec<&String> = small.parts[0].compared().collect();
        assert_eq!(compared, ["read_write:4K", "sendfile"]);
        let reference = small.parts[0].reference.as_ref().expect("one");
        assert_eq!(reference.series["read_write:4K"], "bufsiz:posix_buffered@4K");
        assert_eq!((reference.series.len(), reference.at_once, reference.state), (3, 1, None));
    }

    #[test]
    fn what_was_run_reads_back_as_it_was() {
        let small = Definition::parse(SMALL, "small.toml").expect("right").scaled(0.5);
        assert_eq!(small.parts[0].sizes, ["32", "512K"]);
        let again = Definition::parse(&small.to_toml(), "experiment.toml").expect("right");
        assert_eq!(again, small);
    }

    #[test]
    fn faults_are_told_by_file_and_line() {
        for (from, to, expected) in [
            ("schema = 1", "schema = 9", "small.toml:1: schema 9 is not known here, expected 1"),
            ("\"small\"", "\"Small One\"", "small.toml:2: 'Small One' is no name, expected small"),
            (
                "\"copy\"",
                "\"move\"",
                "small.toml:10: no workload is called 'move', expected one of",
            ),
            ("\"sendfile\"", "\"sendfil\"", "small.toml:11: variant 'sendfil': "),
            ("\"64\"", "\"64Q\"", "small.toml:13: '64Q' is no size, expected bytes as"),
            ("\"cold\"", "\"tepid\"", "small.toml:14: unknown variant `tepid`, expected one of"),
            ("write:64K\"\n", "write:1K\"\n", "small.toml:15: 'read_write:1K' is not among"),
            ("scaled", "sclaed", "small.toml:16: unknown field `sclaed`"),
            ("\"copying-", "\"copied-", "small.toml:19: no reference is called 'copied-disk"),
            ("size:send", "size:sent", "small.toml:21: 'size:sentfile' is no series of copying"),
            ("\"sendfile\" = ", "\"splice\" = ", "small.toml:21: 'splice' is not among"),
        ] {
            assert!(SMALL.contains(from), "{from}");
            let text = SMALL.replacen(from, to, 1);
            let error = Definition::parse(&text, "small.toml").expect_err(expected).to_string();
            assert!(error.starts_with(expected), "{error}\nfor {expected}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    const DOCUMENT: &str = include_str!("../../../../docs/experiments.md");

    /// The names in the first column of a section's table.
    fn documented(section: &str) -> Vec<&str> {
        let after = DOCUMENT.split_once(&format!("## {section}\n")).expect("a section").1;
        let section = after.split("\n## ").next().expect("there is one");
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        rows.collect()
    }

    #[test]
    fn the_document_is_right() {
        let example = DOCUMENT.split("```toml\n").nth(1).expect("an example");
        let example = example.split("```").next().expect("its end");
        let parsed = Definition::parse(example, "docs/experiments.md").expect("right");
        assert_eq!((parsed.parts.len(), parsed.cells().len()), (2, 25));
        let workloads: Vec<&str> = workload::WORKLOADS.iter().map(|row| row.name).collect();
        let sorted = |mut names: Vec<&str>| {
            names.sort_unstable();
            names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(sorted(documented("Workloads")), sorted(workloads));
        for (section, text) in [("The experiment", "example"), ("A part", "part")] {
            let table: toml::Table = example.parse().expect("TOML");
            let known: Vec<String> = match text {
                "part" => table["part"].as_array().expect("parts").iter().flat_map(keys).collect(),
                _ => keys(&toml::Value::Table(table)),
            };
            for field in documented(section).into_iter().filter(|&field| field != "slowed") {
                assert!(known.iter().any(|key| key == field), "no {field} in the example");
            }
        }
        for analysis in documented("Analyses") {
            toml::Value::from(analysis).try_into::<Analysis>().expect("an analysis");
        }
    }

    fn keys(value: &toml::Value) -> Vec<String> {
        value.as_table().expect("a table").keys().cloned().collect()
    }
}
