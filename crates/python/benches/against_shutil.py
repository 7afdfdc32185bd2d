"""Times the functions of haulage against those of shutil, interleaved.

usage: against_shutil.py [DIR]

Every round runs both, in shuffled order, each into a fresh name. The sources are in the page cache. The
ratio is the median over rounds, with the quartiles; under 1 is faster than shutil.

Copied directories are removed after the last measurement: ext4 without a journal does not give an inode
away again for 60 to 360 seconds after its file was removed, and each creation searches past all of them
(`recently_deleted` in fs/ext4/ialloc.c). For the same reason, two runs there within that time do not agree.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import haulage

Call = Callable[[Any, Path], None]


def once(function: Callable[..., Any]) -> Call:
    def call(src: Any, dst: Path) -> None:
        function(src, dst)

    return call


def many(function: Callable[..., Any]) -> Call:
    def call(src: Any, dst: Path) -> None:
        dst.mkdir()
        for number in range(1000):
            function(src, dst / str(number))

    return call


def elapsed(call: Call, src: Path, dst: Path) -> float:
    begun = time.perf_counter()
    call(src, dst)
    took = time.perf_counter() - begun
    if not dst.is_dir():
        dst.unlink()
    return took


def compare(words: str, own: Call, other: Call, src: Path, home: Path, rounds: int) -> None:
    copies = Path(tempfile.mkdtemp(dir=home))
    times: dict[str, list[float]] = {"haulage": [], "shutil": []}
    for number in range(rounds + 1):
        calls = [("haulage", own), ("shutil", other)]
        random.shuffle(calls)
        for name, call in calls:
            took = elapsed(call, src, copies / f"{name} {number}")
            # The first round warms up.
            if number > 0:
                times[name].append(took)
    ratios = [own / other for own, other in zip(times["haulage"], times["shutil"])]
    low, median, high = statistics.quantiles(ratios, n=4)
    medians = {name: statistics.median(each) * 1000 for name, each in times.items()}
    print(
        f"{words:40} {medians['shutil']:9.1f} ms {medians['haulage']:9.1f} ms"
        f"  {median:.3f} [{low:.3f}, {high:.3f}]",
        flush=True,
    )


def main() -> None:
    where = sys.argv[1] if len(sys.argv) > 1 else None
    print(f"{'':40} {'shutil':>12} {'haulage':>12}  ratio [quartiles]")
    with tempfile.TemporaryDirectory(dir=where) as name:
        home = Path(name)
        tree = home / "tree"
        for number in range(10_000):
            path = tree / str(number % 100) / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(1 + number % 8000))
        small, large = home / "small", home / "large"
        small.write_bytes(os.urandom(1024))
        with open(large, "wb") as file:
            for _ in range(1024):
                file.write(os.urandom(1 << 20))
        os.sync()
        compare(
            "copytree, 10,000 small files",
            once(haulage.copytree), once(shutil.copytree), tree, home, 9,
        )  # fmt: skip
        compare(
            "copyfile, 1 KiB, 1,000 times",
            many(haulage.copyfile), many(shutil.copyfile), small, home, 15,
        )  # fmt: skip
        compare(
            "copy2, 1 KiB, 1,000 times",
            many(haulage.copy2), many(shutil.copy2), small, home, 15,
        )  # fmt: skip
        compare(
            "copyfile, 1 GiB",
            once(haulage.copyfile), once(shutil.copyfile), large, home, 7,
        )  # fmt: skip


if __name__ == "__main__":
    main()
