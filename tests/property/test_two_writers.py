"""Two writers change rows from one base: the later commit fails, or the table is as if one came after the other."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.commit.target import Target
from icebench.engine.operations.row_changes import Mode
from icebench.engine.operations.row_operations import RowOperations
from icebench.errors import ValidationFailed

Row = tuple[int, str, int]
Rows = list[Row]
ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string()), pa.field("n", pa.int64())])
BASE: Rows = [(1, "a", 0), (2, "a", 0), (3, "b", 0), (4, "b", 0), (5, "c", 0)]


@dataclass(frozen=True)
class Step:
    """A change, as the engine makes it and as it is meant."""

    name: str
    make: Callable[[RowOperations, Mode], object]
    meant: Callable[[Rows], Rows]

    def __repr__(self) -> str:
        return self.name


def arrow(rows: Rows) -> pa.Table:
    return pa.table([pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), ROWS, strict=True)], schema=ROWS)


def append(row: Row) -> Step:
    return Step(f"append {row}", lambda t, _: t.append(arrow([row])), lambda rows: [*rows, row])


def delete(text: str, matches: Callable[[Row], bool]) -> Step:
    return Step(
        f"delete {text}", lambda t, mode: t.delete(text, mode), lambda rows: [r for r in rows if not matches(r)]
    )


def increment(text: str, matches: Callable[[Row], bool]) -> Step:
    def change(rows: pa.RecordBatch) -> Any:
        return pc.add(rows["n"], 1)

    def meant(rows: Rows) -> Rows:
        return [(r[0], r[1], r[2] + 1) if matches(r) else r for r in rows]

    return Step(f"increment {text}", lambda t, mode: t.update(text, {"n": change}, mode), meant)


def upsert(row: Row) -> Step:
    def meant(rows: Rows) -> Rows:
        return [*(r for r in rows if r[0] != row[0]), row]

    return Step(f"upsert {row}", lambda t, mode: t.upsert(arrow([row]), ["id"], mode), meant)


def overwrite(text: str, matches: Callable[[Row], bool], row: Row) -> Step:
    def meant(rows: Rows) -> Rows:
        return [*(r for r in rows if not matches(r)), row]

    return Step(f"overwrite {text} by {row}", lambda t, _: t.overwrite(arrow([row]), text), meant)


def overwrite_partition(row: Row) -> Step:
    def meant(rows: Rows) -> Rows:
        return [*(r for r in rows if r[1] != row[1]), row]

    return Step(f"overwrite the partition of {row}", lambda t, _: t.overwrite_partitions(arrow([row])), meant)


ROW = st.tuples(st.integers(1, 7), st.sampled_from(["a", "b", "c", "d"]), st.integers(10, 12))
FILTERS = st.one_of(
    st.integers(1, 6).map(lambda v: (f"id = {v}", lambda r: r[0] == v)),
    st.integers(1, 6).map(lambda v: (f"id >= {v}", lambda r: r[0] >= v)),
    st.sampled_from("abcd").map(lambda v: (f"p = '{v}'", lambda r: r[1] == v)),
)
STEPS = st.one_of(
    ROW.map(append),
    FILTERS.map(lambda f: delete(*f)),
    FILTERS.map(lambda f: increment(*f)),
    ROW.map(upsert),
    st.tuples(FILTERS, ROW).map(lambda drawn: overwrite(drawn[0][0], drawn[0][1], drawn[1])),
    ROW.map(overwrite_partition),
)
MODES: st.SearchStrategy[Mode] = st.sampled_from(["copy-on-write", "merge-on-read"])


@contextmanager
def catalog() -> Iterator[icebench.Catalog]:
    place = tempfile.mkdtemp()
    try:
        opened = icebench.load_catalog(place)
        yield opened
        opened.close()
    finally:
        shutil.rmtree(place)


def contents(table: icebench.Table) -> Counter[Row]:
    read = table.scan().to_arrow()
    return Counter(zip(*(read[name].to_pylist() for name in ROWS.names), strict=True))


@settings(max_examples=40)
@given(st.sampled_from([1, 2, 3]), STEPS, STEPS, MODES, MODES)
def test_one_after_the_other_or_not_at_all(
    version: int, ours: Step, theirs: Step, our_mode: Mode, their_mode: Mode
) -> None:
    if version == 1:
        our_mode = their_mode = "copy-on-write"
    with catalog() as opened:
        table = opened.create_table(
            "db.t", ROWS, partition_spec=[("p", "identity")], properties={"format-version": str(version)}
        )
        table.append(arrow(BASE))
        other = opened.load_table("db.t")
        transaction = table.transaction()
        ours.make(transaction, our_mode)
        theirs.make(other, their_mode)
        orders = [Counter(ours.meant(theirs.meant(BASE))), Counter(theirs.meant(ours.meant(BASE)))]
        try:
            transaction.commit()
        except ValidationFailed:
            orders = [Counter(theirs.meant(BASE))]
        assert contents(table.refresh()) in orders


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from([2, 3]), st.lists(STEPS, min_size=2, max_size=4), st.integers(0, 2), MODES)
def test_a_transaction_of_several_steps_among_the_appends_of_others(
    version: int, ours: list[Step], others: int, mode: Mode
) -> None:
    with catalog() as opened:
        table = opened.create_table(
            "db.t", ROWS, partition_spec=[("p", "identity")], properties={"format-version": str(version)}
        )
        table.append(arrow(BASE))
        table.set_properties({f"write.{verb}.isolation-level": "snapshot" for verb in ("delete", "update", "merge")})
        before = lineage(table) if version == 3 else {}
        transaction = table.transaction()
        meant = BASE
        for step in ours:
            step.make(transaction, mode)
            meant = step.meant(meant)
        theirs = [(100 + n, "z", 0) for n in range(others)]
        for row in theirs:
            opened.load_table("db.t").append(arrow([row]))
        transaction.commit()
        assert contents(table.refresh()) == Counter([*meant, *theirs])
        if version == 3:
            check_lineage(table, before)


def lineage(table: icebench.Table, snapshot_id: int | None = None) -> dict[int, Row]:
    """Rows by their ids, which are all different."""
    read = table.scan(columns=[*ROWS.names, "_row_id"], snapshot_id=snapshot_id).to_arrow()
    rows = list(zip(*(read[name].to_pylist() for name in ROWS.names), strict=True))
    found = dict(zip(read["_row_id"].to_pylist(), rows, strict=True))
    assert len(found) == len(rows)
    return found


def check_lineage(table: icebench.Table, before: dict[int, Row]) -> None:
    """Ids are unique in every snapshot, rows that were not changed keep theirs, and where a row says that it was last
    updated, it became what it is."""
    by_number = {each.sequence_number: lineage(table, each.snapshot_id) for each in table.snapshots}
    read = table.scan(columns=[*ROWS.names, "_row_id", "_last_updated_sequence_number"]).to_arrow()
    for *values, row_id, updated in zip(*(column.to_pylist() for column in read.columns), strict=True):
        assert row_id < (table.metadata.next_row_id or 0)
        assert by_number[updated][row_id] == tuple(values)
        assert all(found.get(row_id) == tuple(values) for number, found in by_number.items() if number > updated)
        # Nobody else's number, and not the table's before the row was changed.
        assert (before.get(row_id) == tuple(values)) or updated > 1


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.sampled_from([1, 2, 3]),
    st.lists(STEPS, min_size=1, max_size=3),
    st.lists(STEPS, min_size=1, max_size=3),
    MODES,
    MODES,
)
def test_transactions_are_serializable(
    version: int, ours: list[Step], theirs: list[Step], our_mode: Mode, their_mode: Mode
) -> None:
    """What a step does not find counts as well: two transactions that each delete what the other adds cannot both
    commit."""
    if version == 1:
        our_mode = their_mode = "copy-on-write"

    def meant(rows: Rows, *steps: Step) -> Rows:
        for step in steps:
            rows = step.meant(rows)
        return rows

    with catalog() as opened:
        table = opened.create_table(
            "db.t", ROWS, partition_spec=[("p", "identity")], properties={"format-version": str(version)}
        )
        table.append(arrow(BASE))
        first, second = table.transaction(), opened.load_table("db.t").transaction()
        for step in ours:
            step.make(second, our_mode)
        for step in theirs:
            step.make(first, their_mode)
        first.commit()
        orders = [Counter(meant(BASE, *ours, *theirs)), Counter(meant(BASE, *theirs, *ours))]
        try:
            second.commit()
        except ValidationFailed:
            orders = [Counter(meant(BASE, *theirs))]
        assert contents(table.refresh()) in orders


def deleted_by_key(key: int) -> Step:
    def make(table: RowOperations, _: Mode) -> object:
        stream = table.keyed_stream(["id", "p"])
        for p in "abcd":
            stream.delete(pa.table({"id": [key], "p": [p]}))
        return stream.commit()

    return Step(f"delete key {key}", make, lambda rows: [r for r in rows if r[0] != key])


def maintained(name: str) -> Step:
    """Maintenance by another writer, which changes no row."""
    return Step(
        f"{name} by key", lambda t, _: getattr(cast("icebench.Table", t).maintenance, name)(), lambda rows: rows
    )


DELETE_REWRITES = st.sampled_from(["rewrite_position_deletes", "convert_equality_deletes"])
KEYED = STEPS | st.integers(1, 6).map(deleted_by_key)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    version=st.sampled_from([1, 2, 3]),
    before=st.lists(KEYED, min_size=1, max_size=3),
    meanwhile=st.lists(KEYED | DELETE_REWRITES.map(maintained), max_size=3),
    mode=MODES,
    how=st.sampled_from(["binpack", "sort", "zorder"]),
    partial=st.booleans(),
    keeps_number=st.booleans(),
)
def test_rewriting_files_changes_no_row(
    *, version: int, before: list[Step], meanwhile: list[Step], mode: Mode, how: Any, partial: bool, keeps_number: bool
) -> None:
    if version == 1:
        mode = "copy-on-write"
        before, meanwhile = ([s for s in steps if "key" not in s.name] for steps in (before, meanwhile))
    with catalog() as opened:
        table = opened.create_table(
            "db.t", ROWS, partition_spec=[("p", "identity")], properties={"format-version": str(version)}
        )
        rows = BASE
        for row in BASE:
            table.append(arrow([row]))
        for step in before:
            step.make(table, mode)
            rows = step.meant(rows)
        other = opened.load_table("db.t")

        def others_come_first(_: object) -> None:
            nonlocal rows
            while meanwhile:
                step = meanwhile.pop()
                step.make(other, mode)
                rows = step.meant(rows)

        with suppress(ValidationFailed):
            table.maintenance.rewrite_data_files(
                how,
                sort_order=["n"] if how == "sort" else None,
                zorder_by=["n", "id"] if how == "zorder" else (),
                rewrite_all=True,
                partial_progress=partial,
                use_starting_sequence_number=keeps_number,
                remove_dangling_deletes=True,
                max_concurrent_groups=1,
                progress=others_come_first,
            )
        assert contents(table.refresh()) == Counter(rows)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    version=st.sampled_from([2, 3]),
    before=st.lists(KEYED, min_size=1, max_size=4),
    meanwhile=st.lists(
        KEYED | st.sampled_from(["rewrite_data_files"]).map(maintained) | DELETE_REWRITES.map(maintained), max_size=2
    ),
    how=DELETE_REWRITES,
    granularity=st.sampled_from(["file", "partition"]),
    upgrades=st.booleans(),
)
def test_rewriting_deletes_changes_no_row(
    *, version: int, before: list[Step], meanwhile: list[Step], how: str, granularity: str, upgrades: bool
) -> None:
    with catalog() as opened:
        properties = {"format-version": str(version), "write.delete.granularity": granularity}
        table = opened.create_table("db.t", ROWS, partition_spec=[("p", "identity")], properties=properties)
        for start in (0, 3):
            table.append(arrow(BASE[start : start + 3]))
        rows = BASE
        for step in before:
            step.make(table, "merge-on-read")
            rows = step.meant(rows)
        if upgrades:
            table.upgrade_format(3)
        other, commit = opened.load_table("db.t"), Target.commit

        def others_come_first(self: Target, *args: Any) -> Any:
            nonlocal rows
            while meanwhile:
                step = meanwhile.pop()
                step.make(other, "merge-on-read")
                rows = step.meant(rows)
            return commit(self, *args)

        with suppress(ValidationFailed), patch.object(Target, "commit", others_come_first):
            getattr(table.maintenance, how)(**({"rewrite_all": True} if "position" in how else {}))
        assert contents(table.refresh()) == Counter(rows)
