//! Cases of many groups, such as one file system with one set of options, so that a short run tries some of
//! each.

use super::run::Run;

/// How many cases of a group are tried in a row. To find out the cases of a group costs a copy or two.
const TURN_CASES: usize = 4;

/// Tries the cases of all `groups` until none are left or the run ends: in order with `--all`, otherwise some
/// of each group in turn, shuffled. `cases_of` is called when a group is first tried.
pub(crate) fn in_turns<Group, Case>(
    run: &mut Run<'_>,
    mut groups: Vec<Group>,
    mut cases_of: impl FnMut(&mut Run<'_>, &Group) -> anyhow::Result<Vec<Case>>,
    mut attempt: impl FnMut(&mut Run<'_>, &Group, &Case) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    run.order(&mut groups);
    // What is left of each group, the next case last.
    let mut left: Vec<Option<Vec<Case>>> = groups.iter().map(|_| None).collect();
    while run.goes_on() && left.iter().any(|cases| cases.as_ref().is_none_or(|it| !it.is_empty())) {
        for (group, left) in groups.iter().zip(&mut left) {
            if !run.goes_on() {
                break;
            }
            let cases = match left {
                Some(cases) => cases,
                None => {
                    let mut cases = cases_of(run, group)?;
                    run.order(&mut cases);
                    cases.reverse();
                    left.insert(cases)
                }
            };
            let turn = if run.tries_all() { usize::MAX } else { TURN_CASES };
            for case in cases.split_off(cases.len().saturating_sub(turn)).iter().rev() {
                attempt(run, group, case)?;
                if !run.goes_on() {
                    break;
                }
            }
        }
    }
    Ok(())
}
