//! What one rank of a job has done, as it tells rank 0 at the end, and the sums over all ranks.

use std::collections::BTreeMap;
use std::time::Duration;

use haulage::{EngineTotals, RunTotals};
use serde::{Deserialize, Serialize};

use crate::cp::job::Ended;

/// What one rank has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RankSummary {
    pub(crate) host: String,
    pub(crate) totals: RunTotals,
    pub(crate) failures: u64,
    pub(crate) signal: Option<String>,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// How long the rank had nothing to do.
    pub(crate) waited: Duration,
}

impl RankSummary {
    /// A message with it. All ranks run the same program.
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, Vec::new()).expect("values in memory can be written to memory")
    }

    /// `None` if another program has sent it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<RankSummary> {
        postcard::from_bytes(bytes).ok()
    }
}

/// What all ranks have done; without a job, this process.
#[derive(Debug)]
pub(crate) struct JobSummary {
    pub(crate) totals: RunTotals,
    pub(crate) failures: u64,
    pub(crate) signal: Option<String>,
    pub(crate) elapsed: Duration,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    pub(crate) hosts: BTreeMap<String, HostTotals>,
    /// The rank that waited longest.
    pub(crate) longest_wait: LongestWait,
}

/// What the ranks of one host have done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostTotals {
    pub(crate) ranks: u64,
    /// Entries of all types and outcomes.
    pub(crate) entries: u64,
    pub(crate) data_bytes: u64,
    /// The sum over its ranks.
    pub(crate) waited: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LongestWait {
    pub(crate) rank: u32,
    pub(crate) host: String,
    pub(crate) waited: Duration,
}

impl JobSummary {
    /// The sums of `own`, that of rank 0, and of the others. A rank that failed without a summary
    /// counts as one failure.
    pub(crate) fn of(own: RankSummary, elapsed: Duration, others: &[Ended]) -> JobSummary {
        let mut sums = JobSummary {
            totals: RunTotals::default(),
            failures: 0,
            signal: None,
            elapsed,
            user: Duration::ZERO,
            system: Duration::ZERO,
            hosts: BTreeMap::new(),
            longest_wait: LongestWait { rank: 0, host: own.host.clone(), waited: own.waited },
        };
        sums.add(0, own);
        for Ended { rank, status, summary } in others {
            match RankSummary::decode(summary) {
                Some(mut summary) => {
                    if *status != 0 {
                        summary.failures = summary.failures.max(1);
                    }
                    sums.add(*rank, summary);
                }
                None => sums.failures += u64::from(*status != 0),
            }
        }
        sums
    }

    fn add(&mut self, rank: u32, summary: RankSummary) {
        let RankSummary { host, totals, failures, signal, user, system, waited } = summary;
        let of_host = self.hosts.entry(host.clone()).or_default();
        of_host.ranks += 1;
        of_host.entries += totals.entries.values().sum::<u64>();
        of_host.data_bytes += totals.data_bytes;
        of_host.waited += waited;
        if waited > self.longest_wait.waited {
            self.longest_wait = LongestWait { rank, host, waited };
        }
        self.failures += failures;
        self.signal = self.signal.take().or(signal);
        self.user += user;
        self.system += system;
        add_totals(&mut self.totals, totals);
    }
}

fn add_totals(sum: &mut RunTotals, other: RunTotals) {
    for (key, count) in other.entries {
        *sum.entries.entry(key).or_default() += count;
    }
    for (name, EngineTotals { files, bytes }) in other.variants {
        let of = sum.variants.entry(name).or_default();
        of.files += files;
        of.bytes += bytes;
    }
    for (by, files) in other.chosen {
        *sum.chosen.entry(by).or_default() += files;
    }
    sum.data_bytes += other.data_bytes;
    sum.shared_bytes += other.shared_bytes;
    sum.hole_bytes += other.hole_bytes;
    sum.changed += other.changed;
    sum.with_losses += other.with_losses;
    sum.left_over += other.left_over;
}

#[cfg(test)]
mod tests {
    use haulage::{Kind, Outcome};

    use super::*;

    fn summary(host: &str, files: u64, waited: u64) -> RankSummary {
        let mut totals = RunTotals { data_bytes: 100 * files, ..RunTotals::default() };
        for (kind, outcome, count) in
            [(Kind::File, Outcome::Copied, files), (Kind::Unknown, Outcome::Failed, 1)]
        {
            totals.entries.insert((kind, outcome), count);
        }
        let moved = EngineTotals { files, bytes: 100 * files };
        totals.variants.insert(String::from("read_write:64K"), moved);
        totals.chosen.insert("rule".into(), files);
        RankSummary {
            host: host.to_owned(),
            totals,
            failures: 1,
            signal: (host == "b").then(|| String::from("SIGINT")),
            user: Duration::from_millis(20),
            system: Duration::from_millis(30),
            waited: Duration::from_secs(waited),
        }
    }

    #[test]
    fn ranks_are_summed_by_host() {
        let ended = |rank, status, summary: Option<RankSummary>| {
            let summary = summary.as_ref().map(RankSummary::encode).unwrap_or_default();
            Ended { rank, status, summary }
        };
        let others = [
            ended(1, 1, Some(summary("b", 5, 9))),
            ended(2, 1, None),
            ended(3, 0, Some(RankSummary { failures: 0, ..summary("a", 2, 1) })),
        ];
        let sums = JobSummary::of(summary("a", 3, 4), Duration::from_secs(10), &others);
        assert_eq!((sums.failures, sums.signal.as_deref()), (3, Some("SIGINT")));
        assert_eq!(sums.totals.count(Kind::File, Outcome::Copied), 10);
        assert_eq!(sums.totals.variants["read_write:64K"], EngineTotals { files: 10, bytes: 1000 });
        assert_eq!((sums.totals.chosen["rule"], sums.totals.data_bytes), (10, 1000));
        assert_eq!((sums.user.as_millis(), sums.system.as_millis()), (60, 90));
        let host = |ranks, entries, data_bytes, waited| HostTotals {
            ranks,
            entries,
            data_bytes,
            waited: Duration::from_secs(waited),
        };
        let hosts = BTreeMap::from([
            (String::from("a"), host(2, 7, 500, 5)),
            (String::from("b"), host(1, 6, 500, 9)),
        ]);
        assert_eq!(sums.hosts, hosts);
        let wait = LongestWait { rank: 1, host: "b".into(), waited: Duration::from_secs(9) };
        assert_eq!(sums.longest_wait, wait);
    }
}
