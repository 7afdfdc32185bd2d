"""The keyword arguments that shutil does not have, and what calls leave alone."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import haulage
from conftest import exception, skip, snapshot


def test_options_that_make_a_copy_safer(tree: Path, tmp_path: Path) -> None:
    for number, options in enumerate(
        [
            {"verify": True},
            {"atomic": True},
            {"durable": True},
            {"resume": True},
            {"jobs": 1},
            {"jobs": 4},
            {"reflink": "never"},
            {"verify": True, "atomic": True, "durable": True, "jobs": 3},
        ]
    ):
        dst = tmp_path / str(number)
        assert haulage.copytree(tree, dst, symlinks=True, **options) == dst
        assert snapshot(dst) == snapshot(tree), options


def test_resume_continues_what_is_complete(tree: Path, tmp_path: Path) -> None:
    for _ in range(2):
        haulage.copytree(tree, tmp_path / "dst", symlinks=True, resume=True)
        haulage.copy2(tree / "link", tmp_path / "link", follow_symlinks=False, resume=True)
    assert snapshot(tmp_path / "dst") == snapshot(tree)
    assert os.readlink(tmp_path / "link") == "a"


@pytest.mark.parametrize(
    "call, calls",
    [
        ("copytree('src', 'x/y/dst', durable=True)", "mkdir mkdir syncfs mkdir"),
        ("copytree('src', '.', durable=True, resume=True)", "mkdir syncfs"),
        ("copy('link', 'dst', follow_symlinks=False, durable=True)", "symlink syncfs"),
        ("move('src', 'dst', durable=True)", "rename syncfs"),
        # A rename between file systems fails.
        (
            "os.rename = lambda *_: open('none'); move('link', 'dst', durable=True)",
            "symlink syncfs unlink",
        ),
    ],
)
def test_durable_syncs_names_of_every_kind(call: str, calls: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("src")
    program = f"import os; from haulage import *; {call}"
    traced = "trace=/^(mkdir|rename|symlink|syncfs|unlink)"
    strace = ["strace", "-f", "-o", "trace", "-e", traced, sys.executable, "-B", "-c", program]
    if shutil.which("strace") is None:
        skip("strace is not installed")
    done = subprocess.run(strace, cwd=tmp_path)
    trace = (tmp_path / "trace").read_text()
    if not trace:
        skip("strace cannot be run here")
    seen = re.findall(r"^(?:\d+ +)?([a-z]+?)(?:at2?)?\(", trace, re.M)
    assert (done.returncode, " ".join(seen)[: len(calls)]) == (0, calls)


def test_receipts_tell_what_was_done(tree: Path, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    thread = threading.get_ident()
    haulage.copytree(
        tree,
        tmp_path / "dst",
        symlinks=True,
        verify=True,
        receipt=lambda row: rows.append({**row, "thread": threading.get_ident()}),
    )
    by_name = {os.path.relpath(row["src"], tree): row for row in rows}
    assert set(by_name) == {*snapshot(tree), "."}
    assert {row["thread"] for row in rows} == {thread}
    b = by_name["dir/b"]
    assert (b["type"], b["method"], b["data_bytes"]) == ("file", "copied", 200_000)
    assert b["kept"] and len(b["verified_xxh3_128"]) == 32
    assert sum(attempt["bytes"] for attempt in b["attempts"]) == 200_000
    assert by_name["link"]["type"] == "symlink"
    assert all(row["failures"] == [] for row in rows)


def test_receipt_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(b"12345")
    rows: list[dict[str, Any]] = []
    haulage.copyfile(tmp_path / "src", tmp_path / "dst", receipt=rows.append)
    (tmp_path / "link").symlink_to("src")
    haulage.copy(tmp_path / "link", tmp_path / "new", follow_symlinks=False, receipt=rows.append)
    assert [(row["type"], row["data_bytes"]) for row in rows] == [("file", 5), ("symlink", 0)]


def test_progress_ends_with_the_whole(tree: Path, tmp_path: Path) -> None:
    seen: list[haulage.Progress] = []
    haulage.copytree(tree, tmp_path / "dst", symlinks=True, progress=seen.append)
    last = seen[-1]
    # Three files and three links.
    assert (last.entries, last.bytes, last.skipped_bytes) == (6, 200_013, 0)
    assert last.elapsed > 0

    (tmp_path / "large").write_bytes(bytes(20 << 20))
    haulage.copyfile(tmp_path / "large", tmp_path / "copy", progress=seen.append)
    assert (seen[-1].bytes, seen[-1].total_bytes) == (20 << 20, 20 << 20)
    haulage.copyfile(tree / "a", tmp_path / "a", progress=seen.append)
    assert (seen[-1].bytes, seen[-1].total_bytes, seen[-1].total_entries) == (13, 13, 1)
    haulage.copyfile(tree / "a", "/dev/null", progress=seen.append)
    assert (seen[-1].bytes, seen[-1].total_bytes) == (13, 13)


class Stop(Exception):
    pass


def test_exception_of_a_callback_arrives(tree: Path, tmp_path: Path) -> None:
    def stop(*_: object) -> Any:
        raise Stop("here")

    for number, callback in enumerate(["progress", "receipt", "ignore"]):
        with pytest.raises(Stop, match="here"):
            haulage.copytree(tree, tmp_path / str(number), **{callback: stop})  # type: ignore[arg-type]
    with pytest.raises(Stop):
        haulage.copyfile(tree / "a", tmp_path / "a", progress=stop)


def test_exception_in_a_lower_directory_stops_the_copy(tree: Path, tmp_path: Path) -> None:
    def ignore(directory: str, names: list[str]) -> list[str]:
        if directory.endswith("dir"):
            raise Stop
        return []

    with pytest.raises(Stop):
        haulage.copytree(tree, tmp_path / "dst", symlinks=True, ignore=ignore)
    assert not (tmp_path / "dst" / "dir" / "b").exists()


@pytest.mark.parametrize(
    "options, error",
    [
        ({"reflink": "sometimes"}, ValueError),
        ({"jobs": 0}, ValueError),
        ({"verfy": True}, TypeError),
        ({"progress": 1}, TypeError),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, Any], error: type[Exception], tree: Path, tmp_path: Path
) -> None:
    with pytest.raises(error):
        haulage.copyfile(tree / "a", tmp_path / "a", **options)
    for copy in (haulage.copyfile, haulage.copy, haulage.copy2):
        with pytest.raises(error):
            copy(tree / "link", tmp_path / copy.__name__, follow_symlinks=False, **options)
    with pytest.raises(error):
        haulage.copytree(tree, tmp_path / "dst", **options)


def test_options_need_our_copy_function(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="verify"):
        haulage.copytree(tree, tmp_path / "dst", copy_function=print, verify=True)
    with pytest.raises(TypeError):
        haulage.move(tree, tmp_path / "dst", copy_function=print, verify=True)


def test_null_in_a_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null byte"):
        haulage.copyfile("a\0b", tmp_path / "dst")


def test_install_and_uninstall(tree: Path, tmp_path: Path) -> None:
    before = shutil.copytree
    haulage.install()
    haulage.install()
    assert shutil.copytree is haulage.copytree
    assert shutil.copy2 is haulage.copy2
    shutil.copytree(tree, tmp_path / "dst", symlinks=True, verify=True)
    haulage.uninstall()
    haulage.uninstall()
    assert shutil.copytree is before
    assert snapshot(tmp_path / "dst") == snapshot(tree)


def test_move_between_file_systems_keeps_the_source_of_a_failed_copy(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(src: object, dst: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "rename", rename)
    os.mkfifo(tree / "fifo")
    before = snapshot(tree)
    with pytest.raises(shutil.Error):
        haulage.move(tree, tmp_path / "dst")
    assert snapshot(tree) == before
    (tree / "fifo").unlink()
    haulage.move(tree, tmp_path / "other", verify=True)
    assert not tree.exists()


def test_other_threads_run_while_bytes_move(tmp_path: Path) -> None:
    # A device without an end, so that the copy lasts until it is stopped.
    counts: list[int] = []
    stop = threading.Event()

    def count() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            time.sleep(0.001)
        counts.append(number)

    thread = threading.Thread(target=count)
    thread.start()

    def progress(of: haulage.Progress) -> None:
        if of.elapsed > 0.3:
            raise Stop

    try:
        with pytest.raises(Stop):
            haulage.copyfile("/dev/zero", "/dev/null", progress=progress)
    finally:
        stop.set()
        thread.join()
    assert counts[0] > 10


def test_control_c_stops_a_copy_without_callbacks() -> None:
    program = (
        "import haulage\n"
        "print('copying', flush=True)\n"
        "try:\n"
        "    haulage.copyfile('/dev/zero', '/dev/null')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "copying\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=10)
    finally:
        process.kill()
        process.wait()
    assert rest == "interrupted\n"


@pytest.mark.parametrize(
    "call",
    [
        "copyfile('/dev/zero', '/dev/null', progress=lambda _: sum(range(1_000_000)))",
        "copytree('src', 'dst', receipt=lambda _: time.sleep(0.01))",
        "copytree('src', 'dst', ignore=lambda _dir, _names: time.sleep(0.01) or [])",
        "copyfile('/dev/zero', '/dev/null')",
    ],
)
def test_exit_of_the_interpreter_during_a_copy_of_a_daemon_thread(
    tmp_path: Path, call: str
) -> None:
    for number in range(200):
        (tmp_path / "src" / str(number)).mkdir(parents=True)
    program = (
        "import threading, time, haulage\n"
        f"threading.Thread(target=lambda: haulage.{call}, daemon=True).start()\n"
        "time.sleep(0.3)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_copies_by_a_destructor_at_the_exit_of_the_interpreter(tmp_path: Path) -> None:
    program = (
        "import haulage\n"
        "class Copies:\n"
        "    def __del__(self, copytree=haulage.copytree):\n"
        "        copytree('src', 'dst', progress=lambda _: None)\n"
        "copies = Copies()\n"
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "file").write_text("text")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "dst" / "file").read_text() == "text"


def test_audit_events(tmp_path: Path) -> None:
    (tmp_path / "src").touch()
    program = (
        "import sys, haulage\n"
        "seen = []\n"
        "sys.addaudithook(lambda name, _: seen.append(name) if name.startswith('shutil') else None)\n"
        "haulage.copy2('src', 'dst')\n"
        "haulage.copytree('.', '../audited')\n"
        "print(seen)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.strip() == "['shutil.copyfile', 'shutil.copystat', 'shutil.copytree']"


def test_extended_attributes(tmp_path: Path) -> None:
    src, dst = tmp_path / "src", tmp_path / "dst"
    src.mkdir()
    (src / "file").touch()
    try:
        os.setxattr(src / "file", "user.name", b"value")
    except OSError as error:
        skip(f"extended attributes: {error}")
    copies = [shutil.copy2, haulage.copy2]
    haulage.copytree(src, dst)
    haulage.copy2(src / "file", tmp_path / "copy2")
    haulage.copy(src / "file", tmp_path / "copy")
    assert os.getxattr(dst / "file", "user.name") == b"value"
    assert os.getxattr(tmp_path / "copy2", "user.name") == b"value"
    assert os.listxattr(tmp_path / "copy") == []
    # The security context is an attribute too.
    with contextlib.suppress(OSError):
        os.setxattr(src / "file", "security.selinux", b"label")
    names = [os.listxattr(copy(src / "file", tmp_path / copy.__module__)) for copy in copies]
    assert names[0] == names[1]
    # tmpfs has room for attributes that ext4 has none for.
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as large:
        try:
            os.setxattr(large.name, "user.large", bytes(30_000))
        except OSError as error:
            skip(f"extended attributes of tmpfs: {error}")
        seen = [exception(lambda: copy(large.name, tmp_path / "large")) for copy in copies]
    assert seen[0] == seen[1]
