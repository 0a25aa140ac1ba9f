from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.engines.checksum import checksum_of
from icebench.bench.workloads.wide import KINDS, Wide

ROWS = 600


@pytest.mark.parametrize("columns", [100, 1_000, 5_000, 10_000])
def test_every_column_differs_from_every_other(columns: int) -> None:
    """Beside the row's number, so that two columns of booleans differ by which rows are true."""
    made = Wide(columns=columns, rows=ROWS)
    batch = made.batch(0, ROWS)
    assert batch.schema == made.schema
    sums = {checksum_of([batch.select(["id", name])], ["id", name]).row_mix for name in made.schema.names[1:]}
    assert len(sums) == columns


def test_kinds_come_in_turn_and_nested_ones_are_valid() -> None:
    made = Wide(columns=10 * len(KINDS), rows=ROWS)
    batch = made.batch(0, ROWS)
    batch.validate(full=True)
    assert Counter(map(str, made.schema.types[1:])) == dict.fromkeys(map(str, KINDS), 10)


def test_one_value_in_sixteen_is_null() -> None:
    rows = 16_000
    batch = Wide(columns=2 * len(KINDS), rows=rows).batch(0, rows)
    assert batch.column("id").null_count == 0
    assert {round(16 * column.null_count / rows, 1) for column in batch.columns[1:]} <= {0.9, 1.0, 1.1}


@given(st.lists(st.integers(0, 300), max_size=4))
def test_any_division_gives_the_same_rows(cuts: list[int]) -> None:
    made = Wide(columns=2 * len(KINDS), rows=300)
    bounds = [0, *sorted(cuts), 300]
    parts = [made.batch(start, stop) for start, stop in pairwise(bounds)]
    assert pa.Table.from_batches(parts).combine_chunks() == pa.Table.from_batches([made.batch(0, 300)]).combine_chunks()


def test_the_rows_stay_what_they_are() -> None:
    made = Wide(columns=3 * len(KINDS), rows=ROWS)
    assert checksum_of([made.batch(0, ROWS)], made.schema.names).text == "590fd669c0e93a97c501"
    other = Wide(columns=3 * len(KINDS), rows=ROWS, seed=43)
    assert checksum_of([other.batch(0, ROWS)], made.schema.names).text != "590fd669c0e93a97c501"


def test_a_table_of_some_of_the_columns_has_their_values() -> None:
    whole = Wide(columns=40, rows=ROWS)
    some = Wide(columns=40, rows=ROWS, only=("c3", "c29"))
    assert some.batch(0, ROWS) == whole.batch(0, ROWS).select(["c3", "c29"])
    assert pa.Table.from_batches(some.batches(0, ROWS)).num_rows == ROWS


@pytest.mark.parametrize(
    ("columns", "selected"), [(100, 20), (1_000, 20), (5_000, 20), (10_000, 20), (100, 93), (1, 1)]
)
def test_columns_to_scan_are_of_all_kinds_that_every_engine_reads(columns: int, selected: int) -> None:
    chosen = Wide(columns=columns, rows=1).spread(selected)
    numbers = [int(name[1:]) for name in chosen]
    assert len(set(numbers)) == selected
    assert 1 <= min(numbers) <= max(numbers) <= columns
    assert {n % len(KINDS) for n in numbers} == ({1} if columns == 1 else set(range(len(KINDS) - 1)))
    assert columns < 1_000 or max(numbers) > 0.9 * columns


@pytest.mark.parametrize(("rows", "files"), [(0, 1), (1, 0)])
def test_no_rows_or_files(rows: int, files: int) -> None:
    with pytest.raises(ValueError, match="at least 1 of each"):
        Wide(columns=1, rows=rows, files=files)
