"""Every call has the result and the exception of the same call of shutil."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

import pytest

import haulage
from conftest import exception, snapshot

FUNCTIONS = ["copyfile", "copy", "copy2"]

# Prepares a directory, and returns the arguments and keyword arguments of a call in it.
Case = Callable[[Path], tuple[tuple[Any, ...], dict[str, Any]]]


def plain(home: Path) -> Any:
    (home / "src").write_bytes(b"data")
    (home / "src").chmod(0o604)
    os.utime(home / "src", ns=(10**18 + 5, 10**18 + 7))
    return ("src", "dst"), {}


def path_like(home: Path) -> Any:
    return tuple(map(Path, plain(home)[0])), {}


def in_bytes(home: Path) -> Any:
    return tuple(map(os.fsencode, plain(home)[0])), {}


def not_utf8(home: Path) -> Any:
    (home / os.fsdecode(b"\xff")).write_bytes(b"x")
    return (b"\xff", b"\xfe"), {}


def empty(home: Path) -> Any:
    (home / "src").touch()
    return ("src", "dst"), {}


def existing(home: Path) -> Any:
    (home / "dst").write_bytes(b"longer than the data")
    (home / "dst").chmod(0o660)
    return plain(home)


def into_directory(home: Path) -> Any:
    (home / "dst").mkdir()
    return plain(home)


def missing(home: Path) -> Any:
    return ("src", "dst"), {}


def missing_path_like(home: Path) -> Any:
    return (Path("src"), Path("dst")), {}


def missing_bytes(home: Path) -> Any:
    return (b"src", b"dst"), {}


def no_parent(home: Path) -> Any:
    plain(home)
    return ("src", "no/dst"), {}


def parent_is_file(home: Path) -> Any:
    plain(home)
    return ("src", "src/dst"), {}


def directory_as_source(home: Path) -> Any:
    (home / "src").mkdir()
    return ("src", "dst"), {}


def same(home: Path) -> Any:
    plain(home)
    return ("src", "src"), {}


def same_by_hard_link(home: Path) -> Any:
    plain(home)
    os.link(home / "src", home / "dst")
    return ("src", "dst"), {}


def same_by_symlink(home: Path) -> Any:
    plain(home)
    (home / "dst").symlink_to("src")
    return ("src", "dst"), {}


def fifo(home: Path) -> Any:
    os.mkfifo(home / "src")
    return ("src", "dst"), {}


def to_fifo(home: Path) -> Any:
    plain(home)
    os.mkfifo(home / "dst")
    return ("src", "dst"), {}


def from_socket(home: Path) -> Any:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(home / "src"))
    return ("src", "dst"), {}


def through_symlinks(home: Path) -> Any:
    (home / "src").symlink_to("real")
    (home / "real").write_bytes(b"real")
    (home / "dst").symlink_to("target")
    (home / "target").write_bytes(b"target")
    return ("src", "dst"), {}


def to_dangling_symlink(home: Path) -> Any:
    plain(home)
    (home / "dst").symlink_to("new")
    return ("src", "dst"), {}


def symlink_itself(home: Path) -> Any:
    (home / "src").symlink_to("nothing")
    return ("src", "dst"), {"follow_symlinks": False}


def symlink_over_file(home: Path) -> Any:
    (home / "src").symlink_to("nothing")
    (home / "dst").touch()
    return ("src", "dst"), {"follow_symlinks": False}


def symlink_without_parent(home: Path) -> Any:
    (home / "src").symlink_to("nothing")
    return ("src", "no/dst"), {"follow_symlinks": False}


def symlink_to_fifo(home: Path) -> Any:
    (home / "src").symlink_to("fifo")
    os.mkfifo(home / "fifo")
    return (b"src", b"dst"), {"follow_symlinks": False}


def symlink_loop(home: Path) -> Any:
    (home / "src").symlink_to("src")
    return ("src", "dst"), {}


def name_too_long(home: Path) -> Any:
    plain(home)
    return ("src", "n" * 300), {}


FILE_CASES = [
    plain, path_like, in_bytes, not_utf8, empty, existing, into_directory, missing,
    missing_path_like, missing_bytes, no_parent, parent_is_file, directory_as_source, same,
    same_by_hard_link, same_by_symlink, fifo, to_fifo, from_socket, through_symlinks,
    to_dangling_symlink, symlink_itself, symlink_over_file, symlink_without_parent,
    symlink_to_fifo, symlink_loop, name_too_long,
]  # fmt: skip


def check(function: str, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = []
    for module in (shutil, haulage):
        home = tmp_path / module.__name__
        home.mkdir()
        arguments, keywords = case(home)
        monkeypatch.chdir(home)
        call = getattr(module, function)
        outcome = exception(lambda: call(*arguments, **keywords))
        outcomes.append((outcome, without_new_times(snapshot(home))))
    assert outcomes[1] == outcomes[0]




def without_new_times(entries: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """Times that a test has set stay; others are those of the test's run."""
    return {
        name: (mode, time if isinstance(time, int) and 10**18 <= time < 10**18 + 100 else 0, rest)
        for name, (mode, time, rest) in entries.items()
    }


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("case", FILE_CASES, ids=lambda case: case.__name__)
def test_file(function: str, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(function, case, tmp_path, monkeypatch)


def small_tree(home: Path) -> Path:
    top = home / "src"
    (top / "dir" / "empty").mkdir(parents=True)
    (top / "a").write_bytes(b"a")
    (top / "a").chmod(0o604)
    (top / "dir" / "b").write_bytes(b"b" * 70_000)
    (top / "link").symlink_to("a")
    (top / "dir-link").symlink_to("dir")
    for path in [top / "a", top / "dir" / "b", top / "dir" / "empty", top / "dir", top]:
        os.utime(path, ns=(10**18 + 5, 10**18 + 7))
    return top


def tree_plain(home: Path) -> Any:
    small_tree(home)
    return ("src", "dst"), {}


def tree_symlinks(home: Path) -> Any:
    small_tree(home)
    return ("src", "dst"), {"symlinks": True}


def tree_bytes(home: Path) -> Any:
    small_tree(home)
    return (b"src", b"dst"), {}


def tree_new_parents(home: Path) -> Any:
    small_tree(home)
    return ("src/", "x/y/dst/"), {}


def tree_existing(home: Path) -> Any:
    small_tree(home)
    (home / "dst").mkdir()
    return ("src", "dst"), {}


def tree_merged(home: Path) -> Any:
    small_tree(home)
    (home / "dst" / "dir").mkdir(parents=True)
    (home / "dst" / "a").write_bytes(b"old and longer")
    (home / "dst" / "dir" / "kept").write_bytes(b"kept")
    return ("src", "dst"), {"dirs_exist_ok": True}


def tree_merged_links(home: Path) -> Any:
    small_tree(home)
    (home / "dst").mkdir()
    (home / "dst" / "link").touch()
    return ("src", "dst"), {"dirs_exist_ok": True, "symlinks": True}


def tree_merged_fifo(home: Path) -> Any:
    small_tree(home)
    (home / "dst").mkdir()
    os.mkfifo(home / "dst" / "a")
    return ("src", "dst"), {"dirs_exist_ok": True}


def tree_merged_through_link(home: Path) -> Any:
    small_tree(home)
    (home / "real").mkdir()
    (home / "dst").symlink_to("real")
    return ("src", "dst"), {"dirs_exist_ok": True}


def tree_ignore(home: Path) -> Any:
    small_tree(home)
    (home / "src" / "dir" / "x.tmp").touch()
    return ("src", "dst"), {"ignore": shutil.ignore_patterns("*.tmp", "dir-link")}


def tree_ignore_all(home: Path) -> Any:
    small_tree(home)
    return ("src", "dst"), {"ignore": lambda directory, names: names}


def tree_dangling(home: Path) -> Any:
    (small_tree(home) / "dir" / "dangling").symlink_to("/nonexistent")
    return ("src", "dst"), {}


def tree_dangling_ignored(home: Path) -> Any:
    # Python 3.9 forgets the argument in lower directories.
    (small_tree(home) / "dangling").symlink_to("/nonexistent")
    (home / "src" / "below-file").symlink_to("/dev/null/nonexistent")
    # shutil looks for relative targets in the working directory.
    (home / "src" / "link").unlink()
    (home / "src" / "dir-link").unlink()
    return ("src", "dst"), {"ignore_dangling_symlinks": True}


def tree_fifo(home: Path) -> Any:
    os.mkfifo(small_tree(home) / "dir" / "fifo")
    return ("src", "dst"), {}


def tree_socket(home: Path) -> Any:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(small_tree(home) / "dir" / "s"))
    return ("src", "dst"), {}


def tree_missing(home: Path) -> Any:
    return ("src", "dst"), {}


def tree_of_a_file(home: Path) -> Any:
    (home / "src").touch()
    return ("src", "dst"), {}


def tree_below_a_file(home: Path) -> Any:
    small_tree(home)
    (home / "file").touch()
    return ("src", "file/dst"), {}


def tree_to_a_long_name(home: Path) -> Any:
    small_tree(home)
    return ("src", "n" * 256), {}


def tree_to_no_name(home: Path) -> Any:
    small_tree(home)
    return ("src", "x/."), {}


def tree_to_an_empty_name(home: Path) -> Any:
    small_tree(home)
    return ("src", ""), {}


def tree_to_a_dangling_symlink(home: Path) -> Any:
    small_tree(home)
    (home / "dst").symlink_to("none")
    return ("src", "dst"), {}


def tree_custom_function(home: Path) -> Any:
    small_tree(home)

    def upper(src: str, dst: str) -> None:
        Path(dst).write_bytes(Path(src).read_bytes().upper())

    return ("src", "dst"), {"copy_function": upper}


def tree_copy(home: Path) -> Any:
    small_tree(home)
    return ("src", "dst"), {"copy_function": shutil.copy}


def tree_into_itself(home: Path) -> Any:
    small_tree(home)
    return ("src", "src/new"), {}


TREE_CASES = [
    tree_plain, tree_symlinks, tree_bytes, tree_new_parents, tree_existing, tree_merged,
    tree_merged_links, tree_merged_fifo, tree_merged_through_link, tree_ignore, tree_ignore_all,
    tree_dangling, tree_dangling_ignored, tree_fifo, tree_socket, tree_missing, tree_of_a_file,
    tree_below_a_file, tree_to_a_long_name, tree_to_no_name, tree_to_an_empty_name,
    tree_to_a_dangling_symlink, tree_custom_function, tree_copy, tree_into_itself,
]  # fmt: skip


@pytest.mark.parametrize("case", TREE_CASES, ids=lambda case: case.__name__)
def test_tree(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check("copytree", case, tmp_path, monkeypatch)


def test_one_of_two_copies_to_one_new_name_fails(tmp_path: Path) -> None:
    small_tree(tmp_path)
    for number in range(30):
        start = threading.Barrier(2)

        def copy(dst: Path) -> str:
            start.wait()
            try:
                haulage.copytree(tmp_path / "src", dst)
            except FileExistsError as error:
                assert error.filename == str(dst)
                return "exists"
            return "copied"

        with ThreadPoolExecutor(2) as pool:
            ended = sorted(pool.map(copy, [tmp_path / f"dst{number}"] * 2))
        assert ended == ["copied", "exists"]


def move_into_directory(home: Path) -> Any:
    (home / "dst").mkdir()
    return plain(home)


def move_existing_inside(home: Path) -> Any:
    (home / "dst").mkdir()
    (home / "dst" / "src").touch()
    return plain(home)


def move_into_itself(home: Path) -> Any:
    small_tree(home)
    return ("src", "src/dir"), {}


def move_tree(home: Path) -> Any:
    small_tree(home)
    return ("src", "dst"), {}


MOVE_CASES = [
    plain, path_like, in_bytes, existing, missing, to_dangling_symlink,
    move_into_directory, move_existing_inside, move_into_itself, move_tree,
]  # fmt: skip


@pytest.mark.parametrize("renames", [True, False], ids=["rename", "exdev"])
@pytest.mark.parametrize("case", MOVE_CASES, ids=lambda case: case.__name__)
def test_move(
    case: Case, renames: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not renames:

        def rename(src: object, dst: object) -> None:
            raise OSError(18, "Invalid cross-device link")

        monkeypatch.setattr(os, "rename", rename)
    check("move", case, tmp_path, monkeypatch)
