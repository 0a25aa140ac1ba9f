"""Schema changes: legality, ids and order."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.spec.schema import Schema
from icebench.engine.spec.schema_evolution import SchemaUpdate, assign_fresh_ids
from icebench.engine.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    DecimalType,
    GeospatialType,
    NestedField,
    StructType,
    children,
    list_type,
    map_type,
)
from icebench.errors import Invalid
from tests.steps import steps


def column(field_id: int, name: str, type_=LONG, *, required: bool = False) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=required)


POINT = StructType((column(5, "x", DOUBLE), column(6, "y", DOUBLE)))
BASE = Schema(
    (
        column(1, "id", INT, required=True),
        column(2, "name", STRING),
        column(3, "points", list_type(4, POINT)),
        column(7, "tags", map_type(8, STRING, 9, INT)),
        column(10, "price", DecimalType(7, 2)),
    ),
    identifier_field_ids=frozenset({1}),
)


def update(format_version: int = 2) -> SchemaUpdate:
    return SchemaUpdate(BASE, 10, format_version)


def names(schema: Schema) -> list[str]:
    return [f.name for f in schema.fields]


def test_added_columns_get_fresh_ids_at_every_depth():
    schema, last = (
        update()
        .add_column("extra", StructType((column(1, "a"), column(2, "b", list_type(3, LONG)))))
        .add_column("z", DOUBLE, parent="points")
        .apply()
    )
    assert last == 15
    assert schema.id_of["extra"] == 11
    assert [schema.id_of[n] for n in ("extra.a", "extra.b", "extra.b.element")] == [12, 13, 14]
    assert schema.id_of["points.element.z"] == 15
    assert schema.name_of[5] == "points.element.x"


def test_a_dropped_and_added_name_is_another_column():
    schema, last = update().drop_column("name").add_column("name", STRING).apply()
    assert schema.id_of["name"] == 11 == last
    assert 2 not in schema.by_id


def test_rename_keeps_id_and_position():
    schema, _ = update().rename_column("name", "label").rename_column("points.element.x", "longitude").apply()
    assert names(schema) == ["id", "label", "points", "tags", "price"]
    assert schema.id_of["label"] == 2
    assert schema.id_of["points.element.longitude"] == 5


def test_moves_apply_in_order_and_reach_new_columns():
    schema, _ = update().add_column("new", LONG).move_first("price").move_after("new", "id").apply()
    assert names(schema) == ["price", "id", "new", "name", "points", "tags"]
    nested, _ = update().move_before("points.element.y", "points.element.x").apply()
    assert nested.name_of[6] == "points.element.y"
    assert [f.field_id for f in children(nested.by_id[4].type)] == [6, 5]


@pytest.mark.parametrize(
    ("moved", "sibling", "dropped"),
    [
        ("id", "name", "name"),
        ("points.element.y", "points.element.x", "points.element.x"),
        ("points.element.y", "points.element.x", "points"),
    ],
)
def test_what_a_move_names_as_sibling_cannot_be_dropped(moved: str, sibling: str, dropped: str) -> None:
    for changed in (update().move_after(moved, sibling), update().move_before(moved, sibling)):
        with pytest.raises(Invalid, match=f"cannot drop column '{dropped}': this update moves another column beside"):
            changed.drop_column(dropped)
    with pytest.raises(Invalid, match="this update drops it"):
        update().drop_column(dropped).move_after(moved, sibling)


@pytest.mark.parametrize(
    ("name", "new", "version", "legal"),
    [
        ("id", LONG, 2, True),
        ("id", DOUBLE, 2, False),
        ("id", STRING, 3, False),
        ("price", DecimalType(9, 2), 1, True),
        ("price", DecimalType(9, 3), 2, False),
        ("price", DecimalType(6, 2), 2, False),
    ],
)
def test_promotions(name, new, version, legal):
    if legal:
        schema, _ = update(version).promote_column(name, new).apply()
        assert schema.find(name).type == new
    else:
        with pytest.raises(Invalid, match="cannot change column"):
            update(version).promote_column(name, new)


def test_date_becomes_timestamp_only_in_version_3():
    base = Schema((column(1, "d", DATE),))
    assert SchemaUpdate(base, 1, 3).promote_column("d", TIMESTAMP).apply()[0].find("d").type == TIMESTAMP
    with pytest.raises(Invalid):
        SchemaUpdate(base, 1, 2).promote_column("d", TIMESTAMP)


@pytest.mark.parametrize(
    ("old", "new", "default", "expected"),
    [
        (DATE, TIMESTAMP, -2, -2 * 86_400 * 10**6),
        (DATE, TIMESTAMP_NS, 19_000, 19_000 * 86_400 * 10**9),
        (DATE, DATE, 5, 5),
        (INT, LONG, 7, 7),
        (FLOAT, DOUBLE, 0.5, 0.5),
        (DecimalType(4, 2), DecimalType(9, 2), Decimal("1.50"), Decimal("1.50")),
    ],
)
@pytest.mark.parametrize("by_name", [False, True])
def test_defaults_are_promoted_with_their_column(old, new, default, expected, *, by_name):
    base = Schema((NestedField(field_id=1, name="d", type=old, initial_default=default, write_default=default),))
    change = SchemaUpdate(base, 1, 3)
    change = change.union_by_name(Schema((column(1, "d", new),))) if by_name else change.promote_column("d", new)
    found = change.apply()[0].find("d")
    assert (found.type, found.initial_default, found.write_default) == (new, expected, expected)


def test_a_date_that_is_no_timestamp_cannot_stay_the_default():
    far = NestedField(field_id=1, name="d", type=DATE, write_default=2**31 - 1)
    with pytest.raises(Invalid, match="the default of column 'd'"):
        SchemaUpdate(Schema((far,)), 1, 3).promote_column("d", TIMESTAMP_NS)


def test_parts_of_lists_and_maps_have_no_default():
    """Metadata has no place for it."""
    for name in ("points.element", "tags.key", "tags.value"):
        with pytest.raises(Invalid, match="part of a list or map"):
            update(3).set_write_default(name, 5)
    assert update(3).set_write_default("points.element.x", 5).apply()[0].find("points.element.x").write_default == 5.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda u: u.add_column("name", LONG), "exists"),
        (lambda u: u.add_column("q", LONG, required=True), "without a default"),
        (lambda u: u.add_column("q", LONG, default=3), "format version 3"),
        (lambda u: u.add_column("q", LONG, parent="name"), "not a struct"),
        (lambda u: u.drop_column("id"), "identifier"),
        (lambda u: u.drop_column("points.element"), "list or map"),
        (lambda u: u.drop_column("nope"), "no column"),
        (lambda u: u.make_optional("id"), "identifier"),
        (lambda u: u.rename_column("name", "id"), "exists"),
        (lambda u: u.move_after("name", "points.element.x"), "different structs"),
        (lambda u: u.drop_column("name").rename_column("name", "x"), "drops it"),
        (lambda u: u.drop_column("points.element.x").drop_column("points.element.y").apply(), "every column"),
        (lambda u: u.set_identifier_fields("name"), "identifier"),
    ],
)
def test_illegal_changes_are_refused_with_the_reason(change, reason):
    with pytest.raises(Invalid, match=reason):
        change(update())


def test_union_adds_promotes_and_relaxes():
    incoming = Schema(
        (
            column(1, "name", STRING),
            column(2, "id", LONG),
            column(3, "points", list_type(4, StructType((column(5, "y", DOUBLE), column(6, "z", DOUBLE))))),
            column(7, "when", DATE),
        )
    )
    base = Schema(BASE.fields)
    schema, last = SchemaUpdate(base, 10).union_by_name(incoming).apply()
    assert names(schema) == [*names(BASE), "when"]
    assert schema.find("id").type == LONG
    assert not schema.find("id").required
    assert schema.id_of["points.element.z"] == 11
    assert schema.id_of["when"] == 12 == last


@pytest.mark.parametrize(
    ("own", "incoming"),
    [
        (LONG, INT),
        (LONG, UNKNOWN),
        (TIMESTAMP, TIMESTAMP_NS),
        (TIMESTAMP_NS, TIMESTAMP),
        (TIMESTAMPTZ, TIMESTAMPTZ_NS),
        (GeospatialType("geometry"), BINARY),
        (GeospatialType("geography"), BINARY),
    ],
)
def test_union_keeps_a_type_that_takes_the_values(own, incoming):
    base = Schema((column(1, "n", own),))
    assert SchemaUpdate(base, 1).union_by_name(Schema((column(9, "n", incoming),))).apply() == (base, 1)


@pytest.mark.parametrize(
    ("own", "incoming"),
    [(TIMESTAMP, TIMESTAMPTZ), (TIMESTAMPTZ_NS, TIMESTAMP), (STRING, LONG), (BINARY, GeospatialType("geometry"))],
)
def test_union_refuses_a_type_that_does_not(own, incoming):
    with pytest.raises(Invalid, match=f"cannot change column 'n' from {own} to {incoming}"):
        SchemaUpdate(Schema((column(1, "n", own),)), 1, 3).union_by_name(Schema((column(9, "n", incoming),)))


def test_union_adds_columns_with_their_defaults():
    added = NestedField(field_id=7, name="f", type=FLOAT, required=True, initial_default=3, write_default=0.1)
    inner = StructType((column(5, "x", DOUBLE), replace(added, field_id=6)))
    incoming = Schema((added, column(3, "points", list_type(4, inner))))
    schema, _ = SchemaUpdate(Schema(BASE.fields), 10, 3).union_by_name(incoming).apply()
    for name in ("f", "points.element.f"):
        found = schema.find(name)
        assert (found.initial_default, found.write_default) == (3.0, float(np.float32(0.1)))
        assert isinstance(found.initial_default, float)
        assert not found.required


def test_defaults_of_a_new_schema_are_in_the_internal_representation():
    stated = NestedField(field_id=1, name="f", type=FLOAT, initial_default=3, write_default=0.1)
    made = assign_fresh_ids(Schema((stated, column(2, "s", StructType((replace(stated, field_id=3),))))))[0]
    for name in ("f", "s.f"):
        found = made.find(name)
        assert isinstance(found.initial_default, float)
        assert (found.initial_default, found.write_default) == (3.0, float(np.float32(0.1)))


def test_fresh_ids_number_siblings_before_children():
    fresh, mapping = assign_fresh_ids(BASE)
    assert [f.field_id for f in fresh.fields] == [1, 2, 3, 4, 5]
    assert fresh.id_of["points.element"] == 6
    assert mapping[10] == 5
    assert fresh.identifier_field_ids == {1}


@given(st.data())
def test_ids_are_stable_and_never_reused(data):
    """Whatever is added, dropped, renamed and moved: a surviving column keeps its id and no dropped id comes back."""
    schema, last, dropped = Schema((column(1, "c1"),)), 1, set()
    alive = {1}
    for _ in range(data.draw(st.integers(1, 8))):
        change = SchemaUpdate(schema, last)
        verb = data.draw(st.sampled_from(["add", "drop", "rename", "first"]))
        target = data.draw(st.sampled_from(sorted(schema.id_of)))
        if verb == "add":
            change.add_column(f"n{last}", LONG)
        elif verb == "drop" and len(alive) > 1:
            change.drop_column(target)
            dropped.add(schema.id_of[target])
            alive.discard(schema.id_of[target])
        elif verb == "rename":
            change.rename_column(target, f"r{last}_{len(dropped)}_{schema.id_of[target]}")
        else:
            change.move_first(target)
        before = last
        schema, last = change.apply()
        alive |= set(range(before + 1, last + 1))
        assert set(schema.by_id) == alive
        assert not alive & dropped


def test_columns_that_incoming_rows_lack_become_optional_at_every_depth():
    point = StructType((column(3, "x", required=True), column(4, "y", required=True)))
    base = Schema((column(1, "id", required=True), column(2, "point", point, required=True)))
    incoming = Schema((column(1, "point", StructType((column(2, "x", required=True),)), required=True),))
    schema, _ = SchemaUpdate(base, 4).union_by_name(incoming).apply()
    assert {schema.name_of[f.field_id]: f.required for f in schema.walk()} == {
        "id": False,
        "point": True,
        "point.x": True,
        "point.y": False,
    }


def test_what_is_inside_a_dropped_struct_cannot_be_changed():
    base = Schema((column(1, "id"), column(2, "point", StructType((column(3, "x", INT),)))))
    dropped = SchemaUpdate(base, 3).drop_column("point")
    with pytest.raises(Invalid, match=r"'point\.x': this update drops it"):
        dropped.promote_column("point.x", LONG)


def test_identifier_columns_are_required_with_all_structs_around_them():
    def key(*, required: bool) -> SchemaUpdate:
        inner = StructType((column(2, "id", required=True),))
        return SchemaUpdate(Schema((column(1, "key", inner, required=required),)), 2)

    schema, _ = key(required=True).set_identifier_fields("key.id").apply()
    assert schema.identifier_field_ids == {2}
    with pytest.raises(Invalid, match="must be required"):
        key(required=False).set_identifier_fields("key.id")


def test_a_struct_that_holds_an_identifier_column_stays_and_stays_required():
    point = StructType((column(2, "id", required=True), column(3, "x", INT)))
    base = Schema((column(1, "key", point, required=True), column(4, "y", INT)), identifier_field_ids=frozenset({2}))
    for change in (SchemaUpdate.drop_column, SchemaUpdate.make_optional):
        with pytest.raises(Invalid, match=r"'key'.*holds an identifier field"):
            change(SchemaUpdate(base, 4), "key")
        other = SchemaUpdate(base, 4).set_identifier_fields()
        assert change(other, "key").apply()[0].identifier_field_ids == frozenset()
    assert SchemaUpdate(base, 4).drop_column("key.x").apply()[0].identifier_field_ids == {2}


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.drop_column("m.key.b"),
        lambda s: s.add_column("c", INT, parent="m.key"),
        lambda s: s.rename_column("m.key.a", "z"),
        lambda s: s.promote_column("m.key.a", LONG),
        lambda s: s.promote_column("n.key", LONG),
    ],
)
def test_keys_of_maps_are_not_changed(change):
    """Keys that differ in a dropped column alone would be one key; Iceberg Java refuses each of these, too."""
    key = StructType((column(4, "a", INT), column(5, "b", INT)))
    schema = Schema((column(1, "m", map_type(2, key, 3, INT)), column(6, "n", map_type(7, INT, 8, INT))))
    made = change(SchemaUpdate(schema, 8, 2))
    with pytest.raises(Invalid, match="keys of map"):
        made.apply()
    assert SchemaUpdate(schema, 8, 2).promote_column("n.value", LONG).apply()[0].find("n.value").type == LONG


@pytest.mark.parametrize(
    "change",
    [
        lambda update, i: update.add_column(f"d{i}", LONG),
        lambda update, i: update.rename_column(f"c{i}", f"d{i}"),
        lambda update, i: update.drop_column(f"c{i}") if i else update,
        lambda update, i: update.add_column(f"d{i}", LONG).move_after(f"d{i}", f"c{i}"),
        lambda update, i: update.union_by_name(Schema((column(1, "d"),))) if i == 0 else update,
        lambda update, i: update.move_first(f"c{i}"),
        lambda update, i: update.move_after("c0", f"c{i}") if i else update,
        lambda update, i: update.move_first("c0").drop_column(f"c{i}") if i else update,
    ],
    ids=["add", "rename", "drop", "add and move", "union", "first", "after", "move and drop"],
)
def test_changes_are_linear_in_columns(change):
    def work(count: int) -> int:
        base = Schema(tuple(column(i + 1, f"c{i}", required=True) for i in range(count)))
        base.find("c0")  # its names are known
        update = SchemaUpdate(base, count)
        return steps(lambda: [*(change(update, i) for i in range(count)), update.apply()])

    assert work(400) < 6 * work(100)


def test_a_name_is_free_after_its_column_is_dropped_or_renamed():
    change = SchemaUpdate(Schema((column(1, "a"), column(2, "b"), column(3, "c"))), 3)
    change.drop_column("a").drop_column("a").rename_column("b", "a").rename_column("b", "a").add_column("b", LONG)
    with pytest.raises(Invalid, match="'a': it exists"):
        change.add_column("a", LONG)
    with pytest.raises(Invalid, match="'b': that name exists"):
        change.rename_column("c", "b")
    assert [(f.field_id, f.name) for f in change.apply()[0].fields] == [(2, "a"), (3, "c"), (4, "b")]


@given(st.data())
def test_columns_are_in_the_order_of_their_moves(data):
    """As a list has it, from which each moved one is taken out and put in again."""
    expected = [f"c{i}" for i in range(data.draw(st.integers(2, 6)))]
    change = SchemaUpdate(Schema(tuple(column(i + 1, name) for i, name in enumerate(expected))), len(expected))
    for _ in range(data.draw(st.integers(0, 8))):
        moved, sibling = data.draw(st.permutations(expected))[:2]
        where = data.draw(st.sampled_from(["first", "before", "after"]))
        expected.remove(moved)
        at = 0 if where == "first" else expected.index(sibling) + (where == "after")
        expected.insert(at, moved)
        change = change.move_first(moved) if where == "first" else getattr(change, f"move_{where}")(moved, sibling)
    assert [f.name for f in change.apply()[0].fields] == expected
