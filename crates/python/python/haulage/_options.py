"""The keyword arguments that functions of ``shutil`` do not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from ._haulage import Progress


@dataclass(frozen=True)
class Options:
    """How to copy. Every field is a keyword argument of the functions that copy."""

    progress: Optional[Callable[[Progress], object]] = None
    """Called with the progress at most ten times a second, and once at the end, on the thread that
    called the function. Its exception ends the copy, and is raised by the function."""
    verify: bool = False
    """Read each copy back, from the medium if that is possible, and compare it with its source."""
    atomic: bool = False
    """A name stands for the old file or for the complete new one at every moment."""
    durable: bool = False
    """Sync every copy and every name before the function returns."""
    resume: bool = False
    """Continue a copy of the same names that was killed. Implies ``atomic``, keeps times, and lets
    ``copytree`` copy into an existing directory. ``move`` continues files only."""
    jobs: Optional[int] = None
    """The number of threads that copy. By default one for each processor, for small files more if
    they are measured to help."""
    reflink: str = "auto"
    """Whether files share their blocks with their copies: ``auto``, ``always`` or ``never``."""
    receipt: Optional[Callable[[dict[str, Any]], object]] = None
    """Called with what was done with each entry, on the thread that called the function."""

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs is a positive number, not {self.jobs!r}")
        if self.reflink not in ("auto", "always", "never"):
            raise ValueError(f"reflink is 'auto', 'always' or 'never', not {self.reflink!r}")


@dataclass(frozen=True)
class TreeOptions:
    """How a tree is copied, beside :class:`Options`."""

    symlinks: bool
    ignore_dangling_symlinks: bool
    merges: bool
    """The destination existed before."""
    creates: bool
    """The copy creates the destination. EEXIST if it exists."""
    ignore: Optional[Callable[[bytes], list[bytes]]]
    """Called with each directory below the first; returns the names to ignore."""
    ignored: list[bytes]
    """The names to ignore in the first directory."""
