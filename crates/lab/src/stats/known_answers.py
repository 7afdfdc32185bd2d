"""The numbers that the tests of this directory compare with: python3 known_answers.py

Made with numpy 2.4.6, scipy 1.17.1 and diptest 0.12.0.
"""

import numpy as np
from scipy import stats
from scipy.stats import mstats

DELTA = np.log1p(0.02)


def show(name, *values):
    print(name, *(f"{float(value):.10f}" for value in values))


plain = np.array([0.02, 0.05, 0.03, 0.08])
low, high = stats.t.interval(0.95, len(plain) - 1, plain.mean(), stats.sem(plain))
p = stats.ttest_1samp(plain, DELTA, alternative="greater").pvalue
show("plain", np.exp(plain.mean()), np.exp(low), np.exp(high), p)

# One of ten cut from each end; Yuen's standard error is sqrt(SS_winsorized / (h (h - 1))).
values = np.array([0.02, 0.05, 0.03, 0.08, 0.04, 0.05, 0.01, 0.06, 0.9, 0.03])
kept = 8
mean = float(mstats.trimmed_mean(values, (0.1, 0.1)))
winsorized = np.asarray(mstats.winsorize(values, (0.1, 0.1)))
error = np.sqrt(((winsorized - winsorized.mean()) ** 2).sum() / (kept * (kept - 1)))
half = stats.t.ppf(0.975, kept - 1) * error
p = stats.t.sf((mean - DELTA) / error, kept - 1)
show("trimmed", np.exp(mean), np.exp(mean - half), np.exp(mean + half), p)

sample = [3.1, 1.2, 9.7, 4.4, 2.8, 7.5]
show("quantiles", *(np.quantile(sample, q) for q in (0, 0.05, 0.25, 0.5, 0.75, 1)))

show("t", *(stats.t.ppf(p, df) for p, df in
            ((0.975, 4), (0.995, 4), (0.9999, 4), (0.998, 9), (0.975, 1), (0.975, 45))))

# Theil-Sen takes the median of all slopes; tau without ties is S / pairs.
x = np.array([1.0, 2.0, 3.5, 4.0, 6.0, 7.5, 9.0])
y = np.array([2.1, 3.9, 7.4, 7.9, 30.0, 15.2, 17.7])
slope = stats.theilslopes(y, x).slope
tau = stats.kendalltau(x, y).statistic
n = len(x)
s = tau * n * (n - 1) / 2
show("theil_sen", slope, s / np.sqrt(n * (n - 1) * (2 * n + 5) / 18))

# Levels of looks after 5, 10 and 20 sessions when 5 % is spent in proportion, by scipy's own integral of
# the multivariate normal density; then the error of five looks at 5 % each, after 5, 10, 20, 40, 80.
from scipy.optimize import brentq


def undecided(counts, boundaries):
    n = np.array(counts, float)
    cov = np.sqrt(np.minimum.outer(n, n) / np.maximum.outer(n, n))
    b = np.array(boundaries)
    normal = stats.multivariate_normal(
        np.zeros(len(b)), cov, seed=1, maxpts=1_000_000, abseps=1e-7, releps=1e-7)
    return normal.cdf(b, lower_limit=-b)


boundaries = []
for k, count in enumerate((5, 10, 20)):
    left = 1 - 0.05 * count / 20
    counts = (5, 10, 20)[: k + 1]
    boundaries.append(brentq(lambda z: undecided(counts, boundaries + [z]) - left, 1.5, 5, xtol=1e-7))
show("looks", *(2 * stats.norm.sf(z) for z in boundaries))
show("uncorrected", 1 - undecided((5, 10, 20, 40, 80), [stats.norm.isf(0.025)] * 5))

# The exact count: the least n whose noncentral t has 80 % beyond the quantile.
def sessions(sd, effect, alpha):
    d = np.log1p(effect) / sd
    n = 2
    while stats.nct.sf(stats.t.isf(alpha / 2, n - 1), n - 1, d * np.sqrt(n)) < 0.8:
        n += 1
    return n


show("sessions", *(sessions(*case) for case in
                   ((0.18, 0.05, 0.05), (0.05, 0.05, 0.05), (0.02, 0.05, 0.05), (0.1, 0.02, 0.05),
                    (0.05, 0.05, 0.01), (0.01, 0.10, 0.05))))

# diptest 0.12.0: fractions of multiples of the golden ratio, squared, in two clusters; then ties.
import diptest


def two_clusters(count, apart, share):
    i = np.arange(1, count + 1)
    spread = np.modf(i * 0.6180339887498949)[0]
    return spread**2 + np.where(np.modf(i * 0.4142135623730951)[0] < share, apart, 0.0)


show("dip", *(diptest.dipstat(two_clusters(*case)) for case in
              ((20, 0, 0), (20, 2, 0.5), (50, 0.8, 0.3), (100, 3, 0.1), (333, 1.1, 0.4))),
     diptest.dipstat(np.array([1, 1, 1, 2, 2, 3, 7, 7, 7, 8.0])))

# Sheather and Jones's bandwidth over whole matrices; the density at that bandwidth by scipy.
i = np.arange(60)
place = np.modf(i * 0.6180339887498949)[0] - 0.5
heaps = np.log(np.where(i % 3 == 0, 1.5e6, 1e6) * np.exp(0.3 * place * np.abs(place)))
n = len(heaps)
spread = min(heaps.std(ddof=1), np.subtract(*np.quantile(heaps, (0.75, 0.25))) / 1.34)
pairs = np.subtract.outer(heaps, heaps)


def roughness(h, order):
    # Derivatives of the normal density by Hermite polynomials.
    hermite = np.polynomial.hermite_e.hermeval(pairs / h, [0] * order + [1])
    return (hermite * stats.norm.pdf(pairs / h)).sum() / (n * (n - 1) * h ** (order + 1))


iqr = 1.349 * spread
ratio = roughness(0.920 * iqr * n ** (-1 / 7), 4) / -roughness(0.912 * iqr * n ** (-1 / 9), 6)
h = brentq(lambda h: (1 / (2 * np.sqrt(np.pi) * n * roughness(1.357 * ratio ** (1 / 7) * h ** (5 / 7), 4)))
           ** 0.2 - h, 0.01 * spread, spread, xtol=1e-14)
grid = np.linspace(heaps.min() - 3 * h, heaps.max() + 3 * h, 65)
kde = stats.gaussian_kde(heaps, bw_method=h / heaps.std(ddof=1))
show("density", h, np.exp(grid[20]), *kde(grid[[20, 50]]), 0.9 * spread * n ** -0.2)

# A bisquare fit of logarithms by scipy, scale 0.05.
from scipy.optimize import least_squares

n = 2.0 ** np.arange(6, 31)
t = (300 + 0.25 * n) * np.exp(0.05 * np.sin(np.log2(n) * 7)) * np.where(n == 8192, 1.6, 1)
k = 4.685 * 0.05


def bisquare(z):
    # Of squared residuals over k: rho, rho', rho''.
    inside = z < 1
    return np.array([np.where(inside, 1 - (1 - z) ** 3, 1) / 3, np.where(inside, (1 - z) ** 2, 0),
                     np.where(inside, -2 * (1 - z), 0)])


start = np.linalg.lstsq(np.c_[1 / t, n / t], np.ones(25))[0]
fit = least_squares(lambda p: np.log(t) - np.log(p[0] + p[1] * n), start, loss=bisquare, f_scale=k,
                    x_scale=start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
show("bisquare_fit", *fit.x)

# Shares of cells: the interval of Clopper and Pearson.
for count, of in ((0, 28), (1, 28), (19, 20), (24, 24)):
    interval = stats.binomtest(count, of).proportion_ci(0.95, "exact")
    show(f"share {count}/{of}", interval.low, interval.high)

# Two samples that are not paired: Yuen's test, one of eight cut from each end.
one = np.array([0.31, 0.29, 0.35, 0.30, 0.28, 0.95, 0.33, 0.27, 0.32])
other = np.array([0.21, 0.25, 0.24, 0.22, 0.28, 0.20])
test = stats.ttest_ind(one, other, equal_var=False, trim=0.125)
interval = test.confidence_interval(0.95)
show("two samples", test.statistic, test.df, interval.low, interval.high, test.pvalue)
