"""Which programs decide what is in tables that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from icebench.bench.tables import datasets, metadata_tables, reading_tables, tpcds_refreshes, tpcds_tables
from icebench.bench.tables.cache import READERS, engine_writers

ENGINE = Path(datasets.__file__).resolve().parents[2] / "engine"
LISTS = {
    "layouts": datasets._MADE_BY,
    "deletes of layouts": datasets._DELETED_BY,
    "metadata": metadata_tables._MADE_BY,
    "files of reading": reading_tables._COMMITTED_BY,
    "wide": reading_tables._WIDE_MADE_BY,
    "deletes of reading": reading_tables._DELETED_BY,
    "TPC-DS": tpcds_tables.MADE_BY,
    "refreshes": tpcds_refreshes._REFRESHED_BY,
}


@pytest.mark.parametrize("listed", LISTS.values(), ids=LISTS.keys())
def test_tables_are_made_again_when_a_program_that_writes_them_changes(listed: Sequence[Path]) -> None:
    sources = [file for file in ENGINE.rglob("*.py") if file.relative_to(ENGINE).parts[0] not in READERS]
    sources.append(ENGINE / "spark" / "frame_writer.py")
    assert len(sources) > 100
    assert [file for file in sources if not {file, *file.parents} & set(listed)] == []


def test_what_only_reads_is_there_and_makes_no_table_again() -> None:
    assert {room.name for room in ENGINE.iterdir()} >= READERS
    assert not {path.name for path in engine_writers()} & READERS
