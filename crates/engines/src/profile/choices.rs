//! What was measured, as plain data: machines, pairs of file systems, and a line for each situation.

use super::file_system::{FileSystem, Pair as FileSystems};
use super::machine::Machine;
use super::situation::{InFlight, Residency, Situation, SizeClass};
use crate::mount::Mount;
use crate::variant::Variant;

/// The version of the form. It changes when a key changes its meaning or goes.
pub const VERSION: i64 = 1;

/// What was measured, by machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// In the order of the file, which is that of preference.
    pub machines: Vec<MachineChoices>,
}

/// What was measured on one machine, or what holds for any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineChoices {
    /// Which machine.
    pub machine: Machine,
    /// By pair of file systems, in order of preference.
    pub pairs: Vec<PairChoices>,
}

/// What was measured between two file systems.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairChoices {
    /// What is read.
    pub src: FileSystem,
    /// What is written to.
    pub dst: FileSystem,
    /// Whether both are one and the same file system; `None` fits either.
    pub same: Option<bool>,
    /// The release of the kernel that ran then, as uname(2) tells it.
    pub kernel: Option<String>,
    /// In order of preference.
    pub lines: Vec<Line>,
}

/// A situation with the choice for it. What is `None` fits everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// The length of the file.
    pub size: Option<SizeClass>,
    /// How much of the source is in the page cache.
    pub residency: Option<Residency>,
    /// How many files are copied at once.
    pub in_flight: Option<InFlight>,
    /// The page cache is to be left as it was. A line without it is for copies that may use it.
    pub no_cache: bool,
    /// What is best then.
    pub choice: Choice,
}

/// A variant and what was measured of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// Its text. It may name an engine that this build does not have.
    pub variant: String,
    /// What it rests on; nothing where it was written by hand.
    pub measured: Measured,
}

/// What a choice rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The median time of a copy in nanoseconds.
    pub median_ns: Option<u64>,
    /// What such a copy moves, in bytes.
    pub bytes: Option<u64>,
    /// Rounds, in each of which every variant that is compared ran once.
    pub rounds: Option<u32>,
    /// When: in UTC, as `2026-01-31T23:59:59Z`.
    pub date: Option<String>,
    /// What not using it costs.
    pub others: Vec<Other>,
}

/// Another variant in the same rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Other {
    /// Its text.
    pub variant: String,
    /// Its time as a multiple of that of the choice.
    pub ratio: f64,
    /// Where the 95 % interval of the ratio begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

impl Profile {
    /// What `machine` may go by: lines of its own and those for any machine.
    pub fn pairs_of(&self, machine: &Machine) -> impl Iterator<Item = &PairChoices> {
        let fitting = self.machines.iter().filter(|choices| choices.machine.fits(machine));
        fitting.flat_map(|choices| &choices.pairs)
    }

    /// Enters `pair` for `machine`, in place of an earlier measurement of the same file systems. It
    /// comes before all others of the machine.
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

    /// What of `found` is no longer as it was when this was measured, in words: the kernel, or options
    /// of a mount.
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

    /// The same by the list of mounts: options of what is mounted no more where it was are not known.
    #[must_use]
    pub fn changes_listed(&self, mounts: &[Mount], kernel: &str) -> Vec<String> {
        let same = self.same == Some(true);
        let (src, dst) = (self.src.as_listed(mounts), self.dst.as_listed(mounts));
        self.changes(&FileSystems { src, dst, same }, kernel)
    }

    /// Whether both are of the same file systems.
    #[must_use]
    pub fn is_of_the_same(&self, other: &PairChoices) -> bool {
        self.src.is_same_place(&other.src)
            && self.dst.is_same_place(&other.dst)
            && self.same == other.same
    }
}

/// Options of a mount without the subvolume that it begins with: another part of one file system is no
/// change.
fn without_subvolume(options: &str) -> Vec<&str> {
    let is_place = |option: &&str| option.starts_with("subvol=") || option.starts_with("subvolid=");
    options.split([',', ';']).filter(|option| !is_place(option)).collect()
}

impl Line {
    /// The line that says `choice` for `situation` and nothing else.
    #[must_use]
    pub fn of(situation: Situation, choice: Choice) -> Line {
        let Situation { size, residency, in_flight, no_cache } = situation;
        let (residency, in_flight) = (Some(residency), Some(in_flight));
        Line { size: Some(size), residency, in_flight, no_cache, choice }
    }

    /// Whether it is for `situation`.
    #[must_use]
    pub fn fits(&self, situation: &Situation) -> bool {
        self.no_cache == situation.no_cache
            && self.size.is_none_or(|size| size == situation.size)
            && self.residency.is_none_or(|residency| residency == situation.residency)
            && self.in_flight.is_none_or(|in_flight| in_flight == situation.in_flight)
    }

    /// What it is for, for a reader: `16M to 256M, resident, one at once`. Empty where it is for
    /// everything.
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
    /// The variant, if this build has it and it copies.
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
    fn a_new_measurement_takes_the_place_of_the_old_one() {
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
    fn what_changed_since_is_told() {
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
