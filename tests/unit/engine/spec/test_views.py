"""View versions: reuse, history, dialects."""

from __future__ import annotations

import pytest

from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, STRING, NestedField
from icebench.engine.spec.views import SqlRepresentation, ViewVersion, new_view_metadata
from icebench.errors import Invalid, NotFound

SCHEMA = Schema((NestedField(field_id=1, name="n", type=LONG),))
OTHER = Schema((NestedField(field_id=1, name="n", type=STRING),))


def definition(sql, *, at=0, dialects=("spark",)):
    return ViewVersion(
        version_id=-1,
        schema_id=-1,
        timestamp_ms=at,
        representations=tuple(SqlRepresentation(sql=sql, dialect=d) for d in dialects),
    )


def made():
    return new_view_metadata(definition("select 1"), SCHEMA, location="v", view_uuid="u")


def test_replacing_adds_a_version_and_a_schema():
    view = made().with_definition(definition("select 2", at=5), OTHER)
    assert (view.current_version_id, view.schema.fields) == (2, OTHER.fields)
    assert [(e.timestamp_ms, e.version_id) for e in view.version_log] == [(0, 1), (5, 2)]


def test_going_back_uses_the_known_version():
    view = (
        made()
        .with_definition(definition("select 2", at=5), SCHEMA)
        .with_definition(definition("select 1", at=9), SCHEMA)
    )
    assert [v.version_id for v in view.versions] == [1, 2]
    assert [e.version_id for e in view.version_log] == [1, 2, 1]
    assert view.with_definition(definition("select 1", at=10), SCHEMA) is view


def test_history_is_bounded_and_its_log_has_no_holes():
    view = made().with_properties({"version.history.num-entries": "2"})
    for i in range(5):
        view = view.with_definition(definition(f"select {i + 10}", at=i + 1), SCHEMA)
    assert [v.version_id for v in view.versions] == [5, 6]
    assert [e.version_id for e in view.version_log] == [5, 6]


@pytest.mark.parametrize(
    ("size", "reason"), [("many", "not a whole number"), ("0", "not positive"), ("-3", "not posi")]
)
def test_history_has_room_for_the_current_version(size: str, reason: str) -> None:
    properties = {"version.history.num-entries": size}
    refusal = f"^view property version.history.num-entries='{size}': is {reason}"
    with pytest.raises(Invalid, match=refusal):
        new_view_metadata(definition("select 1"), SCHEMA, location="v", view_uuid="u", properties=properties)
    with pytest.raises(Invalid, match=refusal):
        made().with_properties(properties).with_definition(definition("select 2"), SCHEMA)


def test_a_dialect_is_not_lost_by_accident():
    view = made()
    with pytest.raises(Invalid, match="dialect spark"):
        view.with_definition(definition("select 2", dialects=("trino",)), SCHEMA)
    view = view.with_properties({"replace.drop-dialect.allowed": "true"})
    replaced = view.with_definition(definition("select 2", dialects=("trino",)), SCHEMA)
    assert replaced.current_version.sql_for("Trino") == "select 2"
    with pytest.raises(NotFound, match="there are: trino"):
        replaced.current_version.sql_for("spark")


def test_one_query_a_dialect():
    with pytest.raises(Invalid, match="one query"):
        definition("select 1", dialects=("spark", "Spark"))
