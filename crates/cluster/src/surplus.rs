//! How many names are worth giving to another rank.

/// A directory at this depth is opened for a single name.
const DEPTH_ALWAYS: u64 = 32;

/// A deeper one is opened for one name in so many levels: to look a component up on both sides
/// takes two calls, to copy a small file about six.
const LEVELS_EACH_NAME: u64 = 2;

/// The longest path that a message carries.
const DEPTH_MAX: u64 = 4096;

/// Files that are given together, at least: with fewer, ranks send more messages than they copy files.
const FILES_MIN: u64 = 16;

/// Names of one directory of which some are to be given away.
#[derive(Clone, Copy, Debug)]
pub struct Surplus {
    /// How many there are.
    pub names: u64,
    /// How many levels the directory is below the operand.
    pub depth: u64,
    /// Directories are among them, or they are ranges of a large file, which only the simulation has.
    pub heavy: bool,
    /// The directory has further names.
    pub endless: bool,
}

impl Surplus {
    /// How many names to give to the next of so many ranks that wait. 0 if none are worth giving:
    /// the receiver opens every directory above them.
    pub fn part(self, waiting: usize) -> u64 {
        let least = if self.heavy { 1 } else { FILES_MIN };
        let parts = if self.endless { 1 } else { waiting as u64 + 1 };
        let part = self.names.div_ceil(parts).max(least);
        let levels = (DEPTH_ALWAYS + part.saturating_mul(LEVELS_EACH_NAME)).min(DEPTH_MAX);
        if part <= self.names && self.depth <= levels { part } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_and_deep_directories_are_not_given() {
        // Names, ranks that wait, levels above, heavy, endless; the part.
        for (names, waiting, depth, heavy, endless, part) in [
            (0, 1, 0, true, false, 0),
            (1, 1, 0, true, false, 1),
            (1000, 1, 0, false, false, 500),
            (1000, 1, 0, false, true, 1000),
            (1000, 99, 0, false, false, 16),
            (1000, 99, 0, true, false, 10),
            (16, 1, 0, false, false, 16),
            (15, 1, 0, false, true, 0),
            (1, 1, 34, true, false, 1),
            (1, 1, 35, true, false, 0),
            (1000, 1, 1032, false, false, 500),
            (1000, 1, 1033, false, false, 0),
            (100_000, 1, 4096, true, true, 100_000),
            (100_000, 1, 4097, true, true, 0),
        ] {
            let surplus = Surplus { names, depth, heavy, endless };
            assert_eq!(surplus.part(waiting), part, "{surplus:?} for {waiting} ranks");
        }
    }
}
