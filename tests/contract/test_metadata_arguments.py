"""What a user gives for metadata is what metadata may hold: a wrong type is refused before anything is committed, for
no engine would open the table afterwards."""

# mypy: disable-error-code="arg-type, dict-item"
from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import icebench
from icebench import DATE, DOUBLE, LONG, STRING, DecimalType, FixedType, ListType, NestedField, PrimitiveType, Schema

ROWS = pa.table({"x": [1, 2]})
Change = Callable[[icebench.Table], Any]


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    made = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3"})
    made.append(ROWS)
    return made


def added(type_: Any, name: Any = "w", **options: Any) -> Change:
    return lambda table: table.update_schema(lambda schema: schema.add_column(name, type_, **options))


WRONG: dict[str, Change] = {
    "a type's name": added("double"),
    "no type": added("nonsense"),
    "a type of Arrow": added(pa.int32()),
    "a name": added(LONG, name=5),
    "a new name": lambda table: table.update_schema(lambda schema: schema.rename_column("x", 5)),
    "documentation": added(LONG, doc=5),
    "new documentation": lambda table: table.update_schema(lambda schema: schema.document_column("x", 5)),
    "required": added(LONG, required="no", default=3),
    "text as a default of a number": added(LONG, default="a"),
    "a fraction as a default of a whole number": added(LONG, default=1.5),
    "a flag as a default of a number": added(LONG, default=True),
    "a default beyond the type": added(LONG, default=2**63),
    "a date as a default": added(DATE, default=date(2020, 1, 1)),
    "a float as a default of a decimal": added(DecimalType(5, 2), default=1.5),
    "a default with too many digits after the point": added(DecimalType(5, 2), default=Decimal("1.005")),
    "a default with too many digits": added(DecimalType(5, 2), default=Decimal(1000)),
    "bytes as a default of a text": added(STRING, default=b"x"),
    "a default of another length": added(FixedType(3), default=b"xy"),
    "a default that JSON does not have": added(DOUBLE, default=math.nan),
    "a write default": lambda table: table.update_schema(lambda schema: schema.set_write_default("x", "a")),
    "a default of a struct": added(icebench.StructType((NestedField(field_id=1, name="a", type=LONG),)), default=()),
    "a default of a list": added(ListType(NestedField(field_id=1, name="element", type=LONG)), default=(1,)),
    "a property of no value": lambda table: table.set_properties({"a": None}),
    "a property of several values": lambda table: table.set_properties({"a": ["b"]}),
    "a property's name": lambda table: table.set_properties({5: "b"}),
    "a property of a snapshot": lambda table: table.append(ROWS, snapshot_properties={"a": None}),
    "a tag": lambda table: table.create_tag(5),
    "a branch": lambda table: table.create_branch(b"a"),
    "an age as text": lambda table: table.create_tag("a", max_ref_age_ms="5"),
    "an age with a fraction": lambda table: table.create_tag("a", max_ref_age_ms=5.5),
    "a flag as a number of snapshots": lambda table: table.create_branch("a", min_snapshots_to_keep=True),
    "a branch of an append": lambda table: table.append(ROWS, branch=5),
    "more snapshots than Java counts": lambda table: table.create_branch("a", min_snapshots_to_keep=2**31),
    "an age beyond a long": lambda table: table.create_tag("a", max_ref_age_ms=2**63),
    "an element that is no type": added(ListType(NestedField(field_id=1, name="element", type="int"))),
    "half a character as a column": added(LONG, name="a\ud800"),
    "half a character in a struct": added(icebench.StructType((NestedField(field_id=1, name="\ud800", type=LONG),))),
    "half a character as documentation": added(LONG, doc="\udfff"),
    "half a character as a property": lambda table: table.set_properties({"a": "\ud800"}),
    "half a character as a property's name": lambda table: table.set_properties({"\ud800": "a"}),
    "half a character as a tag": lambda table: table.create_tag("\ud800"),
    "half a character of a snapshot": lambda table: table.append(ROWS, snapshot_properties={"a": "\ud800"}),
    "a partition field": lambda table: table.update_spec(lambda spec: spec.add_field("x", "identity", name=5)),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_metadata_cannot_hold_is_refused(table: icebench.Table, what: str) -> None:
    before = table.metadata_location
    with pytest.raises(icebench.errors.Invalid):
        WRONG[what](table)
    assert icebench.load_table(table.location).metadata_location == before


def test_types_that_are_none_cannot_be_made() -> None:
    for name in ("integer", "decimal", "DOUBLE", "list"):
        with pytest.raises(ValueError, match=f"'{name}' is not a type"):
            PrimitiveType(name)


NEW: dict[str, tuple[Schema, dict[str, Any]]] = {
    "documentation": (Schema((NestedField(field_id=1, name="x", type=LONG, doc=5),)), {}),
    "a default of another scale": (
        Schema((NestedField(field_id=1, name="x", type=DecimalType(5, 2), write_default=Decimal("1.5")),)),
        {"format-version": 3},
    ),
    "a default of another type": (
        Schema((NestedField(field_id=1, name="x", type=LONG, initial_default="a"),)),
        {"format-version": 3},
    ),
    "a property": (Schema((NestedField(field_id=1, name="x", type=LONG),)), {"a": None}),
}


@pytest.mark.parametrize("what", NEW)
def test_a_table_is_not_created_with_it(tmp_path: Path, what: str) -> None:
    schema, properties = NEW[what]
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    with pytest.raises(icebench.errors.Invalid):
        catalog.create_table("db.t", schema, properties=properties)
    assert not catalog.table_exists("db.t")


@pytest.mark.parametrize(
    ("type_", "given", "read"),
    [
        (LONG, 3, 3),
        (DOUBLE, 3, 3.0),
        (DOUBLE, -1.5, -1.5),
        (DATE, 18262, date(2020, 1, 1)),
        (DecimalType(5, 2), Decimal("1.5"), Decimal("1.50")),
        (DecimalType(5, 2), Decimal(7), Decimal("7.00")),
        (STRING, "é", "é"),
        (FixedType(2), b"xy", b"xy"),
        (icebench.UUID, UUID(int=7), UUID(int=7)),
        (icebench.BOOLEAN, False, False),
    ],
)
def test_right_defaults_are_read(table: icebench.Table, type_: Any, given: Any, read: Any) -> None:
    changed = icebench.load_table(added(type_, default=given)(table).metadata_location)
    assert changed.scan().to_arrow()["w"].to_pylist() == [read, read]
    assert changed.schema().find("w").write_default == changed.schema().find("w").initial_default


def test_numbers_and_flags_become_texts(tmp_path: Path) -> None:
    """As in PyIceberg, which opens the table."""
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("db", {"retention": 7})
    made = catalog.create_table("db.t", ROWS.schema, properties={"write.target-file-size-bytes": 1_000_000})
    made.append(ROWS, snapshot_properties={"attempt": 2})
    made.set_properties({"write.object-storage.enabled": False, "ratio": 0.5})
    made.create_branch("b", min_snapshots_to_keep=2**31 - 1, max_ref_age_ms=2**63 - 1)
    made.update_schema(lambda schema: schema.document_column("x", "\U0001f9ca"))
    expected = {"write.target-file-size-bytes": "1000000", "write.object-storage.enabled": "false", "ratio": "0.5"}
    assert expected.items() <= made.properties.items()
    values = json.loads(Path(made.metadata_location.removeprefix("file://")).read_text())
    assert expected.items() <= values["properties"].items()
    assert values["snapshots"][0]["summary"]["attempt"] == "2"
    assert catalog.namespace_properties("db")["retention"] == "7"
    assert StaticTable.from_metadata(made.metadata_location).scan().to_arrow().num_rows == 2
