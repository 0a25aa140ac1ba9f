"""The truth that engines are checked against, compared with a model: rows deleted in every way the format has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icebench
from icebench.bench.engines.checksum import checksum_of
from icebench.bench.truth.rows import truth_at
from icebench.bench.truth.sql import NoTruth

COLUMNS = ("id", "kind", "name")
SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.int32()), ("name", pa.string())])
Row = tuple[int, int | None, str | None]


def rows_of(ids: range) -> list[Row]:
    return [(i, None if i % 7 == 3 else i % 3, None if i % 5 == 1 else f"n{i % 4}") for i in ids]


def arrow(rows: list[Row]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[], [], []], schema=SCHEMA)


def equality_deletes(folder: Path, table: icebench.Table, columns: dict[str, list[object]]) -> icebench.DataFile:
    """A delete file, with field ids as the table has them."""
    ids = {name: SCHEMA.get_field_index(name) + 1 for name in columns}
    fields = [pa.field(n, SCHEMA.field(n).type, metadata={"PARQUET:field_id": str(ids[n])}) for n in columns]
    path = folder / f"{len(list(folder.iterdir()))}-deletes.parquet"
    pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), path)
    return icebench.DataFile(
        content=icebench.FileContent.EQUALITY_DELETES,
        file_path=str(path),
        file_format="parquet",
        record_count=len(next(iter(columns.values()))),
        file_size_in_bytes=path.stat().st_size,
        equality_ids=tuple(ids.values()),
    )


STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 12)),
    st.tuples(st.just("positions"), st.integers(0, 60), st.integers(1, 9)),
    st.tuples(st.just("ids"), st.lists(st.integers(0, 60), min_size=1, max_size=5)),
    st.tuples(st.just("pairs"), st.lists(st.sampled_from(rows_of(range(30))), min_size=1, max_size=4)),
)


@settings(max_examples=12)
@given(version=st.sampled_from([2, 3]), steps=st.lists(STEP, max_size=7))
def test_deletes_of_every_kind(
    tmp_path_factory: pytest.TempPathFactory, version: int, steps: list[tuple[object, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("truth")
    table = icebench.load_catalog(str(folder)).create_table(
        "db.t", SCHEMA, properties={"format-version": str(version), "write.delete.mode": "merge-on-read"}
    )
    live = rows_of(range(20))
    table.append(arrow(live))
    for step in steps:
        match step:
            case "append", int(count):
                # Ids come again: an equality delete must not reach rows that came after it.
                table.append(arrow(rows_of(range(5, 5 + count))))
                live += rows_of(range(5, 5 + count))
            case "positions", int(start), int(count):
                table.delete(f"id >= {start} and id < {start + count}", mode="merge-on-read")
                live = [row for row in live if not start <= row[0] < start + count]
            case "ids", list(ids):
                table.add_files([equality_deletes(folder, table, {"id": ids})])
                live = [row for row in live if row[0] not in ids]
            case "pairs", list(rows):
                pairs = [(kind, name) for _, kind, name in rows]
                columns = {"kind": [kind for kind, _ in pairs], "name": [name for _, name in pairs]}
                table.add_files([equality_deletes(folder, table, columns)])
                live = [row for row in live if row[1:] not in pairs]
    truth = truth_at(table.metadata_location)
    assert truth.answer(COLUMNS).fault_of(checksum_of(arrow(live).to_batches(), COLUMNS)) is None
    some = [row for row in live if row[1] == 1]
    # A filter on a column that is not delivered.
    assert truth.answer(("id",), "kind = 1").fault_of(checksum_of(arrow(some).to_batches(), ("id",))) is None


def test_equality_deletes_reach_their_own_partition_only(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", SCHEMA, partition_spec=[("kind", "identity")], properties={"format-version": "2"}
    )
    table.append(arrow([(1, 0, "a"), (2, 0, "b"), (1, 1, "a"), (2, 1, "b")]))
    delete = equality_deletes(tmp_path, table, {"id": [1]})
    table.add_files([replace(delete, partition=(0,))])
    left = arrow([(2, 0, "b"), (1, 1, "a"), (2, 1, "b")])
    assert truth_at(table.metadata_location).answer(COLUMNS).fault_of(checksum_of(left.to_batches(), COLUMNS)) is None


def test_equality_deletes_do_not_reach_rows_of_their_own_commit(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA, properties={"format-version": "2"})
    table.append(arrow([(1, 0, "old"), (2, 0, "old")]))
    delete = equality_deletes(tmp_path, table, {"id": [1]})
    path = tmp_path / "new.parquet"
    fields = [field.with_metadata({"PARQUET:field_id": str(i)}) for i, field in enumerate(SCHEMA, 1)]
    pq.write_table(arrow([(1, 0, "new")]).cast(pa.schema(fields)), path)
    data = icebench.DataFile(
        file_path=str(path), file_format="parquet", record_count=1, file_size_in_bytes=path.stat().st_size
    )
    table.add_files([data, delete])
    left = arrow([(2, 0, "old"), (1, 0, "new")])
    assert truth_at(table.metadata_location).answer(COLUMNS).fault_of(checksum_of(left.to_batches(), COLUMNS)) is None


def test_equality_deletes_hold_when_their_column_was_dropped(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA, properties={"format-version": "2"})
    table.append(arrow(rows_of(range(6))))
    table.add_files([equality_deletes(tmp_path, table, {"name": ["n0"]})])
    table.update_schema(lambda schema: schema.drop_column("name"))
    left = arrow([row for row in rows_of(range(6)) if row[2] != "n0"]).select(["id", "kind"])
    found = truth_at(table.metadata_location).answer(("id", "kind"))
    assert found.fault_of(checksum_of(left.to_batches(), ("id", "kind"))) is None


def test_the_file_that_an_engine_loses_is_named(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA, properties={"format-version": "2"})
    for start in (0, 10):
        table.append(arrow(rows_of(range(start, start + 10))))
    (path,) = [
        path
        for path in table.scan().plan().files["file_path"].to_pylist()
        if 10 in pq.read_table(path)["id"].to_pylist()
    ]
    rest = checksum_of(arrow(rows_of(range(10))).to_batches(), COLUMNS)
    assert truth_at(table.metadata_location).answer(COLUMNS).fault_of(rest) == f"lacks all 10 rows of {path}"


def test_nested_columns_whose_fields_changed_are_not_checked(tmp_path: Path) -> None:
    nested = pa.schema([("id", pa.int64()), ("place", pa.struct([("x", pa.int32())]))])
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", nested, properties={"format-version": "2"})
    rows = pa.table({"id": [1, 2], "place": [{"x": 5}, None]}, nested)
    table.append(rows)
    found = truth_at(table.metadata_location).answer(("id", "place"))
    assert found.fault_of(checksum_of(rows.to_batches(), ("id", "place"))) is None
    table.update_schema(lambda schema: schema.add_column("y", icebench.INT, parent="place"))
    with pytest.raises(NoTruth, match="nested column place has changed its fields"):
        truth_at(table.metadata_location).answer(("place",))
