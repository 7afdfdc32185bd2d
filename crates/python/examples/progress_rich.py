"""Copies a tree with a progress bar of rich: progress_rich.py SRC DST (pip install rich)."""

from __future__ import annotations

import sys

import haulage
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
from rich.progress import TransferSpeedColumn


def main() -> None:
    src, dst = sys.argv[1:]
    columns = [BarColumn(), DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn()]
    with Progress(*columns) as view:
        task = view.add_task("copy", total=None)

        def show(progress: haulage.Progress) -> None:
            view.update(task, completed=progress.bytes, total=progress.total_bytes)

        haulage.copytree(src, dst, symlinks=True, verify=True, progress=show)


if __name__ == "__main__":
    main()
