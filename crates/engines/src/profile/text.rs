//! A profile as TOML, which docs/profile.md describes for people who edit it.

use std::fmt::Write;
use std::ops::Range;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::choices::{
    Choice, Line, MachineChoices, Measured, Other, PairChoices, Profile, VERSION,
};
use super::file_system::FileSystem;
use super::machine::Machine;
use super::problem::{Mistake, Problem};
use super::situation::{InFlight, Residency, SizeClass};
use crate::Variant;

/// The content of a text, and its lines that this build cannot use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The whole profile, including lines for other builds.
    pub profile: Profile,
    /// Ignored lines: this build has no such variant.
    pub unusable: Vec<Mistake>,
}

impl Profile {
    /// Parses a text.
    ///
    /// # Errors
    /// The first error in it, or its version if that is another one.
    pub fn parse(text: &str) -> Result<Parsed, Problem> {
        let at = |span: Range<usize>, problem: String| Mistake {
            line: line_of(text, span.start),
            problem,
        };
        let raw: RawProfile = toml::from_str(text).map_err(|error| {
            // Unknown keys of another version are no error.
            match toml::from_str::<Head>(text) {
                Ok(Head { version }) if version != VERSION => Problem::Version(version),
                _ => {
                    let problem = error.message().trim().replace('\n', "; ");
                    Problem::Mistake(at(error.span().unwrap_or(0..0), problem))
                }
            }
        })?;
        if raw.version != VERSION {
            return Err(Problem::Version(raw.version));
        }
        let mut unusable = Vec::new();
        let mut machines = Vec::new();
        for RawMachine { id, cpu, host, pairs: raw_pairs } in raw.machines {
            let mut pairs = Vec::new();
            for RawPair { src, dst, same, kernel, lines: raw_lines } in raw_pairs {
                let mut lines = Vec::new();
                for raw_line in raw_lines {
                    if let Some(problem) = why_unusable(raw_line.variant.get_ref()) {
                        unusable.push(at(raw_line.variant.span(), problem));
                    }
                    let line = raw_line.checked();
                    lines.push(line.map_err(|(span, problem)| at(span, problem))?);
                }
                pairs.push(PairChoices { src, dst, same, kernel, lines });
            }
            machines.push(MachineChoices { machine: Machine { id, cpu, host }, pairs });
        }
        Ok(Parsed { profile: Profile { machines }, unusable })
    }

    /// The text that [`parse`](Profile::parse) reads. Numbers in [`Measured`] are at most
    /// `i64::MAX`, the maximum of TOML. A larger number is written as `i64::MAX`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = format!("version = {VERSION}\n");
        for MachineChoices { machine, pairs } in &self.machines {
            text.push_str("\n[[machine]]\n");
            for (key, value) in
                [("id", &machine.id), ("cpu", &machine.cpu), ("host", &machine.host)]
            {
                push_text(&mut text, key, value.as_ref());
            }
            pairs.iter().for_each(|pair| push_pair(&mut text, pair));
        }
        text
    }
}

#[derive(Deserialize)]
struct Head {
    version: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProfile {
    version: i64,
    #[serde(default, rename = "machine")]
    machines: Vec<RawMachine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMachine {
    id: Option<String>,
    cpu: Option<String>,
    host: Option<String>,
    #[serde(default, rename = "pair")]
    pairs: Vec<RawPair>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPair {
    #[serde(default)]
    src: FileSystem,
    #[serde(default)]
    dst: FileSystem,
    same: Option<bool>,
    kernel: Option<String>,
    #[serde(default, rename = "choice")]
    lines: Vec<RawLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    size: Option<SizeClass>,
    residency: Option<Residency>,
    in_flight: Option<InFlight>,
    #[serde(default)]
    no_cache: bool,
    variant: Spanned<String>,
    median_ns: Option<u64>,
    bytes: Option<u64>,
    rounds: Option<u32>,
    date: Option<String>,
    #[serde(default)]
    others: Vec<RawOther>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOther {
    variant: String,
    ratio: Spanned<f64>,
    low: Spanned<f64>,
    high: Spanned<f64>,
}

impl RawLine {
    fn checked(self) -> Result<Line, (Range<usize>, String)> {
        let RawLine { size, residency, in_flight, no_cache, variant, .. } = self;
        let RawLine { median_ns, bytes, rounds, date, .. } = self;
        let others = self.others.into_iter().map(RawOther::checked).collect::<Result<_, _>>()?;
        let measured = Measured { median_ns, bytes, rounds, date, others };
        let choice = Choice { variant: variant.into_inner(), measured };
        Ok(Line { size, residency, in_flight, no_cache, choice })
    }
}

impl RawOther {
    fn checked(self) -> Result<Other, (Range<usize>, String)> {
        let ratio = |value: Spanned<f64>| {
            let span = value.span();
            let found = value.into_inner();
            let is_ratio = found.is_finite() && found > 0.0;
            is_ratio
                .then_some(found)
                .ok_or_else(|| (span, format!("{found} is no ratio, expected a number over 0")))
        };
        let RawOther { variant, ratio: middle, low, high } = self;
        Ok(Other { variant, ratio: ratio(middle)?, low: ratio(low)?, high: ratio(high)? })
    }
}

/// Why a copy cannot use `variant`.
fn why_unusable(variant: &str) -> Option<String> {
    match variant.parse::<Variant>() {
        Ok(known) if known.is_copier() => None,
        Ok(_) => Some(format!("'{variant}' copies no file")),
        Err(error) => Some(format!("variant '{variant}': {error}")),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count()
}

fn push_pair(text: &mut String, pair: &PairChoices) {
    text.push_str("\n[[machine.pair]]\n");
    for (key, side) in [("src", &pair.src), ("dst", &pair.dst)] {
        let keys = [
            ("type", &side.fs_type),
            ("uuid", &side.uuid),
            ("source", &side.source),
            ("mount_point", &side.mount_point),
            ("options", &side.options),
        ];
        let given: Vec<String> = keys
            .iter()
            .filter_map(|(key, value)| Some(format!("{key} = {}", quoted(value.as_ref()?))))
            .collect();
        if !given.is_empty() {
            push(text, format_args!("{key} = {{ {} }}\n", given.join(", ")));
        }
    }
    if let Some(same) = pair.same {
        push(text, format_args!("same = {same}\n"));
    }
    push_text(text, "kernel", pair.kernel.as_ref());
    pair.lines.iter().for_each(|line| push_line(text, line));
}

fn push_line(text: &mut String, line: &Line) {
    text.push_str("\n[[machine.pair.choice]]\n");
    push_text(text, "size", line.size.map(|size| size.to_string()).as_ref());
    push_text(text, "residency", line.residency.map(Residency::name));
    push_text(text, "in_flight", line.in_flight.map(InFlight::name));
    if line.no_cache {
        text.push_str("no_cache = true\n");
    }
    push_text(text, "variant", Some(&line.choice.variant));
    let Measured { median_ns, bytes, rounds, date, others } = &line.choice.measured;
    for (key, number) in
        [("median_ns", *median_ns), ("bytes", *bytes), ("rounds", rounds.map(u64::from))]
    {
        if let Some(number) = number {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            push(text, format_args!("{key} = {number}\n"));
        }
    }
    push_text(text, "date", date.as_ref());
    if others.is_empty() {
        return;
    }
    text.push_str("others = [\n");
    for Other { variant, ratio, low, high } in others {
        let variant = quoted(variant);
        let [ratio, low, high] = [ratio, low, high].map(|ratio| Value::Float(*ratio));
        push(
            text,
            format_args!(
                "  {{ variant = {variant}, ratio = {ratio}, low = {low}, high = {high} }},\n"
            ),
        );
    }
    text.push_str("]\n");
}

fn push_text(text: &mut String, key: &str, value: Option<impl AsRef<str>>) {
    if let Some(value) = value {
        push(text, format_args!("{key} = {}\n", quoted(value)));
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a string takes all that is written to it");
}

fn quoted(value: impl AsRef<str>) -> Value {
    Value::String(value.as_ref().to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    const EXAMPLE: &str = r#"version = 1

[[machine]]
id = "9b2f6c01d3e84a75"
cpu = "AMD EPYC"

[[machine.pair]]
src = { type = "ext4", mount_point = "/data" }
same = true

[[machine.pair.choice]]
size = "16M to 256M"
residency = "resident"
variant = "read_write:256K@2"
others = [
  { variant = "splice:1M", ratio = 1.3, low = 1.25, high = 1.36 },
]

[[machine.pair.choice]]
variant = "teleport:1M"
"#;

    #[test]
    fn optional_keys_can_be_omitted() {
        let Parsed { profile, unusable } = Profile::parse(EXAMPLE).expect("parsed");
        let pair = &profile.machines[0].pairs[0];
        assert_eq!(pair.dst, FileSystem::default());
        assert_eq!(pair.lines[0].size, Some(SizeClass::of(17 << 20)));
        assert_eq!(pair.lines[0].in_flight, None);
        assert_eq!(pair.lines[1].choice.variant(), None);
        let words = "line 20: variant 'teleport:1M': no engine is called 'teleport'; there are ";
        assert_eq!(unusable.len(), 1);
        assert!(unusable[0].to_string().starts_with(words), "{}", unusable[0]);
        assert_eq!(profile.to_toml(), EXAMPLE, "what was read is written as it was");
        assert_eq!(Profile::parse("version = 1"), Ok(Parsed::default()));
    }

    #[test]
    fn an_error_names_its_line_and_what_was_expected() {
        let check = |from: &str, to: &str, expected: &str| {
            let text = EXAMPLE.replacen(from, to, 1);
            let problem = Profile::parse(&text).expect_err(expected).to_string();
            assert!(problem.starts_with(expected), "{problem}");
        };
        check("version = 1", "", "line 1: missing field `version`");
        check("version = 1", "version = \"1\"", "line 1: invalid type: string \"1\", expected i64");
        check("version = 1", "version = 2\nnew = 1", "version 2 is not known here, expected 1");
        check("version = 1", "version = 0", "version 0 is not known here, expected 1");
        check("cpu = ", "cpo = ", "line 5: unknown field `cpo`, expected one of `id`, `cpu`");
        check("mount_point", "mount", "line 8: unknown field `mount`, expected one of `type`");
        check("16M to 256M", "16M", "line 12: '16M' is no class of sizes, expected one of 'up to");
        check("resident", "warm", "line 13: unknown variant `warm`, expected one of `resident`");
        check("ratio = 1.3", "ratio = -1", "line 16: -1 is no ratio, expected a number over 0");
        check("[[machine.pair]]", "[[machine.pair", "line 7: ");
        check("variant = \"t", "variant = t", "line 20: ");
    }

    fn word() -> impl Strategy<Value = Option<String>> {
        option::of("[ -~éß\n\t\"\\\\]{0,12}")
    }

    fn file_system() -> impl Strategy<Value = FileSystem> {
        (word(), word(), word(), word(), word()).prop_map(
            |(fs_type, uuid, source, mount_point, options)| FileSystem {
                fs_type,
                uuid,
                source,
                mount_point,
                options,
            },
        )
    }

    fn number() -> impl Strategy<Value = Option<u64>> {
        option::of(0..=i64::MAX as u64)
    }

    fn other() -> impl Strategy<Value = Other> {
        let ratio = || prop_oneof![Just(1.0), f64::MIN_POSITIVE..1e300];
        (".{0,20}", ratio(), ratio(), ratio()).prop_map(|(variant, ratio, low, high)| Other {
            variant,
            ratio,
            low,
            high,
        })
    }

    fn measured() -> impl Strategy<Value = Measured> {
        let others = prop::collection::vec(other(), 0..3);
        (number(), number(), option::of(any::<u32>()), word(), others).prop_map(
            |(median_ns, bytes, rounds, date, others)| Measured {
                median_ns,
                bytes,
                rounds,
                date,
                others,
            },
        )
    }

    fn line() -> impl Strategy<Value = Line> {
        (
            option::of(select(&SizeClass::ALL[..])),
            option::of(select(&Residency::ALL[..])),
            option::of(select(&InFlight::ALL[..])),
            any::<bool>(),
            ".{0,20}",
            measured(),
        )
            .prop_map(|(size, residency, in_flight, no_cache, variant, measured)| Line {
                size,
                residency,
                in_flight,
                no_cache,
                choice: Choice { variant, measured },
            })
    }

    fn profile() -> impl Strategy<Value = Profile> {
        let lines = prop::collection::vec(line(), 0..4);
        let pair =
            (file_system(), file_system(), option::of(any::<bool>()), word(), lines).prop_map(
                |(src, dst, same, kernel, lines)| PairChoices { src, dst, same, kernel, lines },
            );
        let machine = (word(), word(), word(), prop::collection::vec(pair, 0..3)).prop_map(
            |(id, cpu, host, pairs)| MachineChoices { machine: Machine { id, cpu, host }, pairs },
        );
        prop::collection::vec(machine, 0..3).prop_map(|machines| Profile { machines })
    }

    proptest! {
        #[test]
        fn a_written_profile_is_read_back(profile in profile()) {
            let text = profile.to_toml();
            let parsed = Profile::parse(&text);
            prop_assert!(parsed.is_ok(), "{parsed:?}: {text}");
            prop_assert_eq!(parsed.expect("looked at").profile, profile);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(?s).{0,200}") {
            let _ = Profile::parse(&text);
        }

        /// Damage to a valid text exercises more of the parser than random text.
        #[test]
        fn no_damaged_profile_makes_the_parser_panic(
            at in 0..EXAMPLE.len(),
            len in 0..40_usize,
            with in ".{0,9}",
        ) {
            let end = (at + len).min(EXAMPLE.len());
            let damaged = [&EXAMPLE[..at], &with, &EXAMPLE[end..]].concat();
            let parsed = Profile::parse(&damaged);
            if let Err(Problem::Mistake(mistake)) = parsed {
                prop_assert!(mistake.line >= 1 && mistake.line <= damaged.lines().count() + 1);
            }
        }
    }
}
