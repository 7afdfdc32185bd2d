"""Run directories of ``haulage bench``, as docs/runs.md describes them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any, Callable, Optional, Union

Row = dict[str, Any]

# The schema of run directories that this module knows.
_SCHEMA = 1

# Columns with text. All others hold numbers, or truth values as `true` and `false`.
_TEXT = frozenset(
    "breach cell destination each_ns part refusals shape state_note state_proved state_wanted variant"
    " workload".split()
)


class Run:
    """A run directory. Tables are lists of dicts; an empty field is ``None``, which means unknown."""

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.path = Path(path)
        environment = self.path / "environment.json"
        if not environment.is_file():
            raise FileNotFoundError(2, "No run directory: it has no environment.json", str(path))
        self.environment: dict[str, Any] = json.loads(environment.read_text("utf-8"))
        self.verdict: Optional[dict[str, Any]] = None
        """verdict.json; ``None`` if the run was killed before its end."""
        verdict = self.path / "verdict.json"
        if verdict.is_file():
            self.verdict = json.loads(verdict.read_text("utf-8"))
            schema = (self.verdict or {}).get("schema")
            if schema != _SCHEMA:
                raise ValueError(f"{verdict}: schema {schema}, and this version reads {_SCHEMA}")
        self.samples = self._table("samples.csv")
        """All samples: ``counted_samples`` has those that count."""
        self.rounds = self._table("rounds.csv")
        self.refusals = self._table("refusals.csv")

    @property
    def counted_samples(self) -> list[Row]:
        """The samples that count: of the last repetition of their round, and in the state wanted."""
        last: dict[tuple[Any, ...], int] = {}
        for row in self.samples:
            key = (row["cell"], row["session"], row["round"])
            last[key] = max(last.get(key, 0), row["repeat"])
        return [
            row
            for row in self.samples
            if row["counted"] and row["repeat"] == last[row["cell"], row["session"], row["round"]]
        ]

    @property
    def verdicts(self) -> list[Row]:
        """The comparisons of all cells, one row each: part, cell, baseline, variant, answer, ratio and
        the ends of its interval."""
        rows: list[Row] = []
        for part in (self.verdict or {}).get("parts", []):
            for cell in part["cells"]:
                about = {"part": part["part"], "cell": cell["cell"], "baseline": part["baseline"]}
                rows.extend({**about, **comparison} for comparison in cell["comparisons"])
        return rows

    def to_pandas(self, table: str = "samples") -> Any:
        """A table as a DataFrame of pandas: samples, counted_samples, rounds, refusals, verdicts.

        Raises ImportError if pandas is not installed.
        """
        import pandas

        return pandas.DataFrame(self._rows(table))

    def to_polars(self, table: str = "samples") -> Any:
        """The same as a DataFrame of Polars."""
        import polars

        return polars.DataFrame(self._rows(table), infer_schema_length=None)

    def _rows(self, table: str) -> list[Row]:
        if table not in ("samples", "counted_samples", "rounds", "refusals", "verdicts"):
            raise ValueError(f"a run has no table {table!r}")
        rows: list[Row] = getattr(self, table)
        return rows

    def _table(self, name: str) -> list[Row]:
        path = self.path / name
        if not path.is_file():
            return []
        with open(path, newline="", encoding="utf-8") as file:
            return [{key: _value(key, text) for key, text in row.items()} for row in csv.DictReader(file)]


def load_run(path: Union[str, os.PathLike[str]]) -> Run:
    """Reads a run directory of the lab."""
    return Run(path)


def _value(column: str, text: str) -> Any:
    if text == "":
        return None
    if column in _TEXT:
        return text
    if text in ("true", "false"):
        return text == "true"
    parsers: tuple[Callable[[str], Any], ...] = (int, float)
    for parse in parsers:
        try:
            return parse(text)
        except ValueError:
            pass
    return text
