"""Fields inside structs, which Spark prunes and files of older schemas lack: what the Arrow reader gives."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable, Iterable
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.engine.spec.schema_evolution import SchemaUpdate
from icebench.engine.spec.types import NestedField, PrimitiveType, children
from icebench.engine.table import Table

INNER = pa.struct([("a", pa.int64()), ("t", pa.struct([("x", pa.int32())]))])
GROWN = pa.struct([("a", pa.int64()), ("t", pa.struct([("x", pa.int32()), ("y", pa.int32())])), ("b", pa.string())])
Row = dict[str, Any]


def with_deletes(directory: Path, kind: str) -> Table:
    """Two files of which the first lacks fields that structs got later; perhaps deletes by vectors, by key, or both."""
    catalog = icebench.load_catalog(f"{directory}/wh")
    structs = [{"a": 1, "t": {"x": 1}}, {"a": 2, "t": None}, None, {"a": 4, "t": {"x": 4}}]
    data = pa.table({"id": [1, 2, 3, 4], "s": pa.array(structs, INNER)})
    table = catalog.create_table("db.t", data.schema, properties={"format-version": "3"})
    table.append(data)
    table.update_schema(lambda s: s.add_column("b", icebench.STRING, parent="s"))
    table.update_schema(lambda s: s.add_column("y", icebench.INT, parent="s.t"))
    grown = [{"a": 5, "t": {"x": 5, "y": 6}, "b": "x"}, {"a": 6, "t": {"x": None, "y": 7}, "b": None}, None]
    table.append(pa.table({"id": [5, 6, 7], "s": pa.array(grown, GROWN)}))
    if "vector" in kind:
        table.delete("id in (4, 7)", "merge-on-read")
    if "key" in kind:
        stream = table.keyed_stream(["id"])
        stream.delete(pa.table({"id": [2, 99]}))
        stream.commit()
    return table


def inner(row: Row, *names: str) -> Any:
    found: Any = row["s"]
    for name in names:
        found = None if found is None else found[name]
    return found


QUERIES: dict[str, tuple[Callable[[DataFrame], DataFrame], Callable[[list[Row]], list[tuple[Any, ...]]]]] = {
    "a": (lambda f: f.select("id", "s.a"), lambda rows: [(r["id"], inner(r, "a")) for r in rows]),
    "added": (lambda f: f.select("id", "s.b"), lambda rows: [(r["id"], inner(r, "b")) for r in rows]),
    "added alone": (lambda f: f.select("s.b"), lambda rows: [(inner(r, "b"),) for r in rows]),
    "deeper": (lambda f: f.select("s.t.x", "id"), lambda rows: [(inner(r, "t", "x"), r["id"]) for r in rows]),
    "deeper added": (lambda f: f.select("s.t.y", "id"), lambda rows: [(inner(r, "t", "y"), r["id"]) for r in rows]),
    "null structs": (
        lambda f: f.selectExpr("id", "s is null", "s.t is null"),
        lambda rows: [(r["id"], r["s"] is None, inner(r, "t") is None) for r in rows],
    ),
    "there, added": (
        lambda f: f.filter("s is not null").select("id", "s.b"),
        lambda rows: [(r["id"], inner(r, "b")) for r in rows if r["s"] is not None],
    ),
    "filter on added": (
        lambda f: f.filter("s.b is null").select("id"),
        lambda rows: [(r["id"],) for r in rows if inner(r, "b") is None],
    ),
    "filter deeper": (
        lambda f: f.filter("s.t.y > 5").select("id", "s.t.x"),
        lambda rows: [(r["id"], inner(r, "t", "x")) for r in rows if (inner(r, "t", "y") or 0) > 5],
    ),
}


@pytest.mark.parametrize(
    ("kind", "columns"),
    [("none", None), ("vector", None), ("vector and key", None), ("vector and key", ("id", "s", "_pos", "_file"))],
)
def test_pruned_fields(session: SparkSession, tmp_path: Path, kind: str, columns: tuple[str, ...] | None) -> None:
    scan = with_deletes(tmp_path, kind).scan(columns=columns)
    rows = scan.to_arrow().to_pylist()
    frame = scan.to_spark(session)
    assert sorted(row.asDict(recursive=True)["id"] for row in frame.collect()) == sorted(r["id"] for r in rows)
    for name, (query, expected) in QUERIES.items():
        assert sorted(map(repr, map(tuple, query(frame).collect()))) == sorted(map(repr, expected(rows))), name


@pytest.mark.parametrize("kind", ["vector", "key"])
def test_a_scan_of_the_structs_alone(session: SparkSession, tmp_path: Path, kind: str) -> None:
    scan = with_deletes(tmp_path, kind).scan(columns=["s"])
    found = [row.asDict(recursive=True)["s"] for row in scan.to_spark(session).collect()]
    assert sorted(map(repr, found)) == sorted(map(repr, scan.to_arrow()["s"].to_pylist()))


def test_fields_that_files_without_field_ids_lack(spark: SparkSession, tmp_path: Path) -> None:
    """Their values are those of identity partitions, then defaults, then null, at every depth."""
    inner = pa.struct([("a", pa.int64()), ("p", pa.string())])
    data = {
        "id": pa.array([1, 2, 3]),
        "s": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int64())])),
        "l": pa.array([[{"x": 1}, None], None, []], pa.list_(pa.struct([("x", pa.int64())]))),
        "m": pa.array([[("k", {"y": 1})], [], None], pa.map_(pa.string(), pa.struct([("y", pa.int64())]))),
    }
    fields = pa.schema([(name, inner if name == "s" else values.type) for name, values in data.items()])
    table = icebench.load_catalog(f"{tmp_path}/wh").create_table(
        "db.t", fields, partition_spec=[("s.p", "identity")], properties={"format-version": "3"}
    )
    table.set_properties({"schema.name-mapping.default": json.dumps(mapping_of(table.schema().fields))})
    path = tmp_path / "imported.parquet"
    pq.write_table(pa.table(data), path)
    size = path.stat().st_size
    for partition in (("x",), (None,)):
        copy = shutil.copy(path, tmp_path / f"{partition[0]}.parquet")
        file = icebench.DataFile(
            file_path=str(copy), file_format="parquet", record_count=3, file_size_in_bytes=size, partition=partition
        )
        table.add_files([file])
    added: dict[str, tuple[PrimitiveType, Any]] = {
        "b": (icebench.INT, 5),
        "day": (icebench.DATE, 7),
        "raw": (icebench.BINARY, b"ab"),
        "n": (icebench.INT, None),
    }
    for parent in ("s", "l.element", "m.value"):
        for name, (type_, default) in added.items():
            add = partial(SchemaUpdate.add_column, name=name, type_=type_, parent=parent, default=default)
            table.update_schema(add)
    for text in (None, "s.b = 5", "s.n is null and id > 1"):
        scan = table.scan(text)
        found = [row.asDict(recursive=True) for row in scan.to_spark(spark).collect()]
        expected = [{**row, "m": None if row["m"] is None else dict(row["m"])} for row in scan.to_arrow().to_pylist()]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
    last = {"a": None, "p": "x", "b": 5, "day": dt.date(1970, 1, 8), "raw": b"ab", "n": None}
    assert last in [row["s"] for row in expected]


def mapping_of(fields: Iterable[NestedField]) -> list[dict[str, Any]]:
    """The name mapping that names every field as it is."""
    return [{"field-id": f.field_id, "names": [f.name], "fields": mapping_of(children(f.type))} for f in fields]


LEAVES = {
    "id2": ["id2"],
    "named": ["named.a", "named.t.x"],
    "mid": ["mid.a", "mid.t2.x"],
    "leaf": ["leaf.t.x2"],
    "items": ["items.a", "items.t2"],
    "lookup": ["lookup['k'].x2"],
    "whole2": ["whole2.a", "whole2.t.y"],
    "list2": ["list2.a"],
}


@pytest.mark.parametrize(
    ("columns", "reused"),
    [
        (["id2", "named"], False),
        (["id2", "named", "mid", "leaf"], False),
        (["named", "items", "lookup"], False),
        (["id2", "named", "whole2"], False),
        (["whole2", "named"], True),
        (["list2", "named"], False),
    ],
)
def test_fields_that_a_query_takes_of_renamed_columns(
    spark: SparkSession, tmp_path: Path, columns: list[str], reused: bool
) -> None:
    """Spark loses ids of nested columns where it reads a part of one: all are to be right, however it does that."""
    struct = pa.struct([("a", pa.int64()), ("t", pa.struct([("x", pa.int64()), ("y", pa.int64())]))])
    value = {"a": 1, "t": {"x": 3, "y": 4}}
    arrays = {name: pa.array([value, None, {"a": 5, "t": None}], struct) for name in ["named", "mid", "leaf", "whole"]}
    arrays |= {"id": pa.array([1, 2, 3]), "items": pa.array([[value], None, []], pa.list_(struct))}
    arrays |= {"list": arrays["items"]}
    entries = pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.int64())]))
    arrays |= {"lookup": pa.array([[("k", {"x": 6, "y": 7})], None, []], entries)}
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.table(arrays).schema)
    table.append(pa.table(arrays))
    renames = {
        "id": "id2",
        "mid.t": "t2",
        "leaf.t.x": "x2",
        "items.element.t": "t2",
        "lookup.value.x": "x2",
        "whole": "whole2",
        "list": "list2",
    }
    table.update_schema(lambda s: reduce(lambda made, name: made.rename_column(name, renames[name]), renames, s))
    if reused:
        table.update_schema(lambda s: s.add_column("whole", icebench.LONG).add_column("list", icebench.LONG))
    scan = table.scan(columns=columns)
    rows, frame = spark.createDataFrame(scan.to_arrow()), scan.to_spark(spark)
    leaves = [leaf for name in columns for leaf in LEAVES[name]]
    for first, second in zip(leaves, [*leaves[1:], leaves[0]], strict=True):
        taken = [f"{first} as one", f"{second} as two"]
        expected = sorted(map(repr, rows.selectExpr(*taken).collect()))
        assert sorted(map(repr, frame.selectExpr(*taken).collect())) == expected, taken
    if columns == ["id2", "named", "whole2"]:
        frame = table.scan("whole2.a = 1", columns=columns).to_spark(spark)
        assert frame.select("id2").collect() == [(1,)]
