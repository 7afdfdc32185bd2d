"""Puts the functions into ``shutil``."""

from __future__ import annotations

import shutil

from . import _copy, _original


def install() -> None:
    """Makes ``shutil`` copy with haulage, for the whole process. Functions that a module has imported
    from ``shutil`` before stay as they are."""
    for name in _original.NAMES:
        setattr(shutil, name, getattr(_copy, name))


def uninstall() -> None:
    """Gives ``shutil`` its own functions back."""
    for name in _original.NAMES:
        setattr(shutil, name, getattr(_original, name))
