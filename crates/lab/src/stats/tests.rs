//! Simulated sessions of rounds on noisy machines, for tests.

/// A draw from the standard normal distribution (Box and Muller).
pub(crate) fn normal(rng: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// The disturbances of runs, besides a normal deviation of `Machine::run_sd`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Noise {
    /// None.
    Clean,
    /// A tenth of the runs takes 20 to 100 % longer.
    Contaminated,
    /// A tenth of the runs is 30 % slower; runs of one mode vary less.
    TwoModes,
    /// The machine drifts by about 30 % over a session; the order within rounds is shuffled.
    Drift,
    /// Slow periods of about four runs, a tenth of all runs.
    Bursts,
    /// In a tenth of the sessions the two variants differ four times as much as in others.
    OutlyingSessions,
}

pub(super) const NOISES: [Noise; 6] = [
    Noise::Clean,
    Noise::Contaminated,
    Noise::TwoModes,
    Noise::Drift,
    Noise::Bursts,
    Noise::OutlyingSessions,
];

/// How the runs of two variants vary around their true ratio. Deviations are those of logarithms of
/// times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) noise: Noise,
    /// Of single runs.
    pub(super) run_sd: f64,
    /// Of a session's true ratio: the difference between variants varies between processes.
    pub(super) session_sd: f64,
}

impl Machine {
    /// The log-ratios of `sessions` of `rounds`; the true log-ratio is `effect`.
    pub(super) fn measure(
        &self,
        rng: &mut fastrand::Rng,
        sessions: usize,
        rounds: usize,
        effect: f64,
    ) -> Vec<Vec<f64>> {
        (0..sessions).map(|_| self.session(rng, rounds, effect)).collect()
    }

    fn session(&self, rng: &mut fastrand::Rng, rounds: usize, effect: f64) -> Vec<f64> {
        let outlying = self.noise == Noise::OutlyingSessions && rng.u8(..10) == 0;
        let shift = self.session_sd * normal(rng) * if outlying { 4.0 } else { 1.0 };
        let drift = 0.3 * normal(rng) / (2 * rounds) as f64;
        let mut slow = false;
        let mut runs = 0.0;
        let mut run = |rng: &mut fastrand::Rng| {
            runs += 1.0;
            let own = self.run_sd * normal(rng);
            own + match self.noise {
                Noise::Clean | Noise::OutlyingSessions => 0.0,
                Noise::Contaminated if rng.u8(..10) == 0 => (1.2 + 0.8 * rng.f64()).ln(),
                Noise::Contaminated => 0.0,
                Noise::TwoModes if rng.u8(..10) == 0 => 1.3_f64.ln() - 0.6 * own,
                Noise::TwoModes => -0.6 * own,
                Noise::Drift => drift * runs,
                Noise::Bursts => {
                    slow = if slow { rng.u8(..4) > 0 } else { rng.u8(..36) == 0 };
                    if slow { (1.2 + 0.8 * rng.f64()).ln() } else { 0.0 }
                }
            }
        };
        (0..rounds)
            .map(|_| {
                let (first, second) = (run(rng), run(rng));
                shift + effect + if rng.bool() { first - second } else { second - first }
            })
            .collect()
    }
}
