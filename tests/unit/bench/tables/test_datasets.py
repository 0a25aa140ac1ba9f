"""Which programs decide what is in tables that are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from icebench.bench.tables import datasets

ENGINE = Path(datasets.__file__).resolve().parents[2] / "engine"
OTHERS = {"catalog", "display", "errors", "expressions", "kernels", "lazy_module", "plan", "read", "runtime", "storage"}
"""Rooms that find rows, or serve all others: what is written does not change with them."""
KNOWN = {"deletes", "spark", "spec"}
"""Rooms whose part in it is listed otherwise (`_DELETED_BY`, ``frame_writer.py``), or is that of the specification."""


@pytest.mark.parametrize("listed", [datasets._MADE_BY, datasets._DELETED_BY])
def test_tables_are_made_again_when_a_room_that_writes_them_changes(listed: Sequence[Path]) -> None:
    rooms = {path.name for path in listed if path.parent == ENGINE}
    sources = [file.read_text() for room in rooms for file in (ENGINE / room).rglob("*.py")]
    imported = {
        name for text in sources for name in re.findall(r"^\s*from icebench\.engine\.(\w+)", text, re.MULTILINE)
    }
    assert rooms
    assert imported - OTHERS - KNOWN <= rooms
