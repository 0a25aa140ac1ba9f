"""Rows that were written for another definition of the table than the one they are committed to keep their values, or
the change fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import icebench
from icebench.engine.catalog.sql import SqlCatalog
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.operations.row_source import WrittenRows
from icebench.engine.spec.types import LONG, NestedField
from icebench.engine.write.data_files import write_data_files
from icebench.errors import ValidationFailed

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
OTHER = pa.schema([("id", pa.int64()), ("p", pa.int32())])
NEVER_NULL = pa.schema([("id", pa.int64()), pa.field("p", pa.string(), nullable=False)])
REQUIRED = pa.schema([("id", pa.int64()), ("p", pa.string()), pa.field("w", pa.int32(), nullable=False)])
Change = Callable[[icebench.Table], object]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icebench.Catalog]:
    opened = icebench.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/wh")
    yield opened
    opened.close()


@contextmanager
def before_commit(meanwhile: Callable[[], object]) -> Iterator[None]:
    """Context manager: runs `meanwhile` once, before the first commit is looked at."""
    commit, done = SqlCatalog.commit, list[bool]()

    def late(self: SqlCatalog, *args: Any) -> Any:
        if not done:
            done.append(True)
            meanwhile()
        return commit(self, *args)

    with patch.object(SqlCatalog, "commit", late):
        yield


def rows(catalog: icebench.Catalog) -> list[dict[str, Any]]:
    return sorted(catalog.load_table("db.t").scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def add_and_drop(catalog: icebench.Catalog) -> None:
    table = catalog.load_table("db.t")
    table.update_schema(lambda s: s.add_column("k", LONG))
    table.update_schema(lambda s: s.drop_column("k"))


def added_in_a_transaction(table: icebench.Table) -> None:
    with table.transaction() as transaction:
        transaction.update_schema(lambda s: s.add_column("k", LONG))
        transaction.append(pa.table({"id": [2], "k": [22]}))


def merged(table: icebench.Table) -> None:
    table.append(pa.table({"id": [2], "k": [22]}), merge_schema=True)


def updated_in_a_transaction(table: icebench.Table) -> None:
    with table.transaction() as transaction:
        transaction.update_schema(lambda s: s.add_column("k", LONG))
        transaction.update("id = 1", {"k": 5})


@pytest.mark.parametrize("change", [added_in_a_transaction, merged, updated_in_a_transaction])
@pytest.mark.parametrize("version", ["2", "3"])
def test_a_column_of_a_transaction_that_gets_another_id_is_a_conflict(
    catalog: icebench.Catalog, change: Change, version: str
) -> None:
    properties = {"write.spark.accept-any-schema": "true", "format-version": version}
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties=properties)
    table.append(pa.table({"id": [1]}))
    with before_commit(lambda: add_and_drop(catalog)), pytest.raises(ValidationFailed, match="'k' another id"):
        change(table)
    change(catalog.load_table("db.t"))
    assert [row["k"] for row in rows(catalog)] in ([None, 22], [5])


def streamed(table: icebench.Table) -> None:
    table.append_batch(pa.table({"id": [2], "p": ["b"]}), stream_id="s", batch_id=1)


def keyed(table: icebench.Table) -> None:
    stream = table.keyed_stream(["id"])
    stream.update(pa.table({"id": [2], "p": ["b"]}))
    stream.commit()


CHANGES: dict[str, Change] = {
    "append": lambda table: table.append(pa.table({"id": [2], "p": ["b"]})),
    "upsert": lambda table: table.upsert(pa.table({"id": [2], "p": ["b"]}), on=["id"]),
    "batch": streamed,
    "keyed": keyed,
}


def replace(catalog: icebench.Catalog, schema: pa.Schema) -> None:
    values: dict[str, list[Any]] = {"id": [7], "p": [7] if schema is OTHER else ["7"], "w": [1]}
    with catalog.replace_table_transaction("db.t", schema) as transaction:
        transaction.append(pa.table({name: values[name] for name in schema.names}, schema=schema))


@pytest.mark.parametrize("schema", [OTHER, REQUIRED])
@pytest.mark.parametrize("change", CHANGES)
def test_rows_do_not_go_into_a_table_that_was_replaced(
    catalog: icebench.Catalog, change: str, schema: pa.Schema
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(pa.table({"id": [1], "p": ["a"]}))
    with before_commit(lambda: replace(catalog, schema)), pytest.raises(ValidationFailed):
        CHANGES[change](table)
    assert [row["id"] for row in rows(catalog)] == [7]


@pytest.mark.parametrize("schema", [OTHER, REQUIRED])
def test_nor_do_files_that_were_written_before(catalog: icebench.Catalog, schema: pa.Schema) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    files = write_data_files(pa.table({"id": [2], "p": ["b"]}), metadata=table.metadata, store=table.store)
    written: Any = WrittenRows(tuple(files), table.metadata.table_uuid or "", table.metadata.schema)
    replace(catalog, schema)
    with pytest.raises(ValidationFailed):
        catalog.load_table("db.t").append(written)
    assert [row["id"] for row in rows(catalog)] == [7]


@pytest.mark.parametrize("schema", [OTHER, REQUIRED])
def test_a_staged_append_is_published_without_dropped_columns_and_not_without_required_ones(
    catalog: icebench.Catalog, schema: pa.Schema
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(pa.table({"id": [1], "p": ["a"]}))
    table.append(pa.table({"id": [2], "p": ["b"]}), wap_id="w")
    replace(catalog, schema)
    table = catalog.load_table("db.t")
    if schema is REQUIRED:
        with pytest.raises(ValidationFailed, match="required column 'w'"):
            table.cherry_pick(wap_id="w")
    else:
        table.cherry_pick(wap_id="w")
        assert rows(catalog) == [{"id": 2, "p": None}, {"id": 7, "p": 7}]


@pytest.mark.parametrize("version", ["2", "3"])
def test_deleted_keys_of_a_column_that_gets_another_id_are_a_conflict(catalog: icebench.Catalog, version: str) -> None:
    """They would delete rows by the column that another commit gave the id."""
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": version})
    table.append(pa.table({"id": [1], "p": ["a"]}))
    transaction = table.transaction()
    transaction.update_schema(lambda s: s.add_column("k", LONG))
    stream = transaction.keyed_stream(["k"])
    stream.delete(pa.table({"k": [7]}))
    stream.commit()
    other = catalog.load_table("db.t")
    other.update_schema(lambda s: s.add_column("x", LONG))
    other.append(pa.table({"id": [5], "p": ["z"], "x": [7]}))
    with pytest.raises(ValidationFailed, match="'k' another id"):
        transaction.commit()
    assert [row["id"] for row in rows(catalog)] == [1, 5]


EVOLUTIONS: dict[str, tuple[Change, dict[str, Any]]] = {
    "added": (lambda t: t.update_schema(lambda s: s.add_column("k", LONG)), {"id": 2, "p": "b", "k": None}),
    "dropped": (lambda t: t.update_schema(lambda s: s.drop_column("p")), {"id": 2}),
    "renamed": (lambda t: t.update_schema(lambda s: s.rename_column("p", "q")), {"id": 2, "q": "b"}),
    "exchanged": (
        lambda t: t.update_schema(lambda s: s.rename_column("p", "q").add_column("p", LONG)),
        {"id": 2, "q": "b", "p": None},
    ),
}


@pytest.mark.parametrize("evolution", EVOLUTIONS)
def test_columns_may_be_evolved_meanwhile(catalog: icebench.Catalog, evolution: str) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    evolve, expected = EVOLUTIONS[evolution]
    with before_commit(lambda: evolve(catalog.load_table("db.t"))):
        table.append(pa.table({"id": [2], "p": ["b"]}))
    assert rows(catalog) == [expected]


def test_required_fields_of_a_struct_that_rows_lack_are_no_conflict(catalog: icebench.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    written = WrittenFor(schema=table.metadata.schema)
    struct = icebench.StructType((NestedField(field_id=9, name="x", type=LONG, required=True),))
    table.update_schema(lambda s: s.add_column("s", struct))
    written.check(table.metadata)
    table.append(pa.table({"id": [2], "p": ["b"]}))
    assert rows(catalog) == [{"id": 2, "p": "b", "s": None}]


def test_files_have_the_order_that_they_name(catalog: icebench.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    transaction = table.transaction()
    transaction.replace_sort_order(["p"])
    transaction.append(pa.table({"id": [1, 2, 3], "p": ["c", "a", "b"]}))
    catalog.load_table("db.t").replace_sort_order(["id"])
    with pytest.raises(ValidationFailed, match="changed the sort order"):
        transaction.commit()


def test_a_null_in_a_column_that_became_required_is_a_conflict(catalog: icebench.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)

    def meanwhile() -> None:
        with catalog.replace_table_transaction("db.t", NEVER_NULL) as transaction:
            transaction.append(pa.table({"id": [1], "p": ["a"]}, schema=NEVER_NULL))

    with before_commit(meanwhile), pytest.raises(ValidationFailed, match="made column 'p' required"):
        table.append(pa.table({"id": [2], "p": [None]}, schema=SCHEMA))
    assert rows(catalog) == [{"id": 1, "p": "a"}]


def test_a_column_that_became_optional_is_no_conflict(catalog: icebench.Catalog) -> None:
    table = catalog.create_table("db.t", NEVER_NULL)
    with before_commit(lambda: catalog.load_table("db.t").update_schema(lambda s: s.make_optional("p"))):
        table.append(pa.table({"id": [2], "p": ["b"]}, schema=NEVER_NULL))
    assert rows(catalog) == [{"id": 2, "p": "b"}]


def test_nulls_of_a_branch_are_found_after_their_column_became_required(catalog: icebench.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(pa.table({"id": [1, 2], "p": ["x", None]}, schema=SCHEMA), wap_id="w")
    table.append(pa.table({"id": [1, 2], "p": ["x", None]}, schema=SCHEMA))
    table.create_branch("b")
    with catalog.replace_table_transaction("db.t", NEVER_NULL) as transaction:
        transaction.append(pa.table({"id": [5], "p": ["z"]}, schema=NEVER_NULL))
    table.refresh()
    with pytest.raises(ValidationFailed, match="made column 'p' required"):
        table.cherry_pick(wap_id="w")
    assert table.scan("p is null", ref="b").to_arrow()["id"].to_pylist() == [2]
    assert table.scan("p is not null", ref="b").to_arrow()["id"].to_pylist() == [1]
    assert table.scan("p = 'x'", ref="b").to_arrow()["id"].to_pylist() == [1]
    table.delete("p = 'x'", "merge-on-read", branch="b")
    assert table.scan(ref="b").to_arrow().to_pylist() == [{"id": 2, "p": None}]
