//! How far a run can be trusted: the badge of its certificate.

use lab::certificate::store::Badge as Said;
use lab::certificate::store::CertificateStatus;

use crate::machine;
use crate::source::Source;

/// The badge of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Badge {
    /// The kind.
    pub kind: Kind,
    /// Its explanation, in a sentence.
    pub words: String,
}

/// The three badges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `haulage certify` passed on this machine.
    Certified,
    /// `haulage certify` was not run, or with another kernel or version.
    NotCertified,
    /// `haulage certify` failed.
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
    /// The badge of a run, from the certificate in its directory, its kernel and its version.
    #[must_use]
    pub fn of(source: &Source) -> Badge {
        let kernel = machine::text(&source.run.environment, &["kernel"]).unwrap_or_default();
        let version = &source.run.how.haulage_version;
        let said =
            source.certificate.as_ref().map_or_else(Said::none, |kept| kept.badge(kernel, version));
        let kind = match said.status {
            CertificateStatus::Certified => Kind::Certified,
            CertificateStatus::Failed => Kind::Failed,
            CertificateStatus::Stale | CertificateStatus::NotCertified => Kind::NotCertified,
        };
        Badge { kind, words: said.words }
    }
}
