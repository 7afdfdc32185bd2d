//! How far a run can be trusted: the badge of its certificate.

use lab::certificate::store::{Badge as Said, Standing};

use crate::machine;
use crate::source::Source;

/// What a badge says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Badge {
    /// Which of the three.
    pub kind: Kind,
    /// What that means, in a sentence.
    pub words: String,
}

/// The three badges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The lab was tried on this machine and held what it promises.
    Certified,
    /// It was not tried, or under another kernel or by another version.
    NotCertified,
    /// It was tried and did not hold it.
    Failed,
}

impl Kind {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Kind::Certified => "certified",
            Kind::NotCertified => "not certified",
            Kind::Failed => "certificate failed",
        }
    }
}

impl Badge {
    /// The badge that the certificate in a run's directory gives to a run of its kernel and version.
    #[must_use]
    pub fn of(source: &Source) -> Badge {
        let kernel = machine::text(&source.run.environment, &["kernel"]).unwrap_or_default();
        let version = &source.run.how.haulage_version;
        let said =
            source.certificate.as_ref().map_or_else(Said::none, |kept| kept.badge(kernel, version));
        let kind = match said.standing {
            Standing::Certified => Kind::Certified,
            Standing::Failed => Kind::Failed,
            Standing::Stale | Standing::NotCertified => Kind::NotCertified,
        };
        Badge { kind, words: said.words }
    }
}
