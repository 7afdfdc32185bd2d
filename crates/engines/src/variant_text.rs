//! The text form of a variant, the same in flags, CSV and documents.
//!
//! `engine[:item[,item…]][@workers]`: an item is a number of bytes for the engine's first parameter
//! (`read_write:256K`), `key=value` (`splice:1M,pipe=1M`) or a flag (`mmap:8M,populate`). `@2` lets
//! two workers share one file. Suffixes are powers of 1024.

use std::fmt;
use std::str::FromStr;

use crate::bytes::{Bytes, parse_count};
use crate::contract::Engine;
use crate::engine::{ENGINES, by_name};
use crate::tuning::{ParamKind, Tuning};
use crate::variant::{Variant, WORKERS_MAX};

impl Variant {
    /// Every variant that the table proposes to measure, in the order of the table.
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
    /// Whether `key` names a parameter in the texts of this engine's variants, or named one in
    /// those of an earlier version.
    #[must_use]
    pub fn has_param(&self, key: &str) -> bool {
        let present = present_item(self, key).split('=').next();
        self.params.iter().any(|param| Some(param.name) == present)
    }
}

/// Why a text is no variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No row of the table has this name.
    #[error("no engine is called '{name}'; there are {known}")]
    NoSuchEngine {
        /// The name in the text.
        name: String,
        /// The known names.
        known: String,
    },
    /// The engine does not have this parameter.
    #[error("{engine} has no option '{item}'; it has {known}")]
    NoSuchParam {
        /// The engine.
        engine: &'static str,
        /// The item in the text.
        item: String,
        /// The known parameters.
        known: String,
    },
    /// A parameter is given twice.
    #[error("'{item}' stands twice")]
    Twice {
        /// The key.
        item: String,
    },
    /// A value is no number or is out of bounds.
    #[error("'{value}' is no value for {engine}'s {param}: {expected}")]
    BadValue {
        /// The engine.
        engine: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value in the text.
        value: String,
        /// The values that are accepted.
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
        let mut tuning = Tuning::defaults(engine.params);
        for item in items.into_iter().flat_map(|items| items.split(',')) {
            let (index, value) = parse_item(engine, item)?;
            if tuning.set[index].replace(value).is_some() {
                return Err(ParseError::Twice { item: item.to_owned() });
            }
        }
        for (param, value) in engine.params.iter().zip(&mut tuning.set) {
            // Offset 0 is not written, so that every variant has one text.
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

fn leading_param(engine: &Engine) -> Option<usize> {
    engine.params.iter().position(|param| matches!(param.kind, ParamKind::Bytes { .. }))
}

/// Items that earlier versions wrote and this one only reads: the engine, the item, and the item
/// that replaces it.
///
/// `read_write` without `aligned` had its buffer 16 bytes past a page. Such a text is read with its
/// current meaning, offset 0: a line of a profile names the variant to use, and its default has no
/// offset. docs/profile.md and docs/runs.md describe what that means for files of earlier versions.
const FORMER_ITEMS: [(&str, &str, &str); 2] =
    [("read_write", "aligned", "offset=0"), ("memory", "unaligned", "offset=16")];

fn present_item<'i>(engine: &Engine, item: &'i str) -> &'i str {
    let former = |(name, former, _): &&(&str, &str, &str)| *name == engine.name && *former == item;
    FORMER_ITEMS.iter().find(former).map_or(item, |(_, _, present)| present)
}

fn parse_workers(count: &str) -> Result<usize, ParseError> {
    let bad = || ParseError::BadWorkers(count.to_owned());
    let workers = parse_count(count).and_then(|workers| usize::try_from(workers).ok());
    workers.filter(|workers| (1..=WORKERS_MAX).contains(workers)).ok_or_else(bad)
}

/// Parses one item of a variant's text: the index of its parameter, and the value.
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
