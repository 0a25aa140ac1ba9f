"""Partitions of floats: -0.0 and 0.0 are two, NaN is one whatever its bits (spec: "Scan Planning", note 3)."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
import pytest

import icebench
from icebench.engine.operations.row_changes import Mode
from icebench.engine.spec.partitioning import Partition
from icebench.engine.write import partitioned
from icebench.errors import ValidationFailed

OTHER_NAN: float = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
Row = tuple[int, float]


@pytest.fixture(params=[pa.float32(), pa.float64()], ids=["float", "double"])
def schema(request: pytest.FixtureRequest) -> pa.Schema:
    return pa.schema([pa.field("id", pa.int64()), pa.field("f", request.param)])


@pytest.fixture(params=["2", "3"])
def table(catalog: icebench.Catalog, schema: pa.Schema, request: pytest.FixtureRequest) -> icebench.Table:
    return catalog.create_table(
        "db.t", schema, partition_spec=[("f", "identity")], properties={"format-version": request.param}
    )


def rows(table: icebench.Table, *of: Row) -> pa.Table:
    schema = table.scan().to_arrow().schema
    return pa.table([pa.array(c, f.type) for c, f in zip(zip(*of, strict=True), schema, strict=True)], schema=schema)


def left(table: icebench.Table) -> list[tuple[int, str]]:
    """The rows, distinguished by the sign of zero."""
    read = table.refresh().scan().to_arrow()
    return sorted((i, str(f)) for i, f in zip(read["id"].to_pylist(), read["f"].to_pylist(), strict=True))


def delete_by_key(table: icebench.Table, *keys: Row) -> None:
    stream = table.keyed_stream(["id", "f"])
    stream.delete(rows(table, *keys))
    stream.commit()


def test_zeros_are_two_partitions_and_nan_is_one(table: icebench.Table) -> None:
    table.append(rows(table, (1, -0.0), (2, 0.0), (3, -0.0), (4, math.nan), (5, OTHER_NAN), (6, 0.0), (7, math.nan)))
    files = table.inspect.data_files().to_pylist()
    assert sorted((str(f["partition"]["f"]), f["record_count"]) for f in files) == [("-0.0", 2), ("0.0", 2), ("nan", 3)]
    partitions = table.inspect.partitions().to_pylist()
    assert sorted(str(p["partition"]["f"]) for p in partitions) == ["-0.0", "0.0", "nan"]
    assert table.snapshots[-1].summary["changed-partition-count"] == "3"


def test_keys_are_deleted_in_the_partition_of_their_zero(table: icebench.Table) -> None:
    table.append(rows(table, (1, -0.0), (2, 0.0), (3, 0.0), (4, math.nan), (5, OTHER_NAN)))
    delete_by_key(table, (2, 0.0), (3, -0.0), (4, OTHER_NAN), (5, math.nan))
    assert left(table) == [(1, "-0.0"), (3, "0.0")]


def test_keys_are_deleted_where_a_writer_took_zeros_for_equal(
    table: icebench.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_numbers(spec_id: int, partition: Partition) -> tuple[object, ...]:
        return spec_id, *partition

    with monkeypatch.context() as patch:
        patch.setattr(partitioned, "partition_key", as_numbers)
        table.append(rows(table, (1, -0.0), (2, 0.0), (3, 0.0)))
        table.append(rows(table, (4, 0.0), (5, -0.0), (6, -0.0)))
    assert table.inspect.data_files().num_rows == 2
    delete_by_key(table, (2, 0.0), (3, -0.0), (5, -0.0), (6, 0.0))
    assert left(table) == [(1, "-0.0"), (3, "0.0"), (4, "0.0"), (6, "-0.0")]


def test_a_stream_of_many_nan_is_clustered(table: icebench.Table) -> None:
    stream = table.keyed_stream(["id", "f"])
    stream.insert(rows(table, (1, math.nan), (2, 1.0), (3, OTHER_NAN), (4, -0.0), (5, 0.0), (6, -0.0)))
    stream.commit()
    assert table.inspect.data_files().num_rows == 4
    assert [i for i, _ in left(table)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("value", [math.nan, OTHER_NAN, 0.0, -0.0])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_deletes_of_others_are_seen_in_partitions_of_any_float(
    table: icebench.Table, catalog: icebench.Catalog, mode: Mode, value: float
) -> None:
    """An update that was written from before the delete would bring the row back."""
    table.append(rows(table, (1, value), (2, value)))
    transaction = table.transaction()
    transaction.update("id >= 1", {"id": icebench.sql("id + 10")}, mode)
    delete_by_key(catalog.load_table("db.t"), (2, value))
    with pytest.raises(ValidationFailed, match="may delete rows"):
        transaction.commit()
    assert [i for i, _ in left(table)] == [1]


@pytest.mark.parametrize("value", [math.nan, OTHER_NAN, 0.0, -0.0])
def test_partitions_of_any_float_are_replaced_and_compacted(table: icebench.Table, value: float) -> None:
    table.append(rows(table, (1, value), (2, 1.0)))
    table.append(rows(table, (3, math.nan), (4, 0.0), (5, -0.0)))
    table.overwrite_partitions(rows(table, (6, value)))
    others = {str(math.nan), "0.0", "-0.0"} - {str(value)}
    assert {f for _, f in left(table)} == {str(value), "1.0", *others}
    assert 1 not in [i for i, _ in left(table)]
    table.append(rows(table, (7, value)))
    before = left(table)
    done = table.maintenance.rewrite_data_files(min_input_files=2)
    assert (done.rewritten_data_files, done.added_data_files) == (2, 1)
    assert left(table) == before
    table.maintenance.rewrite_manifests()
    assert left(table) == before


def test_files_that_others_add_to_a_partition_of_nan_fail_its_replacement(
    table: icebench.Table, catalog: icebench.Catalog
) -> None:
    table.append(rows(table, (1, math.nan)))
    transaction = table.transaction()
    transaction.overwrite_partitions(rows(table, (2, OTHER_NAN)))
    catalog.load_table("db.t").append(rows(table, (3, math.nan)))
    with pytest.raises(ValidationFailed, match="to a partition that this change replaces"):
        transaction.commit()
