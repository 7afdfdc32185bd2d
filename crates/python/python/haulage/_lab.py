"""The lab, by the command ``haulage``, which has to be installed beside this package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Optional, Union

Path = Union[str, "os.PathLike[str]"]


class CommandError(RuntimeError):
    """The command ``haulage`` is missing or failed. The text has its messages."""


def race(
    src: Optional[Path] = None,
    dst: Optional[Path] = None,
    *,
    engines: Optional[list[str]] = None,
    state: str = "warm",
    rounds: Optional[int] = None,
    seconds: Optional[float] = None,
    seed: Optional[int] = None,
    command: Path = "haulage",
) -> dict[str, Any]:
    """Measures all variants on one source, as ``haulage race``, and returns its JSON.

    It is a command of its own: this function runs it and waits. The process of the caller is not
    measured.
    """
    words = ["race", "--state", state]
    if engines is not None:
        words += ["--engines", ",".join(engines)]
    words += _words(rounds=rounds, time=seconds, seed=seed)
    if src is not None and dst is None:
        # A single operand could be taken for the destination.
        dst = os.curdir
    return _run(command, words, [path for path in (src, dst) if path is not None])


def tune(
    *dirs: Path,
    seconds: Optional[float] = None,
    seed: Optional[int] = None,
    command: Path = "haulage",
) -> dict[str, Any]:
    """Finds the fastest variants between directories, as ``haulage tune``, and returns its JSON.

    The result is stored in the profile of ``haulage cp``. The functions of this package do not read
    that profile.
    """
    return _run(command, ["tune", *_words(time=seconds, seed=seed)], list(dirs))


def _words(**values: Any) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def _run(command: Path, words: list[str], paths: list[Path]) -> dict[str, Any]:
    program = shutil.which(command)
    if program is None:
        raise CommandError(f"the command {os.fspath(command)} is not installed")
    argv = [program, *words, "--json", "-", "--", *(os.fspath(path) for path in paths)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        messages = done.stderr.decode("utf-8", "replace").strip()
        raise CommandError(f"haulage {words[0]}: exit status {done.returncode}: {messages}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result
