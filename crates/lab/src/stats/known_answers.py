"""The numbers that the tests of this directory compare with: python3 known_answers.py

Made with numpy 2.4.6 and scipy 1.17.1.
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
