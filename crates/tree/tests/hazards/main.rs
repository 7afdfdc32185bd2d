//! Known ways in which copiers have lost data, and what must happen instead. Cases of one engine
//! are in the tests of the engines; cases that need an injected error are in the tests of the
//! command.

mod attributes;
mod batch;
mod changing_source;
mod deep;
mod full_disk;
mod identity;
mod large_files;
mod old_contents;
mod page_cache;
mod plain;
mod rate_limit;
mod recorder;
mod reflink;
mod sparse;
mod swapped_symlinks;
mod workers;
