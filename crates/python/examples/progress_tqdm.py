"""Copies a tree with a progress bar of tqdm: progress_tqdm.py SRC DST (pip install tqdm)."""

from __future__ import annotations

import sys

import haulage
from tqdm import tqdm


def main() -> None:
    src, dst = sys.argv[1:]
    with tqdm(unit="B", unit_scale=True, unit_divisor=1024) as bar:

        def show(progress: haulage.Progress) -> None:
            bar.total = progress.total_bytes
            bar.update(progress.bytes - bar.n)

        haulage.copytree(src, dst, symlinks=True, progress=show)


if __name__ == "__main__":
    main()
