//! From which buffer size on a larger buffer gains nothing, as text.

use super::sheet::{Sheet, circumstances, in_both_states, size};
use crate::analysis::buffer::{Buffer, BufferTime, Sweep};
use crate::definition::deltas::Deltas;
use crate::words;

impl Buffer {
    pub(crate) fn sheet(&self) -> Sheet {
        let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), size);
        let smallest = |sweep: &&Sweep| {
            let BufferTime { buffer_bytes, ratio_to_best, .. } = sweep.buffers[0];
            format!("{} x at {}", words::three_digits(ratio_to_best), size(buffer_bytes))
        };
        let mut sheet = Sheet::of(
            "Where a larger buffer gains nothing",
            3,
            &self.sweeps,
            &[
                ("buffers of", &|sweep| sweep.family.clone()),
                ("state", &|sweep| circumstances(sweep.state, sweep.at_once)),
                ("file", &|sweep| size(sweep.file_bytes)),
                ("flat from", &|sweep| bytes(sweep.plateau_shown_from_bytes)),
                ("perhaps from", &|sweep| bytes(sweep.plateau_possible_from_bytes)),
                ("fastest", &|sweep| bytes(sweep.best_bytes)),
                ("smallest costs", &smallest),
            ],
        );
        sheet.say(format!(
            "Flat: every buffer from there up to the fastest is shown to be within {} of it. \
             Perhaps: no buffer is shown to be slower. More sessions would decide between the two.",
            in_both_states(Deltas { warm: self.epsilon, cold: self.epsilon_cold })
        ));
        sheet.drop_if_uniform("state");
        sheet
    }

    /// From where on a larger buffer gains nothing, of the largest files.
    pub(crate) fn headline(&self) -> Option<String> {
        let largest = self.sweeps.iter().map(|sweep| sweep.file_bytes).max()?;
        let sweeps: Vec<&Sweep> =
            self.sweeps.iter().filter(|sweep| sweep.file_bytes == largest).collect();
        let of = |sweep: &&Sweep| {
            let (shown, possible) =
                (sweep.plateau_shown_from_bytes?, sweep.plateau_possible_from_bytes?);
            let perhaps = match shown == possible {
                true => String::new(),
                false => format!(", perhaps {}", size(possible)),
            };
            let which = match sweeps.len() {
                1 => String::new(),
                _ => format!("{} {} ", sweep.family, circumstances(sweep.state, sweep.at_once)),
            };
            Some(format!("{which}from {}{perhaps}", size(shown)))
        };
        let said: Vec<String> = sweeps.iter().filter_map(of).collect();
        (!said.is_empty()).then(|| format!("flat at {} {}", size(largest), words::listed(&said)))
    }
}
