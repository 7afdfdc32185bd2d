//! An engine with its tuning, and the one text form it has in flags, CSV and documents.
//!
//! `engine[:item[,item…]][@workers]`: an item is a number of bytes for the engine's first
//! parameter (`read_write:256K`), `key=value` (`splice:1M,pipe=1M`) or a flag
//! (`mmap:8M,populate`). `@2` lets two workers share one file. Suffixes are powers of 1024.

use std::fmt;
use std::str::FromStr;

use crate::engine::{Copier, Engine, Kind, Param, ParamKind, StatusFlags};
use crate::parallel::Parallel;
use crate::positions::WithHonouredPositions;
use crate::status_flags::WithStatusFlags;
use crate::{ENGINES, by_name};

/// The most workers that may share one file.
pub const WORKERS_MAX: usize = 256;

/// The values of an engine's parameters.
#[derive(Clone, Debug)]
pub struct Tuning {
    params: &'static [Param],
    /// One slot a parameter, in the order of the engine's row; `None` is the default.
    set: Vec<Option<u64>>,
}

impl Tuning {
    /// Every parameter of `engine` at its default.
    #[must_use]
    pub fn defaults(engine: &Engine) -> Tuning {
        Tuning { params: engine.params, set: vec![None; engine.params.len()] }
    }

    /// The value of the parameter `name`; a flag is 1 or 0.
    ///
    /// # Panics
    /// When the engine has no such parameter: a misspelling in the engine's own code.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        let (index, param) = self.find(name);
        self.set[index].unwrap_or(match param.kind {
            ParamKind::Bytes { default, .. } | ParamKind::Count { default, .. } => default,
            ParamKind::Offset { .. } | ParamKind::Flag => 0,
        })
    }

    /// [`get`](Tuning::get) as a length in memory.
    ///
    /// # Panics
    /// When the engine has no such parameter, or its `max` exceeds the address space.
    #[must_use]
    pub fn bytes(&self, name: &str) -> usize {
        usize::try_from(self.get(name)).expect("a parameter's maximum fits the address space")
    }

    /// Whether the flag `name` is on.
    ///
    /// # Panics
    /// When the engine has no such parameter.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    fn find(&self, name: &str) -> (usize, &'static Param) {
        self.params
            .iter()
            .enumerate()
            .find(|(_, param)| param.name == name)
            .unwrap_or_else(|| panic!("no parameter is called '{name}'"))
    }
}

/// An engine, its tuning, and how many workers share one file.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The row of the table.
    pub engine: &'static Engine,
    /// The values of its parameters.
    pub tuning: Tuning,
    /// Workers that share one file; 1 is the engine alone.
    pub workers: usize,
}

impl PartialEq for Variant {
    fn eq(&self, other: &Variant) -> bool {
        self.engine.name == other.engine.name
            && self.tuning.set == other.tuning.set
            && self.workers == other.workers
    }
}

impl Eq for Variant {}

impl Variant {
    /// The engine alone, every parameter at its default.
    #[must_use]
    pub fn plain(engine: &'static Engine) -> Variant {
        Variant { engine, tuning: Tuning::defaults(engine), workers: 1 }
    }

    /// The same variant, shared by `workers`; [`start`](Variant::start) says whether it can be.
    #[must_use]
    pub fn shared_by(&self, workers: usize) -> Variant {
        Variant { workers, ..self.clone() }
    }

    /// Whether it moves bytes between descriptors, rather than being a floor to compare with.
    #[must_use]
    pub fn is_copier(&self) -> bool {
        matches!(self.engine.kind, Kind::Copier { .. })
    }

    /// Whether it reads the source from its medium even where that is in the page cache, and leaves it
    /// out of the cache where it is not.
    #[must_use]
    pub fn reads_past_cache(&self) -> bool {
        match self.engine.name {
            "direct" | "direct_read" => true,
            "io_uring" => self.tuning.flag("direct"),
            _ => false,
        }
    }

    /// Starts it: allocates its buffers, ring or pipe, and sets its workers up.
    ///
    /// # Errors
    /// What the kernel says when these cannot be had (an io_uring that is forbidden, no memory), and
    /// `Unsupported` for a floor, which is no copier. `InvalidInput` without a worker, and with
    /// several where [`Facts::positions`](crate::Facts::positions) does not let them share a file.
    pub fn start(&self) -> std::io::Result<Box<dyn Copier>> {
        let Kind::Copier { start, .. } = self.engine.kind else {
            return Err(std::io::Error::new(
                std::io::ErrorKind::Unsupported,
                format!("{} moves bytes within memory and copies no file", self.engine.name),
            ));
        };
        if self.workers == 0 || (self.workers > 1 && !self.engine.facts.positions) {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                format!("{} cannot be shared by {} workers", self.engine.name, self.workers),
            ));
        }
        let copier: Box<dyn Copier> = if self.workers == 1 {
            start(&self.tuning)?
        } else {
            let copiers =
                (0..self.workers).map(|_| start(&self.tuning)).collect::<Result<_, _>>()?;
            Box::new(Parallel::new(copiers))
        };
        let flags = copier.status_flags();
        let copier = if flags == StatusFlags::default() {
            copier
        } else {
            Box::new(WithStatusFlags { copier, flags })
        };
        Ok(Box::new(WithHonouredPositions { copier }))
    }

    /// The variants beside this one: each quantity that its text names, and its workers, doubled and
    /// halved, as far as the engine takes them; and in place of an offset the start of a page. There
    /// are at most `workers_max` workers.
    #[must_use]
    pub fn neighbours(&self, workers_max: usize) -> Vec<Variant> {
        let mut found = Vec::new();
        for (index, param) in self.engine.params.iter().enumerate() {
            let Some(value) = self.tuning.set[index] else { continue };
            let mut add = |value| {
                let mut variant = self.clone();
                variant.tuning.set[index] = value;
                found.push(variant);
            };
            match param.kind {
                ParamKind::Bytes { min, max, .. } | ParamKind::Count { min, max, .. } => {
                    let beside = [value / 2, value.saturating_mul(2)];
                    let beside = beside.into_iter().filter(|value| (min..=max).contains(value));
                    beside.for_each(|value| add(Some(value)));
                }
                ParamKind::Offset { .. } => add(None),
                ParamKind::Flag => {}
            }
        }
        let shareable = |&workers: &usize| {
            let fits = (1..=workers_max.min(WORKERS_MAX)).contains(&workers);
            fits && workers != self.workers && self.engine.facts.positions
        };
        let workers = [self.workers / 2, self.workers * 2].into_iter().filter(shareable);
        found.extend(workers.map(|workers| self.shared_by(workers)));
        found
    }

    /// The same with every number of bytes cut to `bytes`: two variants for which this is equal do the
    /// same to a file of that length, but for the memory that they take.
    #[must_use]
    pub fn within(&self, bytes: u64) -> Variant {
        let mut variant = self.clone();
        for (param, value) in self.engine.params.iter().zip(&mut variant.tuning.set) {
            if let ParamKind::Bytes { default, .. } = param.kind {
                *value = Some(value.unwrap_or(default).min(bytes));
            }
        }
        variant
    }

    /// Every variant that the table proposes for a race, in its order.
    #[must_use]
    pub fn proposed() -> Vec<Variant> {
        ENGINES
            .iter()
            .flat_map(|engine| engine.lab_variants)
            .map(|text| text.parse().expect("the table's own variants are well formed"))
            .collect()
    }
}

impl Engine {
    /// Whether `key` names a parameter in the texts of this engine's variants, or did in those of an
    /// earlier version.
    #[must_use]
    pub fn has_param(&self, key: &str) -> bool {
        let present = present_item(self, key).split('=').next();
        self.params.iter().any(|param| Some(param.name) == present)
    }
}

/// Why a text names no variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No row of the table has this name.
    #[error("no engine is called '{name}'; there are {known}")]
    NoSuchEngine {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The engine does not have this parameter.
    #[error("{engine} has no option '{item}'; it has {known}")]
    NoSuchParam {
        /// The engine.
        engine: &'static str,
        /// The item given.
        item: String,
        /// The parameters there are.
        known: String,
    },
    /// A parameter stands twice.
    #[error("'{item}' stands twice")]
    Twice {
        /// The key.
        item: String,
    },
    /// A value is no number, or out of bounds.
    #[error("'{value}' is no value for {engine}'s {param}: {expected}")]
    BadValue {
        /// The engine.
        engine: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value given.
        value: String,
        /// What would do.
        expected: String,
    },
    /// The number of workers is no number from 1 to [`WORKERS_MAX`].
    #[error("'@{0}': workers are a number from 1 to {WORKERS_MAX}")]
    BadWorkers(String),
    /// Several workers cannot share a file with this engine.
    #[error("{0} moves the descriptors' cursors, so workers cannot share one file")]
    NotShareable(&'static str),
}

impl FromStr for Variant {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Variant, ParseError> {
        let (rest, workers) = match text.split_once('@') {
            None => (text, 1),
            Some((rest, count)) => (rest, parse_workers(count)?),
        };
        let (name, items) = match rest.split_once(':') {
            None => (rest, None),
            Some((name, items)) => (name, Some(items)),
        };
        let engine = by_name(name).ok_or_else(|| ParseError::NoSuchEngine {
            name: name.to_owned(),
            known: ENGINES.iter().map(|e| e.name).collect::<Vec<_>>().join(", "),
        })?;
        let mut tuning = Tuning::defaults(engine);
        for item in items.into_iter().flat_map(|items| items.split(',')) {
            let (index, value) = parse_item(engine, item)?;
            if tuning.set[index].replace(value).is_some() {
                return Err(ParseError::Twice { item: item.to_owned() });
            }
        }
        for (param, value) in engine.params.iter().zip(&mut tuning.set) {
            // The start of a page has one text, as every variant has.
            if matches!(param.kind, ParamKind::Offset { .. }) && *value == Some(0) {
                *value = None;
            }
        }
        if workers > 1 && !engine.facts.positions {
            return Err(ParseError::NotShareable(engine.name));
        }
        Ok(Variant { engine, tuning, workers })
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.engine.name)?;
        let leading = leading_param(self.engine);
        let mut separator = ':';
        for (index, param) in self.engine.params.iter().enumerate() {
            let Some(value) = self.tuning.set[index] else { continue };
            match param.kind {
                ParamKind::Flag if value == 0 => continue,
                ParamKind::Flag => write!(f, "{separator}{}", param.name)?,
                ParamKind::Count { .. } => write!(f, "{separator}{}={value}", param.name)?,
                ParamKind::Bytes { .. } if Some(index) == leading => {
                    write!(f, "{separator}{}", Bytes(value))?;
                }
                ParamKind::Bytes { .. } | ParamKind::Offset { .. } => {
                    write!(f, "{separator}{}={}", param.name, Bytes(value))?;
                }
            }
            separator = ',';
        }
        if self.workers > 1 {
            write!(f, "@{}", self.workers)?;
        }
        Ok(())
    }
}

/// A number of bytes in the shortest exact form: `256K`, `1M`, `4097`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bytes(bytes) = *self;
        for (shift, suffix) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
            if bytes != 0 && bytes.trailing_zeros() >= shift {
                return write!(f, "{}{suffix}", bytes >> shift);
            }
        }
        write!(f, "{bytes}")
    }
}

impl FromStr for Bytes {
    type Err = ();

    fn from_str(text: &str) -> Result<Bytes, ()> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match &text[digits.len()..] {
            "" => 0,
            "K" | "k" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            "T" | "TiB" => 40,
            _ => return Err(()),
        };
        let number = parse_count(digits).ok_or(())?;
        number.checked_mul(1 << shift).map(Bytes).ok_or(())
    }
}

fn leading_param(engine: &Engine) -> Option<usize> {
    engine.params.iter().position(|param| matches!(param.kind, ParamKind::Bytes { .. }))
}

/// Items of variants' texts that earlier versions wrote and this one only reads: the engine, the
/// item, and the item that replaces it.
///
/// `read_write` without `aligned` had its buffer 16 bytes past a page. Such a text is read as what it
/// means now, the start of a page: a profile's line names the variant to use, and its default has no
/// offset. docs/profile.md and docs/runs.md say what that means for files of earlier versions.
const FORMER_ITEMS: [(&str, &str, &str); 2] =
    [("read_write", "aligned", "offset=0"), ("memory", "unaligned", "offset=16")];

fn present_item<'i>(engine: &Engine, item: &'i str) -> &'i str {
    let former = |(name, former, _): &&(&str, &str, &str)| *name == engine.name && *former == item;
    FORMER_ITEMS.iter().find(former).map_or(item, |(_, _, present)| present)
}

/// A plain number; `parse` alone would let a leading plus sign pass.
fn parse_count(digits: &str) -> Option<u64> {
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

fn parse_workers(count: &str) -> Result<usize, ParseError> {
    let bad = || ParseError::BadWorkers(count.to_owned());
    let workers = parse_count(count).and_then(|workers| usize::try_from(workers).ok());
    workers.filter(|workers| (1..=WORKERS_MAX).contains(workers)).ok_or_else(bad)
}

/// One item of a variant's text: the index of its parameter, and the value.
fn parse_item(engine: &'static Engine, item: &str) -> Result<(usize, u64), ParseError> {
    let item = present_item(engine, item);
    let (key, value) = match item.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (item, None),
    };
    let named = engine.params.iter().position(|param| param.name == key);
    match (named, value) {
        (Some(index), Some(value)) => Ok((index, parse_value(engine, index, value)?)),
        (Some(index), None) if matches!(engine.params[index].kind, ParamKind::Flag) => {
            Ok((index, 1))
        }
        (Some(index), None) => Err(bad_value(engine, index, "")),
        (None, None) if item.starts_with(|c: char| c.is_ascii_digit()) => {
            let index = leading_param(engine).ok_or_else(|| no_such_param(engine, item))?;
            Ok((index, parse_value(engine, index, item)?))
        }
        (None, _) => Err(no_such_param(engine, key)),
    }
}

fn parse_value(engine: &'static Engine, index: usize, text: &str) -> Result<u64, ParseError> {
    let bad = || bad_value(engine, index, text);
    let (value, min, max) = match engine.params[index].kind {
        ParamKind::Flag => return Err(bad()),
        ParamKind::Bytes { min, max, .. } => {
            (text.parse::<Bytes>().map_err(|()| bad())?.0, min, max)
        }
        ParamKind::Offset { max } => (text.parse::<Bytes>().map_err(|()| bad())?.0, 0, max),
        ParamKind::Count { min, max, .. } => (parse_count(text).ok_or_else(bad)?, min, max),
    };
    if (min..=max).contains(&value) { Ok(value) } else { Err(bad()) }
}

fn bad_value(engine: &'static Engine, index: usize, value: &str) -> ParseError {
    let param = &engine.params[index];
    let expected = match param.kind {
        ParamKind::Flag => "it is a flag and takes none".to_owned(),
        ParamKind::Bytes { min, max, .. } => {
            format!("bytes from {} to {}", Bytes(min), Bytes(max))
        }
        ParamKind::Offset { max } => format!("bytes from 0 to {max}"),
        ParamKind::Count { min, max, .. } => format!("a number from {min} to {max}"),
    };
    ParseError::BadValue {
        engine: engine.name,
        param: param.name,
        value: value.to_owned(),
        expected,
    }
}

fn no_such_param(engine: &'static Engine, item: &str) -> ParseError {
    let known = match engine.params {
        [] => "none".to_owned(),
        params => params.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
    };
    ParseError::NoSuchParam { engine: engine.name, item: item.to_owned(), known }
}
