//! Parses experiments from TOML. An error names the file, the line and what was expected.

use std::collections::BTreeMap;
use std::ops::Range;

use engines::Bytes;
use serde::Deserialize;
use toml::Spanned;

use crate::definition::cell::{Cell, Destination, Shape};
use crate::definition::{
    Analysis, Definition, Measure, Order, Part, Reference, SCHEMA, Slowed, reference, without_label,
};
use crate::page_cache::state::State;
use crate::workload;
use crate::workload::interface::Workload;

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
        if !(*raw.minutes.get_ref() > 0.0 && *raw.minutes.get_ref() <= MINUTES_MAX) {
            let problem = format!("expected minutes over 0, up to {MINUTES_MAX}");
            return Err(at(raw.minutes.span(), problem));
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
        let Some(first) = parts.first() else {
            return Err(at(0..0, "an experiment has at least one [[part]]".to_owned()));
        };
        let main = match raw.main {
            None => first.name.clone(),
            Some(main)
                if main.get_ref().is_empty()
                    || parts.iter().any(|part| part.name == *main.get_ref()) =>
            {
                main.into_inner()
            }
            Some(main) => {
                let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
                let problem = format!(
                    "no part is called '{}', expected one of {}",
                    main.get_ref(),
                    names.join(", ")
                );
                return Err(at(main.span(), problem));
            }
        };
        Ok(Definition {
            schema: SCHEMA,
            name: raw.name.into_inner(),
            title: raw.title,
            question: raw.question,
            analysis: raw.analysis,
            minutes: raw.minutes.into_inner(),
            main,
            parts,
        })
    }
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
    minutes: Spanned<f64>,
    #[serde(default)]
    main: Option<Spanned<String>>,
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
    each: BTreeMap<Spanned<String>, Vec<String>>,
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
    #[serde(default = "fresh")]
    destinations: Spanned<Vec<Destination>>,
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

fn default_minutes() -> Spanned<f64> {
    Spanned::new(0..0, 10.0)
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn warm() -> Spanned<Vec<State>> {
    Spanned::new(0..0, vec![State::Warm])
}

fn fresh() -> Spanned<Vec<Destination>> {
    Spanned::new(0..0, vec![Destination::Fresh])
}

/// The longest experiment: a year.
const MINUTES_MAX: f64 = 525_600.0;

/// The most runs at once: more processes than this measure the scheduler.
const AT_ONCE_MAX: u32 = 256;

/// The most variants of one part after its `each` is expanded.
const VARIANTS_MAX: usize = 500;

/// A fault and its place in the text.
struct Wrong {
    span: Range<usize>,
    problem: String,
}

impl Wrong {
    fn at<T>(what: &Spanned<T>, problem: impl Into<String>) -> Wrong {
        Wrong { span: what.span(), problem: problem.into() }
    }
}

impl RawPart {
    fn checked(self) -> Result<Part, Wrong> {
        let name = self.name.get_ref().clone();
        if !is_name(&name) {
            return Err(Wrong::at(&self.name, not_a_name(&name)));
        }
        let workload = self.checked_workload()?;
        let variants = self.expanded_variants(workload)?;
        let listed = |variant: &Spanned<String>| match variants.contains(variant.get_ref()) {
            true => Ok(variant.get_ref().clone()),
            false => {
                let problem = format!("'{}' is not among the variants", variant.get_ref());
                Err(Wrong::at(variant, problem))
            }
        };
        let named = self.baseline.as_ref().filter(|name| !name.get_ref().is_empty());
        let baseline = named.map(listed).transpose()?.unwrap_or_default();
        if let Some(first) = self.compare.first().filter(|_| baseline.is_empty()) {
            return Err(Wrong::at(first, "there is no baseline to compare it with"));
        }
        let compare = self.compare.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
        let slowed = self
            .slowed
            .iter()
            .map(|(variant, slowed)| Ok((listed(variant)?, slowed.checked(variant)?)))
            .collect::<Result<BTreeMap<_, _>, Wrong>>()?;
        let sizes = self.checked_sizes(workload)?;
        self.check_factors(workload)?;
        let each = unspanned(&self.each);
        let reference = self.reference.map(|raw| raw.checked(&each, &variants)).transpose()?;
        let at_once: Vec<u32> = self.at_once.iter().map(|n| *n.get_ref()).collect();
        Ok(Part {
            name,
            question: self.question,
            workload: workload.name.to_owned(),
            variants,
            sizes,
            files: *self.files.get_ref(),
            shape: self.shape,
            states: self.states.into_inner(),
            at_once: if at_once.is_empty() { vec![1] } else { at_once },
            destinations: self.destinations.into_inner(),
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

    fn checked_workload(&self) -> Result<&'static Workload, Wrong> {
        let name = self.workload.get_ref();
        let Some(workload) = workload::by_name(name) else {
            let known: Vec<&str> = workload::WORKLOADS.iter().map(|row| row.name).collect();
            let known = known.join(", ");
            let problem = format!("no workload is called '{name}', expected one of {known}");
            return Err(Wrong::at(&self.workload, problem));
        };
        if (self.durable || self.measure == Measure::Durable) && !workload.can_be_durable {
            let problem = format!("the workload {name} brings nothing to a medium to wait for");
            return Err(Wrong::at(&self.workload, problem));
        }
        Ok(workload)
    }

    fn checked_sizes(&self, workload: &Workload) -> Result<Vec<String>, Wrong> {
        let mut sizes: Vec<(Bytes, String)> = Vec::new();
        for size in &self.sizes {
            let text = size.get_ref();
            let Some(bytes) = text.parse::<Bytes>().ok().filter(|bytes| bytes.0 > 0) else {
                let problem =
                    format!("'{text}' is no size, expected bytes as 4096, 64K, 10M or 1G");
                return Err(Wrong::at(size, problem));
            };
            // Cells are compared by value: `1M` and `1024K` are the same.
            if let Some((_, earlier)) = sizes.iter().find(|(known, _)| *known == bytes) {
                return Err(Wrong::at(size, format!("'{text}' is the same size as '{earlier}'")));
            }
            sizes.push((bytes, text.clone()));
        }
        if sizes.is_empty() {
            let needs = (workload.needs)(&Cell::plain("", workload.name, 1));
            if needs.src_bytes + needs.dst_bytes + needs.memory_bytes > 0 {
                let problem = format!("the workload {} needs sizes, as [\"1M\"]", workload.name);
                return Err(Wrong::at(&self.workload, problem));
            }
            return Ok(vec!["1".to_owned()]);
        }
        Ok(sizes.into_iter().map(|(_, text)| text).collect())
    }

    fn check_factors(&self, workload: &Workload) -> Result<(), Wrong> {
        let files = *self.files.get_ref();
        if files == 0 || (files > 1) != (self.shape != Shape::File) {
            let problem = "several files need a shape other than \"file\", and one file has none";
            return Err(Wrong::at(&self.files, problem));
        }
        let states = self.states.get_ref();
        if states.is_empty() {
            return Err(Wrong::at(
                &self.states,
                "expected at least one of warm, cold, as_it_comes",
            ));
        }
        if !workload.has_state && states.iter().any(|&state| state != State::Warm) {
            let problem = format!(
                "the workload {} reads no file, so that the page cache has no state: leave states out",
                workload.name
            );
            return Err(Wrong::at(&self.states, problem));
        }
        if repeats(states) {
            return Err(Wrong::at(&self.states, "a state is there twice"));
        }
        let destinations = self.destinations.get_ref();
        if destinations.is_empty() || repeats(destinations) {
            let problem = "expected fresh, overwritten or both";
            return Err(Wrong::at(&self.destinations, problem));
        }
        for (index, many) in self.at_once.iter().enumerate() {
            let number = many.get_ref();
            if !(1..=AT_ONCE_MAX).contains(number) {
                return Err(Wrong::at(many, format!("expected 1 to {AT_ONCE_MAX} runs at once")));
            }
            if self.at_once[..index].iter().any(|earlier| earlier.get_ref() == number) {
                return Err(Wrong::at(many, format!("{number} is there twice")));
            }
        }
        let uses = |name: &str| {
            let placeholder = format!("{{{name}}}");
            self.variants.iter().any(|variant| variant.get_ref().contains(&placeholder))
        };
        match self.each.keys().find(|name| !uses(name.get_ref())) {
            Some(name) => {
                let problem = format!("no variant has {{{}}} in it", name.get_ref());
                Err(Wrong::at(name, problem))
            }
            None => Ok(()),
        }
    }

    /// The variants with every `{name}` replaced by each of its values in turn.
    fn expanded_variants(&self, workload: &Workload) -> Result<Vec<String>, Wrong> {
        let mut all = Vec::new();
        for variant in &self.variants {
            for [text] in expanded([variant.get_ref()], &unspanned(&self.each)) {
                if let Err(why) = (workload.check)(without_label(&text)) {
                    let problem =
                        format!("variant '{text}': {why}; expected {}", workload.variants);
                    return Err(Wrong::at(variant, problem));
                }
                if !all.contains(&text) {
                    all.push(text);
                }
            }
        }
        if all.is_empty() || all.len() > VARIANTS_MAX {
            let problem = format!("expected 1 to {VARIANTS_MAX} variants, found {}", all.len());
            return Err(Wrong::at(&self.name, problem));
        }
        Ok(all)
    }
}

impl Slowed {
    fn checked(self, variant: &Spanned<String>) -> Result<Slowed, Wrong> {
        // A hundred times as long is slower than anything.
        let right = (0.0..=100.0).contains(&self.by) && (0.0..=1.0).contains(&self.sometimes);
        let problem = "expected `by` from 0 to 100 and `sometimes` from 0 to 1";
        if right { Ok(self) } else { Err(Wrong::at(variant, problem)) }
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
            return Err(Wrong::at(&self.data, problem));
        };
        let mut series = BTreeMap::new();
        for (variant, name) in &self.series {
            for [variant_text, name_text] in expanded([variant.get_ref(), name.get_ref()], each) {
                if !variants.contains(&variant_text) {
                    let problem = format!("'{variant_text}' is not among the variants");
                    return Err(Wrong::at(variant, problem));
                }
                if data.figures(&name_text).is_empty() {
                    let problem = format!(
                        "'{name_text}' is no series of {}, expected {}",
                        data.name, data.names
                    );
                    return Err(Wrong::at(name, problem));
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

fn unspanned(each: &BTreeMap<Spanned<String>, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    each.iter().map(|(name, values)| (name.get_ref().clone(), values.clone())).collect()
}

fn repeats<T: PartialEq>(all: &[T]) -> bool {
    (1..all.len()).any(|index| all[..index].contains(&all[index]))
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
