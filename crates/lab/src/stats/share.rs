//! A share of cells, and the interval of the share of all possible cells.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

/// A count out of a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The cells for which the condition holds.
    pub count: u64,
    /// All cells.
    pub of: u64,
}

impl Share {
    /// The share of `cells` for which `holds`.
    pub fn of<T>(cells: impl IntoIterator<Item = T>, holds: impl Fn(&T) -> bool) -> Share {
        let mut share = Share::default();
        for cell in cells {
            share.of += 1;
            share.count += u64::from(holds(&cell));
        }
        share
    }

    /// The count over the total; `None` without cells.
    pub fn value(&self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }

    /// The interval of Clopper and Pearson (Biometrika 26, 1934), which contains the true share in
    /// at least 95 % of cases. 0 to 1 without cells.
    pub fn interval(&self) -> super::Interval {
        let (count, of) = (self.count as f64, self.of as f64);
        let beta = |a: f64, b: f64| Beta::new(a, b).expect("positive");
        let low = match self.count {
            0 => 0.0,
            _ => beta(count, of - count + 1.0).inverse_cdf(0.025),
        };
        let high = match self.count {
            count if count == self.of => 1.0,
            _ => beta(count + 1.0, of - count).inverse_cdf(0.975),
        };
        super::Interval { low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers, computed by `known_answers.py` beside this file.
    #[test]
    fn intervals_agree_with_scipy() {
        for (count, of, low, high) in [
            (0, 28, 0.0, 0.123_436_118_5),
            (1, 28, 0.000_903_798_8, 0.183_477_597_5),
            (19, 20, 0.751_267_237_2, 0.998_734_910_5),
            (24, 24, 0.857_526_402_3, 1.0),
        ] {
            let interval = Share { count, of }.interval();
            assert!((interval.low - low).abs() < 1e-6, "{count} of {of}: {interval:?}");
            assert!((interval.high - high).abs() < 1e-6, "{count} of {of}: {interval:?}");
        }
        let none = Share::default();
        assert_eq!((none.value(), none.interval().low, none.interval().high), (None, 0.0, 1.0));
        assert_eq!(Share::of([1, 2, 3, 4], |n| n % 2 == 0).value(), Some(0.5));
    }
}
