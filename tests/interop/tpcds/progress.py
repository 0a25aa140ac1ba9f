"""How far the campaign is.

Tables and results are kept below the directory of the environment's ``ICEBENCH_TPCDS`` (by default in the one for
temporary files), in one for the engine's code: a campaign that was interrupted goes on where it stopped, and after a
change of the engine it begins anew. Only right answers are not asked for again.

``python -m tests.interop.tpcds.progress`` prints how many queries were right and wrong so far.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import icebench
from icebench import engine
from icebench.bench.truth import queries as bench_queries

ENGINES = ("duckdb", "spark")


@cache
def directory() -> Path:
    """Where the campaign of this code is kept."""
    code = hashlib.sha256()
    here = Path(__file__).parent
    others = [here / "histories.py", here / "queries.py", Path(bench_queries.__file__)]
    for path in sorted([*Path(engine.__file__).parent.rglob("*.py"), *others]):
        code.update(path.read_bytes())
    home = os.environ.get("ICEBENCH_TPCDS") or Path(tempfile.gettempdir()) / "icebench-tpcds"
    return Path(home) / code.hexdigest()[:12]


@dataclass
class Progress:
    """The results of one engine over one set of tables, in a file with a line for each query that was asked."""

    warehouse: Path
    path: Path
    right: set[int] = field(default_factory=set)
    wrong: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, scale: float, file_format: str, history: str, name: str) -> Progress:
        variant = f"{scale}-{file_format}-{history}"
        found = cls(directory() / variant, directory() / f"{variant}-{name}.jsonl")
        found.warehouse.mkdir(parents=True, exist_ok=True)
        return found

    def __post_init__(self) -> None:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        for line in map(json.loads, lines):
            self._take(line["query"], line["difference"])

    def _take(self, number: int, difference: str | None) -> None:
        self.wrong.pop(number, None)
        if difference is None:
            self.right.add(number)
        else:
            self.wrong[number] = difference

    def record(self, number: int, difference: str | None) -> None:
        """Keep what was wrong with an answer; None for a right one."""
        with self.path.open("a") as file:
            file.write(json.dumps({"query": number, "difference": difference}) + "\n")
        self._take(number, difference)


def kept_table(warehouse: Path, name: str, write: Callable[[icebench.Catalog, str], icebench.Table]) -> icebench.Table:
    """The table `tpcds.<name>`, written by an earlier part of the campaign or now."""
    catalog = icebench.load_catalog(str(warehouse))
    whole = warehouse / f"{name}.whole"
    if whole.exists():
        return catalog.load_table(f"tpcds.{name}")
    shutil.rmtree(warehouse / "tpcds" / name, ignore_errors=True)
    table = write(catalog, name)
    whole.touch()
    return table


if __name__ == "__main__":
    for path in sorted(directory().glob("*.jsonl")):
        progress = Progress(path.parent, path)
        sys.stdout.write(f"{path.stem}: {len(progress.right)} right, {len(progress.wrong)} wrong\n")
