"""Draws a run of `haulage bench`: draw_run.py RUN_DIRECTORY PICTURE (pip install matplotlib).

One axis for each cell. A point is a sample, and a line is the median of a variant.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict

import haulage
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def main() -> None:
    run = haulage.load_run(sys.argv[1])
    # %% Times in milliseconds, by cell and variant.
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in run.counted_samples:
        times[sample["cell"]][sample["variant"]].append(sample["elapsed_ns"] / 1e6)
    # %% One axis for each cell.
    figure, axes = plt.subplots(
        len(times), figsize=(8, 1 + 2 * len(times)), squeeze=False, layout="constrained"
    )
    for axis, (cell, variants) in zip(axes[:, 0], sorted(times.items())):
        ordered = sorted(variants.items(), key=lambda item: statistics.median(item[1]))
        for row, (_, samples) in enumerate(ordered):
            axis.plot(samples, [row] * len(samples), "o", alpha=0.4)
            axis.vlines(statistics.median(samples), row - 0.3, row + 0.3, color="black")
        axis.set_yticks(range(len(ordered)), [variant for variant, _ in ordered])
        axis.set_xlabel("ms")
        axis.set_xlim(left=0)
        axis.set_title(cell)
    figure.savefig(sys.argv[2])


if __name__ == "__main__":
    main()
