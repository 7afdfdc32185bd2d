//! The fastest measured variant for each situation. The lab writes it, the copier reads it.
//!
//! A [`Profile`] is a list of machines. Each machine has pairs of file systems, and each pair has
//! lines: a [`Situation`] and the [`Choice`] for it. A key that a line omits fits every value. docs/profile.md
//! describes the format, TOML.
//!
//! Of all lines that fit, the first whose variant this build has is used. A [`Table`] determines
//! these lines once for a pair of file systems, so that the lookup for a file is an index.

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
pub use machine::{Machine, cpu_model};
pub use problem::{Mistake, Problem};
pub use situation::{InFlight, Residency, Situation, SizeClass};
pub use table::Table;
pub use text::Parsed;
