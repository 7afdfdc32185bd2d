//! The flag table: one row for each option of `cp`. To add an option, add a row to `gnu.rs` or `own.rs`;
//! the parser, `--help`, the manual page and the completions follow.

use crate::cp::flags::flag::Flag;

pub(crate) mod flag;
mod gnu;
mod own;

pub(crate) use gnu::FLAGS as GNU;
pub(crate) use own::FLAGS as OWN;

/// All options, first those of GNU cp.
pub(crate) fn flags() -> impl Iterator<Item = &'static Flag> {
    GNU.iter().chain(OWN)
}

/// The options of GNU cp, in the order of its `--help`.
pub(crate) fn gnu_in_help_order() -> impl Iterator<Item = &'static Flag> {
    let named = |name: &str| {
        let flag = GNU.iter().find(|flag| flag.name() == name);
        flag.expect("each name of the order is an option")
    };
    gnu::HELP_ORDER.split(' ').map(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_help_has_each_option_once() {
        let mut ordered: Vec<String> = gnu_in_help_order().map(Flag::name).collect();
        let mut all: Vec<String> = GNU.iter().map(Flag::name).collect();
        ordered.sort();
        all.sort();
        assert_eq!(ordered, all);
    }
}
