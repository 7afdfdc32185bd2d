//! The copy is killed at each of its system calls. Then the destination is looked at, and the command is run
//! again.
//!
//! strace kills with SIGKILL at the entry of a call, and counts the calls of each thread by itself.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use super::copies::OptionSet;
use super::counts::Verdict;
use super::grid::{self, Cell, Grid, Place, Point, Setting};
use super::process;
use super::run::Sweep;
use super::strace::{self, Injection};

pub(super) const SWEEP: Sweep = Sweep {
    name: "kills",
    about: "SIGKILL at each system call, then the command again (strace)",
    try_cases: grid::try_cases::<Kills>,
    repeat: grid::repeat::<Kills>,
};

/// How long a copy may take under strace, on a busy machine. It takes a fraction of a second alone.
const LIMIT: Duration = Duration::from_secs(30);

/// What is killed, and what is run afterwards.
struct Plan {
    killed: OptionSet,
    then: OptionSet,
}

const PLANS: &[Plan] = &[
    again("-a"),
    again("-a --jobs=4"),
    again("-a --remove-destination"),
    again("-a --atomic"),
    again("-a --atomic --jobs=4"),
    again("-a --atomic --durable"),
    again("-r --atomic"),
    again("-a --resume"),
    again("-a --resume --jobs=4"),
    again("-a --resume --durable"),
    again("-a --resume --verify"),
    again("-a --backup=numbered"),
    again("-a --backup=numbered --atomic"),
    again("-a --backup=numbered --resume"),
    again("-a -b --atomic"),
    plan("-a --atomic", "-a --resume"),
    plan("-a --atomic", "-a -u --atomic"),
    plan("-a --atomic", "-a -u"),
    plan("-a --resume", "-a -u --resume"),
];

/// Removes what a killed run left of entries that are up to date.
const REMOVING: OptionSet = OptionSet { text: "-a -u --resume", existing: true };

/// A plan whose second run has the options of the killed one.
const fn again(text: &'static str) -> Plan {
    plan(text, text)
}

const fn plan(killed: &'static str, then: &'static str) -> Plan {
    Plan {
        killed: OptionSet { text: killed, existing: true },
        then: OptionSet { text: then, existing: true },
    }
}

impl Setting for &Plan {
    fn text(&self) -> String {
        match self.killed.text == self.then.text {
            true => self.killed.text.to_owned(),
            false => format!("{}, then {}", self.killed.text, self.then.text),
        }
    }
}

/// When it is killed. Its text is these, separated by `; `.
struct Kill {
    call: String,
    when: usize,
}

impl Point for Kill {
    fn parts(&self) -> Vec<String> {
        vec![self.call.clone(), self.when.to_string()]
    }

    fn of(parts: &[&str]) -> Option<Kill> {
        let &[call, when] = parts else { return None };
        Some(Kill { call: call.to_owned(), when: when.parse().ok()? })
    }
}

struct Kills;

impl Grid for Kills {
    type Setting = &'static Plan;
    type Point = Kill;

    // Several workers make the n-th call at another moment each time.
    const REPEATS: u32 = 10;

    fn new() -> anyhow::Result<Kills> {
        Ok(Kills)
    }

    fn settings(_: &str) -> Vec<&'static Plan> {
        PLANS.iter().collect()
    }

    fn points(&self, cell: &mut Cell<'_, Self::Setting>) -> anyhow::Result<Vec<Kill>> {
        let Cell { run, place: Place { copies, .. }, setting: plan } = cell;
        copies.prepare(&plan.killed)?;
        let trace = strace::trace_in(copies.dir());
        let calls = strace::occurrences(&copies.command(run.cp(), &plan.killed), &trace, LIMIT)?;
        let kills = calls.iter().flat_map(|(call, occurrences)| {
            let whens = occurrences.before_main + 1..=occurrences.most;
            whens.map(|when| Kill { call: call.clone(), when })
        });
        Ok(kills.collect())
    }

    fn attempt(&self, cell: &mut Cell<'_, Self::Setting>, kill: &Kill) -> anyhow::Result<Verdict> {
        let &mut Cell { run, place: &mut Place { ref copies, .. }, setting: plan } = cell;
        let Plan { killed, then } = plan;
        copies.prepare(killed)?;
        let trace = strace::trace_in(copies.dir());
        let injection =
            Injection { call: &kill.call, rule: format!("signal=KILL:when={}", kill.when) };
        let (ended, _) =
            strace::inject(&copies.command(run.cp(), killed), &injection, &trace, LIMIT)?;
        let was_killed = ended.status.is_some_and(|status| status.signal() == Some(9));
        if let Some(crash) = ended.crash().filter(|_| !was_killed) {
            return Ok(Verdict::Wrong(crash));
        }
        let mut found = copies.damage()?;
        if killed.is_atomic() {
            found.extend(copies.torn()?);
        }
        found.extend(copies.missing_backups(killed)?);
        if let Some(first) = found.first() {
            return Ok(Verdict::Wrong(format!("after the kill: {first}")));
        }
        let again = process::run(&mut copies.command(run.cp(), then), LIMIT)?;
        if let Some(crash) = again.crash() {
            return Ok(Verdict::Wrong(format!("after the kill the next run {crash}")));
        }
        if !again.success() {
            return Ok(Verdict::Wrong(format!(
                "after the kill the next run fails: {}",
                again.said()
            )));
        }
        if killed.is_atomic() && !then.is_atomic() {
            // Only runs with these options make temporaries, and remove those that a killed run left.
            let removing = process::run(&mut copies.command(run.cp(), &REMOVING), LIMIT)?;
            if !removing.success() {
                let said = removing.said();
                return Ok(Verdict::Wrong(format!("the run that removes leftovers fails: {said}")));
            }
        }
        // A simple backup is replaced by that of the next run, as with GNU cp.
        let backups = if then.has("-b") { Vec::new() } else { copies.missing_backups(then)? };
        found.extend(copies.leftovers()?);
        found.extend(copies.differences(then, then.aspects())?);
        if then.has("-u") {
            // Fifos, devices and symbolic links get their mode and time after they are made. One that a kill left so is
            // newer than its source, and -u leaves it alone, as with GNU cp.
            let made_first = ["fifo: ", "null: ", "link: ", "d/dangling: "];
            found.retain(|line| !made_first.iter().any(|name| line.starts_with(name)));
        }
        found.extend(backups);
        found.extend(copies.damage()?);
        Ok(match found.first() {
            Some(first) => Verdict::Wrong(format!("after the next run: {first}")),
            None if was_killed => Verdict::Right,
            None => Verdict::Missed,
        })
    }

    fn subject(_: Self::Setting, kill: &Kill) -> String {
        kill.call.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        let text = "xfs; -a --atomic, then -a --resume; renameat; 3";
        grid::check_texts::<Kills>(text, "xfs; -a; renameat; 3+");
    }
}
