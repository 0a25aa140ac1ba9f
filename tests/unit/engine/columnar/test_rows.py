import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from icebench.engine.columnar.batch_columns import map_entries
from icebench.engine.columnar.rows import table_rows
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    list_type,
    map_type,
)
from icebench.errors import Invalid


def one(type_: PrimitiveType, *, required: bool = False) -> Schema:
    return Schema((NestedField(field_id=1, name="c", type=type_, required=required),))


def rows(data: pa.Table, schema: Schema) -> list[dict[str, object]]:
    batches = list(table_rows(data, schema))
    assert all(batch.schema.equals(to_arrow_schema(schema), check_metadata=True) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("type_", "given", "expected"),
    [
        (INT, pa.array([1, None], pa.int64()), [1, None]),
        (INT, pa.array([1, 255], pa.uint8()), [1, 255]),
        (LONG, pa.array([1, None]).dictionary_encode(), [1, None]),
        (DOUBLE, pa.array([0.5], pa.float32()), [0.5]),
        (STRING, pa.array(["a", None], pa.large_string()), ["a", None]),
        (STRING, pa.array(["a", "a", None]).dictionary_encode(), ["a", "a", None]),
        (STRING, pa.array(["a"], pa.string_view()), ["a"]),
        (BINARY, pa.array([b"a"], pa.large_binary()), [b"a"]),
        (FixedType(2), pa.array([b"ab"], pa.binary()), [b"ab"]),
        (DecimalType(9, 2), pa.array([Decimal("1.5")], pa.decimal128(5, 1)), [Decimal("1.50")]),
        (DecimalType(9, 2), pa.array([Decimal("1.50")], pa.decimal32(9, 2)), [Decimal("1.50")]),
        (DecimalType(9, 2), pa.array([3], pa.int32()), [Decimal("3.00")]),
        (DATE, pa.array([86_400_000], pa.date64()), [__import__("datetime").date(1970, 1, 2)]),
        (BOOLEAN, pa.nulls(2), [None, None]),
        (UUID, pa.array([b"\x00" * 16], pa.binary(16)), [uuid.UUID(int=0)]),
        (LONG, pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([5])), [5, 5]),
    ],
)
def test_casts_what_keeps_its_meaning(type_: PrimitiveType, given: pa.Array, expected: list[object]) -> None:
    assert [row["c"] for row in rows(pa.table({"c": given}), one(type_))] == expected


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        (INT, pa.array([2**31])),
        (INT, pa.array([1.0])),
        (INT, pa.array(["1"])),
        (FLOAT, pa.array([0.1], pa.float64())),
        (DOUBLE, pa.array([1])),
        (LONG, pa.array([2**64 - 1], pa.uint64())),
        (DecimalType(5, 2), pa.array([Decimal("1000.00")], pa.decimal128(9, 2))),
        (DecimalType(9, 2), pa.array([Decimal("1.001")], pa.decimal128(9, 3))),
        (TIMESTAMP, pa.array([1], pa.timestamp("ns"))),
        (TIMESTAMP, pa.array([1], pa.timestamp("us", "UTC"))),
        (TIMESTAMPTZ, pa.array([1], pa.timestamp("us"))),
        (DATE, pa.array([1], pa.timestamp("us"))),
        (STRING, pa.array([b"a"])),
        (STRING, pa.array([1])),
        (FixedType(2), pa.array([b"abc"], pa.binary())),
        (UUID, pa.array(["a"])),
        (BOOLEAN, pa.array([1])),
        (INT, pa.array([{"a": 1}])),
    ],
)
def test_refuses_what_loses_or_guesses_and_names_the_column(type_: PrimitiveType, given: pa.Array) -> None:
    with pytest.raises(Invalid, match="'c'"):
        rows(pa.table({"c": given}), one(type_))


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        (list_type(2, INT), pa.array([[1], [2**40]], pa.list_(pa.int64())).slice(0, 1)),
        (
            list_type(2, INT),
            pa.ListArray.from_arrays(
                pa.array([0, 1, 2]).cast(pa.int32()), pa.array([1, 2**40]), mask=pa.array([False, True])
            ),
        ),
        (list_type(2, INT), pa.FixedSizeListArray.from_arrays(pa.array([1, 2**40]), 1, mask=pa.array([False, True]))),
        (
            StructType((NestedField(field_id=2, name="a", type=INT),)),
            pa.StructArray.from_arrays([pa.array([1, 2**40])], ["a"], mask=pa.array([False, True])),
        ),
        (list_type(2, INT), pa.array([[2**40], [1], None], pa.list_(pa.int64(), 1)).slice(1)),
        (
            StructType((NestedField(field_id=2, name="a", type=INT),)),
            pa.StructArray.from_arrays(
                [pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([1, 2]))],
                ["a"],
                mask=pa.array([False, True]),
            ),
        ),
    ],
    ids=[
        "sliced off",
        "null list",
        "null list of one",
        "null struct",
        "sliced list of one",
        "run ends in a null struct",
    ],
)
def test_children_that_are_of_no_value_do_not_matter(type_: Type, given: pa.Array) -> None:
    schema = Schema((NestedField(field_id=1, name="c", type=type_),))
    assert [row["c"] for row in rows(pa.table({"c": given}), schema)] == given.to_pylist()


@pytest.mark.soak  # it takes 2 GiB of memory
@pytest.mark.parametrize("layout", ["dictionary", "run ends"])
def test_text_of_more_than_two_gibibytes_in_a_batch_is_refused(layout: str) -> None:
    value, count = pa.array(["x" * 2**20]), 2**11
    if layout == "dictionary":
        given: pa.Array = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), value)
    else:
        given = pa.RunEndEncodedArray.from_arrays(pa.array([count], pa.int32()), value)
    with pytest.raises(Invalid, match=r"'c' is too large .* smaller batches"):
        rows(pa.table({"c": given}), one(STRING))


def test_run_ends_are_decoded_from_where_a_slice_begins() -> None:
    ends, values = pa.array([2, 3, 6], pa.int32()), pa.array(["a", None, "c"])
    given = pa.RunEndEncodedArray.from_arrays(ends, values)
    for start in range(7):
        part = given.slice(start, 3)
        assert [row["c"] for row in rows(pa.table({"c": part}), one(STRING))] == ["a", "a", None, "c", "c", "c"][
            start:
        ][:3]


NESTED = Schema(
    (
        NestedField(field_id=1, name="id", type=LONG, required=True),
        NestedField(
            field_id=2,
            name="s",
            type=StructType(
                (
                    NestedField(field_id=3, name="a", type=INT, required=True),
                    NestedField(field_id=4, name="b", type=STRING, write_default="none"),
                )
            ),
        ),
        NestedField(field_id=5, name="l", type=list_type(6, INT, required=True)),
        NestedField(field_id=7, name="m", type=map_type(8, STRING, 9, INT, value_required=True)),
    )
)


def test_nested_columns_are_matched_by_name_with_write_defaults() -> None:
    data = pa.table(
        {
            "l": pa.array([[1, 2], None, []], pa.large_list(pa.int64())),
            "s": pa.array([{"a": 1}, None, {"a": 2}]),
            "id": [1, 2, 3],
        }
    )
    assert rows(data, NESTED) == [
        {"id": 1, "s": {"a": 1, "b": "none"}, "l": [1, 2], "m": None},
        {"id": 2, "s": None, "l": None, "m": None},
        {"id": 3, "s": {"a": 2, "b": "none"}, "l": [], "m": None},
    ]


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"s": pa.array([{"a": 1}])}, "'id'"),
        ({"id": pa.array([1, None])}, "'id'"),
        ({"id": [1], "s": pa.array([{"b": "x"}])}, "'s.a'"),
        ({"id": [1, 2], "s": pa.array([None, {"a": None, "b": "x"}])}, "'s.a'"),
        ({"id": [1], "l": pa.array([[1, None]])}, "'l.element'"),
        ({"id": [1], "m": pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32()))}, "'m.value'"),
        ({"id": [1], "more": [1]}, "'more'"),
        ({"id": [1], "s": pa.array([{"a": 1, "z": 1}])}, "'s.z'"),
        ({"id": [1], "l": pa.array([{"a": 1}])}, "'l'"),
    ],
)
def test_checks_columns_and_nulls(data: dict[str, object], named: str) -> None:
    with pytest.raises(Invalid, match=named):
        rows(pa.table(data), NESTED)


def test_a_null_inside_what_is_null_is_no_missing_value() -> None:
    struct = pa.StructArray.from_arrays([pa.array([None, 1], pa.int32())], names=["a"], mask=pa.array([True, False]))
    maps = pa.MapArray.from_arrays([0, 1, 2], ["k", "k"], pa.array([None, 1], pa.int32()), mask=pa.array([True, False]))
    data = pa.table({"id": [1, 2], "s": struct, "m": maps})
    assert rows(data, NESTED)[0]["s"] is None
    assert rows(data, NESTED)[1]["m"] == [("k", 1)]


def test_required_elements_of_lists_that_are_all_null() -> None:
    struct = StructType((NestedField(field_id=3, name="u", type=UUID, required=True),))
    element = NestedField(field_id=2, name="element", type=struct)
    schema = Schema((NestedField(field_id=1, name="c", type=ListType(element)),))
    nothing = pa.nulls(2, to_arrow_schema(schema).field(0).type)
    assert rows(pa.table({"c": nothing}), schema) == [{"c": None}] * 2


def test_a_column_may_not_come_twice() -> None:
    with pytest.raises(Invalid, match="given twice"):
        rows(pa.Table.from_arrays([pa.array([1]), pa.array([1])], names=["c", "c"]), one(LONG))


def test_slices_and_streams_are_taken_as_they_come() -> None:
    table = pa.table(
        {
            "id": range(6),
            "l": [[i, i] for i in range(6)],
            "m": pa.array([[("a", i)] if i % 2 else None for i in range(6)], pa.map_(pa.string(), pa.int64())),
        }
    )
    expected = [{"id": i, "s": None, "l": [i, i], "m": [("a", i)] if i % 2 else None} for i in range(2, 5)]
    sliced = table.slice(2, 3)
    assert rows(sliced, NESTED) == expected
    reader = pa.RecordBatchReader.from_batches(table.schema, sliced.to_batches(max_chunksize=2))
    assert [row for batch in table_rows(reader, NESTED) for row in batch.to_pylist()] == expected


def test_map_entries_of_slices_and_nulls() -> None:
    maps = pa.array([[("a", 1)], None, [("b", 2), ("c", 3)], []], pa.map_(pa.string(), pa.int32()))
    assert [part.to_pylist() for part in map_entries(maps)] == [["a", "b", "c"], [1, 2, 3]]
    assert [part.to_pylist() for part in map_entries(maps.slice(2))] == [["b", "c"], [2, 3]]
    assert [part.to_pylist() for part in map_entries(maps.slice(1, 2))] == [["b", "c"], [2, 3]]
    assert [part.to_pylist() for part in map_entries(maps.slice(0, 0))] == [[], []]
    assert [part.to_pylist() for part in map_entries(pa.array([], maps.type))] == [[], []]
