//! A value with its 95 % interval.

use serde::{Deserialize, Serialize};

use crate::stats::{Ratio, models};

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
    /// In words that `word` finds for a value: `1.2 (1.1 to 1.3)`.
    pub fn in_words(&self, word: impl Fn(f64) -> String) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => {
                format!("{} ({} to {})", word(self.value), word(low), word(high))
            }
            _ => word(self.value),
        }
    }

    /// The value and its interval times `factor`.
    pub(crate) fn times(self, factor: f64) -> Estimated {
        let times = |value: f64| value * factor;
        Estimated { value: times(self.value), low: self.low.map(times), high: self.high.map(times) }
    }
}

impl From<models::Estimate> for Estimated {
    fn from(of: models::Estimate) -> Estimated {
        let interval = of.interval;
        Estimated { value: of.value, low: interval.map(|i| i.low), high: interval.map(|i| i.high) }
    }
}

impl From<Ratio> for Estimated {
    fn from(of: Ratio) -> Estimated {
        let interval = of.interval;
        Estimated { value: of.estimate, low: Some(interval.low), high: Some(interval.high) }
    }
}
