//! The samples of one part in the form that analyses read: by cell, by variant, counted or not.

use std::collections::{BTreeMap, HashMap};

use super::interim;
use super::observations::{Observations, last_repeats, undisturbed_ns, value_ns};
use crate::definition::cell::Cell;
use crate::definition::deltas::{Deltas, LEAST};
use crate::definition::{Definition, Measure, Part, without_label};
use crate::in_order::gathered;
use crate::sample::record::{CallRecord, Sample, SequenceRecord};
use crate::sample::run_samples::Samples;
use crate::stats::models::Point;
use crate::stats::{Estimated, InterimAnalyses, median};

/// One part of an experiment and its samples.
#[derive(Debug)]
pub struct View<'r> {
    /// The part.
    pub part: &'r Part,
    /// The cells of the part, in the order of the definition.
    pub cells: Vec<CellView<'r>>,
    /// The δ and the interim analyses by which comparisons are judged.
    pub rules: Rules,
    /// The interim analyses at a comparison by itself.
    interim: InterimAnalyses,
}

/// The δ and the interim analyses by which comparisons are judged.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Differences up to these shares do not matter.
    pub deltas: Deltas,
    /// The number of rounds that the user asked for; then there is one analysis at the end.
    pub rounds: Option<u32>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { deltas: LEAST, rounds: None }
    }
}

/// One cell and its samples.
#[derive(Debug)]
pub struct CellView<'r> {
    /// The cell.
    pub cell: Cell,
    /// The part of the cell.
    pub part: &'r Part,
    /// All its samples in the order in which they ran.
    pub all: Vec<&'r Sample>,
    /// For each variant the samples that count, in the order in which they ran.
    pub counted: Vec<Vec<&'r Sample>>,
    /// Single calls, of runs that count.
    pub calls: Vec<&'r CallRecord>,
    /// Single calls in their order, of runs that count.
    pub sequences: Vec<&'r SequenceRecord>,
}

impl<'r> View<'r> {
    /// Every part with its samples, in the order of the definition.
    pub fn all(definition: &'r Definition, samples: Samples<'r>, rules: Rules) -> Vec<View<'r>> {
        // By the short names of cells: there may be hundreds of thousands of samples.
        let mut recorded: HashMap<&str, Recorded<'r>> = HashMap::new();
        for sample in samples.samples {
            recorded.entry(&sample.cell).or_default().samples.push(sample);
        }
        for call in samples.calls {
            recorded.entry(&call.cell).or_default().calls.push(call);
        }
        for call in samples.sequences {
            recorded.entry(&call.cell).or_default().sequences.push(call);
        }
        // The levels take long to work out, and are those of each part.
        let interim = interim::of_family(rules.rounds, 1);
        let part = |part: &'r Part| {
            let of_cell = |cell: Cell| {
                let recorded = recorded.remove(cell.id().as_str()).unwrap_or_default();
                CellView::of(part, cell, recorded)
            };
            let cells = part.cells().into_iter().map(of_cell).collect();
            View { part, cells, rules, interim: interim.clone() }
        };
        definition.parts.iter().map(part).collect()
    }

    /// The ratio of two variants in a cell, from its `points`, with the interval of the last
    /// interim analysis that they reached, as in the verdict.
    pub fn ratio(
        &self,
        cell: &CellView<'_>,
        points: &Observations,
        (one, other): (usize, usize),
    ) -> Option<Estimated> {
        let compared = &points.compare(one, other);
        let last_session = points.last_session(one).min(points.last_session(other));
        let delta = self.rules.deltas.of(cell.cell.state);
        let level = interim::level(&self.interim, compared, (last_session, false), delta);
        compared.ratio(level).map(Estimated::from)
    }

    /// Groups of cells that differ in what `key` does not hold, in their order.
    pub fn groups<K: PartialEq>(&self, key: impl Fn(&Cell) -> K) -> Vec<Vec<&CellView<'r>>> {
        let groups = gathered(&self.cells, |cell| key(&cell.cell));
        groups.into_iter().map(|(_, cells)| cells).collect()
    }
}

/// What a run directory holds of one cell.
#[derive(Default)]
struct Recorded<'r> {
    samples: Vec<&'r Sample>,
    calls: Vec<&'r CallRecord>,
    sequences: Vec<&'r SequenceRecord>,
}

impl<'r> CellView<'r> {
    fn of(part: &'r Part, cell: Cell, recorded: Recorded<'r>) -> CellView<'r> {
        let Recorded { samples: mut all, mut calls, sequences } = recorded;
        // The samples after a resumed run have another clock, but come later in the file.
        all.sort_by_key(|s| (s.session, s.round, s.repeat, s.order_in_round));
        let last = last_repeats(all.iter().map(|s| (s.session, s.round, s.repeat)));
        let kept = |session: u32, round: u32, repeat: u32| {
            last.get(&(session, round)).is_none_or(|&last| last == repeat)
        };
        let index: HashMap<&str, usize> =
            (0..).zip(&part.variants).map(|(i, v)| (v.as_str(), i)).collect();
        let mut counted = vec![Vec::new(); part.variants.len()];
        for &sample in &all {
            if sample.measured.counted
                && kept(sample.session, sample.round, sample.repeat)
                && let Some(&variant) = index.get(sample.variant.as_str())
            {
                counted[variant].push(sample);
            }
        }
        calls.retain(|call| kept(call.session, call.round, call.repeat));
        CellView { cell, part, all, counted, calls, sequences }
    }

    /// A variant's values, in the order of its runs.
    pub fn values(&self, variant: usize, measure: Measure) -> Vec<f64> {
        self.counted[variant].iter().map(|record| value_ns(&record.measured, measure)).collect()
    }

    /// The median of a variant's values; `None` when none counts.
    pub fn median_ns(&self, variant: usize, measure: Measure) -> Option<f64> {
        median(self.values(variant, measure))
    }

    /// A variant's values against the bytes of the cell, without the waiting for a processor where
    /// that is known.
    pub fn size_points(&self, variant: usize, measure: Measure) -> impl Iterator<Item = Point> {
        let bytes = self.cell.run_bytes() as f64;
        self.counted[variant].iter().map(move |record| Point {
            bytes,
            elapsed_ns: undisturbed_ns(&record.measured, measure),
            session: record.session,
        })
    }

    /// The samples as comparisons take them.
    pub fn points(&self, measure: Measure) -> Observations {
        Observations::of(self.all.iter().copied(), &self.part.variants, measure)
    }
}

/// The median of a field of samples, as far as it is known.
pub(crate) fn median_of(
    samples: &[&Sample],
    field: impl Fn(&Sample) -> Option<f64>,
) -> Option<f64> {
    median(samples.iter().filter_map(|record| field(record)))
}

/// The processor time of samples in user mode and in the kernel: the median of both together,
/// divided as in all of them together. Many kernels know the sum exactly and divide it by
/// where they find the program at the ticks of a clock, so that of runs of a few ticks the
/// medians of the two would be whole ticks, or nothing.
pub(crate) fn user_and_system_ns(samples: &[&Sample]) -> Option<(f64, f64)> {
    let both =
        |record: &Sample| Some(record.measured.user_ns as f64 + record.measured.system_ns as f64);
    let processor_ns = median_of(samples, both)?;
    let sum = |field: fn(&Sample) -> u64| -> f64 {
        samples.iter().map(|&record| field(record) as f64).sum()
    };
    let (user, system) = (sum(|r| r.measured.user_ns), sum(|r| r.measured.system_ns));
    let in_kernel = system / (user + system).max(1.0);
    Some((processor_ns * (1.0 - in_kernel), processor_ns * in_kernel))
}

/// The most sessions that the jackknife of a model leaves out. More do not improve its intervals,
/// and the work grows with their square.
const SESSIONS_MAX: u32 = 40;

/// Observations of many runs as one a size and session, their median, which is all that a model
/// takes of them; of very many sessions several neighbours together.
pub fn by_session(points: impl IntoIterator<Item = Point>) -> Vec<Point> {
    let points: Vec<Point> = points.into_iter().collect();
    let last = points.iter().map(|point| point.session).max().unwrap_or(0);
    let together = last.div_ceil(SESSIONS_MAX).max(1);
    let mut sessions: BTreeMap<(u64, u32), Vec<f64>> = BTreeMap::new();
    for point in points {
        // Positive floats have the order of their bits.
        let of = (point.bytes.to_bits(), point.session.saturating_sub(1) / together);
        sessions.entry(of).or_default().push(point.elapsed_ns);
    }
    let point = |((bits, session), times): ((u64, u32), Vec<f64>)| Point {
        bytes: f64::from_bits(bits),
        elapsed_ns: median(&times).expect("a session has runs"),
        session,
    };
    sessions.into_iter().map(point).collect()
}

/// The first number of bytes in a variant's text, and the text around it: `read_write:64K@2` is
/// `read_write:*@2` with 65536. `None` when it has none.
pub fn buffer_of(variant: &str) -> Option<(String, u64)> {
    let text = without_label(variant);
    let mut at = 0;
    for word in text.split_inclusive([':', ',', '=', '@', ' ']) {
        let token = word.trim_end_matches([':', ',', '=', '@', ' ']);
        if let Ok(bytes) = token.parse::<engines::Bytes>() {
            let rest = &variant[at + token.len()..];
            return Some((format!("{}*{rest}", &variant[..at]), bytes.0));
        }
        // What follows is the number of workers.
        if word.ends_with('@') {
            return None;
        }
        at += word.len();
    }
    None
}

/// The workers of a variant, and its text without them: `read_write:64K@2` is `read_write:64K`.
pub fn workers_of(variant: &str) -> (String, u32) {
    let text = without_label(variant);
    let workers = text
        .rsplit_once('@')
        .and_then(|(alone, count)| Some((alone.to_owned(), count.parse::<u32>().ok()?)));
    workers.unwrap_or_else(|| (text.to_owned(), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_become_one_a_size_and_session() {
        let point = |session, elapsed_ns| Point { bytes: 64.0, elapsed_ns, session };
        let few = by_session([point(1, 5.0), point(1, 7.0), point(1, 9.0), point(2, 4.0)]);
        assert_eq!(few, [point(0, 7.0), point(1, 4.0)]);
        let many = by_session((1..=100).map(|session| point(session, f64::from(session))));
        assert_eq!((many.len(), many[0]), (34, point(0, 2.0)));
    }

    #[test]
    fn buffers_and_workers_are_read_from_a_variant() {
        for (variant, expected) in [
            ("read_write:64K@2", Some(("read_write:*@2", 65536))),
            ("splice:1M,pipe=1M", Some(("splice:*,pipe=1M", 1 << 20))),
            ("64K", Some(("*", 65536))),
            ("read:8K,md5", Some(("read:*,md5", 8192))),
            ("stdio:1,setvbuf=8K [again]", Some(("stdio:*,setvbuf=8K [again]", 1))),
            ("sendfile", None),
            ("copy_file_range@2", None),
        ] {
            let expected = expected.map(|(text, bytes)| (text.to_owned(), bytes));
            assert_eq!(buffer_of(variant), expected, "{variant}");
        }
        assert_eq!(workers_of("read_write:64K@4"), ("read_write:64K".to_owned(), 4));
        assert_eq!(workers_of("sendfile [b]"), ("sendfile".to_owned(), 1));
    }
}
