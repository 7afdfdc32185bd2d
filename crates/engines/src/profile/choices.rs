//! Measured choices as plain data: machines, pairs of file systems, and a line for each situation.

use super::file_system::{FileSystem, Pair as FileSystems};
use super::machine::Machine;
use super::situation::{InFlight, Residency, Situation, SizeClass};
use crate::mount::Mount;
use crate::variant::Variant;

/// The version of the format. It changes when a key changes its meaning or is removed.
pub const VERSION: i64 = 1;

/// Measured choices by machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// In the order of the file, which is the order of preference.
    pub machines: Vec<MachineChoices>,
}

/// Choices measured on one machine, or choices for any machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineChoices {
    /// The machine.
    pub machine: Machine,
    /// By pair of file systems, in order of preference.
    pub pairs: Vec<PairChoices>,
}

/// Choices measured between two file systems.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairChoices {
    /// The file system of the source.
    pub src: FileSystem,
    /// The file system of the destination.
    pub dst: FileSystem,
    /// Whether both are the same file system; `None` fits both cases.
    pub same: Option<bool>,
    /// The kernel release during the measurement, as uname(2) reports it.
    pub kernel: Option<String>,
    /// In order of preference.
    pub lines: Vec<Line>,
}

/// A situation and the choice for it. A field that is `None` fits every value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// The length of the file.
    pub size: Option<SizeClass>,
    /// How much of the source is in the page cache.
    pub residency: Option<Residency>,
    /// How many files are copied at once.
    pub in_flight: Option<InFlight>,
    /// The copy must leave the page cache unchanged. A line without it is for copies that may use the page
    /// cache.
    pub no_cache: bool,
    /// The choice for it.
    pub choice: Choice,
}

/// A variant and its measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// The text of the variant. It may name an engine that this build does not have.
    pub variant: String,
    /// The measurement behind the choice; empty if the line was written by hand.
    pub measured: Measured,
}

/// The measurement behind a choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The median time of a copy in nanoseconds.
    pub median_ns: Option<u64>,
    /// The bytes that such a copy moves.
    pub bytes: Option<u64>,
    /// The number of rounds. In each round every compared variant ran once.
    pub rounds: Option<u32>,
    /// The time of the measurement in UTC, such as `2026-01-31T23:59:59Z`.
    pub date: Option<String>,
    /// The other variants, with the cost of using them instead.
    pub others: Vec<Other>,
}

/// Another variant in the same rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Other {
    /// The text of the variant.
    pub variant: String,
    /// The time of the other variant as a multiple of the time of the choice.
    pub ratio: f64,
    /// The lower bound of the 95 % interval of the ratio.
    pub low: f64,
    /// The upper bound of the 95 % interval of the ratio.
    pub high: f64,
}

impl Profile {
    /// The pairs that `machine` may use: its own and those for any machine.
    pub fn pairs_of(&self, machine: &Machine) -> impl Iterator<Item = &PairChoices> {
        let fitting = self.machines.iter().filter(|choices| choices.machine.fits(machine));
        fitting.flat_map(|choices| &choices.pairs)
    }

    /// Adds `pair` for `machine` before all other pairs of the machine. It replaces an earlier
    /// measurement of the same file systems.
    pub fn enter(&mut self, machine: &Machine, pair: PairChoices) {
        let is_it = |choices: &MachineChoices| choices.machine.is_same(machine);
        let known = self.machines.iter().position(is_it);
        let at = known.unwrap_or_else(|| {
            self.machines.insert(
                0,
                MachineChoices { machine: machine.clone(), ..MachineChoices::default() },
            );
            0
        });
        let pairs = &mut self.machines[at].pairs;
        pairs.retain(|old| !old.is_of_the_same(&pair));
        pairs.insert(0, pair);
    }
}

impl PairChoices {
    /// Whether its lines are for `found`.
    #[must_use]
    pub fn fits(&self, found: &FileSystems) -> bool {
        self.same.is_none_or(|same| same == found.same)
            && self.src.fits(&found.src)
            && self.dst.fits(&found.dst)
    }

    /// Describes what has changed in `found` since the measurement: the kernel, or mount options.
    #[must_use]
    pub fn changes(&self, found: &FileSystems, kernel: &str) -> Vec<String> {
        let mut changes = Vec::new();
        if let Some(before) = self.kernel.as_ref().filter(|before| *before != kernel) {
            changes.push(format!("the kernel was {before} then and is {kernel}"));
        }
        let mut ends = vec![(&self.src, &found.src)];
        if !found.same {
            ends.push((&self.dst, &found.dst));
        }
        for (before, now) in ends {
            let place = now.mount_point.as_deref().unwrap_or("a file system");
            if let (Some(before), Some(now)) = (&before.options, &now.options)
                && without_subvolume(before) != without_subvolume(now)
            {
                changes.push(format!("the options of {place} were {before} then and are {now}"));
            }
        }
        changes
    }

    /// Describes what has changed since the measurement, with mount options from the list `mounts`.
    /// Options of a file system that is no longer mounted in the same place are unknown.
    #[must_use]
    pub fn changes_listed(&self, mounts: &[Mount], kernel: &str) -> Vec<String> {
        let same = self.same == Some(true);
        let (src, dst) = (self.src.as_listed(mounts), self.dst.as_listed(mounts));
        self.changes(&FileSystems { src, dst, same }, kernel)
    }

    /// Whether both are for the same file systems.
    #[must_use]
    pub fn is_of_the_same(&self, other: &PairChoices) -> bool {
        self.src.is_same_place(&other.src)
            && self.dst.is_same_place(&other.dst)
            && self.same == other.same
    }
}

/// Mount options without the subvolume: another subvolume of the same file system is no change.
fn without_subvolume(options: &str) -> Vec<&str> {
    let is_place = |option: &&str| option.starts_with("subvol=") || option.starts_with("subvolid=");
    options.split([',', ';']).filter(|option| !is_place(option)).collect()
}

impl Line {
    /// A line with only `choice` for `situation`.
    #[must_use]
    pub fn of(situation: Situation, choice: Choice) -> Line {
        let Situation { size, residency, in_flight, no_cache } = situation;
        let (residency, in_flight) = (Some(residency), Some(in_flight));
        Line { size: Some(size), residency, in_flight, no_cache, choice }
    }

    /// Whether the line is for `situation`.
    #[must_use]
    pub fn fits(&self, situation: &Situation) -> bool {
        self.no_cache == situation.no_cache
            && self.size.is_none_or(|size| size == situation.size)
            && self.residency.is_none_or(|residency| residency == situation.residency)
            && self.in_flight.is_none_or(|in_flight| in_flight == situation.in_flight)
    }

    /// The situation of the line as text: `16M to 256M, resident, one at once`. Empty if the line is for
    /// every situation.
    #[must_use]
    pub fn in_words(&self) -> String {
        let size = self.size.map(|size| size.to_string());
        let residency = self.residency.map(|residency| residency.name().to_owned());
        let in_flight = self.in_flight.map(|in_flight| format!("{} at once", in_flight.name()));
        let no_cache = self.no_cache.then(|| String::from("no cache"));
        let said = [size, residency, in_flight, no_cache];
        said.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Choice {
    /// The variant, if this build has it and it is a copier.
    #[must_use]
    pub fn variant(&self) -> Option<Variant> {
        self.variant.parse().ok().filter(Variant::is_copier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(mount_point: &str, kernel: &str) -> PairChoices {
        let side = FileSystem {
            fs_type: Some(String::from("ext4")),
            mount_point: Some(String::from(mount_point)),
            options: Some(String::from("rw;rw")),
            ..FileSystem::default()
        };
        let kernel = Some(String::from(kernel));
        PairChoices { src: side.clone(), dst: side, same: Some(true), kernel, lines: Vec::new() }
    }

    #[test]
    fn a_new_measurement_replaces_the_old_one() {
        let machine = Machine { id: Some(String::from("a")), ..Machine::default() };
        let mut profile = Profile::default();
        profile.enter(&machine, pair("/data", "6.1"));
        profile.enter(&machine, pair("/backup", "6.1"));
        profile.enter(&machine, pair("/data", "6.2"));
        profile.enter(&Machine { id: Some(String::from("b")), ..machine.clone() }, pair("/", "6"));
        assert_eq!(profile.machines.len(), 2);
        let kernels: Vec<_> = profile.pairs_of(&machine).map(|pair| pair.kernel.clone()).collect();
        assert_eq!(kernels, [Some(String::from("6.2")), Some(String::from("6.1"))]);
    }

    #[test]
    fn changes_since_the_measurement_are_reported() {
        let measured = pair("/data", "6.1");
        let now = |options: &str| {
            let side = FileSystem { options: Some(String::from(options)), ..measured.src.clone() };
            FileSystems { src: side.clone(), dst: side, same: true }
        };
        assert_eq!(measured.changes(&now("rw;rw"), "6.1"), Vec::<String>::new());
        // Another subvolume of the same file system.
        let mounted =
            |subvolume: &str| format!("rw;rw,ssd,subvolid={},{subvolume}", subvolume.len());
        let side = FileSystem { options: Some(mounted("subvol=/")), ..measured.src.clone() };
        let on_btrfs = PairChoices { src: side.clone(), dst: side, ..measured.clone() };
        assert_eq!(on_btrfs.changes(&now(&mounted("subvol=/home")), "6.1"), Vec::<String>::new());
        let changes = measured.changes(&now("rw,sync;rw"), "6.2");
        let expected = [
            "the kernel was 6.1 then and is 6.2",
            "the options of /data were rw;rw then and are rw,sync;rw",
        ];
        assert_eq!(changes, expected);
    }
}
