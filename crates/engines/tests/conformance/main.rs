//! Tests every engine and variant of the table against the contract, on every available file
//! system. A new row of the table needs no new test code.

mod buffers;
mod chains;
mod cursors;
mod full;
mod growing;
mod interruptions;
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
