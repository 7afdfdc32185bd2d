//! Every engine and variant of the table against the contract, on every file system there is.
//! Nothing here knows a single engine: a new row of the table is tested by being there.

mod buffers;
mod chains;
mod cursors;
mod full;
mod growing;
mod large;
mod positions;
mod proc_files;
mod regular;
mod shrinking;
mod streams;
mod trial;
mod variants;
mod verdicts;
mod watchdog;
