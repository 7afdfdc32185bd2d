//! Which of the files being copied are shown. Small files start and end between two redraws, and a line
//! that is shown for a tenth of a second cannot be read.

use std::path::PathBuf;

use haulage::events::CurrentFile;

/// For how many redraws the last name stays while no file is being copied.
const KEPT_REDRAWS: u32 = 20;

/// The files of the last redraw.
#[derive(Debug, Default)]
pub(crate) struct ShownFiles {
    before: Vec<PathBuf>,
    last: Option<CurrentFile>,
    /// Redraws since `last` was being copied.
    kept: u32,
}

impl ShownFiles {
    /// Selects those of `current` that were being copied at the last redraw too; if there is none, one
    /// file that shows where the copy is.
    pub(crate) fn select(&mut self, current: Vec<CurrentFile>) -> Vec<CurrentFile> {
        let now = current.iter().map(|file| file.dst.clone()).collect();
        let before = std::mem::replace(&mut self.before, now);
        let (lasting, brief): (Vec<_>, Vec<_>) =
            current.into_iter().partition(|file| before.contains(&file.dst));
        self.kept += 1;
        if let Some(first) = lasting.first().or(brief.first()) {
            self.last = Some(first.clone());
            self.kept = 0;
        }
        if !lasting.is_empty() {
            return lasting;
        }
        self.last.clone().filter(|_| self.kept < KEPT_REDRAWS).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_copies_are_shown_or_else_one_file() {
        let mut shown_files = ShownFiles::default();
        let mut shown = |names: &[&str]| {
            let file = |name: &&str| CurrentFile {
                dst: name.into(),
                bytes: 0,
                unwritten_bytes: 0,
                bytes_expected: 0,
                atomic: false,
            };
            let files = shown_files.select(names.iter().map(file).collect());
            files.iter().map(|file| file.dst.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&["a", "b"]), "a");
        assert_eq!(shown(&["c", "d"]), "c");
        assert_eq!(shown(&["d", "large"]), "d");
        assert_eq!(shown(&["large", "e", "long"]), "large");
        assert_eq!(shown(&["large", "f", "long"]), "large long");
        assert_eq!(shown(&["g", "long"]), "long");
        for _ in 1..KEPT_REDRAWS {
            assert_eq!(shown(&[]), "long");
        }
        assert_eq!(shown(&[]), "");
    }
}
