"""Micro-batches over random histories: every appended row once and in order, wherever limits cut the batches."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.read.plans import read_plan
from icebench.engine.spark_source.options import StreamOptions, TablePlace
from icebench.engine.spark_source.stream_offsets import Offset, Position, StreamPlanner
from icebench.engine.table import Table
from icebench.errors import Invalid, NotFound, Unsupported

OPTIONS = StreamOptions(place=TablePlace(table="db.t"), skips_deletes=True, skips_overwrites=True)
FIELDS = pa.schema([("id", pa.int64()), ("p", pa.int32())])
Step = tuple[str, list[int]]
KINDS = st.sampled_from(["append", "append", "append", "delete", "overwrite"])
STEPS = st.lists(st.tuples(KINDS, st.lists(st.integers(1, 4), max_size=4)), max_size=5)
LIMITS = st.fixed_dictionaries(
    {"most_files": st.none() | st.integers(1, 3), "most_rows": st.none() | st.integers(1, 6)}
)


def make_table() -> Table:
    catalog = icebench.load_catalog(f"memory://{uuid.uuid4()}/wh")
    return catalog.create_table("db.t", FIELDS, partition_spec=[("p", "identity")])


def apply(table: Table, step: Step, first: int) -> list[int]:
    """Do one step, an append with a file of each size; the ids that a stream gives for it."""
    kind, sizes = step
    ids = list(range(first, first + sum(sizes)))
    rows = pa.table({"id": ids, "p": [p for p, size in enumerate(sizes) for _ in range(size)]}, schema=FIELDS)
    before = len(table.snapshots)
    if kind == "append":
        table.append(rows)
    elif kind == "overwrite":
        table.overwrite(rows, f"id >= {first - 100}")
    else:
        table.delete(f"id = {first - 1}", "copy-on-write")
    # An overwrite that found nothing to replace is an append.
    return ids if [snapshot.operation for snapshot in table.snapshots[before:]] == ["append"] else []


def ids_between(planner: StreamPlanner, table: Table, start: Position, end: Position) -> list[int]:
    found: list[int] = []
    for part in planner.between(start, end):
        files = part.plan.files.slice(part.begin, None if part.end is None else part.end - part.begin)
        codes = part.plan.residual_codes[part.begin : part.end]
        plan = replace(part.plan, files=files, residual_codes=codes)
        found += read_plan(plan, table.store).read_all().column("id").to_pylist()
    return found


def sizes_of(planner: StreamPlanner, start: Position, end: Position) -> list[int]:
    return [
        count
        for part in planner.between(start, end)
        for count in part.plan.files.column("record_count").to_pylist()[part.begin : part.end]
    ]


@settings(max_examples=20)
@given(steps=STEPS, limits=LIMITS, data=st.data())
def test_batches_together_are_what_was_appended(
    steps: list[Step], limits: dict[str, int | None], data: st.DataObject
) -> None:
    table = make_table()
    options = replace(OPTIONS, **limits)  # type: ignore[arg-type]
    position = StreamPlanner(table, options).initial()
    assert position == Position(None)
    expected: list[int] = []
    found: list[int] = []
    places = [position]
    for number, step in enumerate(steps):
        expected += apply(table, step, number * 100)
        while data.draw(st.booleans(), label="another batch"):
            planner = StreamPlanner(table, options)
            end = planner.following(position)
            found += ids_between(planner, table, position, end)
            sizes = sizes_of(planner, position, end)
            if options.most_files is not None:
                assert len(sizes) <= options.most_files
            if options.most_rows is not None:
                assert sum(sizes) <= options.most_rows or len(sizes) == 1
            assert Position.decoded(json.loads(json.dumps(end.encoded()))) == end
            position = end
            places.append(end)
    planner = StreamPlanner(table, options)
    while (end := planner.following(position)) != position:
        found += ids_between(planner, table, position, end)
        position = end
        places.append(end)
    assert found == expected
    # From any place to any later one, as a restart reads them.
    first = data.draw(st.integers(0, len(places) - 1))
    last = data.draw(st.integers(first, len(places) - 1))
    whole = ids_between(planner, table, places[first], places[last])
    assert whole == [
        row
        for begin, end in zip(places[first:last], places[first + 1 : last + 1], strict=True)
        for row in ids_between(planner, table, begin, end)
    ]


def history(*steps: Step) -> tuple[Table, list[list[int]]]:
    table = make_table()
    return table, [apply(table, step, number * 100) for number, step in enumerate(steps)]


def test_what_is_no_append_stops_the_stream_behind_what_came_before_it() -> None:
    table, ids = history(("append", [1]), ("append", [2]), ("overwrite", [1]), ("append", [1]))
    strict = StreamPlanner(table, replace(OPTIONS, skips_overwrites=False))
    end = strict.following(strict.initial())
    assert ids_between(strict, table, strict.initial(), end) == ids[0] + ids[1]
    with pytest.raises(Unsupported, match="streaming-skip-overwrite-snapshots=true"):
        strict.following(end)
    table.delete("id = 0", "copy-on-write")
    deleting = StreamPlanner(table, replace(OPTIONS, skips_deletes=False))
    end = deleting.following(deleting.initial())
    assert ids_between(deleting, table, deleting.initial(), end) == ids[0] + ids[1] + ids[3]
    with pytest.raises(Unsupported, match="streaming-skip-delete-snapshots=true"):
        deleting.following(end)


def test_where_a_stream_begins() -> None:
    table, _ = history(("append", [1]), ("append", [1]), ("append", [1]))
    first, second, third = table.snapshots

    def begun(**options: object) -> Position:
        return StreamPlanner(table, replace(OPTIONS, **options)).initial()  # type: ignore[arg-type]

    assert begun(starting="latest") == Position(third.snapshot_id)
    assert begun(after=second.snapshot_id) == Position(second.snapshot_id)
    assert begun(from_timestamp_ms=first.timestamp_ms) == Position(None)
    assert begun(from_timestamp_ms=third.timestamp_ms + 1) == Position(third.snapshot_id)
    with pytest.raises(NotFound):
        begun(after=7)
    with pytest.raises(NotFound, match="nosuch"):
        begun(branch="nosuch")
    table.rollback(snapshot_id=first.snapshot_id)
    with pytest.raises(Invalid, match="not an ancestor"):
        begun(after=second.snapshot_id)


def test_a_history_that_was_cut_begins_with_the_oldest_state() -> None:
    table, ids = history(("append", [2]), ("append", [1, 1]), ("append", [1]))
    kept = table.metadata.snapshots[1:]
    cut = replace(table.metadata, snapshots=kept)
    table._state = replace(table._state, metadata=cut)
    planner = StreamPlanner(table, replace(OPTIONS, most_files=2))
    position = planner.initial()
    assert position == Position(kept[0].snapshot_id, 0, is_state=True)
    batches = []
    while (end := planner.following(position)) != position:
        batches.append(ids_between(planner, table, position, end))
        position = end
    assert sorted(chain.from_iterable(batches)) == list(chain.from_iterable(ids))
    assert len(batches[0]) in (2, 3)
    late = StreamPlanner(table, replace(OPTIONS, from_timestamp_ms=0)).initial()
    assert late == Position(kept[0].parent_snapshot_id)


def test_offsets_are_texts_that_say_what_they_are() -> None:
    offset = Offset(Position(5, 2), Position(None), is_initial=False, table_uuid="a")
    assert Offset.decoded(json.loads(json.dumps(offset.encoded()))) == offset
    with pytest.raises(Invalid, match="checkpoint of another"):
        Offset.decoded({"offset": 3})
