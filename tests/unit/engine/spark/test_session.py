"""Into how many tasks a scan is cut."""

from __future__ import annotations

import pytest

from icebench.engine.spark.session import least_tasks


@pytest.mark.parametrize(
    ("cores", "own", "row_groups", "expected"),
    [
        (2, 0, None, 8),
        (2, 0, 1000, 8),
        (2, 0, 5, 8),
        (2, 0, 4, 4),
        (2, 0, 3, 4),
        (2, 0, 2, 0),
        (2, 0, 0, 0),
        (100, 0, 150, 200),
        (2, 7, None, 8),
        (2, 8, None, 0),
        (2, 50, 1000, 0),
    ],
)
def test_a_core_gets_some_tasks_where_there_are_row_groups_for_them(
    cores: int, own: int, row_groups: int | None, expected: int
) -> None:
    assert least_tasks(cores, own, row_groups) == expected
