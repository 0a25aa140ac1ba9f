"""Described files: what filters must keep, compared with the bounds in the descriptions."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icebench
from icebench.bench.workloads.metadata_files import (
    DATE,
    DELETES,
    FIRST_MONTH,
    ITEM,
    Deletes,
    MetadataFiles,
    ordinal_of,
    path_of,
)

tables = st.builds(
    MetadataFiles,
    files=st.integers(1, 300),
    columns=st.integers(23, 26),
    partitioned=st.booleans(),
    clustered=st.booleans(),
    deletes=st.sampled_from(DELETES),
    seed=st.integers(0, 5),
)


def bound(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def ranges(table: MetadataFiles, files: list[icebench.DataFile], column: str) -> list[tuple[int, int]]:
    number = table.schema().get_field_index(column) + 1
    return [(bound(f.lower_bounds[number]), bound(f.upper_bounds[number])) for f in files]


@given(table=tables)
@settings(max_examples=40, deadline=None)
def test_filters_keep_what_bounds_leave_room_for(table: MetadataFiles) -> None:
    files = table.data_files("/t", 0, table.files)
    item = int(table.filters()["metric"].rpartition(" ")[2])
    metric = [low <= item <= high for low, high in ranges(table, files, ITEM)]
    assert table.kept("metric").tolist() == metric
    month = [date for part in table.filters()["partition"].split("'")[1::2] for date in [np.datetime64(part, "D")]]
    first, after = (int(day.astype(int)) for day in month)
    partition = [high >= first and low < after for low, high in ranges(table, files, DATE)]
    assert table.kept("partition").tolist() == partition
    assert table.kept(None).all()


@given(table=tables, parts=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_any_range_of_files_can_be_made_alone(table: MetadataFiles, parts: int) -> None:
    step = -(-table.files // parts)
    whole = table.data_files("/t", 0, table.files)
    pieces = [f for start in range(0, table.files, step) for f in table.data_files("/t", start, start + step)]
    assert pieces == whole
    assert [ordinal_of(f.file_path) for f in whole] == list(range(table.files))


@given(table=tables)
@settings(max_examples=30, deadline=None)
def test_descriptions_are_whole_and_partitions_hold_the_days(table: MetadataFiles) -> None:
    files = table.data_files("/t", 0, table.files)
    ids = set(range(1, table.columns + 1))
    days = ranges(table, files, DATE)
    for file, (low, high) in zip(files, days, strict=True):
        for metrics in (file.column_sizes, file.value_counts, file.null_value_counts, file.lower_bounds):
            assert set(metrics) == ids
        months = {int(np.datetime64(day, "D").astype("datetime64[M]").astype(int)) for day in (low, high)}
        assert len(months) == 1
        assert file.partition == (tuple(months) if table.partitioned else ())
        assert all(nulls <= file.record_count for nulls in file.null_value_counts.values())
    in_order = [f.partition for f in files]
    assert not table.clustered or in_order == sorted(in_order)


@given(table=tables.filter(lambda t: t.deletes == "equality" and t.partitioned))
@settings(max_examples=20, deadline=None)
def test_equality_deletes_are_paired_by_partition_and_range(table: MetadataFiles) -> None:
    files, deletes = table.data_files("/t", 0, table.files), table.delete_files("/t", 0, table.files)
    items, keys = ranges(table, files, ITEM), ranges(table, deletes, ITEM)
    kept = table.kept("metric")
    item = int(table.filters()["metric"].rpartition(" ")[2])
    pairs = [
        kept[n] and least <= item <= most
        for n, (file, (low, high)) in enumerate(zip(files, items, strict=True))
        for deleted, (least, most) in zip(deletes, keys, strict=True)
        if file.partition == deleted.partition and low <= most and high >= least
    ]
    assert (len(pairs), sum(pairs)) == (table.delete_pairs(None), table.delete_pairs("metric"))


@pytest.mark.parametrize("deletes", ["positions", "vectors"])
def test_each_file_has_deletes_of_its_own(deletes: Deletes) -> None:
    table = MetadataFiles(files=2_500, deletes=deletes)
    files = table.delete_files("/t", 0, 2_500)
    assert [f.referenced_data_file for f in files] == [path_of("/t", n) for n in range(2_500)]
    assert len({(f.file_path, f.content_offset) for f in files}) == 2_500
    assert [f.partition for f in files] == [f.partition for f in table.data_files("/t", 0, 2_500)]
    assert table.delete_pairs(None) == 2_500


def test_scattered_months_are_all_there() -> None:
    table = MetadataFiles(files=5_000, clustered=False)
    found = {f.partition[0] for f in table.data_files("/t", 0, 5_000)}
    assert found == set(range(FIRST_MONTH, FIRST_MONTH + 60))


def test_kinds_of_deletes_are_all_named() -> None:
    assert get_args(Deletes) == DELETES
