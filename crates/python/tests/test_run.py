"""Run directories, and the commands of the lab."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import haulage
from conftest import skip

SAMPLES = (
    "cell,part,variant,session,round,repeat,elapsed_ns,durable_ns,counted,state_note\n"
    "c,p,reflink,1,1,0,100,,true,\n"
    "c,p,reflink,1,1,1,110,,true,\n"
    "c,p,read_write:64K,1,1,1,220,7,true,\n"
    'c,p,"splice:1M,pipe=1M",1,2,0,9,,false,"cold, not warm"\n'
)
VERDICT = {
    "schema": 1,
    "parts": [
        {
            "part": "p",
            "baseline": "reflink",
            "cells": [
                {
                    "cell": "c",
                    "comparisons": [
                        {"variant": "read_write:64K", "answer": "slower", "ratio": 2.0, "low": 1.9}
                    ],
                }
            ],
        }
    ],
}


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    (tmp_path / "environment.json").write_text('{"kernel": "6.1"}')
    (tmp_path / "samples.csv").write_text(SAMPLES)
    (tmp_path / "verdict.json").write_text(json.dumps(VERDICT))
    return tmp_path


def test_samples_and_verdicts(run_directory: Path) -> None:
    run = haulage.load_run(run_directory)
    assert run.environment == {"kernel": "6.1"}
    assert len(run.samples) == 4
    assert run.samples[0]["durable_ns"] is None
    last = run.samples[3]
    assert (last["variant"], last["state_note"]) == ("splice:1M,pipe=1M", "cold, not warm")
    # The repeated round counts once, and the sample in another state does not.
    counted = [(row["variant"], row["elapsed_ns"]) for row in run.counted_samples]
    assert counted == [("reflink", 110), ("read_write:64K", 220)]
    (verdict,) = run.verdicts
    assert (verdict["baseline"], verdict["answer"], verdict["low"]) == ("reflink", "slower", 1.9)
    assert run.rounds == []


def test_a_killed_run_has_no_verdict(run_directory: Path) -> None:
    (run_directory / "verdict.json").unlink()
    run = haulage.load_run(str(run_directory))
    assert run.verdict is None and run.verdicts == []


def test_another_schema_is_refused(run_directory: Path) -> None:
    (run_directory / "verdict.json").write_text('{"schema": 2, "parts": []}')
    with pytest.raises(ValueError, match="schema 2"):
        haulage.load_run(run_directory)


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        haulage.load_run(tmp_path)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library: str, run_directory: Path) -> None:
    try:
        __import__(library)
    except ImportError:
        skip(f"{library} is not installed")
    run = haulage.load_run(run_directory)
    frame = getattr(run, f"to_{library}")("samples")
    assert frame.shape == (4, 10)
    assert getattr(run, f"to_{library}")("verdicts").shape == (1, 7)
    with pytest.raises(ValueError):
        getattr(run, f"to_{library}")("nothing")


def test_missing_command() -> None:
    with pytest.raises(haulage.CommandError, match="not installed"):
        haulage.race(command="/nonexistent/haulage")


def test_race_and_run_of_the_command(tmp_path: Path) -> None:
    command = os.environ.get("HAULAGE_COMMAND")
    if command is None:
        skip("HAULAGE_COMMAND does not name the command haulage")
        return
    (tmp_path / "src").write_bytes(os.urandom(100_000))
    engines = ["read_write:64K", "copy_file_range"]
    result = haulage.race(
        tmp_path / "src", tmp_path, engines=engines, rounds=2, seed=1, command=command
    )
    assert set(result) >= {"samples", "verdict"}
    with pytest.raises(haulage.CommandError, match="exit status 2"):
        haulage.race(tmp_path / "src", tmp_path, engines=["nothing"], command=command)


def test_run_of_the_command(tmp_path: Path) -> None:
    command = os.environ.get("HAULAGE_COMMAND")
    if command is None:
        skip("HAULAGE_COMMAND does not name the command haulage")
        return
    (tmp_path / "small.toml").write_text(
        'schema = 1\nname = "small"\ntitle = "t"\nanalysis = ""\nquestion = "Which is faster?"\nminutes = 1\n'
        '[[part]]\nname = "p"\nquestion = "Which?"\nworkload = "copy"\nsizes = ["64K"]\n'
        'variants = ["read_write:64K", "read_write:4K"]\nbaseline = "read_write:64K"\n'
    )
    argv = [command, "bench", "small.toml", "--rounds", "2", "--on", str(tmp_path)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (directory,) = (tmp_path / "runs").iterdir()
    run = haulage.load_run(directory)
    assert {row["variant"] for row in run.counted_samples} == {"read_write:64K", "read_write:4K"}
    assert all(isinstance(row["elapsed_ns"], int) for row in run.samples)
    assert run.verdict is not None and run.verdicts
