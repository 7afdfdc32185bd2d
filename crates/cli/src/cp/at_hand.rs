//! Which of the files at hand are shown. Small ones come and go between two drawings, and lines that
//! came and went with them could not be read.

use std::path::PathBuf;

use tree::CurrentFile;

/// How many drawings show a name although no file is at hand.
const KEPT_DRAWINGS: u32 = 20;

/// What was shown last.
#[derive(Debug, Default)]
pub(super) struct AtHand {
    before: Vec<PathBuf>,
    last: Option<CurrentFile>,
    /// Drawings since it was at hand.
    kept: u32,
}

impl AtHand {
    /// Those of `in_hand` that were so at the last drawing too; where there is none, one that tells where
    /// the copy is.
    pub(super) fn shown(&mut self, in_hand: Vec<CurrentFile>) -> Vec<CurrentFile> {
        let now = in_hand.iter().map(|file| file.dst.clone()).collect();
        let before = std::mem::replace(&mut self.before, now);
        let (lasting, brief): (Vec<_>, Vec<_>) =
            in_hand.into_iter().partition(|file| before.contains(&file.dst));
        self.kept += 1;
        if let Some(first) = lasting.first().or(brief.first()) {
            self.last = Some(first.clone());
            self.kept = 0;
        }
        if !lasting.is_empty() {
            return lasting;
        }
        self.last.clone().filter(|_| self.kept < KEPT_DRAWINGS).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_shown_and_else_one() {
        let mut at_hand = AtHand::default();
        let mut shown = |names: &[&str]| {
            let file = |name: &&str| CurrentFile {
                dst: name.into(),
                bytes: 0,
                bytes_expected: 0,
                atomic: false,
            };
            let files = at_hand.shown(names.iter().map(file).collect());
            files.iter().map(|file| file.dst.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&["a", "b"]), "a");
        assert_eq!(shown(&["c", "d"]), "c");
        assert_eq!(shown(&["d", "large"]), "d");
        assert_eq!(shown(&["large", "e", "long"]), "large");
        assert_eq!(shown(&["large", "f", "long"]), "large long");
        assert_eq!(shown(&["g", "long"]), "long");
        for _ in 1..KEPT_DRAWINGS {
            assert_eq!(shown(&[]), "long");
        }
        assert_eq!(shown(&[]), "");
    }
}
