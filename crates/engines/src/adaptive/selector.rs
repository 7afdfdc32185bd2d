//! Chooses the candidate for the next piece of a file from the rates of the pieces before. Pure: no clock and
//! no I/O, so that tests can drive it with simulated machines.
//!
//! The method is successive elimination (Even-Dar, Mannor, Mansour: "Action Elimination and Stopping
//! Conditions for the Multi-Armed Bandit and Reinforcement Learning Problems", JMLR 7, 2006) with a budget:
//!
//! 0. **Start.** The first candidate copies until it is known how long the rest takes. There is no trial while
//!    that is less than [`PieceSizes::rest_seconds_min`], [`PieceSizes::fast_rest_seconds_min`] after a fast
//!    start, or [`PieceSizes::rest_bytes_min`]: it could not repay one. The pieces of the start are the first
//!    candidate's first round.
//! 1. **Trial.** Each remaining candidate copies one piece a round, in shuffled order. After a round, a
//!    candidate whose mean time for a byte exceeds the lowest by more than the round's margin is dropped. The
//!    first round finds the length of later pieces, and candidates whose calls are very slow: its pieces are
//!    short, and the first use of threads, buffers and pipes is part of them. From storage its pieces are long, and
//!    there is no other round.
//! 2. **Use.** The best remaining candidate copies larger pieces.
//! 3. **Watch.** A new trial of all candidates starts when the candidate in use becomes slower or faster than
//!    it was in the trial, and from time to time while trials have cost little. What slow pieces cost a
//!    candidate counts against it in the next trial, unless the others have become slower too: a candidate
//!    with a slow mode is judged by its mean, not by its best times.
//!
//! The regret of a trial is the time that its pieces took beyond what the best candidate would have taken.
//! After the second and each later round the trial ends if the regret of all trials has reached
//! [`REGRET_SHARE`] of the time of the whole copy plus [`REGRET_SECONDS`]. While the candidate in use takes part, it
//! goes on to the third: the second round does not drop that candidate, whose piece may have been disturbed. A round
//! that has begun is completed, so the bound on the cost of trials is that, plus three pieces of each candidate.
//! After the third round the trial also ends if no candidate is faster than the one in use by the square root of the
//! factor that would replace it: 6 %, or 16 % where that is 35 %.

use super::thresholds::{
    CHANGE, FAST_START, MARGINS, MEAN_CHANGE, PENALTY_DECAY, PIECE_BYTES_MAX, PieceSizes,
    RECENT_WEIGHT, REGRET_SECONDS, REGRET_SHARE, REPEAT_SECONDS, REST_FACTOR, REST_SECONDS,
    SETUP_SECONDS, SHORT_SECONDS, SUDDEN_CHANGE, TRIAL_SHARE, USE_PIECES_MIN,
};

/// A piece to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The candidate, by its index.
    pub(crate) candidate: usize,
    /// Its length in bytes.
    pub(crate) bytes: u64,
}

/// What is known of the candidates, and which one is next.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    sizes: PieceSizes,
    candidates: Vec<Candidate>,
    phase: Phase,
    /// Shuffles the rounds.
    random: fastrand::Rng,
    /// Seconds of all pieces.
    elapsed: f64,
    /// Bytes that were left when the last piece was chosen.
    bytes_left: f64,
    /// Regret of all trials, in seconds.
    regret: f64,
    /// Regret of the last trial, in seconds.
    last_regret: f64,
    /// No new trial starts before `elapsed` has reached this.
    rest_until: f64,
    /// A trial is repeated when `elapsed` has reached this.
    repeat_at: f64,
    /// The time to the next repetition, in seconds.
    repeat_after: f64,
    /// The candidate that was in use before this trial, and the mean of its pieces in use.
    watched: Option<(usize, Cost)>,
    /// The candidate that was in use last, with its time for a byte in the trial.
    last_used: (usize, f64),
    #[cfg(test)]
    trials: u32,
}

/// Seconds and bytes of some pieces.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    seconds: f64,
    bytes: f64,
}

/// The parts of a piece of the first round.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    copied: Cost,
    /// Bytes that are read ahead, beyond those before the first part.
    ahead: f64,
    /// The least time for a byte of a part.
    least: Option<f64>,
}

#[derive(Clone, Debug, Default)]
struct Candidate {
    /// It cannot copy between these files.
    refused: bool,
    /// The candidate that calls the same with another number of workers.
    sibling: Option<usize>,
    /// It takes part in this trial.
    in_trial: bool,
    /// What its piece of the first round costs, with what was read ahead.
    first: Cost,
    /// The parts of that piece.
    parts: Parts,
    /// Its pieces of later rounds, and in use since then.
    cost: Cost,
    /// The same of the trial before.
    before: Cost,
    /// Seconds for a byte that slow pieces cost.
    penalty: f64,
}

/// What a trial compares by.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// How long a piece takes after the first round, in seconds.
    piece_seconds: f64,
    /// The candidate in use is replaced only by one that is faster by this factor.
    switch_gain: f64,
}

#[derive(Clone, Debug)]
enum Phase {
    /// The first candidate copies.
    Start {
        /// Its pieces.
        cost: Cost,
        pieces: usize,
    },
    Trial {
        round: usize,
        /// The candidates of this round without a piece; the last is the next.
        queue: Vec<usize>,
        /// All pieces of this trial.
        cost: Cost,
        terms: Terms,
    },
    Use {
        candidate: usize,
        /// Seconds for a byte in the trial.
        expected: f64,
        /// The recent mean.
        recent: f64,
        /// All pieces in use.
        cost: Cost,
        pieces: u32,
    },
}

impl Cost {
    /// Seconds for a byte; infinite without a piece.
    fn per_byte(self) -> f64 {
        if self.bytes > 0.0 { self.seconds / self.bytes } else { f64::INFINITY }
    }

    fn add(&mut self, bytes: f64, seconds: f64) {
        self.bytes += bytes;
        self.seconds += seconds;
    }
}

impl Parts {
    fn add(&mut self, bytes: f64, seconds: f64, gained: f64) {
        self.copied.add(bytes, seconds);
        self.ahead += gained;
        let last = seconds / bytes;
        self.least = Some(self.least.map_or(last, |least| least.min(last)));
    }

    /// What it costs to copy what is read ahead too. That takes as long for a byte as the fastest part, which found
    /// the most read ahead.
    fn cost(self) -> Cost {
        let Parts { copied, ahead, least } = self;
        let (ahead, least) = (ahead.max(0.0), least.unwrap_or(0.0));
        Cost { seconds: copied.seconds + least * ahead, bytes: copied.bytes + ahead }
    }
}

impl Candidate {
    /// Forgets what it copied in this trial.
    fn forget_trial(&mut self) {
        self.parts = Parts::default();
        (self.first, self.cost) = (Cost::default(), Cost::default());
    }

    /// Seconds for a byte by which candidates are compared.
    fn per_byte(&self) -> f64 {
        self.measured().per_byte() + self.penalty
    }

    /// Its pieces, those of the first round if there are no others.
    fn measured(&self) -> Cost {
        if self.cost.bytes > 0.0 { self.cost } else { self.first }
    }
}

impl Selector {
    /// A selector of that many candidates. The first one copies the first piece. The order of the others
    /// follows from `seed`.
    ///
    /// # Panics
    /// Without a candidate.
    pub(crate) fn new(candidates: usize, sizes: PieceSizes, seed: u64) -> Selector {
        assert!(candidates > 0, "a selector needs a candidate");
        Selector {
            sizes,
            candidates: vec![Candidate::default(); candidates],
            phase: Phase::Start { cost: Cost::default(), pieces: 0 },
            random: fastrand::Rng::with_seed(seed),
            elapsed: 0.0,
            bytes_left: 0.0,
            regret: 0.0,
            last_regret: 0.0,
            rest_until: 0.0,
            repeat_at: f64::INFINITY,
            repeat_after: REPEAT_SECONDS.0,
            watched: None,
            last_used: (0, f64::INFINITY),
            #[cfg(test)]
            trials: 0,
        }
    }

    /// Tells of some candidates which earlier one calls the same with another number of workers. In the first round
    /// they come last, and are left out if that one was much slower than another: so are they.
    pub(crate) fn with_siblings(
        mut self,
        siblings: impl IntoIterator<Item = Option<usize>>,
    ) -> Selector {
        self.candidates.iter_mut().zip(siblings).for_each(|(it, sibling)| it.sibling = sibling);
        self
    }

    /// Starts the next file: pieces of different files are not compared as if they followed each other, and parts of
    /// different files are no piece.
    pub(crate) fn start_file(&mut self) {
        match &mut self.phase {
            Phase::Use { expected, recent, .. } => *recent = *expected,
            Phase::Trial { round: 0, queue, .. } => {
                queue.last().into_iter().for_each(|&next| self.candidates[next].forget_trial());
            }
            Phase::Trial { .. } | Phase::Start { .. } => {}
        }
    }

    /// The next piece of a copy with `bytes_left` bytes left. `None` when every candidate was refused.
    pub(crate) fn next(&mut self, bytes_left: u64) -> Option<Piece> {
        self.bytes_left = bytes_left as f64;
        loop {
            let (candidate, seconds) = match &self.phase {
                &Phase::Start { cost: start, pieces } => {
                    if self.ends_start(start, pieces, bytes_left) && self.has_others(0) {
                        self.end_start(start);
                        continue;
                    }
                    (0, self.sizes.use_seconds)
                }
                Phase::Use { candidate, .. } => (*candidate, self.sizes.use_seconds),
                &Phase::Trial { round, ref queue, terms, .. } => match queue.last() {
                    Some(&candidate) if round == 0 && self.is_hopeless(candidate) => {
                        self.leave_out(candidate);
                        continue;
                    }
                    Some(&candidate) => (candidate, terms.piece_seconds),
                    None => {
                        if self.lowest().is_some() {
                            self.end_round();
                        } else {
                            // All candidates of the trial were refused. Others may have been admitted since.
                            let admitted = self.candidates.iter().position(|it| !it.refused)?;
                            self.start_trial(admitted, self.last_used.1);
                        }
                        continue;
                    }
                },
            };
            if self.candidates[candidate].refused {
                self.replace_refused(candidate);
                continue;
            }
            let bytes = self.piece_bytes(candidate, seconds).min(bytes_left);
            // A rest that is too short to be measured belongs to the last piece.
            let is_last = bytes_left - bytes < self.sizes.first_bytes;
            return Some(Piece { candidate, bytes: if is_last { bytes_left } else { bytes } });
        }
    }

    /// Records that `candidate` copied `bytes` in `seconds`. A piece of less than half of a part is not
    /// compared: the cost of calls and threads is a large part of it.
    pub(crate) fn record(&mut self, candidate: usize, bytes: u64, seconds: f64) {
        self.record_with_readahead(candidate, bytes, seconds, 0);
    }

    /// The same, where the kernel has read `gained` bytes more ahead of the candidate after the piece than before
    /// it. The candidate has waited for the device to read them, and only has to copy them.
    pub(crate) fn record_with_readahead(
        &mut self,
        candidate: usize,
        bytes: u64,
        seconds: f64,
        gained: i64,
    ) {
        self.elapsed += seconds;
        if bytes < self.sizes.part_bytes / 2 {
            return;
        }
        let is_first = matches!(self.phase, Phase::Trial { round: 0, .. });
        let measured = &mut self.candidates[candidate];
        if is_first {
            measured.parts.add(bytes as f64, seconds, gained as f64);
            measured.first = measured.parts.cost();
        } else {
            measured.cost.add(bytes as f64, seconds);
        }
        let bytes = bytes as f64;
        let is_complete = !is_first || self.first_piece_is_over(candidate);
        match &mut self.phase {
            Phase::Start { cost, pieces } => {
                cost.add(bytes, seconds);
                *pieces += 1;
            }
            Phase::Trial { queue, cost, .. } => {
                cost.add(bytes, seconds);
                if is_complete && queue.last() == Some(&candidate) {
                    queue.pop();
                }
            }
            Phase::Use { expected, recent, cost, pieces, .. } => {
                let last = seconds / bytes;
                *recent += RECENT_WEIGHT * (last - *recent);
                cost.add(bytes, seconds);
                *pieces += 1;
                if *recent * CHANGE < *expected {
                    // That is no reason to try others: its pieces in the trial had been slow.
                    *expected = *recent;
                }
                let expected = *expected;
                let is_slower = *recent > CHANGE * expected || last > SUDDEN_CHANGE * expected;
                let is_slower_on_average =
                    *pieces >= USE_PIECES_MIN && cost.per_byte() > MEAN_CHANGE * expected;
                let has_changed =
                    (is_slower || is_slower_on_average) && self.elapsed >= self.rest_until;
                let budget = 0.5 * (REGRET_SHARE * self.elapsed + REGRET_SECONDS);
                let is_repeated =
                    self.elapsed >= self.repeat_at && self.regret + self.last_regret < budget;
                let (in_use, recent) = (*cost, *recent);
                // A trial of long pieces near the end would not repay.
                let is_long_enough = self.sizes.rounds > 1
                    || self.bytes_left - bytes >= self.sizes.rest_bytes_min as f64;
                if (has_changed || is_repeated) && is_long_enough && self.has_others(candidate) {
                    self.watched = Some((candidate, in_use));
                    self.start_trial(candidate, recent);
                }
            }
        }
    }

    /// Admits a candidate again that was refused. If it was in use then, it is in use again.
    pub(crate) fn admit(&mut self, candidate: usize) {
        self.candidates[candidate].refused = false;
        let (last_used, expected) = self.last_used;
        if last_used == candidate && expected.is_finite() {
            self.start_use(candidate, expected);
        }
    }

    /// Whether candidates are compared now.
    pub(crate) fn compares(&self) -> bool {
        matches!(self.phase, Phase::Trial { .. })
    }

    /// Excludes a candidate that cannot copy between these files.
    pub(crate) fn refuse(&mut self, candidate: usize) {
        self.candidates[candidate].refused = true;
        self.candidates[candidate].in_trial = false;
    }

    /// The candidate in use; during a trial the best so far.
    pub(crate) fn best(&self) -> usize {
        match self.phase {
            Phase::Start { .. } => 0,
            Phase::Use { candidate, .. } => candidate,
            Phase::Trial { .. } => self.lowest().unwrap_or(self.last_used.0),
        }
    }

    /// Bytes a second of a candidate's last pieces, without what was read ahead; `None` without one.
    pub(crate) fn rate(&self, candidate: usize) -> Option<f64> {
        let found = &self.candidates[candidate];
        let pieces = [found.cost, found.parts.copied, found.first, found.before];
        let known = pieces.into_iter().find(|cost| cost.bytes > 0.0).unwrap_or_default();
        (known.seconds > 0.0).then(|| known.bytes / known.seconds)
    }

    /// Seconds that trials took beyond what the best candidate would have taken.
    #[cfg(test)]
    pub(crate) fn regret_seconds(&self) -> f64 {
        self.regret
    }

    /// How many trials there were, the current one included.
    #[cfg(test)]
    pub(crate) fn trials(&self) -> u32 {
        self.trials
    }

    /// Whether it is known, from that many pieces of the start, that a trial pays.
    fn ends_start(&self, start: Cost, pieces: usize, bytes_left: u64) -> bool {
        let is_known = pieces >= self.sizes.start_bytes.len()
            || start.bytes > 0.0 && start.per_byte() > self.sizes.slow_start;
        is_known && self.pays(start, bytes_left)
    }

    /// Whether a trial pays before `bytes_left` bytes, by the cost of the start.
    fn pays(&self, start: Cost, bytes_left: u64) -> bool {
        let PieceSizes { rest_seconds_min, fast_rest_seconds_min, .. } = self.sizes;
        let is_fast = start.per_byte() < FAST_START;
        let seconds_min = if is_fast { fast_rest_seconds_min } else { rest_seconds_min };
        let rest_seconds = bytes_left as f64 * start.per_byte();
        bytes_left >= self.sizes.rest_bytes_min && rest_seconds >= seconds_min
    }

    /// Whether the first piece of `candidate` is copied, or has already taken longer than it may.
    fn first_piece_is_over(&self, candidate: usize) -> bool {
        let first_bytes = self.sizes.first_bytes as f64;
        let Cost { bytes, seconds } = self.candidates[candidate].parts.copied;
        let lowest = self.lowest_first_of_others(candidate);
        // Half of a part less was not measured.
        bytes + 0.5 * self.sizes.part_bytes as f64 > first_bytes
            || seconds > (1.0 + self.sizes.first_margin) * first_bytes * lowest
    }

    /// The least time for a byte that another than `candidate` took in the first round; infinite without one.
    fn lowest_first_of_others(&self, candidate: usize) -> f64 {
        let others = self.candidates.iter().enumerate().filter(|(index, _)| *index != candidate);
        others.map(|(_, it)| it.first.per_byte()).fold(f64::INFINITY, f64::min)
    }

    /// Whether the sibling of `candidate` would be dropped after this round.
    fn is_hopeless(&self, candidate: usize) -> bool {
        let Some(sibling) = self.candidates[candidate].sibling else { return false };
        let first = self.candidates[sibling].first;
        let lowest = self.lowest_first_of_others(sibling);
        first.bytes > 0.0
            && first.per_byte() > (1.0 + self.sizes.first_margin) * lowest
            && first.seconds - first.bytes * lowest > SETUP_SECONDS
    }

    /// Leaves the next candidate of the round out of the trial.
    fn leave_out(&mut self, candidate: usize) {
        self.candidates[candidate].in_trial = false;
        if let Phase::Trial { queue, .. } = &mut self.phase {
            queue.pop();
        }
    }

    fn has_others(&self, candidate: usize) -> bool {
        self.candidates.iter().enumerate().any(|(index, it)| index != candidate && !it.refused)
    }

    /// Starts a trial of all candidates, `first` first, whose recent time for a byte is `per_byte`.
    fn start_trial(&mut self, first: usize, per_byte: f64) {
        #[cfg(test)]
        {
            self.trials += 1;
        }
        for candidate in &mut self.candidates {
            candidate.in_trial = !candidate.refused;
            if candidate.measured().bytes > 0.0 {
                candidate.before = candidate.measured();
            }
            candidate.forget_trial();
            candidate.penalty *= PENALTY_DECAY;
        }
        let terms = self.terms(self.bytes_left * per_byte);
        let mut queue = self.shuffled();
        queue.retain(|&candidate| candidate != first);
        // The last of the queue is the next.
        queue.sort_by_key(|&candidate| self.candidates[candidate].sibling.is_none());
        queue.push(first);
        self.phase = Phase::Trial { round: 0, queue, cost: Cost::default(), terms };
    }

    /// What a trial compares by before a rest of the copy that takes that long.
    fn terms(&self, rest_seconds: f64) -> Terms {
        let (least, most) = self.sizes.trial_seconds;
        let (short_gain, long_gain) = self.sizes.switch_gains;
        let is_short = rest_seconds < SHORT_SECONDS;
        Terms {
            piece_seconds: (TRIAL_SHARE * rest_seconds).clamp(least, most),
            switch_gain: if is_short { short_gain } else { long_gain },
        }
    }

    /// Starts the first trial. The pieces of the start are the first candidate's first round. They are no cost
    /// of the trial: without it the first candidate had copied them too.
    fn end_start(&mut self, start: Cost) {
        self.start_trial(0, start.per_byte());
        self.candidates[0].first = start;
        if let Phase::Trial { queue, .. } = &mut self.phase {
            queue.pop();
        }
    }

    fn start_use(&mut self, candidate: usize, expected: f64) {
        let (least, most) = REPEAT_SECONDS;
        let is_confirmed = self.last_used.0 == candidate && self.last_used.1.is_finite();
        self.repeat_after = if is_confirmed { (2.0 * self.repeat_after).min(most) } else { least };
        self.last_used = (candidate, expected);
        self.repeat_at = self.elapsed + self.repeat_after;
        self.phase =
            Phase::Use { candidate, expected, recent: expected, cost: Cost::default(), pieces: 0 };
    }

    /// Ends a round: drops candidates, and starts the next round or the use of the best.
    fn end_round(&mut self) {
        let bytes_left = self.bytes_left;
        let &Phase::Trial { round, cost, terms, .. } = &self.phase else { return };
        let is_last = round + 1 == self.sizes.rounds;
        if round == 1 || round == 0 && is_last {
            self.penalise();
        }
        let best = self.lowest().expect("a candidate of the trial has copied a piece");
        let lowest = self.candidates[best].per_byte();
        let margin = match round {
            0 => self.sizes.first_margin,
            later => MARGINS[later - 1],
        };
        let in_use = self.last_used.0;
        for (index, candidate) in self.candidates.iter_mut().enumerate() {
            let is_close = candidate.per_byte() <= lowest * (1.0 + margin);
            let lost = candidate.first.seconds - candidate.first.bytes * lowest;
            // One piece may have been disturbed: the candidate in use is replaced after two.
            let has_another = round == 1 && index == in_use;
            candidate.in_trial &= is_close || has_another || round == 0 && lost <= SETUP_SECONDS;
        }
        let fastest = self.candidates[best].measured().per_byte();
        let regret = (cost.seconds - cost.bytes * fastest).max(0.0);
        let whole_seconds = self.elapsed + bytes_left * fastest;
        let allowed = REGRET_SHARE * whole_seconds + REGRET_SECONDS;
        let remaining = self.candidates.iter().filter(|it| it.in_trial).count();
        let next_round_bytes = terms.piece_seconds / fastest * remaining as f64;
        let incumbent = &self.candidates[in_use];
        let incumbent_cost = if incumbent.refused { f64::INFINITY } else { incumbent.per_byte() };
        // From this round on, counted from 0, the trial ends when it has cost enough.
        let first_end = if incumbent.in_trial { 2 } else { 1 };
        let is_over = remaining < 2
            // Another round would hardly find one that replaces the candidate in use.
            || round > 1 && incumbent_cost <= terms.switch_gain.sqrt() * lowest
            || is_last
            || round >= first_end && self.regret + regret >= allowed
            // The rest of the copy could not repay another round.
            || bytes_left < 2.0 * next_round_bytes;
        if !is_over {
            let queue = self.shuffled();
            self.phase = Phase::Trial { round: round + 1, queue, cost, terms };
            return;
        }
        self.watched = None;
        self.regret += regret;
        self.last_regret = regret;
        let (least, most) = REST_SECONDS;
        self.rest_until = self.elapsed + (REST_FACTOR * regret).clamp(least, most);
        let chosen = if incumbent_cost <= terms.switch_gain * lowest { in_use } else { best };
        self.start_use(chosen, self.candidates[chosen].measured().per_byte());
    }

    /// Counts the slow pieces of the candidate that was in use against it: its time for a byte becomes the
    /// mean of all its pieces in use. Not so if the others have become slower too: then the machine has.
    fn penalise(&mut self) {
        let Some((watched, in_use)) = self.watched.take() else { return };
        let slowdown = |(index, it): (usize, &Candidate)| {
            let factor = it.measured().per_byte() / it.before.per_byte();
            (index != watched && factor.is_finite() && factor > 0.0).then_some(factor)
        };
        let mut others: Vec<f64> =
            self.candidates.iter().enumerate().filter_map(slowdown).collect();
        others.sort_by(f64::total_cmp);
        let median = others.get(others.len() / 2).copied().unwrap_or(1.0);
        let candidate = &mut self.candidates[watched];
        let lost = in_use.per_byte() - candidate.measured().per_byte();
        if median < CHANGE && lost.is_finite() && lost > candidate.penalty {
            candidate.penalty = lost;
        }
    }

    /// The candidate of this trial with the lowest time for a byte.
    fn lowest(&self) -> Option<usize> {
        let per_byte = |index: &usize| self.candidates[*index].per_byte();
        let in_trial = |index: &usize| self.candidates[*index].in_trial;
        let measured = (0..self.candidates.len()).filter(in_trial);
        let measured = measured.filter(|index| per_byte(index).is_finite());
        measured.min_by(|one, other| per_byte(one).total_cmp(&per_byte(other)))
    }

    /// Takes a refused candidate out of the queue, or out of use.
    fn replace_refused(&mut self, refused: usize) {
        match &mut self.phase {
            Phase::Trial { queue, .. } => queue.retain(|&candidate| candidate != refused),
            Phase::Start { .. } | Phase::Use { .. } => {
                let next = self.candidates.iter().position(|it| !it.refused).unwrap_or(refused);
                self.start_trial(next, self.last_used.1);
            }
        }
    }

    fn piece_bytes(&self, candidate: usize, seconds: f64) -> u64 {
        let found = &self.candidates[candidate];
        let in_use = matches!(self.phase, Phase::Use { .. });
        let is_unknown = found.measured().bytes == 0.0;
        let known = if in_use && is_unknown { found.before } else { found.measured() };
        let first = self.sizes.first_bytes;
        if matches!(self.phase, Phase::Trial { round: 0, .. }) {
            // In a new trial the old rate may be that of another time: the first piece is short again. The one in use
            // has no start of its own in this trial, and its rate is known.
            let is_in_use = self.last_used.0 == candidate && self.last_used.1.is_finite();
            return if is_in_use { first } else { self.sizes.part_bytes };
        }
        if let Phase::Start { pieces, .. } = self.phase
            && let Some(&bytes) = self.sizes.start_bytes.get(pieces)
        {
            return bytes;
        }
        let per_byte = known.per_byte();
        if !per_byte.is_finite() || per_byte <= 0.0 {
            return first;
        }
        let pieces = (seconds / per_byte / first as f64).round();
        let most = (PIECE_BYTES_MAX / first) as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at least 1
        let pieces = pieces.clamp(1.0, most) as u64;
        pieces * first
    }

    /// The candidates of this trial in random order.
    fn shuffled(&mut self) -> Vec<usize> {
        let in_trial = |index: &usize| self.candidates[*index].in_trial;
        let mut order: Vec<usize> = (0..self.candidates.len()).filter(in_trial).collect();
        self.random.shuffle(&mut order);
        order
    }
}
