"""Copies files and trees the fastest safe way on Linux.

The functions of :mod:`shutil` that copy, with the same signatures and exceptions, and further keyword
arguments (:class:`Options`). ``haulage.install()`` puts them into ``shutil``.
"""

from __future__ import annotations

from shutil import Error, SameFileError, SpecialFileError

from ._copy import copy, copy2, copyfile, copymode, copystat, copytree, move
from ._haulage import Progress
from ._install import install, uninstall
from ._lab import CommandError, race, tune
from ._options import Options
from ._run import Run, load_run

__all__ = [
    "CommandError",
    "Error",
    "Options",
    "Progress",
    "Run",
    "SameFileError",
    "SpecialFileError",
    "copy",
    "copy2",
    "copyfile",
    "copymode",
    "copystat",
    "copytree",
    "install",
    "load_run",
    "move",
    "race",
    "tune",
    "uninstall",
]
