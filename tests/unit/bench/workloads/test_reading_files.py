"""Rows of the reading experiments."""

from __future__ import annotations

import numpy as np
import pytest

from icebench.bench.workloads.reading_files import (
    KEY,
    PATTERNS,
    PLACE,
    DeleteRows,
    delete_table,
    deleted_keys,
    places_of,
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_keys_and_places_are_those_of_rows(pattern: str) -> None:
    made = DeleteRows(rows=600, files=3, row_groups=2, seed=5)
    keys = deleted_keys(made, pattern, 0.1)
    rows: dict[int, int] = {}
    for file in range(made.files):
        table = delete_table(made, file)
        rows |= dict(zip(table.column(KEY).to_pylist(), table.column(PLACE).to_pylist(), strict=True))
    assert len(rows) == 600
    assert len(keys) == 60
    assert places_of(made, keys).tolist() == [rows[key] for key in keys.tolist()]
    assert np.unique(keys).size == keys.size
