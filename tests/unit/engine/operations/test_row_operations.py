"""Overwrite, dynamic overwrite, update, upsert, and appends that bring new columns."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icebench
from icebench.errors import Invalid, Unsupported, ValidationFailed

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string()), pa.field("n", pa.int32())])
BEYOND = {
    "+12921-08-18": pa.array([4_000_000], pa.int32()).cast(pa.date32()),
    "-7164-05-05T06:37:28.288256": pa.array([-(2**58)]).cast(pa.timestamp("us")),
    "+11103-08-29T17:22:31.711744+00:00": pa.array([2**58]).cast(pa.timestamp("us", "UTC")),
}
"""Values outside the years of Python, one of each type, by their texts."""
Mode = Literal["merge-on-read", "copy-on-write"]
Row = tuple[int, str | None, int | None]


def arrow(*rows: Row) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, ROWS, strict=True)], schema=ROWS)


def table(
    catalog: icebench.Catalog, version: int = 2, spec: list[tuple[str, str]] | None = None, **properties: str
) -> icebench.Table:
    given = {"format-version": str(version), **{k.replace("_", "."): v for k, v in properties.items()}}
    made = catalog.create_table("db.t", ROWS, partition_spec=spec or [], properties=given)
    made.append(arrow((1, "a", 10), (2, "a", 20), (3, "b", 30)))
    made.append(arrow((4, "b", 40), (5, None, None)))
    return made


def contents(table: icebench.Table, **which: Any) -> set[Row]:
    read = table.scan(**which).to_arrow()
    rows = list(zip(*(read[name].to_pylist() for name in ROWS.names), strict=True))
    assert len(set(rows)) == len(rows)
    return set(rows)


BEFORE: set[Row] = {(1, "a", 10), (2, "a", 20), (3, "b", 30), (4, "b", 40), (5, None, None)}
MODES: list[tuple[int, Mode]] = [
    (1, "copy-on-write"),
    (2, "copy-on-write"),
    (2, "merge-on-read"),
    (3, "copy-on-write"),
    (3, "merge-on-read"),
]


def row_ids(table: icebench.Table) -> dict[int, int]:
    read = table.scan(columns=["id", "_row_id"]).to_arrow()
    return dict(zip(read["id"].to_pylist(), read["_row_id"].to_pylist(), strict=True))


class TestOverwrite:
    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_everything(self, catalog: icebench.Catalog, version: int) -> None:
        made = table(catalog, version)
        counters = icebench.Counters()
        snapshot = made.overwrite(arrow((9, "z", 9)), counters=counters)
        assert contents(made) == {(9, "z", 9)}
        assert snapshot is not None
        assert (snapshot.operation, snapshot.summary["deleted-data-files"]) == ("overwrite", "2")
        # Whole files go by their metadata: no data file is opened.
        assert counters.as_dict().get("rows_decoded", 0) == 0

    def test_a_filter(self, catalog: icebench.Catalog) -> None:
        made = table(catalog, spec=[("day", "identity")])
        counters = icebench.Counters()
        made.overwrite(arrow((9, "b", 9)), "day = 'b'", counters=counters)
        assert contents(made) == {(1, "a", 10), (2, "a", 20), (5, None, None), (9, "b", 9)}
        assert counters.as_dict().get("rows_decoded", 0) == 0
        made.overwrite(arrow((8, "a", 8)), "id = 1")
        assert contents(made) == {(8, "a", 8), (2, "a", 20), (5, None, None), (9, "b", 9)}

    def test_with_nothing_and_of_nothing(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        assert made.overwrite(arrow(), "id > 100") is None
        added = made.overwrite(arrow((9, "z", 9)), "id > 100")
        assert added is not None
        assert added.operation == "append"
        gone = made.overwrite(arrow(), "id <= 5")
        assert gone is not None
        assert (gone.operation, contents(made)) == ("delete", {(9, "z", 9)})

    def test_rows_that_others_add_meanwhile(self, catalog: icebench.Catalog) -> None:
        made, theirs = table(catalog), catalog.load_table("db.t")

        def late() -> pa.RecordBatchReader:
            def batches() -> Iterator[pa.RecordBatch]:
                theirs.append(arrow((6, "a", 60)))
                yield from arrow((9, "a", 9)).to_batches()

            return pa.RecordBatchReader.from_batches(ROWS, batches())

        with pytest.raises(ValidationFailed, match="may hold rows"):
            made.overwrite(late(), "id > 3")
        made.set_properties({"write.delete.isolation-level": "snapshot"})
        made.overwrite(late(), "id > 5")
        assert contents(made) == (BEFORE | {(9, "a", 9), (6, "a", 60)})


class TestOverwritePartitions:
    def test_only_partitions_with_new_rows(self, catalog: icebench.Catalog) -> None:
        made = table(catalog, spec=[("day", "identity")])
        made.overwrite_partitions(arrow((9, "b", 9), (8, None, 8), (7, "c", 7)))
        assert contents(made) == {(1, "a", 10), (2, "a", 20), (9, "b", 9), (8, None, 8), (7, "c", 7)}
        assert made.overwrite_partitions(arrow()) is None

    def test_an_unpartitioned_table(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        made.overwrite_partitions(arrow((9, "b", 9)))
        assert contents(made) == {(9, "b", 9)}


class TestUpdate:
    @pytest.mark.parametrize(("version", "mode"), MODES)
    def test_literals_and_functions(self, catalog: icebench.Catalog, version: int, mode: Mode) -> None:
        made = table(catalog, version)
        ids = row_ids(made) if version == 3 else {}
        snapshot = made.update("id in (1, 5)", {"day": "x", "n": lambda rows: pc.add(rows["id"], 100)}, mode)
        changed: set[Row] = {(1, "x", 101), (5, "x", 105)}
        assert contents(made) == changed | {(2, "a", 20), (3, "b", 30), (4, "b", 40)}
        assert snapshot is not None
        assert snapshot.operation == "overwrite"
        if version == 3:
            assert row_ids(made) == ids
            read = made.scan(columns=["id", "_last_updated_sequence_number"]).to_arrow()
            updated = dict(zip(*(read[c].to_pylist() for c in read.column_names), strict=True))
            assert updated == {1: 3, 2: 1, 3: 1, 4: 2, 5: 3}
        assert (int(snapshot.summary.get("added-delete-files", 0)) > 0) == (mode == "merge-on-read")

    @pytest.mark.parametrize(("version", "mode"), MODES)
    def test_whole_files_and_again(self, catalog: icebench.Catalog, version: int, mode: Mode) -> None:
        made = table(catalog, version, [("day", "identity")])
        for _ in range(3):
            made.update("n >= 20", {"n": lambda rows: pc.add(rows["n"], 1), "day": "b"}, mode)
        assert contents(made) == {(1, "a", 10), (2, "b", 23), (3, "b", 33), (4, "b", 43), (5, None, None)}
        assert made.update("id = 100", {"n": 1}, mode) is None

    def test_one_function_for_all_columns(self, catalog: icebench.Catalog) -> None:
        made = table(catalog, write_update_mode="copy-on-write")

        def change(rows: pa.RecordBatch) -> pa.RecordBatch:
            return rows.set_column(1, "day", pc.utf8_upper(rows["day"]))

        made.update("id <= 3", change)
        assert contents(made) == {(1, "A", 10), (2, "A", 20), (3, "B", 30), (4, "b", 40), (5, None, None)}

    def test_null(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        made.update("id = 1", {"n": None}, "merge-on-read")
        assert (1, "a", None) in contents(made)

    @pytest.mark.parametrize(
        ("assignments", "message"),
        [
            ({}, "at least one"),
            ({"nope": 1}, "no column 'nope'"),
            ({"n": "text"}, "'text' is no value of column 'n'"),
            ({"n": 2**40}, "is no value of column 'n'"),
            ({"n": dt.date(2020, 1, 1)}, "is no value of column 'n'"),
            ({"n": lambda rows: pa.array([1])}, "array of 2 values"),
            ({"n": lambda rows: pc.cast(rows["id"], pa.string())}, "column 'n' is string"),
            (lambda rows: rows.select(["id"]), "with the columns that it was given"),
        ],
    )
    def test_what_does_not_fit(self, catalog: icebench.Catalog, assignments: Any, message: str) -> None:
        made = table(catalog)
        before = {info.location for info in made.store.list(made.location)}
        with pytest.raises(Invalid, match=message):
            made.update("id >= 4", assignments, "copy-on-write")
        assert {info.location for info in made.store.list(made.location)} == before

    def test_the_format_must_have_the_mode(self, catalog: icebench.Catalog) -> None:
        made = table(catalog, 1)
        with pytest.raises(Unsupported, match="format version 1"):
            made.update("id = 1", {"n": 1}, "merge-on-read")

    @pytest.mark.parametrize("theirs_mode", ["merge-on-read", "copy-on-write"])
    @pytest.mark.parametrize(("version", "mode"), MODES[1:])
    def test_a_delete_of_the_same_row_meanwhile_fails_it(
        self, catalog: icebench.Catalog, version: int, mode: Mode, theirs_mode: Mode
    ) -> None:
        made = table(catalog, version, **{"write.update.isolation-level": "snapshot"})  # type: ignore[arg-type]
        theirs = catalog.load_table("db.t")

        def change(rows: pa.RecordBatch) -> pa.RecordBatch:
            theirs.delete("id = 1", theirs_mode)
            return rows

        with pytest.raises(ValidationFailed):
            made.update("id = 1", change, mode)
        assert contents(made.refresh()) == BEFORE - {(1, "a", 10)}


class TestUpsert:
    @pytest.mark.parametrize(("version", "mode"), MODES)
    def test_matched_rows_are_replaced_and_others_added(
        self, catalog: icebench.Catalog, version: int, mode: Mode
    ) -> None:
        made = table(catalog, version, [("day", "identity")])
        ids = row_ids(made) if version == 3 else {}
        made.upsert(arrow((2, "c", 21), (5, "a", 50), (6, None, 60)), ["id"], mode)
        expected: set[Row] = {(1, "a", 10), (2, "c", 21), (3, "b", 30), (4, "b", 40), (5, "a", 50), (6, None, 60)}
        assert contents(made) == expected
        if version == 3:
            now = row_ids(made)
            assert {i: now[i] for i in ids} == ids
            assert now[6] not in ids.values()

    def test_two_key_columns_and_only_new_rows(self, catalog: icebench.Catalog) -> None:
        made = table(catalog, write_merge_mode="merge-on-read")
        snapshot = made.upsert(arrow((1, "b", 0), (9, "a", 0)), ["id", "day"])
        assert snapshot is not None
        assert snapshot.operation == "append"
        assert contents(made) == BEFORE | {(1, "b", 0), (9, "a", 0)}
        assert made.upsert(arrow(), ["id"]) is None

    def test_many_keys_are_looked_for_by_their_range(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        made.append(arrow(*((i, "m", 0) for i in range(1_000, 2_000))))
        made.upsert(arrow(*((i, "m", 1) for i in range(1_500, 2_500))), ["id"], "copy-on-write")
        assert made.scan("n = 1").count() == 1_000
        assert made.scan("n = 0").count() == 500

    @pytest.mark.parametrize(("version", "mode"), MODES)
    def test_rows_of_several_row_groups_go(self, catalog: icebench.Catalog, version: int, mode: Mode) -> None:
        properties = {"format-version": str(version), "write.parquet.row-group-size-bytes": "640"}
        made = catalog.create_table("db.g", ROWS, properties=properties)
        made.append(arrow(*((i, "a", 0) for i in range(200))))
        made.upsert(arrow(*((i, "b", 1) for i in range(0, 200, 2))), ["id"], mode)
        assert contents(made) == {(i, "a", 0) if i % 2 else (i, "b", 1) for i in range(200)}

    def test_keys_of_floats_may_be_nan(self, catalog: icebench.Catalog) -> None:
        schema = pa.schema([pa.field("f", pa.float64()), pa.field("n", pa.int64())])
        made = catalog.create_table("db.f", schema)
        made.append(pa.table({"f": [math.nan, 1.5, math.inf], "n": [1, 2, 3]}, schema=schema))
        made.upsert(
            pa.table({"f": [math.nan, 2.5, math.inf], "n": [10, 20, 30]}, schema=schema), ["f"], "copy-on-write"
        )
        assert {str(row["f"]): row["n"] for row in made.scan().to_arrow().to_pylist()} == {
            "nan": 10,
            "1.5": 2,
            "2.5": 20,
            "inf": 30,
        }
        assert made.scan().count() == 4

    @pytest.mark.parametrize("count", [2, 300], ids=["values", "a range"])
    @pytest.mark.parametrize("first", BEYOND.values(), ids=BEYOND)
    def test_keys_beyond_the_years_of_python(self, catalog: icebench.Catalog, first: pa.Array, count: int) -> None:
        keys = pa.concat_arrays([first, pa.array(range(count - 1), first.type)])
        made = catalog.create_table("db.far", pa.schema({"k": keys.type, "n": pa.int64()}))
        made.append(pa.table({"k": keys, "n": pa.array([1] * count)}))
        made.upsert(pa.table({"k": keys, "n": pa.array([2] * count)}), ["k"])
        found = made.scan().to_arrow()
        assert found["n"].to_pylist() == [2] * count
        assert found["k"].combine_chunks().sort().equals(keys.sort())

    @pytest.mark.parametrize("text", BEYOND)
    def test_a_key_beyond_the_years_of_python_given_twice(self, catalog: icebench.Catalog, text: str) -> None:
        first = BEYOND[text]
        made = catalog.create_table("db.far", pa.schema({"k": first.type}))
        with pytest.raises(Invalid, match=re.escape(f"{{'k': '{text}'}} is given twice")):
            made.upsert(pa.table({"k": pa.concat_arrays([first, first])}), ["k"])

    @pytest.mark.parametrize(
        ("rows", "on", "message"),
        [
            (arrow((1, "a", 1), (1, "b", 2)), ["id"], r"\{'id': 1\} is given twice"),
            (arrow((1, None, 1)), ["id", "day"], "'day' holds a null"),
            (arrow((1, "a", 1)), [], "one or more"),
            (arrow((1, "a", 1)), ["nope"], "no column 'nope'"),
            (arrow((1, "a", 1)).drop_columns(["n"]), ["id"], "'n' is not given"),
        ],
    )
    def test_what_does_not_fit(self, catalog: icebench.Catalog, rows: pa.Table, on: list[str], message: str) -> None:
        made = table(catalog)
        with pytest.raises(Invalid, match=message):
            made.upsert(rows, on, "copy-on-write")

    def test_the_same_key_from_another_writer_meanwhile(self, catalog: icebench.Catalog) -> None:
        made, theirs = table(catalog), catalog.load_table("db.t")
        with made.transaction() as ours:
            ours.upsert(arrow((6, "a", 1)), ["id"], "merge-on-read")
            theirs.append(arrow((7, "a", 2)))
        assert contents(made) >= {(6, "a", 1), (7, "a", 2)}
        late = made.transaction()
        late.upsert(arrow((8, "a", 1)), ["id"], "merge-on-read")
        theirs.append(arrow((8, "a", 2)))
        with pytest.raises(ValidationFailed, match="may hold rows"):
            late.commit()


class TestNewColumns:
    def wider(self) -> pa.Table:
        return pa.table({"id": [6], "extra": ["e"], "n": pa.array([2**40], pa.int64())})

    def test_they_are_added_in_the_same_commit(self, catalog: icebench.Catalog) -> None:
        made = table(catalog, **{"write.spark.accept-any-schema": "true"})  # type: ignore[arg-type]
        versions = len(made.metadata.metadata_log)
        snapshot = made.append(self.wider(), merge_schema=True)
        assert snapshot == made.current_snapshot
        assert len(made.metadata.metadata_log) == versions + 1
        assert [f.name for f in made.schema().fields] == ["id", "day", "n", "extra"]
        assert made.scan("extra = 'e'").to_arrow().to_pylist() == [{"id": 6, "day": None, "n": 2**40, "extra": "e"}]
        assert made.scan().count() == 6

    def test_in_a_transaction(self, catalog: icebench.Catalog) -> None:
        made = table(catalog, **{"write.spark.accept-any-schema": "true"})  # type: ignore[arg-type]
        with made.transaction() as both:
            both.append(self.wider(), merge_schema=True)
            both.append(self.wider(), merge_schema=True)
        assert made.scan("extra = 'e'").count() == 2

    def test_inside_structs_and_lists_too(self, catalog: icebench.Catalog) -> None:
        before = pa.table({"id": [1], "s": [{"a": 1}], "l": [[{"x": "p"}]]})
        made = catalog.create_table("db.nested", before.schema, properties={"write.spark.accept-any-schema": "true"})
        made.append(before)
        versions = len(made.metadata.metadata_log)
        made.append(
            pa.table({"id": [2], "s": [{"b": "new", "a": 2}], "l": [[{"x": "q", "y": 1.5}]]}), merge_schema=True
        )
        assert len(made.metadata.metadata_log) == versions + 1
        rows = sorted(made.scan().to_arrow().to_pylist(), key=lambda row: int(row["id"]))
        assert rows == [
            {"id": 1, "s": {"a": 1, "b": None}, "l": [{"x": "p", "y": None}]},
            {"id": 2, "s": {"a": 2, "b": "new"}, "l": [{"x": "q", "y": 1.5}]},
        ]

    def test_rows_in_another_unit_of_time_are_cast(self, catalog: icebench.Catalog) -> None:
        """As without merge_schema; timestamps of pandas are in nanoseconds."""
        options = {"write.spark.accept-any-schema": "true"}
        made = catalog.create_table("db.times", pa.schema([("at", pa.timestamp("us"))]), properties=options)
        nanos = pa.table({"at": pa.array([5_000], pa.timestamp("ns")), "none": pa.nulls(1, pa.int64())})
        made.append(nanos, merge_schema=True)
        assert made.scan().to_arrow()["at"].cast(pa.int64()).to_pylist() == [5]
        with pytest.raises(Invalid, match="does not fit timestamp"):
            made.append(pa.table({"at": pa.array([5_001], pa.timestamp("ns"))}), merge_schema=True)

    def test_only_where_the_table_allows_it(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        with pytest.raises(Invalid, match=r"accept-any-schema=true"):
            made.append(self.wider(), merge_schema=True)
        with pytest.raises(Invalid, match="'extra' is not in the table"):
            made.append(self.wider())


class TestUpdateByExpression:
    @pytest.mark.parametrize(("version", "mode"), MODES)
    def test_rows_are_computed_as_they_were(self, catalog: icebench.Catalog, version: int, mode: Mode) -> None:
        made = table(catalog, version)
        assignments = {"n": icebench.sql("id * 100 + n"), "day": icebench.sql("upper(day) || cast(n as string)")}
        made.update("id in (1, 3)", assignments, mode)
        assert contents(made) == {(1, "A10", 110), (2, "a", 20), (3, "B30", 330), (4, "b", 40), (5, None, None)}

    def test_a_text_stays_a_value(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        made.update("id = 1", {"day": "n + 1"}, "copy-on-write")
        assert (1, "n + 1", 10) in contents(made)

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("nope + 1", icebench.errors.Invalid, "no column 'nope'"),
            ("n + day", icebench.errors.Invalid, "cast one of them"),
            ("day", icebench.errors.Invalid, "column 'n' is string"),
            ("n * 9223372036854775807", icebench.errors.Invalid, "overflow"),
            ("n % 0", icebench.errors.Invalid, "divide by zero"),
            ("upper(n)", icebench.errors.Unsupported, "upper of"),
            ("cast(day as int)", icebench.errors.Invalid, "Failed to parse"),
        ],
    )
    def test_what_fails_changes_nothing(
        self, catalog: icebench.Catalog, text: str, error: type[Exception], message: str
    ) -> None:
        made = table(catalog)
        before = made.current_snapshot, contents(made)
        with pytest.raises(error, match=message):
            made.update("id = 2", {"n": icebench.sql(text)}, "copy-on-write")
        assert (made.refresh().current_snapshot, contents(made)) == before

    @pytest.mark.parametrize("text", ["n rlike 'a'", "sum(n)", "(select 1)", "try_cast(n as int)", "foo(n)", "*"])
    def test_sql_that_is_not_supported_is_named(self, text: str) -> None:
        with pytest.raises(icebench.errors.Unsupported, match="in a filter or an expression"):
            icebench.sql(text)

    def test_what_is_no_expression(self) -> None:
        with pytest.raises(icebench.errors.Invalid, match="cannot parse"):
            icebench.sql("n +")


PAIR = pa.struct([("a", pa.int64()), ("b", pa.int64())])
ONE = {"a": 1, "b": 2}


def nested_types(pair: pa.StructType) -> dict[str, pa.DataType]:
    """Types of columns with pairs at every depth."""
    return {"s": pair, "l": pa.list_(pair), "m": pa.map_(pa.string(), pair), "o": pa.struct([("s", pair)])}


NESTED = pa.schema({"id": pa.int64(), **nested_types(PAIR)})
SWAPPED = pa.struct([("b", pa.int32()), ("a", pa.int64())])
REQUIRED = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False)])


class TestNestedValues:
    """What an update and an upsert take for nested columns: what an append takes."""

    ROW: ClassVar[dict[str, Any]] = {"id": 1, "s": ONE, "l": [ONE], "m": [("k", ONE)], "o": {"s": ONE}}

    def table(self, catalog: icebench.Catalog) -> icebench.Table:
        made = catalog.create_table("db.nested", NESTED)
        made.append(pa.Table.from_pylist([self.ROW, {"id": 2}], NESTED))
        return made

    @staticmethod
    def nested(name: str, pair: dict[str, Any]) -> Any:
        return {"s": pair, "l": [{"a": 0}, pair], "m": [("j", {"a": 0}), ("k", pair)], "o": {"s": pair}}[name]

    @pytest.mark.parametrize(
        ("name", "path"), [("s", "s.bb"), ("l", "l.element.bb"), ("m", "m.value.bb"), ("o", "o.s.bb")]
    )
    def test_a_field_that_the_table_lacks_is_refused(self, catalog: icebench.Catalog, name: str, path: str) -> None:
        made = self.table(catalog)
        value = self.nested(name, {"a": 4, "bb": 9})
        column = (
            pa.array([value])
            if name != "m"
            else pa.array([value], pa.map_(pa.string(), pa.struct([("bb", pa.int64())])))
        )
        with pytest.raises(Invalid, match=f"column '{path}' is not in the table"):
            made.update("id = 7", {name: value}, "copy-on-write")
        with pytest.raises(Invalid, match=f"column '{path}' is not in the table"):
            made.update("id = 1", {name: lambda batch: pa.concat_arrays([column] * len(batch))}, "copy-on-write")
        row = pa.Table.from_pylist([self.ROW], NESTED)
        with pytest.raises(Invalid, match=f"column '{path}' is not in the table"):
            made.upsert(row.set_column(NESTED.get_field_index(name), name, column), ["id"], "copy-on-write")
        with pytest.raises(Invalid, match="is not a literal"):
            made.delete(icebench.col(name) == value, "copy-on-write")
        assert made.refresh().scan().to_arrow().to_pylist()[0] == self.ROW

    @pytest.mark.parametrize("name", ["s", "l", "m", "o"])
    def test_fields_that_are_not_given_are_null(self, catalog: icebench.Catalog, name: str) -> None:
        made = self.table(catalog)
        made.update("id = 1", {name: self.nested(name, {"b": 9})}, "copy-on-write")
        expected = pa.array([self.nested(name, {"b": 9})], NESTED.field(name).type).to_pylist()[0]
        assert made.scan("id = 1").to_arrow().to_pylist() == [{**self.ROW, name: expected}]

    @pytest.mark.parametrize("pair", [SWAPPED, REQUIRED], ids=["order and width", "nullability"])
    @pytest.mark.parametrize("name", ["s", "l", "m", "o"])
    def test_fields_of_functions_are_found_by_name(
        self, catalog: icebench.Catalog, name: str, pair: pa.StructType
    ) -> None:
        made = self.table(catalog)
        types = nested_types(pair)
        value = {
            "s": {"a": 7, "b": 8},
            "l": [{"a": 7, "b": 8}],
            "m": [("k", {"a": 7, "b": 8})],
            "o": {"s": {"a": 7, "b": 8}},
        }[name]
        made.update("id = 1", {name: lambda batch: pa.array([value] * len(batch), types[name])}, "copy-on-write")

        def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
            place = batch.schema.get_field_index(name)
            column = pa.array([value] * len(batch), types[name])
            return batch.set_column(place, pa.field(name, column.type), column)

        made.update("id = 2", whole, "copy-on-write")
        none = dict.fromkeys(["s", "l", "m", "o"])
        assert made.scan().to_arrow().sort_by("id").to_pylist() == [
            {**self.ROW, name: value},
            {"id": 2, **none, name: value},
        ]

    def test_what_does_not_fit_is_named(self, catalog: icebench.Catalog) -> None:
        made = self.table(catalog)
        for column, message in [
            (pa.array([{"a": "x", "b": 1}]), "column 's.a' is string; the table needs int64"),
            (pa.array([[1]]), "column 's' is list<item: int64>; the table has struct<.*>"),
        ]:
            with pytest.raises(Invalid, match=message):
                made.update("id = 1", {"s": lambda batch, column=column: column}, "copy-on-write")
        made.update("id = 2", {"s": icebench.sql("o.s")}, "copy-on-write")
        with pytest.raises(Invalid, match=r"column 's\.s' is not in the table"):
            made.update("id = 7", {"s": icebench.sql("o")}, "copy-on-write")

    def test_defaults_of_fields_that_are_not_given(self, catalog: icebench.Catalog) -> None:
        made = catalog.create_table("db.defaults", NESTED, properties={"format-version": "3"})
        made.append(pa.Table.from_pylist([self.ROW], NESTED))
        made.update_schema(lambda s: s.set_write_default("s.b", 5).set_write_default("l.element.b", 6))
        made.update("id = 1", {"s": {"a": 3}, "l": [{"a": 3}]}, "copy-on-write")
        assert made.scan(columns=["s", "l"]).to_arrow().to_pylist() == [
            {"s": {"a": 3, "b": 5}, "l": [{"a": 3, "b": 6}]}
        ]
