from __future__ import annotations

import math
from dataclasses import replace

import pytest

from icebench.engine.spec import types
from icebench.engine.spec.types import (
    DOUBLE,
    DecimalType,
    FixedType,
    GeospatialType,
    NestedField,
    StructType,
    Type,
    can_promote,
    list_type,
    map_type,
)


@pytest.mark.parametrize(
    ("old", "new", "since"),
    [
        (types.INT, types.LONG, 1),
        (types.FLOAT, types.DOUBLE, 1),
        (DecimalType(9, 2), DecimalType(18, 2), 1),
        (types.DATE, types.TIMESTAMP, 3),
        (types.DATE, types.TIMESTAMP_NS, 3),
        (types.UNKNOWN, types.STRING, 3),
        (types.LONG, types.INT, None),
        (types.DATE, types.TIMESTAMPTZ, None),
        (types.INT, types.DOUBLE, None),
        (types.STRING, types.BINARY, None),
        (DecimalType(9, 2), DecimalType(18, 3), None),
        (DecimalType(18, 2), DecimalType(9, 2), None),
        (FixedType(2), FixedType(3), None),
    ],
)
def test_promotion(old: Type, new: Type, since: int | None) -> None:
    allowed = [version for version in (1, 2, 3) if can_promote(old, new, format_version=version)]
    assert allowed == ([] if since is None else list(range(since, 4)))
    assert can_promote(old, old, format_version=1)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (types.LONG, "long"),
        (DecimalType(9, 2), "decimal(9, 2)"),
        (FixedType(16), "fixed[16]"),
        (list_type(1, types.INT), "list<int>"),
        (map_type(1, types.STRING, 2, types.LONG), "map<string, long>"),
        (GeospatialType("geometry"), "geometry"),
        (GeospatialType("geography", "srid:4326", "karney"), "geography(srid:4326, karney)"),
        (GeospatialType("geography", None, "karney"), "geography(OGC:CRS84, karney)"),
    ],
)
def test_text(type_: Type, text: str) -> None:
    assert str(type_) == text


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 2), (9, 10), (9, -1)])
def test_impossible_decimals(precision: int, scale: int) -> None:
    with pytest.raises(ValueError, match="decimal"):
        DecimalType(precision, scale)


def test_fields_are_equal_where_their_defaults_are_the_same_value() -> None:
    defaults = [None, 0.0, -0.0, 1.0, math.nan, float("nan")]
    fields = [NestedField(field_id=1, name="a", type=DOUBLE, write_default=each) for each in defaults]
    assert len({str(f.write_default) for f in fields}) == len(set(fields)) == 5
    assert fields[-1] == fields[-2]
    assert fields[1] != fields[2]
    assert StructType((fields[1],)) != StructType((fields[2],))
    assert fields[0] != replace(fields[0], doc="x")
    assert fields[0] != "a"
