"""Copies of tables, by what `rewrite_table_path` stages and lists."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import icebench
from icebench.engine.maintenance.rewrite_table_path import RewrittenTablePath


def rewrite_and_copy(table: icebench.Table, target: str, staging: str, **versions: Any) -> RewrittenTablePath:
    """Stage a table's metadata for another place, and copy all that is listed, in that order: nothing is copied before
    what it refers to, and nothing lands on another file."""
    done = table.maintenance.rewrite_table_path(table.location, target, staging_location=staging, **versions)
    copies = read_list(done)
    for source, copy in copies.items():
        assert not Path(copy).exists()
        Path(copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    shutil.rmtree(staging)
    return done


def read_list(done: RewrittenTablePath) -> dict[str, str]:
    """Source -> target of a list of files."""
    assert done.file_list_location is not None
    with Path(done.file_list_location).open(encoding="utf-8") as file:
        copies = dict(csv.reader(file))
    assert len(copies) == len(set(copies.values())) == done.listed_files
    return copies
