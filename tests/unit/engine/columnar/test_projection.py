from decimal import Decimal

import pyarrow as pa
import pytest

from icebench.engine.columnar.projection import MissingValues, Projector, depends_on_values, promote
from icebench.engine.columnar.schemas import leaves, to_arrow_field, to_arrow_schema, to_arrow_type
from icebench.engine.formats.file_columns import FileColumns
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
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    list_type,
    map_type,
)
from icebench.errors import CorruptTable, Unsupported


def field(field_id: int, name: str, type_: Type, *, required: bool = False, default: object = None) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=required, initial_default=default)


FILE = Schema(
    (
        field(1, "a", INT),
        field(2, "s", StructType((field(3, "x", INT), field(4, "y", STRING), field(5, "z", list_type(6, FLOAT))))),
        field(7, "l", list_type(8, StructType((field(9, "p", INT), field(10, "q", INT))))),
        field(11, "m", map_type(12, STRING, 13, StructType((field(14, "v", INT), field(15, "w", DATE))))),
        field(16, "b", STRING),
    )
)
ROWS = [
    {
        "a": 1,
        "s": {"x": 10, "y": "why", "z": [0.5, None]},
        "l": [{"p": 1, "q": 2}, None],
        "m": [("k", {"v": 1, "w": None})],
        "b": "b",
    },
    {"a": None, "s": None, "l": None, "m": None, "b": None},
    {"a": 3, "s": {"x": None, "y": None, "z": []}, "l": [], "m": [], "b": ""},
]


def file_table() -> pa.Table:
    return pa.Table.from_pylist(ROWS, schema=to_arrow_schema(FILE))


def projected(table: pa.Table, wanted: Schema, **constants: object) -> list[dict[str, object]]:
    missing = MissingValues(constants={int(i.removeprefix("c")): v for i, v in constants.items()})  # type: ignore[misc]
    made = Projector(missing=missing).table(table, wanted)
    assert made.schema.equals(to_arrow_schema(wanted), check_metadata=True)
    made.validate(full=True)
    return made.to_pylist()


EVOLVED = Schema(
    (
        field(16, "a", STRING),
        field(11, "map", map_type(12, STRING, 13, StructType((field(20, "new", INT), field(14, "v", LONG))))),
        field(2, "st", StructType((field(5, "list", list_type(6, DOUBLE)), field(21, "d", STRING, default="def")))),
        field(7, "l", list_type(8, StructType((field(10, "p", LONG),)))),
        field(1, "b", LONG),
        field(22, "added", LONG, default=7),
    )
)


@pytest.mark.parametrize("start", [0, 1])
def test_everything_is_found_by_id_at_every_depth(start: int) -> None:
    expected = [
        {
            "a": "b",
            "map": [("k", {"new": None, "v": 1})],
            "st": {"list": [0.5, None], "d": "def"},
            "l": [{"p": 2}, None],
            "b": 1,
            "added": 7,
        },
        {"a": None, "map": None, "st": None, "l": None, "b": None, "added": 7},
        {"a": "", "map": [], "st": {"list": [], "d": "def"}, "l": [], "b": 3, "added": 7},
    ]
    assert projected(file_table().slice(start), EVOLVED) == expected[start:]


class Pair(pa.ExtensionType):  # type: ignore[misc]
    """Shown as one column, and stored as two."""

    def __init__(self) -> None:
        super().__init__(pa.struct([("x", pa.int64()), ("y", pa.int64())]), "icebench.tests.pair")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def test_leaves_are_counted_as_they_are_stored() -> None:
    wanted = Schema((field(3, "n", LONG),))
    last = to_arrow_field(field(3, "n", LONG))
    columns = [pa.field("pair", Pair()), pa.field("empty", pa.struct([])), last]
    as_many = pa.schema([columns[0], last, columns[1]])
    assert FileColumns(as_many, 3).leaf_indices(wanted) == (2,)
    for first, leaf in (([0], 2), ([1], 0), ([0, 0], 4), ([0, 1], 2), ([1, 0], 2)):
        schema = pa.schema([*(columns[place] for place in first), last])
        assert FileColumns(schema, leaf + 1).leaf_indices(wanted) == (leaf,)
        assert [found.index for found in FileColumns(schema, leaf + 1).leaves][-1] == leaf
        with pytest.raises(
            Unsupported, match=rf"a file with {leaf + 5} columns of values, where Arrow shows {leaf + 1}"
        ):
            FileColumns(schema, leaf + 5).leaf_indices(wanted)
        with pytest.raises(Unsupported, match=rf"where Arrow shows {leaf + 1}"):
            FileColumns(schema, leaf + 5).leaves  # noqa: B018 - a property


def test_decodes_only_the_leaves_that_are_wanted() -> None:
    schema = to_arrow_schema(FILE)
    paths = {leaf.index: leaf.path for leaf in leaves(schema)}
    assert [paths[i] for i in FileColumns(schema).leaf_indices(EVOLVED)] == [
        "a",
        "s.z.element",
        "l.element.q",
        "m.key",
        "m.value.v",
        "b",
    ]
    assert FileColumns(schema).leaf_indices(Schema(())) == ()
    # Of a struct of which only fields that the file lacks are wanted, one leaf shows where the struct is null.
    only_new = Schema((field(2, "s", StructType((field(30, "new", INT),))),))
    assert [paths[i] for i in FileColumns(schema).leaf_indices(only_new)] == ["s.x"]


def test_a_partition_value_comes_before_a_default_but_not_before_the_file() -> None:
    wanted = Schema((field(1, "a", INT), field(22, "added", LONG, default=7), field(23, "gone", STRING)))
    assert projected(file_table(), wanted, c1=5, c22=8, c23=None) == [
        {"a": a, "added": 8, "gone": None} for a in (1, None, 3)
    ]


def test_a_required_column_without_a_value_is_an_error() -> None:
    with pytest.raises(CorruptTable, match=r"'s\.more' is missing"):
        projected(file_table(), Schema((field(2, "s", StructType((field(24, "more", INT, required=True),))),)))


@pytest.mark.parametrize(
    ("stored", "type_", "expected"),
    [
        (pa.array([1, None], pa.int32()), LONG, [1, None]),
        (pa.array([1], pa.int8()), INT, [1]),
        (pa.array([0.1], pa.float32()), DOUBLE, [0.10000000149011612]),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), DecimalType(38, 2), [Decimal("1.25")]),
        (pa.array([Decimal("1.25")], pa.decimal64(9, 2)), DecimalType(9, 2), [Decimal("1.25")]),
        (pa.array([19000], pa.int32()).view(pa.date32()), TIMESTAMP, [19000 * 86_400_000_000]),
        (pa.array([19000], pa.int32()).view(pa.date32()), TIMESTAMP_NS, [19000 * 86_400_000_000_000]),
        (pa.array([5], pa.timestamp("ms")), TIMESTAMP, [5000]),
        (pa.array([5], pa.timestamp("us")), TIMESTAMPTZ, [5]),
        (pa.array([5], pa.timestamp("us", "UTC")), TIMESTAMP, [5]),
        (pa.array([b"text"]), STRING, ["text"]),
        (pa.array(["text"], pa.large_string()), BINARY, [b"text"]),
        (pa.array(["t", "t"]).dictionary_encode(), STRING, ["t", "t"]),
        (pa.nulls(2), STRING, [None, None]),
        (pa.array([b"\x01" * 16], pa.binary(16)), UUID, [b"\x01" * 16]),
    ],
)
def test_promotes_and_normalizes(stored: pa.Array, type_: PrimitiveType, expected: list[object]) -> None:
    source = to_arrow_field(field(1, "c", type_)).with_type(stored.type)
    made = Projector(missing=MissingValues()).array(stored, source, field(1, "c", type_), "c")
    assert made.type == to_arrow_field(field(1, "c", type_)).type
    if isinstance(made.type, pa.BaseExtensionType):
        made = made.storage
    if pa.types.is_timestamp(made.type):
        made = made.cast(pa.int64())
    assert made.to_pylist() == expected


@pytest.mark.parametrize(
    ("stored", "type_"),
    [
        (pa.array([1]), INT),
        (pa.array([1.5]), FLOAT),
        (pa.array([Decimal("1.25")], pa.decimal128(9, 2)), DecimalType(5, 2)),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), DecimalType(9, 3)),
        (pa.array(["1"]), INT),
        (pa.array([1], pa.timestamp("ns")), TIMESTAMP),
        (pa.array([b"\xff"]), STRING),
        (pa.array([[1]]), INT),
        (pa.array([{"a": 1}]), INT),
    ],
)
def test_refuses_what_no_evolution_leads_to(stored: pa.Array, type_: PrimitiveType) -> None:
    source = to_arrow_field(field(1, "c", type_)).with_type(stored.type)
    with pytest.raises(CorruptTable, match="'c'"):
        Projector(missing=MissingValues()).array(stored, source, field(1, "c", type_), "c")


_DAYS_TO_2400 = 157_000
SEVERAL = [
    pa.array([0, 2**31 - 1, 2**31, 2**32 - 1], pa.uint32()),
    pa.array([0, 2**63 - 1, 2**63], pa.uint64()),
    *(
        pa.array([0, 2 ** (bits - 1) - 1], type_)
        for bits, type_ in ((8, pa.int8()), (32, pa.int32()), (64, pa.int64()))
    ),
    *(pa.array([0, 2**bits - 1], type_) for bits, type_ in ((8, pa.uint8()), (16, pa.uint16()))),
    pa.array([1, 65_504], pa.float16()),
    pa.array([1, 3.4e38], pa.float32()),
    pa.array([_DAYS_TO_2400], pa.date32()),
    *(
        pa.array([1, _DAYS_TO_2400 * 86_400 * ticks if unit != "ns" else 2**63 - 1], pa.timestamp(unit, zone))
        for unit, ticks in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
        for zone in (None, "UTC")
    ),
    pa.array([1, 86_399_999], pa.time32("ms")),
    pa.array([1, 86_399_999_999], pa.time64("us")),
    pa.array([1, 86_399_999_999_999], pa.time64("ns")),
    pa.array(["a", "\u20ac"]),
    pa.array(["a", "\u20ac"], pa.large_string()),
    *(pa.array([b"a", b"\xff"], type_) for type_ in (pa.binary(), pa.large_binary(), pa.binary_view())),
    pa.array(["a", "b"]).dictionary_encode(),
    pa.array([b"a", b"\xff"]).dictionary_encode(),
    pa.array([b"abcd"], pa.binary(4)),
    pa.array([b"\x01" * 16], pa.binary(16)),
    pa.array([Decimal("9.99")], pa.decimal128(3, 2)),
    pa.array([True, False]),
    pa.nulls(1),
]
TYPES = (
    INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS, STRING, BINARY, UUID,
    BOOLEAN, FixedType(4), FixedType(8), DecimalType(9, 2), DecimalType(2, 2),
)  # fmt: skip


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_types_tell_what_can_be_read_unless_it_depends_on_values(type_: PrimitiveType) -> None:
    """A type is refused without values, or else values are refused only where that is said to be possible."""
    target = to_arrow_type(type_)
    for values in SEVERAL:
        try:
            promote(values.slice(0, 0), target, "c")
        except CorruptTable:
            with pytest.raises(CorruptTable):
                promote(values, target, "c")
            continue
        if depends_on_values(values.type, target):
            with pytest.raises(CorruptTable):
                promote(values, target, "c")
        else:
            promote(values, target, "c")
