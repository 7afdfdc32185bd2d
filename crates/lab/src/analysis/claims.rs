//! Whether published claims hold here.

use serde::{Deserialize, Serialize};

use super::View;
use crate::definition::Definition;
use crate::definition::claim::Claim;
use crate::stats::{Ratio, unpaired};
use crate::words::three_digits;

/// The level of the intervals.
const ALPHA: f64 = 0.05;

/// A claim, and what was found here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestedClaim {
    /// The name of the claim.
    pub name: String,
    /// The sentence.
    pub says: String,
    /// What was published.
    pub published: String,
    /// What was measured here: the ratio with its 95 % interval, or several ratios. Empty if nothing was.
    pub here: String,
    /// Whether the claim holds.
    pub answer: ClaimAnswer,
    /// Why it cannot be told; empty otherwise.
    pub why: String,
}

impl TestedClaim {
    /// What was published, what was measured here, and why that may not tell.
    pub fn figures(&self) -> String {
        let found = [("published ", &self.published), (", here ", &self.here), (": ", &self.why)];
        let known = found.into_iter().filter(|(_, found)| !found.is_empty());
        known.map(|(word, found)| format!("{word}{found}")).collect()
    }
}

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimAnswer {
    /// The interval of each ratio lies within the limits of the claim.
    Holds,
    /// The interval of a ratio lies outside.
    DoesNotHold,
    /// Neither was shown.
    CannotBeTold,
}

impl ClaimAnswer {
    /// The answer in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            ClaimAnswer::Holds => "holds",
            ClaimAnswer::DoesNotHold => "does not hold",
            ClaimAnswer::CannotBeTold => "cannot be told",
        }
    }
}

/// The claims of an experiment, tested by its samples.
pub fn tested(definition: &Definition, views: &[View<'_>]) -> Vec<TestedClaim> {
    let tested = |claim: &Claim| {
        let view = views.iter().find(|view| view.part.name == claim.part);
        let found = view.map_or_else(Vec::new, |view| ratios(claim, view));
        let (answer, why) = answer(claim, &found);
        let (name, says, published) =
            (claim.name.clone(), claim.says.clone(), claim.published.clone());
        TestedClaim { name, says, published, here: here(&found), answer, why }
    };
    definition.claims.iter().map(tested).collect()
}

/// The ratio of each variant and size; `None` where too little was measured.
fn ratios(claim: &Claim, view: &View<'_>) -> Vec<Option<Ratio>> {
    let variants = &claim.variants;
    let of_size = |size| variants.iter().map(move |variant| ratio(claim, view, size, variant));
    claim.sizes.iter().map(String::as_str).flat_map(of_size).collect()
}

fn ratio(claim: &Claim, view: &View<'_>, size: &str, variant: &str) -> Option<Ratio> {
    let points = |size: &str| {
        let cell = view.cells.iter().find(|cell| claim.is_about(&cell.cell, size))?;
        Some(cell.points(claim.measure))
    };
    let (one, than) = (view.part.index_of(variant)?, view.part.index_of(&claim.than)?);
    let own = points(size)?;
    let estimate = match &claim.than_size {
        None => own.compare(one, than).estimate(),
        Some(other) => unpaired(&own.runs(one, true), &points(other)?.runs(than, true)),
    };
    Some(estimate?.ratio(ALPHA))
}

fn answer(claim: &Claim, ratios: &[Option<Ratio>]) -> (ClaimAnswer, String) {
    let (least, most) = (claim.at_least.unwrap_or(0.0), claim.at_most.unwrap_or(f64::INFINITY));
    let is_outside = |ratio: &Ratio| ratio.interval.high < least || ratio.interval.low > most;
    let is_within = |ratio: &Ratio| ratio.interval.low >= least && ratio.interval.high <= most;
    if ratios.iter().flatten().any(is_outside) {
        return (ClaimAnswer::DoesNotHold, String::new());
    }
    if ratios.is_empty() || ratios.iter().any(Option::is_none) {
        return (ClaimAnswer::CannotBeTold, "too few runs of what it compares".to_owned());
    }
    if ratios.iter().flatten().all(is_within) {
        return (ClaimAnswer::Holds, String::new());
    }
    let limits = match (claim.at_least, claim.at_most) {
        (Some(least), Some(most)) => {
            format!("{} to {}", three_digits(least), three_digits(most))
        }
        (Some(limit), None) | (None, Some(limit)) => three_digits(limit),
        (None, None) => String::new(),
    };
    (ClaimAnswer::CannotBeTold, format!("the interval is on both sides of {limits}"))
}

fn here(ratios: &[Option<Ratio>]) -> String {
    let found: Vec<&Ratio> = ratios.iter().flatten().collect();
    match found.as_slice() {
        [] => String::new(),
        [only] => format!(
            "{} x ({} to {})",
            three_digits(only.estimate),
            three_digits(only.interval.low),
            three_digits(only.interval.high)
        ),
        several => {
            let estimates = || several.iter().map(|ratio| ratio.estimate);
            let (least, most) =
                (estimates().fold(f64::INFINITY, f64::min), estimates().fold(0.0, f64::max));
            format!("{} to {} x", three_digits(least), three_digits(most))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    fn ratio(low: f64, high: f64) -> Option<Ratio> {
        Some(Ratio { estimate: (low * high).sqrt(), interval: Interval { low, high } })
    }

    #[test]
    fn intervals_decide() {
        let text = "schema = 1\nname = \"x\"\ntitle = \"\"\nquestion = \"\"\nanalysis = \"\"\n\
            [[part]]\nname = \"p\"\nquestion = \"\"\nworkload = \"copy\"\n\
            variants = [\"read_write:4K\", \"sendfile\"]\nsizes = [\"1M\"]\nbaseline = \"sendfile\"\n\
            [[claim]]\nname = \"c\"\nsays = \"s\"\npublished = \"1.2 x\"\npart = \"p\"\n\
            variants = [\"read_write:4K\"]\nthan = \"sendfile\"\nat_least = 1.1\nat_most = 1.4\n";
        let definition = Definition::parse(text, "x.toml").expect("parsed");
        let claim = &definition.claims[0];
        assert_eq!(claim.sizes, ["1M"]);
        for (ratios, expected) in [
            (vec![ratio(1.15, 1.3)], ClaimAnswer::Holds),
            (vec![ratio(1.15, 1.3), ratio(1.12, 1.2)], ClaimAnswer::Holds),
            (vec![ratio(1.15, 1.3), ratio(0.9, 1.05)], ClaimAnswer::DoesNotHold),
            (vec![ratio(1.5, 1.6)], ClaimAnswer::DoesNotHold),
            (vec![ratio(1.05, 1.3)], ClaimAnswer::CannotBeTold),
            (vec![ratio(1.15, 1.3), None], ClaimAnswer::CannotBeTold),
            (vec![ratio(0.5, 0.6), None], ClaimAnswer::DoesNotHold),
            (vec![], ClaimAnswer::CannotBeTold),
        ] {
            assert_eq!(answer(claim, &ratios).0, expected, "{ratios:?}");
        }
        assert_eq!(here(&[ratio(1.0, 1.21)]), "1.10 x (1.00 to 1.21)");
        let alone = definition.clone().only_claim("c").expect("there");
        assert_eq!(
            alone.to_toml().parse::<toml::Table>().expect("parsed")["claim"][0]["than"].as_str(),
            Some("sendfile")
        );
        assert!(definition.only_claim("d").is_none());
    }
}
