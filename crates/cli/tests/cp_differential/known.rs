//! Every difference that is meant, in one table with its reason.

use super::run::{Case, Outcome};

/// A release of GNU coreutils.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32);

/// A difference, and what makes up for it.
pub(crate) struct Known {
    /// Why we differ.
    pub(crate) reason: &'static str,
    /// GNU cp does as we do from this release on; `None` where we differ on purpose.
    pub(crate) until: Option<Version>,
    /// Whether it shows in this case, of which GNU made this.
    pub(crate) concerns: fn(&Case, &Outcome) -> bool,
    /// Turns what GNU did into what we do, or sets aside what cannot be compared.
    pub(crate) amend: fn(gnu: &mut Outcome, ours: &mut Outcome),
}

pub(crate) static KNOWN: &[Known] = &[Known {
    reason: "GNU leaves out whatever the directory happens to list after the copy itself",
    until: None,
    concerns: |_, gnu| gnu.stderr_has("cannot copy a directory, "),
    amend: |gnu, ours| {
        ours.tree = gnu.tree.clone();
        for (gnu, ours) in gnu.said.iter().zip(&mut ours.said) {
            ours.stdout.clone_from(&gnu.stdout);
        }
    },
}];

impl Outcome {
    /// Whether some command's standard error has `text` in it.
    fn stderr_has(&self, text: &str) -> bool {
        self.said.iter().any(|said| String::from_utf8_lossy(&said.stderr).contains(text))
    }
}
