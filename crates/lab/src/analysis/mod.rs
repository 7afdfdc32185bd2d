//! From the samples of a part to observations, views of cells, claims and artefacts, without I/O.

pub mod artefacts;
pub mod claims;
pub mod interim;
pub mod observations;
#[cfg(test)]
pub(crate) mod tests;
pub mod view;

pub use view::View;
