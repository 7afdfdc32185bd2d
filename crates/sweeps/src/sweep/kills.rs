//! The copy is killed at each of its system calls. Then the destination is looked at, and the command is run
//! again.
//!
//! strace kills with SIGKILL at the entry of a call, and counts the calls of each thread by itself.

use std::os::unix::process::ExitStatusExt;

use super::copies::OptionSet;
use super::counts::Verdict;
use super::process::{self, Ended, PATIENCE};
use super::run::{Cell, Points, Sweep, parts, texts};
use super::strace;

pub(super) const SWEEP: Sweep = Sweep {
    name: "kills",
    about: "SIGKILL at each system call, then the command again (strace)",
    settings: |_| texts(PLANS),
    points: Points::Listed(points),
    attempt,
    // Several workers make the n-th call at another moment each time.
    repeats: 10,
};

/// The options of the run that is killed, and those of the next one where they are not the same. Some files are there
/// before.
const PLANS: &[&str] = &[
    "-a",
    "-a --jobs=4",
    "-a --remove-destination",
    "-a --atomic",
    "-a --atomic --jobs=4",
    "-a --atomic --durable",
    "-r --atomic",
    "-a --resume",
    "-a --resume --jobs=4",
    "-a --resume --durable",
    "-a --resume --verify",
    "-a --backup=numbered",
    "-a --backup=numbered --atomic",
    "-a --backup=numbered --resume",
    "-a -b --atomic",
    "-a --atomic, then -a --resume",
    "-a --atomic, then -a -u --atomic",
    "-a --atomic, then -a -u",
    "-a --resume, then -a -u --resume",
];

/// Removes what a killed run left of entries that are up to date.
const REMOVING: OptionSet<'_> = OptionSet { text: "-a -u --resume", existing: true };

/// The run that is killed, and the next one.
fn runs(plan: &str) -> [OptionSet<'_>; 2] {
    let (killed, then) = plan.split_once(", then ").unwrap_or((plan, plan));
    [killed, then].map(|text| OptionSet { text, existing: true })
}

/// Each system call, and its number among those of its name.
fn points(cell: &mut Cell<'_>) -> anyhow::Result<Vec<String>> {
    let ([killed, _], copies) = (runs(cell.setting), &cell.place.copies);
    copies.prepare(&killed)?;
    let calls = strace::calls_of(&copies.command(cell.run.cp(), &killed))?;
    let points = calls
        .into_iter()
        .flat_map(|(call, numbers)| numbers.map(move |number| format!("{call}; {number}")));
    Ok(points.collect())
}

fn attempt(cell: &mut Cell<'_>, point: &str) -> anyhow::Result<()> {
    let [call, number] = parts(point)?;
    let ([killed, _], copies) = (runs(cell.setting), &cell.place.copies);
    copies.prepare(&killed)?;
    let command = copies.command(cell.run.cp(), &killed);
    let (ended, _) = strace::inject(&command, call, &format!("signal=KILL:when={number}"))?;
    let was_killed = ended.status.is_some_and(|status| status.signal() == Some(9));
    let verdict = match ended.crash() {
        Some(crash) if !was_killed => Verdict::Wrong(crash),
        _ => match after_kill(cell)? {
            Verdict::Right if !was_killed => Verdict::Missed,
            verdict => verdict,
        },
    };
    cell.record(point, call, verdict);
    Ok(())
}

/// Looks at what is there after the kill, runs the command again, and looks again.
fn after_kill(cell: &Cell<'_>) -> anyhow::Result<Verdict> {
    let ([killed, then], copies) = (runs(cell.setting), &cell.place.copies);
    let mut found = copies.damage()?;
    if killed.is_atomic() {
        found.extend(copies.torn()?);
    }
    found.extend(copies.missing_backups(&killed)?);
    if !found.is_empty() {
        return Ok(Verdict::unless(&found, Verdict::Right).after("after the kill"));
    }
    let run = |set| process::run(&mut copies.command(cell.run.cp(), set), PATIENCE);
    let fails = |ended: &Ended| {
        ended.crash().or_else(|| (!ended.success()).then(|| format!("fails: {}", ended.said())))
    };
    if let Some(fails) = fails(&run(&then)?) {
        return Ok(Verdict::Wrong(format!("after the kill the next run {fails}")));
    }
    if killed.is_atomic()
        && !then.is_atomic()
        // Only runs with these options make temporaries, and remove those that a killed run left.
        && let Some(fails) = fails(&run(&REMOVING)?)
    {
        return Ok(Verdict::Wrong(format!("the run that removes leftovers {fails}")));
    }
    // A simple backup is replaced by that of the next run, as with GNU cp.
    let backups = if then.has("-b") { Vec::new() } else { copies.missing_backups(&then)? };
    found.extend(copies.leftovers()?);
    found.extend(copies.differences(&then, then.aspects())?);
    if then.has("-u") {
        // Fifos, devices and symbolic links get their mode and time after they are made. One that a kill left so is
        // newer than its source, and -u leaves it alone, as with GNU cp.
        let made_first = ["fifo: ", "null: ", "link: ", "d/dangling: "];
        found.retain(|line| !made_first.iter().any(|name| line.starts_with(name)));
    }
    found.extend(backups);
    found.extend(copies.damage()?);
    Ok(Verdict::unless(&found, Verdict::Right).after("after the next run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_run_has_options_of_its_own_or_the_same() {
        let texts = |plan| runs(plan).map(|set| set.text);
        assert_eq!(texts("-a --atomic, then -a -u"), ["-a --atomic", "-a -u"]);
        assert_eq!(texts("-a --resume"), ["-a --resume"; 2]);
    }
}
