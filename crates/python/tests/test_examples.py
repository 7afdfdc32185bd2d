"""The examples do what they say."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import haulage
from conftest import skip, snapshot
from test_run import SAMPLES, VERDICT

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(example: str, needs: str, *words: Path) -> None:
    if importlib.util.find_spec(needs) is None:
        skip(f"{needs} is not installed")
    subprocess.run([sys.executable, str(EXAMPLES / example), *map(str, words)], check=True)


@pytest.mark.parametrize("library", ["tqdm", "rich"])
def test_progress_bars(library: str, tree: Path, tmp_path: Path) -> None:
    run(f"progress_{library}.py", library, tree, tmp_path / "dst")
    assert snapshot(tmp_path / "dst") == snapshot(tree)


def test_drawing_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text("{}")
    (tmp_path / "samples.csv").write_text(SAMPLES)
    (tmp_path / "verdict.json").write_text(json.dumps(VERDICT))
    run("draw_run.py", "matplotlib", tmp_path, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of Python in docs/python.md runs as it is written, but for the directory of the backup."""
    text = (Path(__file__).parents[3] / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) == 1
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"bytes")
    (tmp_path / "backup").mkdir()
    monkeypatch.chdir(tmp_path)
    before = shutil.copytree
    try:
        exec(blocks[0].replace("/mnt/backup", "backup"), {})
        assert (tmp_path / "backup" / "photos" / "a.jpg").read_bytes() == b"bytes"
        assert shutil.copytree is haulage.copytree
    finally:
        haulage.uninstall()
    assert shutil.copytree is before
