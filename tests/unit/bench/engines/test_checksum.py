import random
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.engines.checksum import Checksum, ColumnSum, checksum_of, decode_checksum, empty_checksum

EXACT = Context(prec=60)
ROW = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "price": st.none() | st.decimals(-99999, 99999, places=2),
        "wide": st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-6, EXACT)),
        "name": st.none() | st.text(max_size=5),
        "share": st.none() | st.floats(width=32),
        "flag": st.none() | st.booleans(),
    }
)
ROWS = st.lists(ROW, max_size=20)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(7, 2)),
        ("wide", pa.decimal128(38, 6)),
        ("name", pa.string()),
        ("share", pa.float64()),
        ("flag", pa.bool_()),
    ]
)
COLUMNS = SCHEMA.names

ONE = UUID("0000000f-0000-4000-8000-0000000000ff")


def batch(rows: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 20))
def test_neither_order_nor_batches_matter(rows: list[dict[str, object]], chance: random.Random, cut: int) -> None:
    whole = checksum_of([batch(rows)], COLUMNS)
    shuffled = rows.copy()
    chance.shuffle(shuffled)
    parts = [batch(shuffled[:cut]), batch(shuffled[cut:])]
    assert checksum_of(parts, COLUMNS) == whole
    assert checksum_of(parts[:1], COLUMNS) + checksum_of(parts[1:], COLUMNS) == whole
    assert decode_checksum(whole.encode()) == whole
    assert whole.rows == len(rows)


@given(ROWS)
def test_sums_are_exact(rows: list[dict[str, object]]) -> None:
    found = checksum_of([batch(rows)], COLUMNS)
    for name, unscaled in (("id", 0), ("price", 2), ("wide", 6)):
        values = [row[name] for row in rows if row[name] is not None]
        assert found.columns[name].total == sum(int(Decimal(str(v)).scaleb(unscaled, EXACT)) for v in values)
        assert found.columns[name].nulls == len(rows) - len(values)


@given(ROWS.filter(bool), st.data())
def test_a_changed_value_is_seen(rows: list[dict[str, object]], data: st.DataObject) -> None:
    changed = [dict(row) for row in rows]
    place = data.draw(st.integers(0, len(rows) - 1))
    changed[place]["id"] = 5 if rows[place]["id"] is None else None
    before, after = checksum_of([batch(rows)], COLUMNS), checksum_of([batch(changed)], COLUMNS)
    assert before.text != after.text
    assert "column id" in str(before.difference(after))


def test_values_in_other_rows_are_seen() -> None:
    straight = pa.RecordBatch.from_pydict({"a": [1, 2], "b": [10, 20]})
    crossed = pa.RecordBatch.from_pydict({"a": [1, 2], "b": [20, 10]})
    one, other = checksum_of([straight], ["a", "b"]), checksum_of([crossed], ["a", "b"])
    assert one.columns == other.columns
    assert one.difference(other) == "the same values in other rows"
    straight = pa.RecordBatch.from_pydict({"a": [None, 0], "b": [10, 20]})
    crossed = pa.RecordBatch.from_pydict({"a": [0, None], "b": [10, 20]})
    one, other = checksum_of([straight], ["a", "b"]), checksum_of([crossed], ["a", "b"])
    assert one.columns == other.columns
    assert one.difference(other) == "the same values in other rows"


def test_a_null_is_not_mixed_as_zero() -> None:
    kinds = (pa.int64(), pa.float64(), pa.decimal128(38, 2), pa.bool_())
    for kind in kinds:
        null, zero = pa.array([None, 0], pa.int64()).cast(kind), pa.array([0, None], pa.int64()).cast(kind)
        pair = [pa.RecordBatch.from_pydict({"a": own, "b": [1, 2]}) for own in (null, zero)]
        one, other = (checksum_of([rows], ["a", "b"]) for rows in pair)
        assert one.columns == other.columns
        assert one.difference(other) == "the same values in other rows", kind


IN_OWN_TYPES = [
    (pa.array([1, None, -3], pa.int32()), pa.array([1, None, -3], pa.int64())),
    (pa.array(["a", None, "é"]), pa.array(["a", None, "é"], pa.large_string())),
    (pa.array(["a", None, "é"]), pa.array(["a", None, "é"]).dictionary_encode()),
    (pa.array(["a", None, "b"]), pa.array(["a", None, "b"], pa.string_view())),
    (pa.array([b"a", None, b""]), pa.array([b"a", None, b""], pa.large_binary())),
    (pa.array([ONE.bytes, None], pa.uuid()), pa.array([str(ONE), None])),
    (pa.array([{"u": str(ONE)}]), pa.array([{"u": ONE.bytes}])),
    (pa.array([1.5, None], pa.float32()), pa.array([1.5, None], pa.float64())),
    (pa.array([0, None, 9], pa.timestamp("ms")), pa.array([0, None, 9000], pa.timestamp("us"))),
    (pa.array([0, 9], pa.timestamp("us", tz="UTC")), pa.array([0, 9], pa.timestamp("us", tz="Europe/Berlin"))),
    (pa.array([0, None, 9], pa.time32("ms")), pa.array([0, None, 9000], pa.time64("us"))),
]


@pytest.mark.parametrize(("one", "other"), IN_OWN_TYPES, ids=str)
def test_engines_may_deliver_values_in_types_of_their_own(one: pa.Array, other: pa.Array) -> None:
    assert _of_column(one) == _of_column(other)


@pytest.mark.parametrize("text", [str(ONE).upper(), str(ONE) + " ", str(ONE).replace("-", ""), "{" + str(ONE) + "}"])
def test_other_texts_are_no_uuids(text: str) -> None:
    assert _of_column(pa.array([text])) != _of_column(pa.array([ONE.bytes]))


@pytest.mark.parametrize("kind", [pa.decimal32(7, 2), pa.decimal64(7, 2), pa.decimal256(7, 2), pa.decimal128(20, 2)])
def test_decimals_of_any_width_count_as_one(kind: pa.DataType) -> None:
    values = [Decimal("-12345.67"), None, Decimal("0.01")]
    assert _of_column(pa.array(values, kind)) == _of_column(pa.array(values, pa.decimal128(7, 2)))


def test_slices_count_what_they_show() -> None:
    whole = pa.RecordBatch.from_pydict({"x": pa.array([Decimal("1.00"), None, Decimal("3.00")], pa.decimal128(7, 2))})
    assert checksum_of([whole.slice(1, 2)], ["x"]).columns["x"].total == 300


def test_not_a_number_is_one_value_and_zero_has_a_sign() -> None:
    nan, other = pa.array([float("nan")]), pa.array([-float("nan")])
    assert _of_column(nan) == _of_column(other)
    assert _of_column(pa.array([0.0])) != _of_column(pa.array([-0.0]))


NESTED = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", pa.map_(pa.string(), pa.int64()))])
VALUES: list[Any] = [
    None,
    {"a": None, "b": None, "c": None},
    {"a": 0, "b": [], "c": []},
    {"a": 0, "b": [None], "c": [("k", None)]},
    {"a": 0, "b": [""], "c": [("k", 0)]},
    {"a": 1, "b": ["x", "y"], "c": [("k", 1), ("l", 2)]},
    {"a": 1, "b": ["y", "x"], "c": [("k", 1), ("l", 2)]},
    {"a": 1, "b": ["x", "y"], "c": [("k", 2), ("l", 1)]},
    {"a": 1, "b": ["x", "y", None], "c": [("k", 1), ("l", 2)]},
]


def _lists_of_one(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)


def _maps_of_one(values: pa.Array) -> pa.Array:
    return pa.MapArray.from_arrays(range(len(values) + 1), pa.array(range(len(values))), values)


def test_nested_values_that_differ_have_different_checksums() -> None:
    assert len({_of_column(pa.array([value], NESTED)).text for value in VALUES}) == len(VALUES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([[1]], pa.list_(pa.date32())), pa.array([[1]], pa.list_(pa.int64()))),
        (pa.array([[[1]]], pa.list_(pa.list_(pa.timestamp("us")))), pa.array([[[1]]], pa.list_(pa.list_(pa.int64())))),
        (pa.array([[1]], pa.list_(pa.timestamp("us"))), pa.array([[1]], pa.large_list(pa.timestamp("ns")))),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.time64("us"))), pa.array([[("k", 1)]], NESTED.field(2).type)),
        (
            pa.array([{"a": Decimal("1.00")}], pa.struct([("a", pa.decimal128(9, 2))])),
            pa.array([{"a": Decimal("10.0")}], pa.struct([("a", pa.decimal128(9, 1))])),
        ),
        (pa.array([{"a": 1}]), pa.array([{"b": 1}])),
    ],
    ids=str,
)
def test_parts_of_nested_values_differ_in_what_their_integers_stand_for(one: pa.Array, other: pa.Array) -> None:
    difference = str(_of_column(one).difference(_of_column(other)))
    assert difference.startswith(("column x: lists of (", "column x: maps of (", "column x: structs of ("))


@pytest.mark.parametrize("nest", [lambda a: pa.StructArray.from_arrays([a], ["v"]), _lists_of_one, _maps_of_one])
@pytest.mark.parametrize(("one", "other"), IN_OWN_TYPES, ids=str)
def test_engines_may_deliver_parts_of_nested_values_in_types_of_their_own(
    one: pa.Array, other: pa.Array, nest: Callable[[pa.Array], pa.Array]
) -> None:
    assert _of_column(nest(one)) == _of_column(nest(other))


def test_kinds_do_not_depend_on_batches() -> None:
    dates, numbers = ColumnSum(0, 1, frozenset({"dates"})), ColumnSum(0, 1, frozenset({"whole numbers"}))
    mixed = [pa.record_batch({"x": pa.array([1], kind)}) for kind in (pa.date32(), pa.int64(), pa.date32())]
    assert (dates + numbers + dates).kinds == (dates + dates + numbers).kinds == dates.kinds | numbers.kinds
    assert checksum_of(mixed, ["x"]) == checksum_of(mixed[::-1][:1] * 2 + mixed[1:2], ["x"])
    difference = checksum_of(mixed, ["x"]).difference(checksum_of(mixed[1:2] * 3, ["x"]))
    assert difference == "column x: dates and whole numbers against whole numbers"


def test_nested_values_are_the_same_in_any_batches_widths_and_order_of_entries() -> None:
    whole = pa.array(VALUES, NESTED)
    parts = [whole.slice(0, 4), whole.slice(4, 5)]
    assert checksum_of([pa.RecordBatch.from_arrays([part], ["x"]) for part in parts], ["x"]) == _of_column(whole)
    large = pa.struct([("a", pa.int64()), ("b", pa.large_list(pa.large_string())), NESTED.field(2)])
    assert _of_column(pa.array(VALUES, large)) == _of_column(whole)
    turned = [value and {**value, "c": value["c"] and value["c"][::-1]} for value in VALUES]
    assert _of_column(pa.array(turned, NESTED)) == _of_column(whole)
    for kind in (pa.list_view(pa.int64()), pa.list_(pa.int64(), 2)):
        lists = pa.array([[1, 2], None, [2, 1]], kind)
        assert _of_column(lists) == _of_column(pa.array([[1, 2], None, [2, 1]], pa.list_(pa.int64())))


def test_columns_of_unknown_types_are_refused() -> None:
    with pytest.raises(TypeError, match="column x of type duration"):
        _of_column(pa.array([1], pa.duration("s")))


def test_differences_are_reported_in_words() -> None:
    none = empty_checksum(["x"])
    one = _of_column(pa.array([1]))
    assert none.difference(none) is None
    assert none.difference(one) == "0 rows against 1"
    assert one.difference(_of_column(pa.array([2]))) == "column x: sum 1 against 2"
    assert one.difference(_of_column(pa.array([None], pa.int64()))) == "column x: 0 nulls against 1"
    assert one.difference(empty_checksum([])) == "1 rows against 0"
    with pytest.raises(ValueError, match="do not add"):
        one + empty_checksum(["y"])


def _of_column(values: pa.Array) -> Checksum:
    return checksum_of([pa.RecordBatch.from_arrays([values], ["x"])], ["x"])


def test_times_of_day_are_the_same_in_every_unit() -> None:
    seconds = [3723, None, 0]
    (first, *others) = [
        checksum_of([pa.record_batch({"t": pa.array(seconds, pa.time32("s")).cast(kind)})], ["t"])
        for kind in (pa.time64("us"), pa.time64("ns"), pa.time32("ms"), pa.time32("s"))
    ]
    assert [other.difference(first) for other in others] == [None] * 3
