"""The functions of ``shutil`` that copy."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from typing import Any, Callable, Optional

from . import _haulage, _original
from ._errors import Failure, entries_of, exception_of, like
from ._options import Options, TreeOptions

# They move no data: what `shutil` has is used.
copymode = _original.copymode
copystat = _original.copystat


def copyfile(src: Any, dst: Any, *, follow_symlinks: bool = True, **options: Any) -> Any:
    """Copies the data of the file ``src`` to the name ``dst``, which it returns.

    As ``shutil.copyfile``. Further keyword arguments are the fields of :class:`haulage.Options`.
    """
    sys.audit("shutil.copyfile", src, dst)
    _copy_file("data", src, dst, follow_symlinks, options)
    return dst


def copy(src: Any, dst: Any, *, follow_symlinks: bool = True, **options: Any) -> Any:
    """Copies the data and the mode of the file ``src``, and returns the name of the copy.

    As ``shutil.copy``: ``dst`` may be a directory. Further keyword arguments are the fields of
    :class:`haulage.Options`.
    """
    dst = _in_directory(src, dst)
    sys.audit("shutil.copyfile", src, dst)
    sys.audit("shutil.copymode", src, dst)
    _copy_file("mode", src, dst, follow_symlinks, options)
    return dst


def copy2(src: Any, dst: Any, *, follow_symlinks: bool = True, **options: Any) -> Any:
    """Copies data, mode, times and extended attributes, and returns the name of the copy.

    As ``shutil.copy2``: ``dst`` may be a directory. Further keyword arguments are the fields of
    :class:`haulage.Options`.
    """
    dst = _in_directory(src, dst)
    sys.audit("shutil.copyfile", src, dst)
    sys.audit("shutil.copystat", src, dst)
    _copy_file("all", src, dst, follow_symlinks, options)
    return dst


def copytree(
    src: Any,
    dst: Any,
    symlinks: bool = False,
    ignore: Optional[Callable[[Any, list[Any]], Any]] = None,
    copy_function: Callable[..., Any] = copy2,
    ignore_dangling_symlinks: bool = False,
    dirs_exist_ok: bool = False,
    **options: Any,
) -> Any:
    """Copies the directory ``src`` with everything in it to the name ``dst``, which it returns.

    As ``shutil.copytree``. Further keyword arguments are the fields of :class:`haulage.Options`.
    Without ``copy_function`` several threads copy. With another function ``shutil.copytree`` itself
    calls it for one file after the other.
    """
    if copy_function is not copy2 and copy_function is not _original.copy2:
        if options:
            names = ", ".join(sorted(options))
            raise TypeError(f"copytree() takes no {names} with a copy_function of its own")
        return _original.copytree(
            src, dst, symlinks, ignore, copy_function, ignore_dangling_symlinks, dirs_exist_ok
        )
    if not options and _contains(src, dst) and not _is_below_entry(src, dst):
        # It lists `src` before it creates `dst` in it, and so copies what was there before.
        return _original.copytree(
            src, dst, symlinks, ignore, copy2, ignore_dangling_symlinks, dirs_exist_ok
        )
    keywords = Options(**options)
    sys.audit("shutil.copytree", src, dst)
    src_name, dst_name = os.fspath(src), os.fspath(dst)
    with os.scandir(src_name) as entries:
        names = [entry.name for entry in entries] if ignore is not None else []
    ignored = [] if ignore is None else _ignored(ignore, src_name, names)
    merges = os.path.lexists(dst)
    creates = not merges and not dirs_exist_ok and _is_name(dst_name)
    parent = os.path.dirname(_without_slash(dst_name)) or os.curdir
    is_below_new = not os.path.exists(parent)
    if creates:
        # A directory that the copy itself creates is filled faster (docs/design/small-files.md).
        if is_below_new:
            os.makedirs(parent, exist_ok=True)
        sys.audit("os.mkdir", dst, 0o777, -1)
    else:
        os.makedirs(dst, exist_ok=dirs_exist_ok or keywords.resume)
    # The killed run that is continued may have made them.
    if keywords.durable and (is_below_new or keywords.resume):
        _sync_names_in(parent)

    def ignored_in(path: bytes) -> list[bytes]:
        directory = like(path, src)
        try:
            names = os.listdir(directory)
        except OSError:
            # The copy reports it.
            return []
        assert ignore is not None
        return _ignored(ignore, directory, names)

    tree = TreeOptions(
        symlinks=bool(symlinks),
        ignore_dangling_symlinks=bool(ignore_dangling_symlinks),
        merges=merges,
        creates=creates,
        ignore=None if ignore is None else ignored_in,
        ignored=ignored,
    )
    # A symbolic link to a directory is followed if it is `dst` itself.
    target = os.path.join(os.fsencode(dst_name), b"") if merges else os.fsencode(dst_name)
    failures = _haulage.copy_tree(os.fsencode(src_name), target, tree, keywords)
    if failures and creates and _is_of_mkdir(failures[0], dst_name):
        raise exception_of(failures[0], src, dst)
    if failures:
        raise shutil.Error(entries_of(failures, src_name, dst_name))
    return dst


def move(
    src: Any, dst: Any, copy_function: Callable[..., Any] = copy2, **options: Any
) -> Any:
    """Moves the file or directory ``src`` to the name ``dst`` or into the directory ``dst``, and
    returns its new name.

    As ``shutil.move``. Between file systems it is copied and then removed; further keyword arguments,
    which are the fields of :class:`haulage.Options`, say how. Nothing is removed if the copy failed.
    """
    sys.audit("shutil.move", src, dst)
    own = copy_function is copy2 or copy_function is _original.copy2
    if options and not own:
        raise TypeError("move() takes no further keyword arguments with another copy_function")
    keywords = Options(**options)
    name = dst
    if os.path.isdir(dst):
        if _is_same_file(src, dst) and not os.path.islink(src):
            # A directory whose name differs in case only, on a file system that ignores case.
            os.rename(src, dst)
            return dst
        name = os.path.join(dst, os.path.basename(_without_slash(os.fspath(src))))
        if os.path.exists(name):
            raise shutil.Error(f"Destination path '{name!s}' already exists")
    parent = os.path.dirname(name) or os.curdir
    try:
        os.rename(src, name)
    except OSError:
        # Above all EXDEV. A copy reports what else prevents it.
        pass
    else:
        if keywords.durable:
            _sync_names_in(parent)
        return name
    if os.path.islink(src):
        os.symlink(os.readlink(src), name)
        if keywords.durable:
            _sync_names_in(parent)
        os.unlink(src)
    elif os.path.isdir(src):
        if _contains(src, name):
            raise shutil.Error(f"Cannot move a directory '{src!s}' into itself '{dst!s}'.")
        copytree(src, name, symlinks=True, copy_function=copy_function, **options)
        shutil.rmtree(src)
    else:
        copy_function(src, name, **options)
        os.unlink(src)
    return name


def _copy_file(attributes: str, src: Any, dst: Any, follows: Any, options: dict[str, Any]) -> None:
    keywords = Options(**options) if options else None
    names = os.fsencode(src), os.fsencode(dst)
    failure = _haulage.copy_file(*names, attributes, bool(follows), keywords)
    if failure is not None:
        raise exception_of(failure, src, dst)


def _sync_names_in(directory: Any) -> None:
    """Syncs the names that were made in a directory, and in those above it."""
    failure = _haulage.sync_file_system(os.fsencode(directory))
    if failure is not None:
        raise exception_of(failure, directory, directory)


def _in_directory(src: Any, dst: Any) -> Any:
    return os.path.join(dst, os.path.basename(src)) if os.path.isdir(dst) else dst


def _is_same_file(src: Any, dst: Any) -> bool:
    try:
        return os.path.samefile(src, dst)
    except OSError:
        return False


def _ignored(ignore: Callable[[Any, list[Any]], Any], directory: Any, names: list[Any]) -> list[bytes]:
    """The names that are ignored. What the callable returns needs no more than the operator ``in``."""
    ignored = ignore(directory, names)
    return [os.fsencode(name) for name in names if name in ignored]


def _is_name(path: Any) -> bool:
    """Whether the last component of a path is the name of a file."""
    return os.fsencode(os.path.basename(_without_slash(path))) not in (b"", b".", b"..")


def _is_of_mkdir(failure: Failure, dst: Any) -> bool:
    """Whether ``failure`` is that the directory ``dst`` could not be created. It may be there in spite
    of that, if someone else has just created it."""
    _kind, number, _reason, path, _target = failure
    is_of_dst = path is not None and path.rstrip(b"/") == os.fsencode(_without_slash(dst))
    return not os.path.lexists(dst) or (number == errno.EEXIST and is_of_dst)


def _without_slash(path: Any) -> Any:
    return path.rstrip(b"/" if isinstance(path, bytes) else "/")


def _contains(src: Any, dst: Any) -> bool:
    """Whether the name ``dst`` is the directory ``src`` or below it."""
    above = os.path.join(os.path.realpath(os.fsencode(src)), b"")
    return os.path.join(os.path.realpath(os.fsencode(dst)), b"").startswith(above)


def _is_below_entry(src: Any, dst: Any) -> bool:
    """Whether ``dst``, which is below the directory ``src``, is in an entry that ``src`` has already. The
    functions of ``shutil`` copy that entry into itself, until a name is too long."""
    above = os.path.realpath(os.fsencode(src))
    first = os.path.relpath(os.path.realpath(os.fsencode(dst)), above).split(b"/")[0]
    return os.path.lexists(os.path.join(above, first))
