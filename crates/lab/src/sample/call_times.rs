//! The times of single calls: a histogram of all calls, and the first calls in their order.

use serde::{Deserialize, Serialize};

/// The read and write calls of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallTimes {
    /// What the reading of the clock between two calls costs, as the median of many, in
    /// nanoseconds. It is contained in the time of each call, from which it can be subtracted.
    pub clock_ns: u64,
    /// Calls that read, the one that found the end of the file not among them.
    pub read: OpTimes,
    /// Calls that wrote.
    pub write: OpTimes,
}

/// The calls of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpTimes {
    /// Calls of similar length together, shortest first; none is empty.
    pub buckets: Vec<Bucket>,
    /// What single calls took, in nanoseconds and in their order; every `sequence_step`th of them.
    /// Only of the first run of a session, otherwise empty.
    pub sequence_ns: Vec<u64>,
    /// 1 when `sequence_ns` has every call.
    pub sequence_step: u64,
}

/// Calls that took from `from_ns` to below `to_ns`. Analyses rely on the limits of all buckets being
/// the same, so that buckets of several runs never overlap: others are not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BucketFields")]
pub struct Bucket {
    /// The shortest time that belongs here.
    pub from_ns: u64,
    /// The shortest that no longer does.
    pub to_ns: u64,
    /// How many calls.
    pub calls: u64,
    /// What they took together, so that their mean is exact.
    pub sum_ns: u64,
}

/// A bucket as it is written, before it is checked.
#[derive(Deserialize)]
struct BucketFields {
    from_ns: u64,
    to_ns: u64,
    calls: u64,
    sum_ns: u64,
}

/// Buckets between a power of two and the next: each is at most a 64th, 1.6 %, of its times wide.
const PER_OCTAVE_BITS: u32 = 6;

/// The longest sequence.
pub const SEQUENCE_MAX: usize = 8192;

impl OpTimes {
    /// Of calls in their order.
    pub fn of(calls_ns: &[u32]) -> OpTimes {
        let mut sorted: Vec<u64> = calls_ns.iter().map(|&ns| u64::from(ns)).collect();
        sorted.sort_unstable();
        let mut buckets: Vec<Bucket> = Vec::new();
        for ns in sorted {
            match buckets.last_mut() {
                Some(last) if ns < last.to_ns => last.add(ns, 1, ns),
                _ => buckets.push(Bucket::machine(ns)),
            }
        }
        let step = calls_ns.len().div_ceil(SEQUENCE_MAX).max(1);
        OpTimes {
            buckets,
            sequence_ns: calls_ns.iter().step_by(step).map(|&ns| u64::from(ns)).collect(),
            sequence_step: step as u64,
        }
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.calls).sum()
    }

    /// Adds the calls of another run; the sequence stays that of the first.
    pub fn merge(&mut self, other: &OpTimes) {
        self.buckets.extend(&other.buckets);
        self.buckets.sort_unstable_by_key(|bucket| bucket.from_ns);
        self.buckets.dedup_by(|later, earlier| {
            let same = later.from_ns == earlier.from_ns;
            if same {
                earlier.add(later.from_ns, later.calls, later.sum_ns);
            }
            same
        });
    }
}

impl CallTimes {
    /// Adds the calls of another run.
    pub fn merge(&mut self, other: &CallTimes) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
    }

    /// Leaves out the sequences, of which the first round has enough.
    pub fn forget_sequences(&mut self) {
        for op in [&mut self.read, &mut self.write] {
            op.sequence_ns.clear();
        }
    }
}

impl Bucket {
    /// The bucket in which `ns` is, with that one call in it.
    fn machine(ns: u64) -> Bucket {
        // Below 128 ns a bucket is a nanosecond; above, its low bits are left out.
        let bits = (u64::BITS - ns.leading_zeros()).saturating_sub(PER_OCTAVE_BITS + 1);
        let from_ns = ns >> bits << bits;
        Bucket { from_ns, to_ns: from_ns + (1 << bits), calls: 1, sum_ns: ns }
    }

    /// Whether its limits are those that [`Bucket::machine`] gives, and its calls can have taken
    /// `sum_ns` together.
    fn is_possible(&self) -> bool {
        // A call is timed, and the calls of a run are counted, in 32 bits.
        let fits = |value: u64| value <= u64::from(u32::MAX);
        let Bucket { from_ns, to_ns, calls, sum_ns } = *self;
        if !fits(from_ns) || !fits(calls) || calls == 0 {
            return false;
        }
        let limits = Bucket::machine(from_ns);
        (from_ns, to_ns) == (limits.from_ns, limits.to_ns)
            && (from_ns * calls..=(to_ns - 1) * calls).contains(&sum_ns)
    }

    fn add(&mut self, ns: u64, calls: u64, sum_ns: u64) {
        debug_assert!((self.from_ns..self.to_ns).contains(&ns));
        self.calls += calls;
        self.sum_ns += sum_ns;
    }
}

impl TryFrom<BucketFields> for Bucket {
    type Error = String;

    fn try_from(fields: BucketFields) -> Result<Bucket, String> {
        let BucketFields { from_ns, to_ns, calls, sum_ns } = fields;
        let bucket = Bucket { from_ns, to_ns, calls, sum_ns };
        match bucket.is_possible() {
            true => Ok(bucket),
            false => Err(format!(
                "{calls} calls from {from_ns} to {to_ns} ns of {sum_ns} ns together are impossible"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_buckets_are_not_read() {
        let check = |[from_ns, to_ns, calls, sum_ns]: [u64; 4], possible: bool| {
            let fields = BucketFields { from_ns, to_ns, calls, sum_ns };
            assert_eq!(Bucket::try_from(fields).is_ok(), possible, "{from_ns} {to_ns} {calls}");
        };
        check([0, 1, 3, 0], true);
        check([127, 128, 1, 127], true);
        check([128, 130, 1, 129], true);
        check([254, 256, 1, 255], true);
        check([256, 260, 1, 259], true);
        check([536, 544, 2, 1081], true);
        check([999_424, 1_007_616, 1, 1_000_003], true);
        check([u64::from(u32::MAX) >> 25 << 25, 1 << 32, 1, u64::from(u32::MAX)], true);
        check([0, 0, 3, 0], false);
        check([536, 544, 0, 0], false);
        check([536, 544544, 2, 1081], false);
        check([544, 536, 2, 1081], false);
        check([537, 545, 2, 1081], false);
        check([536, 544, 2, 1071], false);
        check([536, 544, 2, 1087], false);
        check([0, 1, u64::MAX, 0], false);
        check([u64::MAX, u64::MAX, 1, u64::MAX], false);
    }

    #[test]
    fn buckets_are_narrow_and_hold_every_call_once() {
        let mut rng = fastrand::Rng::with_seed(1);
        let calls: Vec<u32> = (0..5_000).map(|_| rng.u32(..) >> rng.u32(..32)).collect();
        let times = OpTimes::of(&calls);
        assert_eq!(times.calls(), 5_000);
        let sum: u64 = calls.iter().map(|&ns| u64::from(ns)).sum();
        assert_eq!(times.buckets.iter().map(|bucket| bucket.sum_ns).sum::<u64>(), sum);
        for pair in times.buckets.windows(2) {
            assert!(pair[0].to_ns <= pair[1].from_ns, "{pair:?}");
        }
        for &Bucket { from_ns, to_ns, calls: count, .. } in &times.buckets {
            let within = |ns: &&u32| (from_ns..to_ns).contains(&u64::from(**ns));
            assert_eq!(calls.iter().filter(within).count() as u64, count, "{from_ns}");
            assert!(to_ns - from_ns <= (from_ns / 64).max(1), "{from_ns} to {to_ns}");
        }
    }

    #[test]
    fn long_sequences_are_thinned_and_say_so() {
        let times = OpTimes::of(&(0..20_000).collect::<Vec<u32>>());
        assert_eq!((times.sequence_step, times.sequence_ns.len()), (3, 6667));
        assert_eq!(times.sequence_ns[..3], [0, 3, 6]);
        assert_eq!(OpTimes::of(&[5, 4]).sequence_ns, [5, 4]);
        assert_eq!(OpTimes::of(&[5, 4]).sequence_step, 1);
    }

    #[test]
    fn runs_at_once_are_added_up() {
        let mut sum = OpTimes::of(&[1, 500, 500]);
        sum.merge(&OpTimes::of(&[501, 1, 90_000]));
        let counts: Vec<u64> = sum.buckets.iter().map(|bucket| bucket.calls).collect();
        assert_eq!((counts, sum.calls()), (vec![2, 3, 1], 6));
        assert_eq!(sum.buckets[1].sum_ns, 1501);
        assert_eq!(sum.sequence_ns, [1, 500, 500]);
    }
}
