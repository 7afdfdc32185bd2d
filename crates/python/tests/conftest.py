"""What the tests share."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Callable, Iterator

import pytest

import haulage


@pytest.fixture
def installed() -> Iterator[None]:
    """haulage is installed into shutil during the test."""
    haulage.install()
    yield
    haulage.uninstall()


def skip(reason: str) -> None:
    """Skips the test, and says so where `cargo xtask test` looks."""
    print(f"SKIPPED {os.environ.get('PYTEST_CURRENT_TEST', '')}: {reason}", file=sys.stderr)
    if skips := os.environ.get("HAULAGE_SKIPS"):
        with open(skips, "a", encoding="utf-8") as file:
            file.write(f"SKIPPED python {os.environ.get('PYTEST_CURRENT_TEST', '')}: {reason}\n")
    pytest.skip(reason)


def snapshot(top: Path) -> dict[str, tuple[object, ...]]:
    """Names below `top`, with type, mode, time and contents or target."""
    entries: dict[str, tuple[object, ...]] = {}
    for path in sorted(top.rglob("*")):
        stat = path.lstat()
        if path.is_symlink():
            contents: object = os.readlink(path)
        else:
            contents = path.read_bytes() if path.is_file() else None
        # The mode of a symbolic link means nothing.
        mode = None if path.is_symlink() else stat.st_mode
        entries[str(path.relative_to(top))] = (mode, stat.st_mtime_ns, contents)
    return entries


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree of every type that can be copied."""
    top = tmp_path / "src"
    (top / "dir" / "empty").mkdir(parents=True)
    (top / "a").write_bytes(b"contents of a")
    (top / "dir" / "b").write_bytes(os.urandom(200_000))
    (top / "dir" / "b").chmod(0o640)
    (top / "nothing").touch()
    (top / "link").symlink_to("a")
    (top / "dir" / "up").symlink_to("../a")
    (top / "dir-link").symlink_to("dir")
    os.utime(top / "a", ns=(10**18 + 1, 10**18 + 2))
    os.utime(top / "dir", ns=(10**18 + 3, 10**18 + 4))
    return top


Run = Callable[[], object]


def exception(run: Run) -> tuple[object, ...]:
    """What a call raises, in a form that can be compared; its result otherwise."""
    try:
        return ("returned", run())
    except shutil.Error as error:
        if error.args and isinstance(error.args[0], list):
            # The order of the entries is that of the directory.
            return (type(error), sorted(map(str, error.args[0])))
        return (type(error), error.errno, str(error))
    except OSError as error:
        return (type(error), error.errno, str(error))
