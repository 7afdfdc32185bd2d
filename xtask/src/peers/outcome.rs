//! The results of one case.

use std::io::Write;

use lab::environment::Environment;
use lab::page_cache::state::Proof;
use lab::stats::{Paired, Ratio};

use super::cases::Case;
use super::copiers::Copier;

/// The results of one case at one place.
pub(crate) struct Report {
    pub(crate) case: &'static Case,
    pub(crate) place: String,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) rounds: u32,
    pub(crate) rows: Vec<Row>,
    pub(crate) environment: Environment,
}

/// The results of one copier.
pub(crate) struct Row {
    pub(crate) copier: Copier,
    /// A note about this copier in this job.
    pub(crate) note: String,
    /// Every run, including the one that warms up.
    pub(crate) samples: Vec<Sample>,
    /// How it failed. It does not run again after that.
    pub(crate) failed: Option<String>,
    /// How its copy differs from the source.
    pub(crate) wrong: Option<String>,
    /// Requested attributes that its copy lacks.
    pub(crate) lost: Vec<&'static str>,
    /// Why one of its runs did not have the requested page cache state.
    pub(crate) missed: Option<String>,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The round, from 1. 0 is the run that warms up.
    pub(crate) round: u32,
    pub(crate) order_in_round: usize,
    pub(crate) elapsed_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) state: Proof,
}

impl Sample {
    fn counts(&self) -> bool {
        self.round > 0 && self.state != Proof::NotReached
    }
}

impl Row {
    pub(crate) fn new(copier: &Copier, note: String) -> Row {
        Row {
            copier: copier.clone(),
            note,
            samples: Vec::new(),
            failed: None,
            wrong: None,
            lost: Vec::new(),
            missed: None,
        }
    }

    /// Whether it takes part in the next round.
    pub(crate) fn runs(&self) -> bool {
        self.failed.is_none()
    }

    /// The runs that count.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.counts())
    }

    /// The ratio of its times to those of `base` in the rounds that both have.
    pub(crate) fn ratio_to(&self, base: &Row) -> Option<Ratio> {
        let pairs = self.counted().filter_map(|own| {
            let other = base.counted().find(|other| other.round == own.round)?;
            Some((own.elapsed_ns as f64, other.elapsed_ns as f64))
        });
        Paired::new(pairs).ratio()
    }
}

impl Report {
    /// The copier that the others are compared with.
    pub(crate) fn base(&self) -> &Row {
        self.rows.iter().find(|row| row.copier.is_cp()).expect("cp always takes part")
    }

    /// Whether no build of haulage failed, copied wrongly or lost an attribute that GNU cp kept.
    pub(crate) fn ours_is_right(&self) -> bool {
        let cp_lost = &self.base().lost;
        self.rows.iter().filter(|row| row.copier.is_haulage()).all(|row| {
            row.failed.is_none()
                && row.wrong.is_none()
                && row.lost.iter().all(|lost| cp_lost.contains(lost))
        })
    }
}

/// Writes the heading, and one line for each run.
pub(crate) fn write_csv(report: &Report, csv: &mut csv::Writer<impl Write>) -> csv::Result<()> {
    let state_name = |state| match state {
        Proof::Warm => "warm",
        Proof::Cold => "cold",
        Proof::Unverified => "unverified",
        Proof::NotReached => "not_reached",
    };
    for row in &report.rows {
        for sample in &row.samples {
            csv.write_record([
                report.case.name,
                &report.place,
                &row.copier.name,
                &sample.round.to_string(),
                &sample.order_in_round.to_string(),
                &sample.elapsed_ns.to_string(),
                &sample.user_ns.to_string(),
                &sample.system_ns.to_string(),
                state_name(sample.state),
            ])?;
        }
    }
    csv.flush()?;
    Ok(())
}

/// The columns of the CSV file.
pub(crate) const CSV_HEADING: [&str; 9] = [
    "case",
    "place",
    "copier",
    "round",
    "order_in_round",
    "elapsed_ns",
    "user_ns",
    "system_ns",
    "state_proved",
];
