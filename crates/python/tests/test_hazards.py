"""What the copier promises holds through this border."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable

import pytest

import haulage
from conftest import skip


def swapped_directory(
    copytree: Callable[..., Any], home: Path
) -> tuple[list[Path], "shutil.Error | None"]:
    """Copies a tree into an existing one. While it runs, before the copy enters `dir`, that directory
    of the destination becomes a symbolic link to `outside`. Returns what is outside, and the error."""
    src, dst, outside = home / "src", home / "dst", home / "outside"
    (src / "dir").mkdir(parents=True)
    (src / "dir" / "file").write_bytes(b"data")
    (dst / "dir").mkdir(parents=True)
    outside.mkdir()

    def attack(directory: str, names: list[str]) -> list[str]:
        if os.fspath(directory).endswith("/dir"):
            (dst / "dir").rmdir()
            (dst / "dir").symlink_to(outside)
        return []

    raised = None
    try:
        copytree(src, dst, ignore=attack, dirs_exist_ok=True)
    except shutil.Error as error:
        raised = error
    return list(outside.iterdir()), raised


def test_swapped_symlink_is_not_followed(tmp_path: Path) -> None:
    # The attack succeeds against shutil: it is one.
    escaped, _ = swapped_directory(shutil.copytree, tmp_path / "shutil")
    assert [path.name for path in escaped] == ["file"]
    escaped, error = swapped_directory(haulage.copytree, tmp_path / "haulage")
    assert escaped == []
    assert error is not None and "dst/dir" in str(error)


FULL = """
import errno, os, shutil, sys, haulage
os.chdir(sys.argv[1])
for copy in (haulage.copyfile, haulage.copy2):
    try:
        copy("source", "full/copy")
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    else:
        sys.exit("a full file system was silent")
    os.unlink("full/copy")
try:
    haulage.copytree("tree", "full/tree")
except shutil.Error as error:
    names = [entry[0] for entry in error.args[0]]
    assert any("No space left" in entry[2] for entry in error.args[0]), error
else:
    sys.exit("a full file system was silent")
for name in os.listdir("full/tree"):
    size = os.path.getsize("full/tree/" + name)
    assert size == 400_000 or "tree/" + name in names, (name, size)
    names = [other for other in names if other != "tree/" + name]
print("loud")
"""


def test_full_file_system_is_loud(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "source").write_bytes(os.urandom(3 << 20))
    (tmp_path / "tree").mkdir()
    for number in range(8):
        (tmp_path / "tree" / str(number)).write_bytes(os.urandom(400_000))
    mount = 'mount -t tmpfs -o size=2m tmpfs "$0/full"'
    trial = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    if trial.returncode != 0:
        skip(f"a full tmpfs: {trial.stderr.strip()}")
    script = f'{mount} && exec "$1" -c "$2" "$0"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(tmp_path), sys.executable, FULL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (done.stdout, done.returncode) == ("loud\n", 0), done.stderr


def test_files_whose_length_is_not_known(tmp_path: Path) -> None:
    # /proc says 0, and /sys says 4096.
    for number, src in enumerate(["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"]):
        if not os.path.exists(src):
            skip(f"{src} does not exist")
        dst = tmp_path / str(number)
        haulage.copyfile(src, dst)
        assert dst.read_bytes() == Path(src).read_bytes() != b""


def test_source_that_shrinks_is_never_silent(tmp_path: Path) -> None:
    src, dst = tmp_path / "src", tmp_path / "dst"
    whole = 24 << 20
    contents = os.urandom(whole)
    failures = 0
    for _ in range(20):
        src.write_bytes(contents)
        shrinker = threading.Timer(0.002, os.truncate, (src, 1 << 20))
        shrinker.start()
        try:
            haulage.copyfile(src, dst, reflink="never")
        except OSError:
            failures += 1
        else:
            # It was complete before, or short before the copy began.
            assert dst.stat().st_size in (whole, 1 << 20)
        shrinker.join()
    print(f"{failures} of 20 copies failed")


def test_names_below_are_data(tmp_path: Path) -> None:
    src = tmp_path / "src"
    src.mkdir()
    for name in [b"-rf", b"a b", b"\xff\xfe", b"new\nline", b"*"]:
        (src / os.fsdecode(name)).write_bytes(name)
    haulage.copytree(src, tmp_path / "dst")
    copied = {os.fsencode(path.name): path.read_bytes() for path in (tmp_path / "dst").iterdir()}
    assert copied == {name: name for name in copied} and len(copied) == 5


def test_failed_tree_lists_each_file(tmp_path: Path) -> None:
    src = tmp_path / "src"
    (src / "dir").mkdir(parents=True)
    (src / "dir" / "gone").symlink_to("/nonexistent")
    os.mkfifo(src / "fifo")
    (src / "good").write_bytes(b"good")
    with pytest.raises(shutil.Error) as caught:
        haulage.copytree(src, tmp_path / "dst")
    assert {entry[0] for entry in caught.value.args[0]} == {f"{src}/dir/gone", f"{src}/fifo"}
    assert (tmp_path / "dst" / "good").read_bytes() == b"good"


def test_tree_is_not_copied_into_itself_without_end(tmp_path: Path) -> None:
    src = tmp_path / "src"
    for below in (".", "dir", "dir/copy"):
        for dirs_exist_ok in (False, True):
            shutil.rmtree(src, ignore_errors=True)
            (src / "dir").mkdir(parents=True)
            (src / "dir" / "file").write_bytes(b"1")
            with pytest.raises((shutil.Error, FileExistsError)):
                haulage.copytree(src, src / below, dirs_exist_ok=dirs_exist_ok)
            assert not (src / "dir" / "copy" / "dir" / "copy" / "dir").exists()
            assert (src / "dir" / "file").read_bytes() == b"1"
    # A name that is not there when the source is listed is no entry of it.
    assert haulage.copytree(src, src / "new" / "copy") == src / "new" / "copy"
    assert (src / "new" / "copy" / "dir" / "file").read_bytes() == b"1"
    assert not (src / "new" / "copy" / "new").exists()
