//! The text of `--stats`.

use std::collections::BTreeSet;

use haulage::{EngineTotals, Kind, Outcome, RunTotals};

use crate::cp::receipt::rank_summary::{HostTotals, JobSummary};
use crate::cp::units::{bytes, count, rate, seconds};

/// The totals of a run, in lines of at most 60 columns.
pub(crate) fn text(run: &JobSummary, unwritten_bytes: u64) -> String {
    let totals = &run.totals;
    let mut text = table_of_entries(totals);
    text.push('\n');
    let RunTotals { data_bytes, shared_bytes, hole_bytes, .. } = *totals;
    for (name, amount) in [("data", data_bytes), ("shared", shared_bytes), ("holes", hole_bytes)] {
        text.push_str(&format!("{name:<16}{:>11}\n", bytes(amount)));
    }
    if unwritten_bytes > 0 {
        text.push_str(&format!("{:<16}{:>11}\n", "not written yet", bytes(unwritten_bytes)));
    }
    for (name, number, one, several) in [
        ("changed", totals.changed, "entry", "entries"),
        ("attributes lost", totals.with_losses, "entry", "entries"),
        ("left over", totals.left_over, "file", "files"),
    ] {
        if number > 0 {
            let noun = if number == 1 { one } else { several };
            text.push_str(&format!("{name:<16}{:>11} {noun}\n", count(number)));
        }
    }
    let moved = totals.variants.values().map(|moved| moved.bytes).sum();
    let rest = data_bytes.saturating_sub(moved);
    if !totals.variants.is_empty() || rest > 0 {
        text.push_str("\nmoved by\n");
    }
    for (variant, EngineTotals { files, bytes: moved }) in &totals.variants {
        text.push_str(&format!("  {variant:<28} {:>11} {:>17}\n", bytes(*moved), files_of(*files)));
    }
    if rest > 0 {
        // Blocks that were compared with zeros, and zeros written for holes, belong to no engine.
        text.push_str(&format!("  {:<28} {:>11}\n", "no engine, for zeros", bytes(rest)));
    }
    if !totals.chosen.is_empty() {
        text.push_str("\nchosen by\n");
    }
    for (by, files) in &totals.chosen {
        text.push_str(&format!("  {by:<28} {:>11} {:>17}\n", "", files_of(*files)));
    }
    let elapsed = run.elapsed.as_secs_f64();
    let speed = data_bytes as f64 / elapsed.max(1e-9);
    text.push_str(&format!(
        "\nelapsed {}, {}; user {}, system {}\n",
        seconds(run.elapsed),
        rate(speed),
        seconds(run.user),
        seconds(run.system)
    ));
    text
}

fn files_of(number: u64) -> String {
    let noun = if number == 1 { "file" } else { "files" };
    format!("{} {noun}", count(number))
}

/// The columns of a host's name in the table of hosts.
const HOST_COLUMNS: usize = 20;

/// The totals of all ranks of a job, and what each host did and how long its ranks had nothing to do, in lines
/// of less than 80 columns if no name of a host is longer.
pub(crate) fn text_of_job(job: &JobSummary) -> String {
    let mut text = text(job, 0);
    let elapsed = job.elapsed.as_secs_f64().max(1e-9);
    let shortens = may_shorten(job.hosts.keys());
    let shown = |host| if shortens { without_domain(host) } else { host };
    text.push_str("\nhost                  ranks        entries       data        rate  waited\n");
    for (host, of_host) in &job.hosts {
        let HostTotals { ranks, entries, data_bytes, waited } = *of_host;
        let share = 100.0 * waited.as_secs_f64() / (elapsed * ranks as f64);
        let mut name = shown(host);
        if name.chars().count() > HOST_COLUMNS {
            text.push_str(&format!("{name}\n"));
            name = "";
        }
        text.push_str(&format!(
            "{name:<HOST_COLUMNS$}{:>7}{:>15}{:>11}{:>12}{:>8}\n",
            count(ranks),
            count(entries),
            bytes(data_bytes),
            rate(data_bytes as f64 / elapsed),
            format!("{:.0} %", share.min(100.0))
        ));
    }
    let wait = &job.longest_wait;
    let host = shown(&wait.host);
    let name = format!("rank {} on {host}", wait.rank);
    let between = if name.chars().count() > 2 * HOST_COLUMNS { "\n" } else { " " };
    text.push_str(&format!(
        "{name}{between}waited longest, {} of {}\n",
        seconds(wait.waited),
        seconds(job.elapsed)
    ));
    text
}

/// Whether the hosts differ in their names without the domain.
fn may_shorten<'h>(hosts: impl ExactSizeIterator<Item = &'h String>) -> bool {
    let count = hosts.len();
    let short: BTreeSet<&str> = hosts.map(|host| without_domain(host)).collect();
    short.len() == count
}

/// The name of a host up to its first dot; an address as it is.
fn without_domain(host: &str) -> &str {
    match host.split_once('.') {
        Some((name, _)) if name.contains(|c: char| !c.is_ascii_digit()) => name,
        _ => host,
    }
}

fn table_of_entries(totals: &RunTotals) -> String {
    let mut text = String::from("                     copied     linked    skipped     failed\n");
    for (kind, name) in [
        (Kind::File, "regular files"),
        (Kind::Directory, "directories"),
        (Kind::Symlink, "symbolic links"),
        (Kind::Fifo, "fifos"),
        (Kind::Socket, "sockets"),
        (Kind::Device, "devices"),
        (Kind::Unknown, "unknown"),
    ] {
        let entries = |outcome| totals.count(kind, outcome);
        // The row of regular files is always shown.
        if kind != Kind::File && Outcome::ALL.into_iter().all(|outcome| entries(outcome) == 0) {
            continue;
        }
        text.push_str(&format!("{name:<16}"));
        for outcome in Outcome::ALL {
            text.push_str(&format!("{:>11}", count(entries(outcome))));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cp::job::Ended;
    use crate::cp::receipt::rank_summary::RankSummary;

    /// The text of a job of which each rank has a number, a host, files, bytes, and a time that it waited.
    fn text_of_ranks(seconds: u64, ranks: &[(u32, &str, u64, u64, u64)]) -> String {
        let of = |&(_, host, files, data_bytes, waited_ms): &(u32, &str, u64, u64, u64)| {
            let mut totals = RunTotals { data_bytes, ..RunTotals::default() };
            totals.entries.insert((Kind::File, Outcome::Copied), files);
            let waited = Duration::from_millis(waited_ms);
            RankSummary { host: host.to_owned(), totals, waited, ..RankSummary::default() }
        };
        let ended = ranks[1..].iter().map(|it| (it.0, of(it).encode()));
        let ended = ended.map(|(rank, summary)| Ended { rank, status: 0, summary });
        let (own, ended) = (of(&ranks[0]), ended.collect::<Vec<_>>());
        text_of_job(&JobSummary::of(own, Duration::from_secs(seconds), &ended))
    }

    #[test]
    fn the_text_of_a_job_has_a_line_for_each_host() {
        let ranks = [
            (0, "alpha", 1024, 1024 << 20, 0),
            (1, "alpha", 4096, 4096 << 20, 500),
            (2, "beta", 100, 100 << 20, 9500),
        ];
        let text = text_of_ranks(10, &ranks);
        let expected = "
elapsed 10.00 s, 522 MiB/s; user 0.00 s, system 0.00 s

host                  ranks        entries       data        rate  waited
alpha                     2          5,120   5.00 GiB   512 MiB/s     2 %
beta                      1            100    100 MiB  10.0 MiB/s    95 %
rank 2 on beta waited longest, 9.50 s of 10.00 s
";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn names_and_numbers_of_hosts_fit_80_columns() {
        let long = "ip-10-0-113-207-eu-central-1-compute-internal-0";
        for (hosts, shown) in [
            (["cn0001.cluster.example.org", "cn0002.cluster.example.org"], "cn0001 "),
            (["login.a.example", "login.b.example"], "login.a.example "),
            (["10.0.0.1", "10.0.0.2"], "10.0.0.1 "),
            ([long, "b"], &*format!("{long}\n   ")),
            (["node", "n.example"], "node "),
        ] {
            let rank = |number, host| (number, host, 12_345_678_901, 1023 << 40, 360_000_000);
            let text = text_of_ranks(400_000, &[rank(0, hosts[0]), rank(104_857, hosts[1])]);
            assert!(text.lines().all(|line| line.len() < 80), "{text}");
            let (_, table) = text.split_once("waited\n").expect("a table of hosts");
            assert!(table.contains(shown), "{hosts:?}: {text}");
        }
    }

    #[test]
    fn the_text_is_aligned_and_fits_60_columns() {
        let mut totals = RunTotals {
            data_bytes: 5 << 30,
            shared_bytes: 1 << 30,
            hole_bytes: 12 << 20,
            changed: 1,
            with_losses: 1_204,
            left_over: 1,
            ..RunTotals::default()
        };
        for (kind, outcome, number) in [
            (Kind::File, Outcome::Copied, 1_234_567),
            (Kind::File, Outcome::Failed, 1),
            (Kind::Directory, Outcome::Copied, 36),
            (Kind::Symlink, Outcome::Skipped, 2),
        ] {
            totals.entries.insert((kind, outcome), number);
        }
        for (variant, files, bytes) in
            [("read_write:256K@2", 1_234_000, 3 << 30), ("reflink", 1, 1 << 30)]
        {
            totals.variants.insert(variant.to_owned(), EngineTotals { files, bytes });
        }
        totals.chosen.insert("profile".into(), 1_234_000);
        totals.chosen.insert("rule".into(), 1);
        let [user, system] = [120, 3000].map(Duration::from_millis);
        let own = RankSummary { totals, user, system, ..RankSummary::default() };
        let run = JobSummary::of(own, Duration::from_millis(2560), &[]);
        let expected = "                     copied     linked    skipped     failed
regular files     1,234,567          0          0          1
directories              36          0          0          0
symbolic links            0          0          2          0

data               5.00 GiB
shared             1.00 GiB
holes              12.0 MiB
not written yet    58.0 MiB
changed                   1 entry
attributes lost       1,204 entries
left over                 1 file

moved by
  read_write:256K@2               3.00 GiB   1,234,000 files
  reflink                         1.00 GiB            1 file
  no engine, for zeros            1.00 GiB

chosen by
  profile                                    1,234,000 files
  rule                                                1 file

elapsed 2.56 s, 1.95 GiB/s; user 0.12 s, system 3.00 s
";
        let text = text(&run, 58 << 20);
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= 60));
    }
}
