//! Simulated machines that drive the selector: time for a byte by candidate, and how it changes.

use super::selector::{Piece, Selector};
use super::thresholds::PieceSizes;

const GIB: u64 = 1 << 30;

/// The time that one piece takes.
struct Machine {
    name: &'static str,
    /// Seconds for a GiB by candidate.
    seconds_per_gib: &'static [f64],
    /// The factor of a candidate's time, by candidate, elapsed seconds and bytes copied.
    factor: fn(usize, f64, u64, &mut Random) -> f64,
    /// Spread of a piece of 2 ms: the standard deviation of the logarithm.
    noise: f64,
    /// Bytes more that a piece after one of another candidate is charged for: with the first candidate those that were
    /// read ahead and are read again, with another those that it would copy while its readahead begins.
    change_bytes: (u64, u64),
    sizes: PieceSizes,
}

/// Seconds for a GiB of read_write@2, splice@2, copy_file_range@2 and copy_file_range, as they were measured.
const ZEN_3: &[f64] = &[0.244, 0.26, 0.31, 0.40];
/// A faster processor.
const ZEN_5: &[f64] = &[0.109, 0.13, 0.179, 0.25];
/// The first is as slow as it was with buffers 16 bytes past a page.
const FIRST_IS_SLOW: &[f64] = &[0.40, 0.26, 0.31, 0.40];
/// Two workers that read and write 256 KiB, each call delayed.
const FIRST_IS_VERY_SLOW: &[f64] = &[20.0, 0.13, 0.18, 0.25];
/// Calls of the second and of the last two are delayed instead.
const SPLICE_IS_VERY_SLOW: &[f64] = &[0.109, 20.0, 0.179, 0.25];
const COPY_FILE_RANGE_IS_VERY_SLOW: &[f64] = &[0.109, 0.13, 10.0, 5.0];
/// The opposite order.
const OPPOSITE: &[f64] = &[0.47, 0.40, 0.36, 0.30];
/// A file system on which workers wait for one lock.
const ONE_LOCK: &[f64] = &[0.50, 0.45, 0.46, 0.33];

fn steady(_: usize, _: f64, _: u64, _: &mut Random) -> f64 {
    1.0
}

const fn machine(
    name: &'static str,
    seconds_per_gib: &'static [f64],
    factor: fn(usize, f64, u64, &mut Random) -> f64,
) -> Machine {
    let (noise, change_bytes) = (0.08, (0, 0));
    Machine { name, seconds_per_gib, factor, noise, change_bytes, sizes: PieceSizes::CACHED }
}

/// A source on storage: direct_read and read_write@2, whose readahead begins empty.
const fn cold(name: &'static str, seconds_per_gib: &'static [f64]) -> Machine {
    let machine = machine(name, seconds_per_gib, steady);
    Machine { sizes: PieceSizes::COLD, noise: 0.25, change_bytes: (13 << 20, 8 << 20), ..machine }
}

const COLD_MACHINES: &[Machine] = &[
    cold("a virtual disk, Zen 3", &[0.80, 0.36]),
    cold("a virtual disk, Zen 4", &[0.47, 0.48]),
    cold("a virtual disk, Zen 4, small pages", &[0.83, 0.46]),
    cold("a virtual disk, Intel", &[0.45, 1.19]),
    cold("an image in memory, Zen 5", &[0.15, 0.275]),
    cold("an image in memory, Intel", &[0.21, 0.44]),
    cold("fast storage without a difference", &[0.4, 0.4]),
    cold("slow storage without a difference", &[2.0, 2.0]),
];

const MACHINES: &[Machine] = &[
    machine("Zen 3", ZEN_3, steady),
    machine("Zen 5", ZEN_5, steady),
    machine("the first is slow", FIRST_IS_SLOW, steady),
    machine("calls of the first take 5 ms", FIRST_IS_VERY_SLOW, steady),
    machine("calls of splice take 5 ms", SPLICE_IS_VERY_SLOW, steady),
    machine("calls of copy_file_range take 5 ms", COPY_FILE_RANGE_IS_VERY_SLOW, steady),
    machine("the opposite order", OPPOSITE, steady),
    machine("one lock", ONE_LOCK, steady),
    machine("all equal", &[0.3; 4], steady),
    machine("noisy", FIRST_IS_SLOW, stolen),
    machine("splice with a slow mode", FIRST_IS_SLOW, slow_splice),
    machine("the best has slow moments", ZEN_3, slow_moments),
    machine("drift", FIRST_IS_SLOW, drift),
    machine("the best becomes the worst", ZEN_3, reversal),
    machine("a disturbance at the start", ZEN_3, start_disturbed),
    machine("every second piece is slow", ZEN_3, alternating),
    machine("a disk that stalls", FIRST_IS_SLOW, stall),
];

/// One piece in fifty meets another virtual machine on its processor.
fn stolen(_: usize, _: f64, _: u64, random: &mut Random) -> f64 {
    if random.unit() < 0.02 { 3.0 } else { 1.0 }
}

/// splice@2 is six times slower for the whole run, in half of the runs.
fn slow_splice(candidate: usize, _: f64, _: u64, random: &mut Random) -> f64 {
    if candidate == 1 && random.run_is_odd { 6.0 } else { 1.0 }
}

/// read_write@2, the best by its median, is four times slower in a third of all intervals of 100 ms.
fn slow_moments(candidate: usize, elapsed: f64, _: u64, _: &mut Random) -> f64 {
    let is_slow = (1.0..2.0).contains(&(elapsed * 10.0 % 3.0));
    if candidate == 0 && is_slow { 4.0 } else { 1.0 }
}

/// Everything becomes slower, to a third of the rate after a second.
fn drift(_: usize, elapsed: f64, _: u64, _: &mut Random) -> f64 {
    1.0 + (2.0 * elapsed).min(2.0)
}

/// read_write@2 becomes five times slower after 300 MiB.
fn reversal(candidate: usize, _: f64, bytes: u64, _: &mut Random) -> f64 {
    if candidate == 0 && bytes > 300 << 20 { 5.0 } else { 1.0 }
}

/// After 1 GiB the page cache is full, and each candidate waits for the disk.
fn stall(_: usize, _: f64, bytes: u64, _: &mut Random) -> f64 {
    if bytes > GIB { 8.0 } else { 1.0 }
}

/// Another process has the second processor for the first 15 ms: two workers are as slow as one.
fn start_disturbed(candidate: usize, elapsed: f64, _: u64, _: &mut Random) -> f64 {
    let is_shared = candidate < 3;
    if is_shared && elapsed < 0.015 { 1.9 } else { 1.0 }
}

/// Every second piece of splice@2 and read_write@2 takes 2.4 times as long.
fn alternating(candidate: usize, _: f64, _: u64, random: &mut Random) -> f64 {
    let is_slow = candidate < 2 && random.unit() < 0.5;
    if is_slow { 2.4 } else { 1.0 }
}

struct Random {
    state: fastrand::Rng,
    run_is_odd: bool,
}

impl Random {
    fn new(seed: u64) -> Random {
        Random { state: fastrand::Rng::with_seed(seed), run_is_odd: seed % 2 == 1 }
    }

    fn unit(&mut self) -> f64 {
        self.state.f64()
    }

    /// A standard normal deviate (Box, Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (one, other) = (1.0 - self.unit(), self.unit());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }
}

impl Machine {
    fn seconds(&self, candidate: usize, bytes: u64, at: (f64, u64), random: &mut Random) -> f64 {
        let plain = self.seconds_per_gib[candidate] * bytes as f64 / GIB as f64;
        // Noise averages out over longer pieces.
        let spread = self.noise * (2e-3 / plain.max(1e-4)).sqrt().min(3.0);
        let noise = (spread * random.normal()).exp();
        plain * noise * (self.factor)(candidate, at.0, at.1, random)
    }

    /// The time of a copy of `bytes` by one candidate in pieces of 8 MiB.
    fn fixed(&self, candidate: usize, bytes: u64, seed: u64) -> f64 {
        let (mut elapsed, mut copied, mut random) = (0.0, 0, Random::new(seed));
        while copied < bytes {
            let piece = (8 << 20).min(bytes - copied);
            elapsed += self.seconds(candidate, piece, (elapsed, copied), &mut random);
            copied += piece;
        }
        elapsed
    }

    /// The time of a copy of `bytes` with the selector, and the selector at its end.
    fn selected(&self, bytes: u64, seed: u64) -> (f64, Selector) {
        let mut selector = Selector::new(self.seconds_per_gib.len(), self.sizes, seed);
        let (mut elapsed, mut copied, mut random) = (0.0, 0, Random::new(seed));
        let mut started = vec![false; self.seconds_per_gib.len()];
        let mut last = 0;
        while copied < bytes {
            let piece = selector.next(bytes - copied).expect("nothing is refused");
            let at = (elapsed, copied);
            // Threads, buffers and pipes are made for the first piece.
            let is_first = !std::mem::replace(&mut started[piece.candidate], true);
            let setup = if is_first { 2e-4 * random.unit() } else { 0.0 };
            let is_changed = std::mem::replace(&mut last, piece.candidate) != piece.candidate;
            let (again, begin) = self.change_bytes;
            let change_bytes = if last == 0 { again } else { begin };
            let change_bytes = if is_changed { change_bytes } else { 0 };
            let change = self.seconds_per_gib[last] * change_bytes as f64 / GIB as f64;
            let plain = self.seconds(piece.candidate, piece.bytes, at, &mut random);
            let seconds = plain + setup + change;
            selector.record(piece.candidate, piece.bytes, seconds);
            elapsed += seconds;
            copied += piece.bytes;
        }
        (elapsed, selector)
    }

    /// The mean time of a copy of `bytes` over many seeds, relative to the best fixed candidate's, and the
    /// mean regret of its trials.
    fn ratio(&self, bytes: u64) -> (f64, f64) {
        const SEEDS: u64 = 40;
        let mean = |of: &dyn Fn(u64) -> f64| (0..SEEDS).map(of).sum::<f64>() / SEEDS as f64;
        let candidates = 0..self.seconds_per_gib.len();
        let fixed = candidates.map(|candidate| mean(&|seed| self.fixed(candidate, bytes, seed)));
        let best = fixed.fold(f64::INFINITY, f64::min);
        let selected = mean(&|seed| self.selected(bytes, seed).0);
        let regret = mean(&|seed| {
            let (seconds, selector) = self.selected(bytes, seed);
            selector.regret_seconds() / seconds
        });
        (selected / best, regret)
    }
}

/// The mean time relative to the best fixed candidate is at most `bound`, for a copy of that many MiB.
fn check(machine: &Machine, bounds: [(u64, f64); 4]) {
    for (mib, bound) in bounds {
        let (ratio, _) = machine.ratio(mib << 20);
        assert!(ratio <= bound, "{}, {mib} MiB: {ratio:.3} of the best, not {bound}", machine.name);
    }
}

#[test]
fn the_best_candidate_is_found_on_each_machine() {
    for machine in MACHINES {
        let bounds = match machine.name {
            // The trial costs the most, as a share, in the shortest copy that has one.
            "Zen 3" | "Zen 5" | "all equal" => {
                [(128, 1.06), (256, 1.05), (1024, 1.03), (16384, 1.03)]
            }
            // A candidate that becomes slow is noticed after a piece, which costs more the shorter the rest is.
            "the best has slow moments" => [(128, 1.06), (256, 1.05), (1024, 1.15), (16384, 1.06)],
            "the best becomes the worst" => [(128, 1.06), (256, 1.05), (1024, 1.20), (16384, 1.05)],
            // A choice that was right in the first milliseconds is tried again after 0.2 s only.
            "a disturbance at the start" => [(128, 1.15), (256, 1.15), (1024, 1.45), (16384, 1.07)],
            // A piece of 512 KiB takes 10 ms, or 5 and 2.5 ms by copy_file_range.
            "calls of the first take 5 ms" => {
                [(128, 1.8), (256, 1.45), (1024, 1.15), (16384, 1.03)]
            }
            "calls of splice take 5 ms" | "calls of copy_file_range take 5 ms" => {
                [(128, 1.15), (256, 1.45), (1024, 1.15), (16384, 1.03)]
            }
            // Which of two is the faster differs from piece to piece.
            "every second piece is slow" => [(128, 1.35), (256, 1.30), (1024, 1.12), (16384, 1.06)],
            _ => [(128, 1.20), (256, 1.15), (1024, 1.08), (16384, 1.06)],
        };
        check(machine, bounds);
    }
}

/// A choice that never reads past the page cache takes 1.8 times as long on the image, one that always does 2.2
/// times as long on the disk.
#[test]
fn the_way_to_read_a_device_is_found() {
    for machine in COLD_MACHINES {
        check(machine, [(128, 1.40), (256, 1.20), (1024, 1.08), (16384, 1.05)]);
    }
}

#[test]
fn trials_cost_little() {
    for machine in MACHINES {
        // One piece of a candidate whose calls take 5 ms takes 10 ms.
        let long = if machine.name.ends_with("take 5 ms") { 0.1 } else { 0.03 };
        // The regret counts noise too, and so is larger than what a trial costs.
        for (mib, bound) in [(128, 0.075), (1024, long), (16384, 0.015)] {
            let (_, regret) = machine.ratio(mib << 20);
            assert!(regret <= bound, "{}, {mib} MiB: {:.1} %", machine.name, regret * 100.0);
        }
    }
}

/// Copies `whole` bytes. `seconds` tells how long a piece takes after that many bytes.
fn copy(selector: &mut Selector, whole: u64, mut seconds: impl FnMut(Piece, u64) -> f64) {
    let mut copied = 0;
    while copied < whole {
        let piece = selector.next(whole - copied).expect("nothing is refused");
        selector.record(piece.candidate, piece.bytes, seconds(piece, copied));
        copied += piece.bytes;
    }
}

#[test]
fn every_machine_order_has_the_best_first_in_the_end() {
    // Each candidate in turn is the only fast one.
    for best in 0..5 {
        let mut found = 0;
        for seed in 0..20 {
            let mut selector = Selector::new(5, PieceSizes::CACHED, seed);
            copy(&mut selector, GIB, |Piece { candidate, bytes }, _| {
                bytes as f64 / if candidate == best { 4e9 } else { 2.5e9 }
            });
            found += u32::from(selector.best() == best);
        }
        assert_eq!(found, 20, "candidate {best}");
    }
}

#[test]
fn a_refused_candidate_is_not_chosen_again() {
    let mut selector = Selector::new(3, PieceSizes::CACHED, 7);
    let mut copied = 0;
    while copied < GIB {
        let piece = selector.next(GIB - copied).expect("two candidates remain");
        // The fastest is refused after 100 MiB.
        if piece.candidate == 1 && copied > 100 << 20 {
            selector.refuse(1);
            continue;
        }
        let rate = [1e9, 3e9, 2e9][piece.candidate];
        selector.record(piece.candidate, piece.bytes, piece.bytes as f64 / rate);
        copied += piece.bytes;
    }
    assert_eq!(selector.best(), 2);
    (0..3).for_each(|candidate| selector.refuse(candidate));
    assert_eq!(selector.next(GIB), None);
    selector.admit(1);
    assert_eq!(selector.next(GIB).map(|piece| piece.candidate), Some(1));
}

#[test]
fn the_first_candidate_copies_the_first_piece() {
    for seed in 0..10 {
        let mut selector = Selector::new(4, PieceSizes::CACHED, seed);
        let piece = selector.next(GIB).expect("nothing is refused");
        assert_eq!(piece, Piece { candidate: 0, bytes: 512 << 10 });
        assert_eq!(selector.next(5).map(|piece| piece.bytes), Some(5), "no more than is left");
    }
}

/// Two candidates copy 256 MiB at the same rate. The first piece of candidate 0 after its start takes
/// `disturbed` times as long. Returns the candidate in use at the end, and the pieces of candidate 1.
fn equal_candidates(disturbed: f64, seed: u64) -> (usize, usize) {
    let mut selector = Selector::new(2, PieceSizes::CACHED, seed);
    let mut pieces = [0; 2];
    copy(&mut selector, 256 << 20, |Piece { candidate, bytes }, _| {
        pieces[candidate] += 1;
        let factor = if (candidate, pieces[0]) == (0, 3) { disturbed } else { 1.0 };
        factor * bytes as f64 / 5e9
    });
    (selector.best(), pieces[1])
}

#[test]
fn one_disturbed_piece_does_not_replace_the_candidate_in_use() {
    for seed in 0..20 {
        assert_eq!(equal_candidates(1.5, seed).0, 0, "seed {seed}");
    }
}

#[test]
fn a_trial_of_equal_candidates_ends_after_three_rounds() {
    for seed in 0..20 {
        assert_eq!(equal_candidates(1.0, seed), (0, 3), "seed {seed}");
    }
}

/// Bytes that candidate 1 copies of a source on storage of `mib` MiB, and the number of trials. Candidate 0 takes
/// `seconds_per_gib`, but `slow` times as long between 200 and 400 MiB. Candidate 1 takes `factor` times as long.
fn bytes_of_the_second(mib: u64, seconds_per_gib: f64, factor: f64, slow: f64) -> (u64, u32) {
    let mut selector = Selector::new(2, PieceSizes::COLD, 1);
    let mut of_second = 0;
    copy(&mut selector, mib << 20, |Piece { candidate, bytes }, copied| {
        let is_slow = candidate == 0 && (200 << 20..400 << 20).contains(&copied);
        let factor = if candidate == 1 { factor } else { 1.0 } * if is_slow { slow } else { 1.0 };
        of_second += if candidate == 1 { bytes } else { 0 };
        factor * seconds_per_gib * bytes as f64 / GIB as f64
    });
    (of_second, selector.trials())
}

/// Seconds for a GiB after which a short copy from storage has no trial, and after which it has one.
const FAST_STORAGE: f64 = 0.4;
const SLOW_STORAGE: f64 = 0.8;

#[test]
fn a_short_copy_from_fast_storage_has_no_trial() {
    assert_eq!(bytes_of_the_second(300, FAST_STORAGE, 0.6, 1.0), (0, 0));
    assert_eq!(bytes_of_the_second(128, SLOW_STORAGE, 1.2, 1.0).1, 1, "a slow start is tried");
    assert!(bytes_of_the_second(1024, FAST_STORAGE, 1.2, 1.0).1 > 0, "and a long copy");
    // The fast one becomes slow for a time, and the rest is long enough then.
    let (_, trials) = bytes_of_the_second(700, FAST_STORAGE, 1.2, 3.0);
    assert!(trials > 0, "a change is noticed");
}

#[test]
fn a_trial_from_storage_has_one_round() {
    let PieceSizes { first_bytes, part_bytes, .. } = PieceSizes::COLD;
    assert_eq!(bytes_of_the_second(256, SLOW_STORAGE, 1.2, 1.0), (first_bytes, 1));
    assert!(bytes_of_the_second(256, SLOW_STORAGE, 0.6, 1.0).0 > 200 << 20, "the faster is used");
    assert_eq!(bytes_of_the_second(256, SLOW_STORAGE, 8.0, 1.0), (part_bytes, 1), "dropped early");
    let (bytes, trials) = bytes_of_the_second(16 << 10, FAST_STORAGE, 1.2, 1.0);
    assert_eq!(bytes, u64::from(trials) * first_bytes, "so has each in a long copy");
}

/// One whole piece would not tell how fast a part is that finds its bytes read ahead.
#[test]
fn a_candidate_that_is_not_in_use_copies_parts_in_each_trial() {
    let mut selector = Selector::new(2, PieceSizes::COLD, 1);
    let mut pieces = Vec::new();
    copy(&mut selector, 4 * GIB, |Piece { candidate, bytes }, _| {
        pieces.extend((candidate == 1).then_some(bytes));
        let factor = if candidate == 1 { 1.1 } else { 1.0 };
        factor * SLOW_STORAGE * bytes as f64 / GIB as f64
    });
    assert!(selector.trials() > 1 && pieces.len() > 4, "{pieces:?}");
    assert!(pieces.iter().all(|&bytes| bytes == PieceSizes::COLD.part_bytes), "{pieces:?}");
}

#[test]
fn no_trial_starts_near_the_end() {
    let (_, trials) = bytes_of_the_second(400, SLOW_STORAGE, 1.2, 1.0);
    let (_, with_change) = bytes_of_the_second(400, SLOW_STORAGE, 1.2, 3.0);
    assert_eq!((trials, with_change), (1, 2), "one more after a change at 200 MiB");
    assert_eq!(bytes_of_the_second(280, SLOW_STORAGE, 1.2, 3.0).1, 1);
}

/// Copies 256 MiB. Each of the four parts of candidate 1 takes as long for a byte as candidate 0, but the first
/// `fast` ones half of that, and `ahead` bytes are read ahead after the last one. Whether it is chosen.
fn is_chosen_with_readahead(fast: u64, ahead: i64) -> bool {
    let PieceSizes { first_bytes, part_bytes, .. } = PieceSizes::COLD;
    let mut selector = Selector::new(2, PieceSizes::COLD, 1);
    let (mut copied, mut of_second) = (0, 0);
    while copied < 256 << 20 {
        let Piece { candidate, bytes } = selector.next((256 << 20) - copied).expect("a piece");
        let is_fast = candidate == 1 && of_second / part_bytes < fast;
        let factor = if is_fast { 0.5 } else { 1.0 };
        let seconds = factor * SLOW_STORAGE * bytes as f64 / GIB as f64;
        of_second += if candidate == 1 { bytes } else { 0 };
        let is_last = candidate == 1 && of_second == first_bytes;
        selector.record_with_readahead(candidate, bytes, seconds, if is_last { ahead } else { 0 });
        copied += bytes;
    }
    selector.best() == 1
}

#[test]
fn what_was_read_ahead_counts_as_much_as_it_saves() {
    let ahead = 24 << 20;
    assert!(!is_chosen_with_readahead(1, 0));
    assert!(is_chosen_with_readahead(1, ahead));
    assert!(!is_chosen_with_readahead(0, ahead), "to copy them takes as long as to read them");
    assert!(is_chosen_with_readahead(2, 0));
    assert!(is_chosen_with_readahead(2, -ahead), "bytes that were there before are not lost");
}

#[test]
fn parts_of_different_files_are_no_piece() {
    let PieceSizes { first_bytes, part_bytes, .. } = PieceSizes::COLD;
    let mut selector = Selector::new(2, PieceSizes::COLD, 1);
    let mut copied = 0;
    loop {
        let Piece { candidate, bytes } = selector.next(GIB - copied).expect("a piece");
        selector.record(candidate, bytes, SLOW_STORAGE * bytes as f64 / GIB as f64);
        copied += bytes;
        if candidate == 1 {
            break;
        }
    }
    selector.start_file();
    let mut parts = 0;
    while selector.next(GIB).expect("a piece").candidate == 1 {
        selector.record(1, part_bytes, SLOW_STORAGE * part_bytes as f64 / GIB as f64);
        parts += 1;
    }
    assert_eq!(parts * part_bytes, first_bytes, "the piece begins anew");
}

/// The candidates of the first eight pieces in the order of their first ones. Calls of candidate 0 are slow or not,
/// and candidate 2 calls the same.
fn first_candidates(is_slow: bool, seed: u64) -> Vec<usize> {
    let selector = Selector::new(4, PieceSizes::CACHED, seed);
    let mut selector = selector.with_siblings([None, None, Some(0), None]);
    let mut order = Vec::new();
    for _ in 0..8 {
        let Piece { candidate, bytes } = selector.next(GIB).expect("a piece");
        if !order.contains(&candidate) {
            order.push(candidate);
        }
        let is_slow = is_slow && candidate % 2 == 0;
        selector.record(candidate, bytes, if is_slow { 5e-3 } else { bytes as f64 / 4e9 });
    }
    order
}

#[test]
fn a_candidate_whose_sibling_is_slow_is_left_out() {
    for seed in 0..20 {
        let (fast, slow) = (first_candidates(false, seed), first_candidates(true, seed));
        assert_eq!((fast.len(), fast[0], fast[3]), (4, 0, 2), "the sibling is last: {fast:?}");
        assert!(slow.len() == 3 && !slow.contains(&2), "{slow:?}");
    }
}

#[test]
fn one_candidate_needs_no_trial() {
    let mut selector = Selector::new(1, PieceSizes::CACHED, 0);
    for _ in 0..100 {
        let piece = selector.next(GIB).expect("nothing is refused");
        selector.record(0, piece.bytes, piece.bytes as f64 / 1e9);
    }
    assert_eq!((selector.trials(), selector.best()), (0, 0));
    assert!(selector.regret_seconds() < 1e-9);
}

#[test]
#[ignore = "prints the table of docs/design/engine-selection.md"]
fn print_ratios() {
    for machine in MACHINES.iter().chain(COLD_MACHINES) {
        let ratios = [16, 64, 128, 256, 1024, 16384].map(|mib| machine.ratio(mib << 20).0);
        println!("{:36} {ratios:.3?}", machine.name);
    }
}
