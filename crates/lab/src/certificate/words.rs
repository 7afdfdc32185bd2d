//! Shares and percentages of a certificate as text.

use crate::stats::Share;
use crate::words;

/// `19 of 20 (95 %, 75 to 100)`: with what it says of all cells there might be.
pub fn share_in_words(share: Share) -> String {
    let Some(value) = share.value() else { return "not measured".to_owned() };
    let interval = share.interval();
    let [value, low, high] = [value, interval.low, interval.high].map(|it| it * 100.0);
    format!("{} of {} ({value:.0} %, 95 % interval {low:.0} to {high:.0} %)", share.count, share.of)
}

/// A share as `2.4 %`.
pub fn percent(share: f64) -> String {
    let text = words::three_digits(share * 100.0);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_in_words() {
        let share = Share { count: 19, of: 20 };
        assert_eq!(share_in_words(share), "19 of 20 (95 %, 95 % interval 75 to 100 %)");
        assert_eq!([0.02, 0.0345, 0.1].map(percent), ["2 %", "3.45 %", "10 %"]);
    }
}
