//! The copy is killed at each of its system calls. Then the destination is looked at, and the command is run
//! again.
//!
//! strace kills with SIGKILL at the entry of a call, and counts the calls of each thread by itself.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use anyhow::{Context, bail};

use super::copies::{self, Copies, OptionSet};
use super::counts::{Group, Verdict};
use super::process;
use super::run::{Run, Sweep};
use super::strace::{self, Injection};
use super::turns::in_turns;

pub(super) const SWEEP: Sweep = Sweep {
    name: "kills",
    about: "SIGKILL at each system call, then the command again (strace)",
    try_cases,
    repeat,
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

/// The same options again.
const fn again(text: &'static str) -> Plan {
    plan(text, text)
}

const fn plan(killed: &'static str, then: &'static str) -> Plan {
    Plan {
        killed: OptionSet { text: killed, existing: true },
        then: OptionSet { text: then, existing: true },
    }
}

impl Plan {
    fn text(&self) -> String {
        match self.killed.text == self.then.text {
            true => self.killed.text.to_owned(),
            false => format!("{}, then {}", self.killed.text, self.then.text),
        }
    }
}

/// One case. Its text is these, separated by `; `.
#[derive(Clone)]
struct Case {
    kind: String,
    plan: String,
    call: String,
    when: usize,
}

impl Case {
    fn text(&self) -> String {
        let Case { kind, plan, call, when } = self;
        format!("{kind}; {plan}; {call}; {when}")
    }

    fn parse(text: &str) -> anyhow::Result<Case> {
        let parts: Vec<&str> = text.split("; ").collect();
        let [kind, plan, call, when] = parts[..] else {
            bail!("'{text}' is not of the form FILE-SYSTEM; OPTIONS; CALL; WHEN");
        };
        let [kind, plan, call] = [kind, plan, call].map(str::to_owned);
        Ok(Case { kind, plan, call, when: when.parse().context("WHEN is no number")? })
    }

    fn group(&self) -> Group {
        Group::new(&self.kind, &self.plan, &self.call)
    }
}

fn try_cases(run: &mut Run<'_>) -> anyhow::Result<()> {
    let places = copies::on_each(run)?;
    let groups =
        places.iter().flat_map(|place| PLANS.iter().map(move |plan| (place, plan))).collect();
    in_turns(
        run,
        groups,
        |run, ((kind, copies), plan)| cases_of(run, kind, copies, plan),
        |run, ((_, copies), plan), case| {
            let verdict = attempt(run, copies, plan, case)?;
            run.record(&case.text(), case.group(), verdict);
            Ok(())
        },
    )
}

/// How often a case is repeated until it is wrong. Several workers make the n-th call at another moment each time.
const REPEATS: u32 = 10;

fn repeat(run: &mut Run<'_>, text: &str) -> anyhow::Result<()> {
    let case = Case::parse(text)?;
    let plan = PLANS.iter().find(|plan| plan.text() == case.plan);
    let plan = plan.with_context(|| format!("no plan is '{}'", case.plan))?;
    let copies = Copies::new(run.place(&case.kind)?.path())?;
    let mut verdict = attempt(run, &copies, plan, &case)?;
    for _ in 1..REPEATS {
        if let Verdict::Wrong(_) = verdict {
            break;
        }
        verdict = attempt(run, &copies, plan, &case)?;
    }
    run.record(text, case.group(), verdict);
    Ok(())
}

/// Every case of one file system and plan.
fn cases_of(run: &Run<'_>, kind: &str, copies: &Copies, plan: &Plan) -> anyhow::Result<Vec<Case>> {
    copies.prepare(&plan.killed)?;
    let trace = strace::trace_in(copies.dir());
    let calls = strace::occurrences(&copies.command(run.cp(), &plan.killed), &trace, LIMIT)?;
    let mut cases = Vec::new();
    for (call, occurrences) in &calls {
        for when in occurrences.before_main + 1..=occurrences.most {
            let (kind, plan, call) = (kind.to_owned(), plan.text(), call.clone());
            cases.push(Case { kind, plan, call, when });
        }
    }
    Ok(cases)
}

fn attempt(run: &Run<'_>, copies: &Copies, plan: &Plan, case: &Case) -> anyhow::Result<Verdict> {
    let Plan { killed, then } = plan;
    copies.prepare(killed)?;
    let trace = strace::trace_in(copies.dir());
    let injection = Injection { call: &case.call, rule: format!("signal=KILL:when={}", case.when) };
    let (ended, _) = strace::inject(&copies.command(run.cp(), killed), &injection, &trace, LIMIT)?;
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
        return Ok(Verdict::Wrong(format!("after the kill the next run fails: {}", again.said())));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        let text = "xfs; -a --atomic, then -a --resume; renameat; 3";
        let case = Case::parse(text).expect("a case");
        assert_eq!((case.text().as_str(), case.when), (text, 3));
        assert!(PLANS.iter().any(|plan| plan.text() == case.plan));
        assert!(Case::parse("xfs; -a; renameat; 3+").is_err());
    }

    /// A case names its plan.
    #[test]
    fn every_plan_has_a_text_of_its_own() {
        let mut texts: Vec<String> = PLANS.iter().map(Plan::text).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), PLANS.len());
    }
}
