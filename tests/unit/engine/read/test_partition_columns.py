"""Files without their partition columns, as Hive leaves them: identity partition values stand for the column, others
say nothing of it (spec: "Column Projection")."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int64()), pa.field("s", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icebench.Catalog]:
    opened = icebench.load_catalog(f"{tmp_path}/wh")
    yield opened
    opened.close()


def table(catalog: icebench.Catalog, schema: pa.Schema, *spec: tuple[str, str], version: int = 2) -> icebench.Table:
    return catalog.create_table("db.t", schema, partition_spec=spec, properties={"format-version": str(version)})


def add(table: icebench.Table, folder: Path, ids: list[int], *partition: Any) -> None:
    """A file that has ids only."""
    path = folder / f"{ids[0]}.parquet"
    schema = pa.schema([pa.field("id", pa.int64()).with_metadata({"PARQUET:field_id": "1"})])
    pq.write_table(pa.table({"id": ids}, schema=schema), path)
    table.add_files(
        [
            icebench.DataFile(
                file_path=str(path),
                file_format="parquet",
                spec_id=table.spec.spec_id,
                partition=partition,
                record_count=len(ids),
                file_size_in_bytes=path.stat().st_size,
            )
        ]
    )


def column(table: icebench.Table, name: str, filter: str | None = None) -> dict[int, Any]:
    read = table.refresh().scan(filter=filter).to_arrow()
    return dict(zip(read["id"].to_pylist(), read[name].to_pylist(), strict=True))


def test_an_identity_partition_value_is_the_columns(catalog: icebench.Catalog, tmp_path: Path) -> None:
    made = table(catalog, ROWS, ("n", "identity"), ("s", "identity"))
    add(made, tmp_path, [1, 2], 7, "x")
    add(made, tmp_path, [3], None, "")
    assert column(made, "n") == {1: 7, 2: 7, 3: None}
    assert column(made, "s") == {1: "x", 2: "x", 3: ""}
    assert column(made, "n", "n = 7 and id > 1") == {2: 7}
    assert column(made, "n", "n is null or s = 'y'") == {3: None}
    assert column(made, "s", "n not in (7, 8)") == {}
    assert column(made, "s", "s < 'x' and id = 3") == {3: ""}


@pytest.mark.parametrize(
    ("field", "transform", "value"),
    [("n", "bucket[16]", 3), ("n", "truncate[10]", 10), ("s", "truncate[1]", "x"), ("n", "void", None)],
)
def test_another_partition_value_is_not(
    catalog: icebench.Catalog, tmp_path: Path, field: str, transform: str, value: Any
) -> None:
    made = table(catalog, ROWS, (field, transform))
    add(made, tmp_path, [1, 2], value)
    assert column(made, field) == {1: None, 2: None}


def test_a_null_partition_value_comes_before_the_default(catalog: icebench.Catalog, tmp_path: Path) -> None:
    made = table(catalog, ROWS, version=3)
    add(made, tmp_path, [1])
    made.update_schema(lambda s: s.add_column("added", icebench.LONG, default=5))
    made.update_spec(lambda s: s.add_field("added", icebench.parse_transform("identity")))
    add(made.refresh(), tmp_path, [2], None)
    add(made, tmp_path, [3], 9)
    assert column(made, "added") == {1: 5, 2: None, 3: 9}
    assert column(made, "added", "added is null and id > 0") == {2: None}
    assert column(made, "added", "added = 5 and id > 0") == {1: 5}


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.int32(), [-(2**31), 0, None]),
        (pa.float64(), [-0.0, 0.0, math.nan, math.inf, None]),
        (pa.decimal128(20, 2), [Decimal("-0.01"), Decimal("0.00"), None]),
        (pa.binary(), [b"", b"\xff", None]),
        (pa.binary(2), [b"\0\0", b"\x80\0", None]),
    ],
    ids=str,
)
def test_values_that_are_special(
    catalog: icebench.Catalog, tmp_path: Path, type_: pa.DataType, values: list[Any]
) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("p", type_)])
    made = table(catalog, schema, ("p", "identity"))
    for number, value in enumerate(values):
        add(made, tmp_path, [number], value)
    made.append(pa.table([pa.array(range(10, 10 + len(values)), pa.int64()), pa.array(values, type_)], schema=schema))
    for first in (0, 10):
        read = column(made, "p", f"id >= {first} and id < {first + 10}")
        assert [str(read[first + number]) for number in range(len(values))] == [str(value) for value in values]
    for number, value in enumerate(values):
        if value is None:
            assert set(column(made, "id", "p is null")) == {number, number + 10}
    assert len(made.inspect.partitions()) == len(values)


def partitions(table: icebench.Table) -> dict[int, dict[str, Any]]:
    """`_partition` of each row by its id, and in the plan."""
    scan = table.refresh().scan(columns=["id", "_partition"])
    read = scan.to_arrow()
    found = dict(zip(read["id"].to_pylist(), read["_partition"].to_pylist(), strict=True))
    planned = scan.plan().files["partition"].to_pylist()
    assert all(each in planned for each in found.values())
    return found


def test_a_renamed_partition_field_is_the_same(catalog: icebench.Catalog) -> None:
    made = table(catalog, ROWS, ("n", "identity"))
    made.append(pa.table({"id": [1], "n": [7], "s": ["x"]}, ROWS))
    made.update_spec(lambda spec: spec.rename_field("n", "part"))
    made.append(pa.table({"id": [2], "n": [8], "s": ["y"]}, ROWS))
    assert partitions(made) == {1: {"part": 7}, 2: {"part": 8}}


def test_names_of_partition_fields_that_were_exchanged(catalog: icebench.Catalog) -> None:
    made = table(catalog, ROWS, ("n", "identity"), ("s", "truncate[1]"))
    made.append(pa.table({"id": [1], "n": [7], "s": ["xx"]}, ROWS))
    made.update_spec(lambda spec: spec.rename_field("n", "m").rename_field("s_trunc", "o"))
    made.update_spec(lambda spec: spec.rename_field("m", "s_trunc"))
    made.append(pa.table({"id": [2], "n": [8], "s": ["yy"]}, ROWS))
    assert partitions(made) == {1: {"s_trunc": 7, "o": "x"}, 2: {"s_trunc": 8, "o": "y"}}


def test_a_name_that_another_partition_field_took_over(catalog: icebench.Catalog) -> None:
    made = table(catalog, ROWS)
    made.update_spec(lambda spec: spec.add_field("n", "identity", name="p"))
    made.append(pa.table({"id": [1], "n": [7], "s": ["x"]}, ROWS))
    made.update_spec(lambda spec: spec.drop_field("p").add_field("s", "truncate[1]", name="p"))
    made.append(pa.table({"id": [2], "n": [8], "s": ["yy"]}, ROWS))
    read = made.refresh().scan(columns=["id", "_partition"]).to_arrow()
    structs = read["_partition"].combine_chunks()
    found = {i: tuple(structs.field(n)[row].as_py() for n in range(2)) for row, i in enumerate(read["id"].to_pylist())}
    assert found == {1: (7, None), 2: (None, "y")}


def test_a_partition_field_whose_column_was_dropped(catalog: icebench.Catalog) -> None:
    made = table(catalog, ROWS, ("n", "identity"))
    made.append(pa.table({"id": [1], "n": [7], "s": ["x"]}, ROWS))
    made.update_spec(lambda spec: spec.drop_field("n"))
    made.update_schema(lambda schema: schema.drop_column("n"))
    assert partitions(made) == {1: {"n": 7}}
