//! Parses experiments from TOML. An error names the file, the line and what was expected.

use std::collections::BTreeMap;

use engines::Bytes;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::definition::cell::{Cell, Shape};
use crate::definition::claim::Claim;
use crate::definition::{
    Definition, Measure, Part, Reference, SCHEMA, Slowed, reference, without_label,
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
        let at = |start: usize, problem: String| DefinitionError {
            file: file.to_owned(),
            line: line_of(text, start),
            problem,
        };
        let refused = |error: toml::de::Error| {
            let problem = error.message().trim().replace('\n', "; ");
            at(error.span().map_or(0, |span| span.start), problem)
        };
        let table = DeTable::parse(text).map_err(refused)?;
        let mut definition: Definition = toml::from_str(text).map_err(refused)?;
        let place = Place { start: 0, value: Some(&DeValue::Table(table.into_inner())) };
        let checked = definition.check(place);
        checked.map_err(|Wrong { start, problem }| at(start, problem))?;
        Ok(definition)
    }

    fn check(&mut self, place: Place<'_>) -> Result<(), Wrong> {
        let problem = format!("schema {} is not known here, expected {SCHEMA}", self.schema);
        place.at("schema").require(self.schema == SCHEMA, problem)?;
        check_name(&self.name, place)?;
        let is_possible = self.minutes > 0.0 && self.minutes <= MINUTES_MAX;
        let problem = format!("expected minutes over 0, up to {MINUTES_MAX}");
        place.at("minutes").require(is_possible, problem)?;
        for (index, part) in self.parts.iter_mut().enumerate() {
            part.check(place.at("part").nth(index))?;
        }
        let names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        check_unlike("part", &names, place)?;
        let none = || place.wrong("an experiment has at least one [[part]]");
        let first = names.first().ok_or_else(none)?;
        if !place.at("main").is_there() {
            self.main = (*first).to_owned();
        } else if !self.main.is_empty() && !names.contains(&self.main.as_str()) {
            let (main, names) = (&self.main, names.join(", "));
            let problem = format!("no part is called '{main}', expected one of {names}");
            return Err(place.at("main").wrong(problem));
        }
        for (index, claim) in self.claims.iter_mut().enumerate() {
            claim.check(&self.parts, place.at("claim").nth(index))?;
        }
        let names: Vec<&str> = self.claims.iter().map(|claim| claim.name.as_str()).collect();
        check_unlike("claim", &names, place)
    }
}

/// The longest experiment: a year.
pub(crate) const MINUTES_MAX: f64 = 525_600.0;

/// The most runs at once: more processes than this measure the scheduler.
const AT_ONCE_MAX: u32 = 256;

/// The most variants of one part after its `each` is expanded.
const VARIANTS_MAX: usize = 500;

/// A fault and the offset of its place in the text.
struct Wrong {
    start: usize,
    problem: String,
}

/// A value of the text and where it begins. The beginning of the text stands for what is not
/// there.
#[derive(Clone, Copy)]
struct Place<'t> {
    start: usize,
    value: Option<&'t DeValue<'t>>,
}

impl<'t> Place<'t> {
    fn of(value: Option<&'t Spanned<DeValue<'t>>>) -> Place<'t> {
        let start = value.map_or(0, |value| value.span().start);
        Place { start, value: value.map(Spanned::get_ref) }
    }

    fn at(self, key: &str) -> Place<'t> {
        Place::of(self.value.and_then(|value| value.get(key)))
    }

    fn nth(self, index: usize) -> Place<'t> {
        Place::of(self.value.and_then(|value| value.get(index)))
    }

    /// The place of a key itself.
    fn key(self, key: &str) -> Place<'t> {
        let table = self.value.and_then(DeValue::as_table);
        let key = table.and_then(|table| Some(table.get_key_value(key)?.0));
        Place { start: key.map_or(0, |key| key.span().start), value: None }
    }

    fn is_there(self) -> bool {
        self.value.is_some()
    }

    fn wrong(self, problem: impl Into<String>) -> Wrong {
        Wrong { start: self.start, problem: problem.into() }
    }

    fn require(self, is_right: bool, problem: impl Into<String>) -> Result<(), Wrong> {
        if is_right { Ok(()) } else { Err(self.wrong(problem)) }
    }
}

impl Part {
    fn check(&mut self, place: Place<'_>) -> Result<(), Wrong> {
        check_name(&self.name, place)?;
        self.durable |= self.measure == Measure::Durable;
        let workload = self.checked_workload(place)?;
        let each = std::mem::take(&mut self.each);
        self.expand_variants(&each, workload, place)?;
        let variants = &self.variants;
        if !self.baseline.is_empty() {
            check_listed(&self.baseline, variants, place.at("baseline"))?;
        } else {
            let problem = "there is no baseline to compare it with";
            place.at("compare").nth(0).require(self.compare.is_empty(), problem)?;
        }
        for (index, variant) in self.compare.iter().enumerate() {
            check_listed(variant, variants, place.at("compare").nth(index))?;
        }
        for (variant, slowed) in &self.slowed {
            let key = place.at("slowed").key(variant);
            check_listed(variant, variants, key)?;
            slowed.check(key)?;
        }
        self.check_sizes(workload, place)?;
        self.check_factors(workload, place)?;
        if let Some(reference) = &mut self.reference {
            reference.check(&each, &self.variants, place.at("reference"))?;
        }
        Ok(())
    }

    fn checked_workload(&self, place: Place<'_>) -> Result<&'static Workload, Wrong> {
        let name = &self.workload;
        let Some(workload) = workload::by_name(name) else {
            let known: Vec<&str> = workload::WORKLOADS.iter().map(|row| row.name).collect();
            let known = known.join(", ");
            let problem = format!("no workload is called '{name}', expected one of {known}");
            return Err(place.at("workload").wrong(problem));
        };
        let problem = format!("the workload {name} brings nothing to a medium to wait for");
        place.at("workload").require(!self.durable || workload.can_be_durable, problem)?;
        Ok(workload)
    }

    fn check_sizes(&mut self, workload: &Workload, place: Place<'_>) -> Result<(), Wrong> {
        let mut sizes: Vec<(Bytes, &String)> = Vec::new();
        for (index, text) in self.sizes.iter().enumerate() {
            let place = place.at("sizes").nth(index);
            let Some(bytes) = text.parse::<Bytes>().ok().filter(|bytes| bytes.0 > 0) else {
                let problem =
                    format!("'{text}' is no size, expected bytes as 4096, 64K, 10M or 1G");
                return Err(place.wrong(problem));
            };
            // Cells are compared by value: `1M` and `1024K` are the same.
            if let Some((_, earlier)) = sizes.iter().find(|(known, _)| *known == bytes) {
                return Err(place.wrong(format!("'{text}' is the same size as '{earlier}'")));
            }
            sizes.push((bytes, text));
        }
        if sizes.is_empty() {
            let needs = (workload.needs)(&Cell::plain("", workload.name, 1));
            let bytes = needs.src_bytes + needs.dst_bytes + needs.memory_bytes;
            let problem = format!("the workload {} needs sizes, as [\"1M\"]", workload.name);
            place.at("workload").require(bytes == 0, problem)?;
            self.sizes = vec!["1".to_owned()];
        }
        Ok(())
    }

    fn check_factors(&mut self, workload: &Workload, place: Place<'_>) -> Result<(), Wrong> {
        let have_shape = self.files > 0 && (self.files > 1) == (self.shape != Shape::File);
        let problem = "several files need a shape other than \"file\", and one file has none";
        place.at("files").require(have_shape, problem)?;
        let states = place.at("states");
        let problem = "expected at least one of warm, cold, as_it_comes";
        states.require(!self.states.is_empty(), problem)?;
        let problem = format!(
            "the workload {} reads no file, so that the page cache has no state: leave states out",
            workload.name
        );
        let all_warm = self.states.iter().all(|&state| state == State::Warm);
        states.require(workload.has_state || all_warm, problem)?;
        states.require(repeated(&self.states).is_none(), "a state is there twice")?;
        let once = !self.destinations.is_empty() && repeated(&self.destinations).is_none();
        place.at("destinations").require(once, "expected fresh, overwritten or both")?;
        let at_once = place.at("at_once");
        if let Some(index) = self.at_once.iter().position(|it| !(1..=AT_ONCE_MAX).contains(it)) {
            let problem = format!("expected 1 to {AT_ONCE_MAX} runs at once");
            return Err(at_once.nth(index).wrong(problem));
        }
        if let Some(index) = repeated(&self.at_once) {
            let problem = format!("{} is there twice", self.at_once[index]);
            return Err(at_once.nth(index).wrong(problem));
        }
        if self.at_once.is_empty() {
            self.at_once = vec![1];
        }
        Ok(())
    }

    /// Replaces every `{name}` in the variants by each of its values in turn.
    fn expand_variants(
        &mut self,
        each: &BTreeMap<String, Vec<String>>,
        workload: &Workload,
        place: Place<'_>,
    ) -> Result<(), Wrong> {
        let written = std::mem::take(&mut self.variants);
        let uses =
            |name: &String| written.iter().any(|variant| variant.contains(&format!("{{{name}}}")));
        if let Some(name) = each.keys().find(|name| !uses(name)) {
            let problem = format!("no variant has {{{name}}} in it");
            return Err(place.at("each").key(name).wrong(problem));
        }
        for (index, variant) in written.iter().enumerate() {
            for [text] in expanded([variant], each) {
                (workload.check)(without_label(&text)).map_err(|why| {
                    let problem =
                        format!("variant '{text}': {why}; expected {}", workload.variants);
                    place.at("variants").nth(index).wrong(problem)
                })?;
                if !self.variants.contains(&text) {
                    self.variants.push(text);
                }
            }
        }
        let count = self.variants.len();
        let problem = format!("expected 1 to {VARIANTS_MAX} variants, found {count}");
        place.at("name").require((1..=VARIANTS_MAX).contains(&count), problem)
    }
}

impl Claim {
    fn check(&mut self, parts: &[Part], place: Place<'_>) -> Result<(), Wrong> {
        check_name(&self.name, place)?;
        let none = || place.at("part").wrong(format!("no part is called '{}'", self.part));
        let part = parts.iter().find(|part| part.name == self.part).ok_or_else(none)?;
        for variant in &self.variants {
            check_listed(variant, &part.variants, place.at("variants"))?;
        }
        check_listed(&self.than, &part.variants, place.at("than"))?;
        if !place.at("sizes").is_there() {
            self.sizes.clone_from(&part.sizes);
        }
        for (key, sizes) in [("sizes", &self.sizes[..]), ("than_size", self.than_size.as_slice())] {
            if let Some(size) = sizes.iter().find(|size| !part.sizes.contains(size)) {
                return Err(place.at(key).wrong(format!("'{size}' is no size of the part")));
            }
        }
        if !place.at("state").is_there() {
            self.state = part.states[0];
        }
        if !place.at("measure").is_there() {
            self.measure = part.measure;
        }
        let has_cell = part.states.contains(&self.state) && part.at_once.contains(&self.at_once);
        let problem = format!("the part {} has no such cell", part.name);
        place.at("part").require(has_cell, problem)?;
        let problem = "expected at_least or at_most: with which ratios the claim holds";
        place.at("name").require(self.at_least.is_some() || self.at_most.is_some(), problem)
    }
}

impl Slowed {
    fn check(self, place: Place<'_>) -> Result<(), Wrong> {
        // A hundred times as long is slower than anything.
        let right = (0.0..=100.0).contains(&self.by) && (0.0..=1.0).contains(&self.sometimes);
        place.require(right, "expected `by` from 0 to 100 and `sometimes` from 0 to 1")
    }
}

impl Reference {
    fn check(
        &mut self,
        each: &BTreeMap<String, Vec<String>>,
        variants: &[String],
        place: Place<'_>,
    ) -> Result<(), Wrong> {
        let Some(data) = reference::by_name(&self.data) else {
            let known: Vec<&str> = reference::DATA.iter().map(|data| data.name).collect();
            let (data, known) = (&self.data, known.join(", "));
            let problem = format!("no reference is called '{data}', expected one of {known}");
            return Err(place.at("data").wrong(problem));
        };
        let series = place.at("series");
        for (variant, name) in std::mem::take(&mut self.series) {
            for [variant_text, name_text] in expanded([&variant, &name], each) {
                check_listed(&variant_text, variants, series.key(&variant))?;
                let (known, expected) = (data.name, data.names);
                let problem = format!("'{name_text}' is no series of {known}, expected {expected}");
                let is_one = !data.figures(&name_text).is_empty();
                series.at(&variant).require(is_one, problem)?;
                self.series.insert(variant_text, name_text);
            }
        }
        Ok(())
    }
}

fn check_listed(variant: &String, variants: &[String], place: Place<'_>) -> Result<(), Wrong> {
    let problem = format!("'{variant}' is not among the variants");
    place.require(variants.contains(variant), problem)
}

/// The place of the first value that stands before, too.
fn repeated<T: PartialEq>(all: &[T]) -> Option<usize> {
    (1..all.len()).find(|&index| all[..index].contains(&all[index]))
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
fn check_name(name: &str, place: Place<'_>) -> Result<(), Wrong> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let problem = format!("'{name}' is no name, expected small letters, digits, '-' and '_'");
    place.at("name").require(!name.is_empty() && name.chars().all(plain), problem)
}

/// Refuses the second of two parts or claims of one name.
fn check_unlike(what: &str, names: &[&str], place: Place<'_>) -> Result<(), Wrong> {
    let Some(index) = repeated(names) else { return Ok(()) };
    let problem = format!("there is another {what} called '{}'", names[index]);
    Err(place.at(what).nth(index).wrong(problem))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}
