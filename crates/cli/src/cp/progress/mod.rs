//! `--progress` and the status line for SIGUSR1: what is drawn, and the rates behind it.

pub(super) mod current_files;
pub(super) mod rate;
pub(super) mod scan;
pub(super) mod view;
