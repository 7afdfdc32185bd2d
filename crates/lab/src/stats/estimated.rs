//! A value with its 95 % interval.

use serde::{Deserialize, Serialize};

use super::{Estimate, Interval, Ratio};

/// A value with its 95 % interval, where that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// The value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Estimated {
    pub(super) fn new(value: f64, interval: Option<Interval>) -> Estimated {
        Estimated { value, low: interval.map(|it| it.low), high: interval.map(|it| it.high) }
    }

    /// In words that `word` finds for a value: `1.2 (1.1 to 1.3)`.
    pub fn in_words(&self, word: impl Fn(f64) -> String) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => {
                format!("{} ({} to {})", word(self.value), word(low), word(high))
            }
            _ => word(self.value),
        }
    }

    /// What `of` makes of the value and of the ends of its interval.
    pub(crate) fn map(self, of: impl Fn(f64) -> f64) -> Estimated {
        Estimated { value: of(self.value), low: self.low.map(&of), high: self.high.map(&of) }
    }
}

impl From<Estimate> for Estimated {
    fn from(of: Estimate) -> Estimated {
        Estimated::from(of.ratio(0.05))
    }
}

impl From<Ratio> for Estimated {
    fn from(of: Ratio) -> Estimated {
        Estimated::new(of.estimate, Some(of.interval))
    }
}
