import pyarrow as pa
import pytest

from icebench.engine.columnar.schemas import (
    child_fields,
    field_id_of,
    from_arrow_schema,
    leaves,
    to_arrow_schema,
    to_arrow_type,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    GeospatialType,
    NestedField,
    StructType,
    Type,
    list_type,
    map_type,
)
from icebench.errors import Unsupported
from tests.unit.engine.columnar.value_strategies import PRIMITIVES

NESTED = Schema(
    (
        NestedField(field_id=1, name="id", type=LONG, required=True),
        NestedField(
            field_id=2,
            name="s",
            type=StructType(
                (
                    NestedField(field_id=5, name="a", type=INT),
                    NestedField(field_id=6, name="l", type=list_type(7, STRING, required=True)),
                )
            ),
        ),
        NestedField(field_id=3, name="m", type=map_type(8, STRING, 9, DecimalType(7, 2))),
        NestedField(field_id=4, name="u", type=UUID),
    )
)


def test_types_survive_the_way_to_arrow_and_back() -> None:
    fields = tuple(NestedField(field_id=i + 1, name=f"c{i}", type=t) for i, t in enumerate((*PRIMITIVES, UNKNOWN)))
    schema = Schema(fields)
    assert from_arrow_schema(to_arrow_schema(schema)) == schema
    assert from_arrow_schema(to_arrow_schema(NESTED)) == NESTED


def test_fields_carry_their_ids_and_nullability_at_every_depth() -> None:
    arrow = to_arrow_schema(NESTED)
    assert [field_id_of(f) for f in arrow] == [1, 2, 3, 4]
    assert not arrow.field("id").nullable
    a, elements = child_fields(arrow.field("s").type)
    assert (field_id_of(a), a.nullable) == (5, True)
    (element,) = child_fields(elements.type)
    assert (field_id_of(element), element.name, element.nullable) == (7, "element", False)
    key, value = child_fields(arrow.field("m").type)
    assert [(field_id_of(f), f.nullable) for f in (key, value)] == [(8, False), (9, True)]


def test_leaves_are_numbered_as_parquet_numbers_them() -> None:
    found = leaves(to_arrow_schema(NESTED))
    assert [(leaf.index, leaf.path, leaf.repeated) for leaf in found] == [
        (0, "id", False),
        (1, "s.a", False),
        (2, "s.l.element", True),
        (3, "m.key", True),
        (4, "m.value", True),
        (5, "u", False),
    ]


@pytest.mark.parametrize(
    ("arrow", "iceberg"),
    [
        (pa.int8(), INT),
        (pa.uint16(), INT),
        (pa.uint32(), LONG),
        (pa.dictionary(pa.int8(), pa.large_string()), STRING),
        (pa.string_view(), STRING),
        (pa.decimal32(7, 2), DecimalType(7, 2)),
        (pa.decimal256(38, 3), DecimalType(38, 3)),
        (pa.timestamp("s"), TIMESTAMP),
        (pa.timestamp("ns", "Europe/Paris"), TIMESTAMPTZ_NS),
    ],
)
def test_other_layouts_of_the_same_values_are_understood(arrow: pa.DataType, iceberg: object) -> None:
    assert from_arrow_schema(pa.schema([pa.field("c", arrow)])).fields[0].type == iceberg


@pytest.mark.parametrize(
    "arrow", [pa.uint64(), pa.time64("ns"), pa.duration("us"), pa.decimal256(76, 0), pa.decimal128(5, -2)]
)
def test_refuses_what_iceberg_can_not_hold(arrow: pa.DataType) -> None:
    with pytest.raises(Unsupported, match="Iceberg has no"):
        from_arrow_schema(pa.schema([pa.field("s", pa.struct([pa.field("c", arrow)]))]))


@pytest.mark.parametrize(
    "type_",
    [
        VARIANT,
        GeospatialType("geometry"),
        GeospatialType("geometry", "srid:4326"),
        GeospatialType("geometry", "EPSG:3857"),
        GeospatialType("geography", "EPSG:4267", "karney"),
    ],
)
def test_extensions_in_field_metadata_give_the_type(type_: Type) -> None:
    fields = (
        NestedField(field_id=1, name="c", type=type_),
        NestedField(field_id=2, name="l", type=list_type(3, type_)),
    )
    assert from_arrow_schema(to_arrow_schema(Schema(fields))).fields == fields


def test_reference_systems_without_a_code_are_refused() -> None:
    metadata = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": '{"crs": {"name": "local"}}'}
    with pytest.raises(Unsupported, match="'c'"):
        from_arrow_schema(pa.schema([pa.field("c", pa.binary(), metadata=metadata)]))


@pytest.mark.parametrize(
    ("precision", "type_"),
    [
        (9, pa.decimal32(9, 2)),
        (10, pa.decimal64(10, 2)),
        (18, pa.decimal64(18, 2)),
        (19, pa.decimal128(19, 2)),
    ],
)
def test_narrow_decimals_have_the_fewest_bytes_that_hold_them(precision: int, type_: pa.DataType) -> None:
    assert to_arrow_type(DecimalType(precision, 2), narrow=True) == type_
    assert to_arrow_type(DecimalType(precision, 2)) == pa.decimal128(precision, 2)
