"""Deletes of a plan against the rules of the specification, written down once more for one pair at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.parse import parse
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.plans import planned_files
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import ManifestEntry
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity, Void
from icebench.engine.spec.types import LONG, STRING, NestedField
from icebench.engine.spec.values import Value
from icebench.errors import CorruptTable
from tests.property.evaluate import evaluate
from tests.property.remote_planning import assert_same_elsewhere
from tests.property.table_builder import TableBuilder, added, data_file
from tests.property.test_plan_files import metrics_of

Draw = Callable[[st.SearchStrategy[Any]], Any]
Row = dict[int, Value | None]
SCHEMA = Schema(
    (
        NestedField(field_id=1, name="k", type=LONG),
        NestedField(field_id=2, name="t", type=STRING),
        NestedField(field_id=3, name="p", type=LONG),
    )
)
BY_P = PartitionField(source_ids=(3,), field_id=1000, name="p", transform=Identity())
SPECS = (
    UNPARTITIONED,
    PartitionSpec((BY_P,), 1),
    PartitionSpec((PartitionField(source_ids=(3,), field_id=1000, name="p", transform=Void()),), 2),
)
PATH_ID = 2147483546
FILTERS = ("true", "k = 1", "k > 1 and p = 0", "t = 'a' or k is null", "p in (0, 1)")


@dataclass
class Held:
    """A data or delete file: where it is, how old, and its rows (for an equality delete, its keys)."""

    file: DataFile
    sequence_number: int
    rows: list[Row]

    @property
    def scope(self) -> tuple[int, object]:
        return self.file.spec_id, self.file.partition


def _row(draw: Draw, p: int | None) -> Row:
    return {1: draw(st.sampled_from([None, 0, 1, 2, 3])), 2: draw(st.sampled_from([None, "a", "b"])), 3: p}


def _place(draw: Draw) -> tuple[int, tuple[Value | None, ...], int | None]:
    """A spec, a partition tuple of it and the value of column p."""
    spec_id = draw(st.integers(0, 2))
    p = draw(st.sampled_from([None, 0, 1]))
    return spec_id, {0: (), 1: (p,), 2: (None,)}[spec_id], p


def _data(draw: Draw) -> list[Held]:
    found = []
    for i in range(draw(st.integers(1, 5))):
        spec_id, partition, p = _place(draw)
        rows = [_row(draw, p) for _ in range(draw(st.integers(1, 3)))]
        metrics = metrics_of(draw, SCHEMA, rows, {f.name: f for f in SCHEMA.fields})
        file = data_file(f"memory://t/d{i}", records=len(rows), spec_id=spec_id, partition=partition, **metrics)
        found.append(Held(file, draw(st.integers(1, 5)), rows))
    return found


def _equality(draw: Draw, path: str) -> Held:
    spec_id, partition, p = _place(draw)
    ids = draw(st.sampled_from([(1,), (2,), (1, 2)]))
    keys = [_row(draw, p) for _ in range(draw(st.integers(1, 2)))]
    # What the file stores of columns that are no keys may be of any rows.
    stored = [{i: key[i] if i in ids else other[i] for i in key} for key in keys for other in [_row(draw, p)]]
    file = data_file(
        path,
        content=FileContent.EQUALITY_DELETES,
        spec_id=spec_id,
        partition=partition,
        equality_ids=ids,
        **metrics_of(draw, SCHEMA, stored, {f.name: f for f in SCHEMA.fields}),
    )
    return Held(file, draw(st.integers(1, 5)), keys)


def _positions(draw: Draw, path: str, data: Sequence[Held]) -> Held:
    kind = draw(st.sampled_from(["partition", "referenced", "bounds", "pruned"]))
    spec_id, partition, _ = _place(draw)
    more: dict[str, Any] = {}
    target = draw(st.sampled_from(data))
    if kind in ("referenced", "bounds"):
        spec_id, partition = target.scope
        raw = target.file.file_path.encode()
        more = (
            {"referenced_data_file": target.file.file_path}
            if kind == "referenced"
            else {"lower_bounds": {PATH_ID: raw}, "upper_bounds": {PATH_ID: raw}}
        )
    elif kind == "pruned":
        more = {"referenced_data_file": "memory://t/elsewhere"}
    else:
        more = {"lower_bounds": {PATH_ID: b"memory://t/d0"}, "upper_bounds": {PATH_ID: b"memory://t/d9"}}
    file = data_file(path, content=FileContent.POSITION_DELETES, spec_id=spec_id, partition=partition, **more)
    return Held(file, draw(st.integers(1, 5)), [])


def _vector(draw: Draw, path: str, target: Held) -> Held:
    file = data_file(
        path,
        content=FileContent.POSITION_DELETES,
        spec_id=target.file.spec_id,
        partition=target.file.partition,
        referenced_data_file=target.file.file_path,
        content_offset=4,
        content_size_in_bytes=40,
    )
    puffin = DataFile(**{**{n: getattr(file, n) for n in file.__dataclass_fields__}, "file_format": "puffin"})
    return Held(puffin, draw(st.integers(target.sequence_number, 6)), [])


def applies(delete: Held, data: Held, vectors: set[str]) -> bool:
    """The scope rules of the specification ("Scan Planning")."""
    file = delete.file
    if file.content == FileContent.EQUALITY_DELETES:
        is_global = SPECS[file.spec_id].is_unpartitioned
        return data.sequence_number < delete.sequence_number and (is_global or delete.scope == data.scope)
    target = file.referenced_data_file
    bound = file.lower_bounds.get(PATH_ID)
    if target is None and bound is not None and bound == file.upper_bounds.get(PATH_ID):
        target = bound.decode()
    if file.file_format == "puffin":
        return target == data.file.file_path
    if data.file.file_path in vectors or delete.scope != data.scope:
        return False
    return data.sequence_number <= delete.sequence_number and target in (None, data.file.file_path)


def deletes_a_row(delete: Held, data: Held, wanted: Callable[[Row], bool]) -> bool:
    """Whether an equality delete concerns a row that the filter is true for."""
    ids = delete.file.equality_ids or ()
    return any(wanted(row) and any(all(row[i] == key[i] for i in ids) for key in delete.rows) for row in data.rows)


def _write(builder: TableBuilder, draw: Draw, held: Sequence[Held]) -> None:
    """Manifests of each kind and spec, some with inherited sequence numbers."""
    for is_data in (True, False):
        for spec_id in range(3):
            own = [h for h in held if h.file.spec_id == spec_id and (h.file.content == FileContent.DATA) == is_data]
            inherits = draw(st.booleans())
            entries: dict[int, list[ManifestEntry]] = {}
            for h in own:
                number = h.sequence_number if inherits else 6
                entries.setdefault(number, []).append(
                    added(h.file, sequence_number=None if inherits else h.sequence_number)
                )
            for number, each in entries.items():
                builder.add_manifest(each, spec_id=spec_id, sequence_number=number)


@given(data=st.data())
def test_deletes_are_those_of_the_rules(data: st.DataObject) -> None:
    files = _data(data.draw)
    deletes = [
        _equality(data.draw, f"memory://t/x{i}")
        if data.draw(st.booleans())
        else _positions(data.draw, f"memory://t/x{i}", files)
        for i in range(data.draw(st.integers(0, 5)))
    ]
    if deletes:
        again = data.draw(st.lists(st.tuples(st.sampled_from(deletes), st.integers(1, 5)), max_size=2))
        listed = {(held.file.file_path, held.sequence_number): held for held in deletes}
        for held, number in again:
            listed.setdefault((held.file.file_path, number), Held(held.file, number, held.rows))
        deletes = list(listed.values())
    with_vector = data.draw(st.lists(st.sampled_from(files), max_size=2, unique_by=lambda h: h.file.file_path))
    deletes += [_vector(data.draw, f"memory://t/v{i}.puffin", target) for i, target in enumerate(with_vector)]
    builder = TableBuilder(SCHEMA, SPECS, format_version=3)
    _write(builder, data.draw, [*files, *deletes])
    text = data.draw(st.sampled_from(FILTERS))
    bound = bind(parse(text), SCHEMA)
    scan = table_scan(builder.metadata(), builder.store, filter=text, runner=LocalRunner(1))
    plan = scan.plan()
    plan.files.validate(full=True)
    assert_same_elsewhere(scan, plan, data.draw(st.sampled_from([1, 10_000])))
    vectors = {h.file.file_path for h in with_vector}
    by_path = {h.file.file_path: h for h in files}
    used: set[tuple[str, int]] = set()
    for path, found, read in zip(
        plan.files["file_path"].to_pylist(), plan.files["deletes"].to_pylist(), planned_files(plan), strict=True
    ):
        own = by_path[path]
        got = [(d["file_path"], d["sequence_number"]) for d in found]
        assert [(d.file_path, d.sequence_number) for d in read.deletes] == got
        used.update(got)
        assert len(got) == len(set(got))
        for delete in deletes:
            rule = applies(delete, own, vectors)
            planned = (delete.file.file_path, delete.sequence_number) in got
            assert rule or not planned, (delete, own)
            if rule and not planned:
                assert delete.file.content == FileContent.EQUALITY_DELETES or text != "true", (delete, own)
                assert delete.file.content != FileContent.EQUALITY_DELETES or not deletes_a_row(
                    delete, own, lambda row: evaluate(bound, row) is True
                ), (delete, own)
    assert plan.counters["delete_files_planned"] == len(used)
    assert plan.counters["delete_files_planned"] + plan.counters["delete_files_unused"] <= len(deletes)


@given(data=st.data())
def test_two_vectors_for_one_file_are_refused(data: st.DataObject) -> None:
    files = _data(data.draw)
    target = data.draw(st.sampled_from(files))
    builder = TableBuilder(SCHEMA, SPECS, format_version=3)
    vectors = [_vector(data.draw, f"memory://t/v{i}.puffin", target) for i in range(2)]
    _write(builder, data.draw, [*files, *vectors])
    with pytest.raises(CorruptTable, match="more than one deletion vector"):
        table_scan(builder.metadata(), builder.store, runner=LocalRunner(1)).plan()
