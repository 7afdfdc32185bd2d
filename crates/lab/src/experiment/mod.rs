//! Experiments as files: the TOML form, those that are built in, and what one will take of disk,
//! memory and time.

pub mod estimate;
pub mod library;
pub mod parse;
pub mod space;
#[cfg(test)]
mod tests;
