//! An observer of a copy that keeps nothing.

use tree::{Diagnostic, Observer};

/// Answers every question with no.
pub(super) struct Silent;

impl Observer for Silent {
    fn diagnose(&self, _: Diagnostic) {}
}
