//! The lengths of pieces, and the figures by which the [selector](super::selector) decides. Each says what it
//! was measured with.

/// How long pieces are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PieceSizes {
    /// Bytes of the first piece of a candidate, whose rate is unknown, and the least of a later one. A shorter
    /// piece is not measured.
    pub(super) first_bytes: u64,
    /// The first piece of a candidate that is not in use is copied in parts of these bytes. It ends as soon as
    /// the rest of it cannot make the candidate the best.
    pub(super) part_bytes: u64,
    /// The most rounds of a trial.
    pub(super) rounds: usize,
    /// How long a later piece of a trial takes, in seconds, by the candidate's rate: the first figure for the
    /// shortest copies with a trial, the second for long ones, and [`TRIAL_SHARE`] of the rest between.
    pub(super) trial_seconds: (f64, f64),
    /// How long a piece takes when there is no trial, in seconds. After each piece the rate is compared.
    pub(super) use_seconds: f64,
    /// Bytes of the pieces of the start. The last one tells how long the copy takes, so it is longer than what
    /// comes only once: the start of threads, and the first requests of readahead. After an earlier one a
    /// trial starts only if it was slower than `slow_start`.
    pub(super) start_bytes: &'static [u64],
    /// Seconds for a byte above which the first piece of the start tells enough.
    pub(super) slow_start: f64,
    /// A trial starts if the rest of the copy takes at least this long, in seconds,
    pub(super) rest_seconds_min: f64,
    /// or this long after a start that was faster than [`FAST_START`],
    pub(super) fast_rest_seconds_min: f64,
    /// and has at least these bytes.
    pub(super) rest_bytes_min: u64,
    /// The margin of the first round, as in [`MARGINS`].
    pub(super) first_margin: f64,
    /// Another candidate replaces the one in use only if that takes this many times as long: the first figure where
    /// the rest of the copy takes less than [`SHORT_SECONDS`], the second where it takes longer.
    pub(super) switch_gains: (f64, f64),
}

impl PieceSizes {
    /// For a source in the page cache. The first pieces are short because each call of a candidate may take
    /// milliseconds: two workers of `read_write` then make two calls each. They tell only such gross
    /// differences. On a Zen 5, where 1 MiB takes 0.1 ms, as long as the start of a thread, a first margin of
    /// 0.6 dropped the best candidate in four of ten copies.
    ///
    /// Shorter pieces in a short copy are for the first candidate's gross failures too: see
    /// `switch_gains`.
    pub(super) const CACHED: PieceSizes = PieceSizes {
        first_bytes: 512 << 10,
        part_bytes: 512 << 10,
        rounds: MARGINS.len() + 1,
        trial_seconds: (0.3e-3, 5e-3),
        use_seconds: 10e-3,
        start_bytes: &[512 << 10, (4 << 20) + (512 << 10)],
        slow_start: SLOW_START,
        rest_seconds_min: 0.02,
        fast_rest_seconds_min: 0.02,
        rest_bytes_min: 32 << 20,
        first_margin: 3.0,
        // One short piece of each candidate tells a factor of 1.5, not one of 1.2, and a wrong choice would be
        // noticed too late.
        switch_gains: (1.35, SWITCH_GAIN),
    };

    /// For a source on storage. Candidates that read a device in another way differ by up to a factor of 2.6 in either
    /// direction (docs/design/engine-selection.md), and one long piece of each tells which is much faster.
    ///
    /// The readahead of another candidate begins empty. On virtual disks the kernel reads windows of up to 16 MiB, two
    /// of them ahead: the piece is as long as two, and what is read ahead after it counts
    /// ([`Parts::cost`](super::selector)). When pieces were 16 MiB long and it did not count, a candidate that was
    /// 1.9 times faster looked as slow as the first.
    ///
    /// A trial costs 10 to 20 ms on a virtual disk of 2 GB/s: the start of the readahead, and bytes that are read
    /// again after it. That is 6 % of a fast copy of 0.25 s. After a slow start a trial pays earlier, because another
    /// candidate may be twice as fast. A fast copy with a shorter rest has no trial: there no other candidate was
    /// faster by more than a tenth on any device that was measured, with buffers in huge pages.
    ///
    /// `direct_read` waits for all of its reads at the end of a piece, so pieces in use are long, and the start
    /// has as many bytes as `haulage cp` copies by one call if no helper may come. There are no later rounds, which
    /// `trial_seconds` would be for.
    pub(super) const COLD: PieceSizes = PieceSizes {
        first_bytes: 32 << 20,
        part_bytes: 8 << 20,
        rounds: 1,
        trial_seconds: (4e-3, 4e-3),
        use_seconds: 60e-3,
        start_bytes: &[16 << 20, 48 << 20],
        slow_start: FAST_START,
        // After a slow start the least bytes take longer than any time that would matter here.
        rest_seconds_min: 0.0,
        fast_rest_seconds_min: 0.25,
        rest_bytes_min: 96 << 20,
        first_margin: 0.5,
        // Single pieces of one candidate differ by a tenth, and more where the kernel reads ahead.
        switch_gains: (1.25, 1.25),
    };

    /// For groups of files. A group of 4 MiB has some thirty files of 128 KiB, or one of 4 MiB. The first trial
    /// starts after 32 MiB of files.
    pub(super) const FILES: PieceSizes = PieceSizes {
        first_bytes: 4 << 20,
        part_bytes: 4 << 20,
        rounds: MARGINS.len() + 1,
        trial_seconds: (3e-3, 3e-3),
        use_seconds: 20e-3,
        start_bytes: &[8 << 20],
        slow_start: SLOW_START,
        rest_seconds_min: 0.01,
        fast_rest_seconds_min: 0.01,
        rest_bytes_min: 32 << 20,
        first_margin: 1.0,
        switch_gains: (SWITCH_GAIN, SWITCH_GAIN),
    };
}

/// Seconds for a byte at 0.5 GB/s, some ten times as long as a copy in the page cache takes: more than the
/// start of threads explains. Where each call of the first candidate is slow, four MiB more would cost as
/// much as the rest of the copy by another one.
pub(super) const SLOW_START: f64 = 2e-9;

/// Seconds for a byte at 1.5 GB/s. Where `direct_read` began faster than that, no other candidate was faster by more
/// than a tenth. The devices on which one was twice as fast, with buffers in small pages, had 1.0 to 1.4 GB/s.
pub(super) const FAST_START: f64 = 0.67e-9;

/// A candidate is not dropped by its first piece if that took up to this longer than by the best one, in
/// seconds: threads, buffers and pipes are used there for the first time.
pub(super) const SETUP_SECONDS: f64 = 0.3e-3;

/// The largest piece that the selector asks for. A rate is not known well enough to plan further ahead.
pub(super) const PIECE_BYTES_MAX: u64 = 64 << 20;

/// The margin of each round after the first: a candidate whose time for a byte is this share higher than the
/// lowest is dropped. After the last round the candidate with the lowest time for a byte wins.
pub(super) const MARGINS: [f64; 5] = [0.35, 0.2, 0.12, 0.08, 0.05];

/// The regret that all trials may cause, as a share of the time of the whole copy.
pub(super) const REGRET_SHARE: f64 = 0.02;

/// The regret that is allowed for a copy of any length, in seconds.
pub(super) const REGRET_SECONDS: f64 = 0.7e-3;

/// A new trial starts when the recent mean time for a byte is this many times that of the last trial.
pub(super) const CHANGE: f64 = 1.3;

/// A single piece that takes this many times as long starts a new trial at once.
pub(super) const SUDDEN_CHANGE: f64 = 2.5;

/// A new trial starts when the mean of all pieces since the trial is this many times that of the trial. It
/// finds a slow mode that comes and goes.
pub(super) const MEAN_CHANGE: f64 = 1.25;

/// Pieces in use before their mean is compared.
pub(super) const USE_PIECES_MIN: u32 = 3;

/// The weight of the last piece in the recent mean.
pub(super) const RECENT_WEIGHT: f64 = 0.4;

/// Between two trials the copy takes at least this many times as long as the regret of the last one.
pub(super) const REST_FACTOR: f64 = 30.0;

/// The least and the most time between two trials, in seconds.
pub(super) const REST_SECONDS: (f64, f64) = (0.05, 1.0);

/// A new trial starts without a change when the last one is this long ago, in seconds, and one more would keep
/// the regret within half of its bound: the last trial may have met another process. The time doubles up to
/// the second figure with each trial that confirms the candidate in use.
pub(super) const REPEAT_SECONDS: (f64, f64) = (0.2, 10.0);

/// Another candidate replaces the one in use only if that takes this many times as long. In pieces of 1 ms
/// splice@2 was as fast as read_write@2 on a Zen 5, and took twice as long in a whole copy.
pub(super) const SWITCH_GAIN: f64 = 1.12;

/// The rest of a copy is short below this, in seconds. Above it a piece of a trial takes 3 ms and more, and
/// there is time to correct a wrong choice.
pub(super) const SHORT_SECONDS: f64 = 0.3;

/// How long a later piece of a trial takes, as a share of the rest of the copy.
pub(super) const TRIAL_SHARE: f64 = 0.01;

/// What a candidate lost by slow pieces counts less in each later trial by this factor.
pub(super) const PENALTY_DECAY: f64 = 0.5;
