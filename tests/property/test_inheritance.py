"""Entries of several manifests inherit what the specification says of each entry (spec: "Sequence Number Inheritance",
"First Row ID Inheritance", "Manifest Lists")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icebench.engine.codec.array_views import number_array
from icebench.engine.codec.manifests.listed_manifest import are_as_listed, check_listed
from icebench.engine.errors import Contradiction
from icebench.engine.plan.manifests import live_entries_together
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.errors import CorruptTable
from tests.property.manifest_batches import manifest_columns

LONG_MAX = (1 << 63) - 1
Row: TypeAlias = tuple[int, int, int, int, "int | None"]
"""Of a live entry: its place, snapshot id, both sequence numbers, and first row id."""


@dataclass(frozen=True)
class Entry:
    status: EntryStatus
    is_data: bool
    records: int
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    first_row_id: int | None


def numbers(*values: int) -> st.SearchStrategy[int | None]:
    return st.sampled_from([None, *values])


ENTRIES = st.builds(
    Entry,
    status=st.sampled_from(EntryStatus),
    is_data=st.integers(0, 9).map(bool),
    records=st.sampled_from([0, 1, 7, 1000]) | st.sampled_from([3, LONG_MAX]),
    snapshot_id=numbers(3, 4),
    sequence_number=numbers(0, 1, 2),
    file_sequence_number=numbers(0, 1, 2),
    first_row_id=numbers(0, 500),
)
MANIFESTS = st.builds(
    ManifestFile,
    manifest_path=st.sampled_from(["a", "b", "c"]),
    manifest_length=st.sampled_from([10, 11]),
    partition_spec_id=st.just(0),
    content=st.sampled_from([ManifestContent.DATA] * 5 + [ManifestContent.DELETES]),
    sequence_number=st.sampled_from([0, 5, 6]),
    added_snapshot_id=st.sampled_from([3, 9]),
    first_row_id=numbers(0, 100, LONG_MAX - 20),
)
RARELY = st.sampled_from([0] * 15 + [1])
DRAWN = st.lists(st.tuples(MANIFESTS, st.lists(ENTRIES, max_size=4)), min_size=1, max_size=5)


def column(values: Sequence[int | None]) -> pa.Array:
    valid = np.array([value is not None for value in values], np.bool_)
    return number_array(np.array([value or 0 for value in values], np.int64), None if valid.all() else valid)


def columns_of(entries: Sequence[Entry]) -> dict[str, pa.Array]:
    names = ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")
    return {
        "status": column([int(each.status) for each in entries]),
        "content": column([0 if each.is_data else 1 for each in entries]),
        "record_count": column([each.records for each in entries]),
        **{name: column([getattr(each, name) for each in entries]) for name in names},
    }


def expected(manifest: ManifestFile, entries: Sequence[Entry]) -> list[Row] | None:
    """Entry by entry; None where the manifest is wrong."""
    rows: list[Row] = []
    is_of_data = manifest.content == ManifestContent.DATA
    next_row_id = manifest.first_row_id if is_of_data else None
    for place, each in enumerate(entries):
        if each.status == EntryStatus.DELETED:
            continue
        if each.is_data != is_of_data:
            return None
        own = (each.sequence_number, each.file_sequence_number)
        if each.status == EntryStatus.EXISTING and manifest.sequence_number and None in own:
            return None
        number, file_number = (manifest.sequence_number if n is None else n for n in own)
        row_id = None if next_row_id is None else each.first_row_id
        if next_row_id is not None and row_id is None:
            row_id = next_row_id
            next_row_id += each.records
            if next_row_id > LONG_MAX:
                return None
        snapshot_id = manifest.added_snapshot_id if each.snapshot_id is None else each.snapshot_id
        rows.append((place, snapshot_id, number, file_number, row_id))
    return rows


NO_LINEAGE = ManifestFile(
    manifest_path="a",
    manifest_length=10,
    partition_spec_id=0,
    content=ManifestContent.DATA,
    sequence_number=5,
    added_snapshot_id=3,
)
LARGEST = Entry(EntryStatus.ADDED, True, LONG_MAX, None, None, None, None)


def claims(entries: Sequence[Entry], draw: Callable[[st.SearchStrategy[int | None]], int | None]) -> dict[str, Any]:
    """Counts of a manifest list: those of the entries, or others, or none."""
    made: dict[str, Any] = {}
    for status in EntryStatus:
        own = [each.records for each in entries if each.status == status]
        for what, number in (("files", len(own)), ("rows", sum(own))):
            right = st.sampled_from([number] * 10 + [None]) if number <= LONG_MAX else st.none()
            made[f"{status.name.lower()}_{what}_count"] = draw(
                right | numbers(number + 1, 0) if draw(RARELY) else right
            )
    return made


@given(DRAWN)
@example([(NO_LINEAGE, [LARGEST, LARGEST]), (replace(NO_LINEAGE, first_row_id=0), [LARGEST])])
def test_entries_of_several_manifests_inherit_what_each_would(
    drawn: list[tuple[ManifestFile, list[Entry]]],
) -> None:
    manifests = [manifest for manifest, _ in drawn]
    columns = [manifest_columns(len(entries), columns_of(entries)) for _, entries in drawn]
    wanted = [expected(manifest, entries) for manifest, entries in drawn]
    if None in wanted:
        wrong = {manifest.manifest_path for manifest, own in zip(manifests, wanted, strict=True) if own is None}
        with pytest.raises(CorruptTable) as raised:
            live_entries_together(manifests, columns)
        assert raised.value.location in wrong
        return
    found = live_entries_together(manifests, columns)
    assert [(each.manifest, each.columns) for each in found] == list(zip(manifests, columns, strict=True))
    rows = [
        list(
            zip(
                each.rows.tolist(),
                each.snapshot_id.tolist(),
                each.sequence_number.tolist(),
                each.file_sequence_number.tolist(),
                each.first_row_id.to_pylist(),
                strict=True,
            )
        )
        for each in found
    ]
    assert rows == wanted


@given(DRAWN, st.data())
def test_manifests_that_are_as_listed_are_those_of_which_nothing_is_said(
    drawn: list[tuple[ManifestFile, list[Entry]]], data: st.DataObject
) -> None:
    drawn = [(replace(manifest, **claims(entries, data.draw)), entries) for manifest, entries in drawn]
    said = []
    for manifest, entries in drawn:
        own, contradictions = columns_of(entries), list[Contradiction]()
        status, records = (np.array(own[name].to_pylist(), np.int64) for name in ("status", "record_count"))
        try:
            check_listed(
                manifest,
                10,
                status=status,
                record_count=records,
                snapshot_id=own["snapshot_id"],
                report=contradictions.append,
            )
            said.append(bool(contradictions))
        except CorruptTable:
            said.append(True)
    every = columns_of([entry for _, entries in drawn for entry in entries])
    found = are_as_listed(
        [manifest for manifest, _ in drawn],
        [10] * len(drawn),
        [len(entries) for _, entries in drawn],
        status=np.array(every["status"].to_pylist(), np.int64),
        record_count=np.array(every["record_count"].to_pylist(), np.int64),
    )
    assert found.tolist() == [not each for each in said]
