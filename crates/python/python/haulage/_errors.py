"""Exceptions, as ``shutil`` raises them."""

from __future__ import annotations

import errno
import os
from shutil import SameFileError, SpecialFileError
from typing import Any, Optional, Union

StrOrBytes = Union[str, bytes]

# What the extension module returns: kind, errno, reason, path, target of a symbolic link.
Failure = tuple[str, int, Optional[str], Optional[bytes], Optional[bytes]]


def exception_of(failure: Failure, src: Any, dst: Any) -> OSError:
    """The exception of a failure. It names files as the caller did."""
    kind, number, reason, path, target = failure
    if kind == "same_file":
        return SameFileError(f"{src!r} and {dst!r} are the same file")
    shown = None if path is None else _as_given(path, src, dst)
    if kind == "fifo":
        return SpecialFileError(f"`{shown!s}` is a named pipe")
    words = reason or os.strerror(number)
    if number == errno.ENOTDIR and os.fsencode(dst).endswith(b"/") and not os.path.exists(dst):
        # A name that ends in a slash is that of a directory, which does not exist.
        number, words = errno.ENOENT, os.strerror(errno.ENOENT)
    if target is not None:
        return OSError(number, words, like(target, src), None, shown)
    return OSError(number, words, shown)


def _as_given(path: bytes, src: Any, dst: Any) -> StrOrBytes:
    for given in (src, dst):
        name: StrOrBytes = os.fspath(given)
        if os.fsencode(name) == path:
            return name
    return like(path, dst)


def like(path: bytes, given: Any) -> StrOrBytes:
    """The path as bytes or as a string, whichever ``given`` is."""
    return path if isinstance(os.fspath(given), bytes) else os.fsdecode(path)


def entries_of(failures: list[Failure], src: Any, dst: Any) -> list[tuple[Any, Any, str]]:
    """The list of ``shutil.Error``: source, destination and reason of each failure of a tree."""
    top_src, top_dst = os.fsencode(src), os.fsencode(dst)
    entries = []
    for failure in failures:
        path = failure[3] or top_src
        # One may be below the other.
        tops = sorted((top_dst, top_src), key=len, reverse=True)
        found = (_below(path, top) for top in tops)
        below = next((name for name in found if name is not None), b"")
        src_name = like(os.path.join(top_src, below) if below else top_src, src)
        dst_name = like(os.path.join(top_dst, below) if below else top_dst, dst)
        entries.append((src_name, dst_name, str(exception_of(failure, src_name, dst_name))))
    return entries


def _below(path: bytes, top: bytes) -> Optional[bytes]:
    """``path`` relative to ``top``, if it is there."""
    top = top.rstrip(b"/") or b"/"
    if path.rstrip(b"/") == top:
        return b""
    start = top if top == b"/" else top + b"/"
    return path[len(start) :].lstrip(b"/") if path.startswith(start) else None
