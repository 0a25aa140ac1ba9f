from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.array_views import ManifestColumns, bytes_array_of, number_array
from icebench.engine.codec.manifests.decoded_entries import MAPS
from icebench.engine.expressions.bound import BOUND_TRUE
from icebench.engine.plan.filtering import Filtered
from icebench.engine.plan.incremental import incremental_append_scan
from icebench.engine.plan.manifests import live_entries
from icebench.engine.plan.remote import Answer, balance, compact_survivors
from icebench.engine.plan.scan import ScanPlan, TableScan, table_scan
from icebench.engine.runtime.counters import STORAGE_BYTES_READ, STORAGE_REQUESTS_READ, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID
from icebench.engine.spec.partitioning import UNPARTITIONED
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import INT, STRING, NestedField
from icebench.engine.storage.counting import CountingStore
from icebench.errors import CorruptTable, EngineError, FileNotFound, StorageFailed, Unsupported
from tests.property.manifest_batches import BYTES, manifest_columns, number_lists
from tests.property.remote_planning import OtherProcesses, assert_same
from tests.property.table_builder import SNAPSHOT_ID, TableBuilder, added, data_file
from tests.services.faulty_store import Fault, FaultyStore

Draw = Any
SCHEMA = Schema((NestedField(field_id=1, name="a", type=INT), NestedField(field_id=2, name="b", type=STRING)))
INHERITED = ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")


def _mask(draw: Draw, count: int) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    return draw(
        st.none() | st.lists(st.booleans(), min_size=count, max_size=count).map(lambda m: np.array(m, np.bool_))
    )


def _numbers(draw: Draw, count: int, *, dtypes: tuple[str, ...] = ("i8", "f4", "f8", "u1")) -> pa.Array:
    values = draw(st.lists(st.integers(0, 100), min_size=count, max_size=count))
    return number_array(np.array(values, draw(st.sampled_from(dtypes))), _mask(draw, count))


def _bytes(draw: Draw, count: int) -> pa.Array:
    return bytes_array_of(draw(st.lists(st.none() | st.binary(max_size=5), min_size=count, max_size=count)))


def _lists(draw: Draw, count: int, least: int = 0) -> pa.Array:
    values = st.lists(st.integers(1, 3), min_size=least, max_size=3)
    return number_lists(draw(st.lists(values, min_size=count, max_size=count)))


def _columns(draw: Draw, count: int, content: FileContent) -> ManifestColumns:
    status = draw(st.lists(st.sampled_from([EntryStatus.ADDED, EntryStatus.DELETED]), min_size=count, max_size=count))
    made = {
        name: _numbers(draw, count, dtypes=("i8",))
        for name in (*INHERITED, "record_count", "file_size_in_bytes", "content_offset", "content_size_in_bytes")
    }
    made |= {name: _bytes(draw, count) for name in BYTES}
    made |= {"status": number_array(np.array(status, np.int64)), "content": number_array(np.full(count, content, "i8"))}
    made |= {"split_offsets": _lists(draw, count), "equality_ids": _lists(draw, count, least=1)}
    made |= {"partition/1000": _numbers(draw, count), "partition/1001": _bytes(draw, count)}
    ids = st.lists(st.sampled_from([1, 2, 3, DELETE_FILE_PATH_ID]), unique=True)
    for name in MAPS:
        for i in draw(ids):
            made[f"{name}/{i}"] = _bytes(draw, count) if "bounds" in name else _numbers(draw, count, dtypes=("i8",))
    return manifest_columns(count, made)


def _values(columns: ManifestColumns, rows: list[int], skipped: tuple[str, ...]) -> dict[str, Any]:
    """Everything that a manifest says of these entries, with the types of numbers."""
    values = {name: columns[name].to_pylist() for name in columns.batch.schema.names if name not in skipped}
    return {name: ([own[row] for row in rows], columns[name].type) for name, own in values.items()}


@given(data=st.data())
def test_survivors_come_back_as_they_were_without_statistics(data: st.DataObject) -> None:
    draw = data.draw
    manifests, found, sent_keys = [], {}, draw(st.frozensets(st.sampled_from([1, 2, 3])))
    for number in range(draw(st.integers(1, 3))):
        content = draw(st.sampled_from([FileContent.DATA, FileContent.EQUALITY_DELETES, FileContent.POSITION_DELETES]))
        listed = ManifestContent.DATA if content == FileContent.DATA else ManifestContent.DELETES
        manifest = ManifestFile(
            manifest_path="m",
            manifest_length=1,
            partition_spec_id=0,
            content=listed,
            sequence_number=7,
            added_snapshot_id=5,
            first_row_id=draw(st.sampled_from([None, 100])),
        )
        entries = live_entries(manifest, _columns(draw, draw(st.integers(0, 5)), content))
        kept = entries.take(np.flatnonzero(np.array([draw(st.booleans()) for _ in range(len(entries))], np.bool_)))
        manifests.append(manifest)
        codes = np.array([draw(st.integers(0, 1)) for _ in range(len(kept))], np.int64)
        found[number] = Filtered(entries=kept, residual=codes, residuals=(BOUND_TRUE, BOUND_TRUE))
    compact = {number: compact_survivors(each, sent_keys) for number, each in found.items()}
    survivors = {n: (each.entries.columns.batch, each.residual, each.residuals) for n, each in compact.items()}
    answer = Answer.decode(Answer(survivors=survivors, counters={"counted": 1}, requests={}).encode())
    assert answer.counters == {"counted": 1}
    back = dict(answer.filtered(manifests))
    assert list(back) == list(found)
    for number, each in back.items():
        sent, got = found[number].entries, each.entries
        assert each.residual.tolist() == found[number].residual.tolist()
        assert each.residuals == found[number].residuals
        assert got.manifest is manifests[number]
        assert got.rows.tolist() == list(range(len(sent)))
        for name in INHERITED:
            own, other = getattr(got, name), getattr(sent, name)
            assert (own.to_pylist() if name == "first_row_id" else own.tolist()) == (
                other.to_pylist() if name == "first_row_id" else other.tolist()
            )
        deleting = sent.manifest.content == ManifestContent.DELETES
        keys = {*sent.columns["equality_ids"].values.to_pylist(), DELETE_FILE_PATH_ID} if deleting else sent_keys
        expected = _values(sent.columns, sent.rows.tolist(), INHERITED)
        for name in MAPS:
            for column_id in sent.columns.keys_of(name):
                if name == "column_sizes" or column_id not in keys:
                    expected.pop(f"{name}/{column_id}")
        assert _values(got.columns, got.rows.tolist(), INHERITED) == expected


@given(lengths=st.lists(st.integers(1, 1000), max_size=40), group_bytes=st.integers(1, 5000))
def test_groups_are_balanced(lengths: list[int], group_bytes: int) -> None:
    manifests = [
        ManifestFile(manifest_path=str(i), manifest_length=n, partition_spec_id=0, added_snapshot_id=1)
        for i, n in enumerate(lengths)
    ]
    groups = balance(manifests, group_bytes)
    assert sorted((number for group in groups for number, _ in group)) == list(range(len(manifests)))
    assert all(manifests[number] is manifest for group in groups for number, manifest in group)
    assert all(group and group == sorted(group, key=lambda each: each[0]) for group in groups)
    if not lengths:
        assert groups == []
        return
    assert len(groups) == min(len(lengths), -(-sum(lengths) // group_bytes))
    weights = [sum(manifest.manifest_length for _, manifest in group) for group in groups]
    assert max(weights) - min(weights) <= max(lengths)


@pytest.fixture
def builder() -> TableBuilder:
    """Three manifests of two files each."""
    made = TableBuilder(SCHEMA, (UNPARTITIONED,))
    for number in range(3):
        made.add_manifest([added(data_file(f"memory://t/{number}-{i}")) for i in range(2)], sequence_number=1)
    return made


def scan(builder: TableBuilder, store: Any = None, **more: Any) -> TableScan:
    return table_scan(builder.metadata(), store or builder.store, runner=LocalRunner(1), table_name="db.t", **more)


def elsewhere(made: TableScan, group_bytes: int = 1) -> tuple[ScanPlan, OtherProcesses]:
    others = OtherProcesses(group_bytes)
    return replace(made, executors=others).plan(), others


def error_of(made: TableScan) -> EngineError:
    with pytest.raises(EngineError) as raised:
        made.plan()
    return raised.value


@pytest.mark.parametrize("group_bytes", [1, 1 << 30])
def test_errors_are_those_of_planning_here(builder: TableBuilder, group_bytes: int) -> None:
    made = scan(builder)
    builder.store.write(builder.manifests[2].manifest_path, b"no Avro at all", overwrite=True)
    builder.store.delete(builder.manifests[1].manifest_path)
    for kind in (FileNotFound, CorruptTable):
        here, there = error_of(made), error_of(replace(made, executors=OtherProcesses(group_bytes)))
        assert type(here) is type(there) is kind
        assert (str(here), vars(here)) == (str(there), vars(there))
        assert "db.t" in str(here) or kind is CorruptTable
        builder.store.write(builder.manifests[1].manifest_path, b"", overwrite=True)


def test_a_storage_that_refuses_raises(builder: TableBuilder) -> None:
    """Whoever runs the other processes may try again."""
    made = scan(builder, FaultyStore(builder.store, Fault(at=2)))
    with pytest.raises(StorageFailed):
        elsewhere(made)


def test_a_store_of_this_process_alone_is_refused(builder: TableBuilder) -> None:
    class Pickling(OtherProcesses):
        def filtered(self, order: Any, manifests: Any, counters: Any) -> Any:
            pickle.dumps(order)

    with pytest.raises(Unsupported, match="this process alone"):
        replace(scan(builder), executors=Pickling()).plan()


def test_requests_of_other_processes_are_counted(builder: TableBuilder) -> None:
    counters = Counters()
    made = scan(builder, CountingStore(builder.store, counters))
    here = made.plan()
    expected = counters.as_dict()
    there, others = elsewhere(made)
    assert_same(there, here)
    found = {name: counters[name] - n + others.requests[name] for name, n in expected.items()}
    assert found == expected
    assert others.requests[STORAGE_REQUESTS_READ] == 3
    assert others.requests[STORAGE_BYTES_READ] == sum(m.manifest_length for m in builder.manifests)


def test_statistics_are_not_sent_back() -> None:
    builder = TableBuilder(SCHEMA, (UNPARTITIONED,))
    metrics: dict[str, Any] = {
        "value_counts": {1: 10, 2: 10},
        "null_value_counts": {1: 0, 2: 0},
        "lower_bounds": {1: b"\0\0\0\0", 2: b"a"},
        "upper_bounds": {1: b"\1\0\0\0", 2: b"z"},
    }
    builder.add_manifest([added(data_file("memory://t/d", **metrics))], sequence_number=1)
    keys = data_file("memory://t/e", content=FileContent.EQUALITY_DELETES, equality_ids=(1,), **metrics)
    made = scan(builder, filter="b = 'c'")

    def sent(others: OtherProcesses) -> list[set[str]]:
        """Which metrics of which columns each process gave back."""
        given = [Answer.decode(data).survivors.values() for data in others.given]
        names = [[name for batch, *_ in each for name in batch.schema.names] for each in given]
        return [{name for name in each if name.partition("/")[0] in MAPS} for each in names]

    plan, others = elsewhere(made)
    assert plan.files.num_rows == 1
    assert sent(others) == [set()]
    builder.add_manifest([added(keys)], sequence_number=2)
    plan, others = elsewhere(scan(builder, filter="b = 'c'"))
    assert plan.counters["delete_files_planned"] == 1
    own = {f"{name}/1" for name in MAPS if name not in ("column_sizes", "nan_value_counts")}
    assert sent(others) == [own, own]


def test_increments_are_planned_elsewhere(builder: TableBuilder) -> None:
    made = scan(builder)
    whole = incremental_append_scan(made, from_snapshot_id=None)
    plan, _ = elsewhere(whole)
    assert plan.files.num_rows == 6
    assert plan.modes == {"data": "distributed", "deletes": "local"}
    assert_same(plan, whole.plan())
    assert plan.snapshot is not None
    assert plan.snapshot.snapshot_id == SNAPSHOT_ID


def test_an_empty_table_asks_nobody() -> None:
    builder = TableBuilder(SCHEMA, (UNPARTITIONED,))
    plan, others = elsewhere(scan(builder))
    assert plan.files.num_rows == 0
    assert others.given == []
    assert plan.modes == {"data": "local", "deletes": "local"}
