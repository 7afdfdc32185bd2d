//! Which variant was measured to be the fastest in which situation: written by the lab, read by the
//! copier.
//!
//! A [`Profile`] is a list of machines; each has pairs of file systems, and each pair has lines: a
//! [`Situation`] and the [`Choice`] for it. What a line leaves out fits everything, so that the
//! user's profile, which tells file systems apart by identity, and the one that is built in, which
//! does by type, have one form. docs/profile.md describes it as TOML.
//!
//! Of all lines that fit, the first whose variant this build knows counts. A [`Table`] has that
//! found out once for a pair of file systems, so that a file costs an index.

mod built_in;
mod choices;
mod file;
mod file_system;
mod machine;
mod problem;
mod situation;
mod table;
mod text;

pub use choices::{Choice, Line, MachineChoices, Measured, Other, PairChoices, Profile, VERSION};
pub use file::{Location, may_be_changed, read_text, text_of, turn_to_change, write_text};
pub use file_system::{FileSystem, Pair as FileSystems};
pub use machine::Machine;
pub use problem::{Mistake, Problem};
pub use situation::{InFlight, Residency, Situation, SizeClass};
pub use table::{Candidate, Table};
pub use text::Parsed;
