from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.codec.puffin.file import NewBlob, read_blob, read_footer, write_puffin
from icebench.engine.commit.changes.statistics import UpdateStatistics
from icebench.engine.commit.committer import Outcome, TableState
from icebench.engine.file_indexes.blob import FILE_INDEX, build_index, decode_index, encode_index
from icebench.engine.file_indexes.lookup import INDEXES_UNUSABLE
from icebench.engine.runtime.counters import ENTRIES_SKIPPED_BY_INDEX, FILES_PLANNED, STORAGE_REQUESTS_RANGE_READ
from icebench.engine.spec.statistics import BlobMetadata, StatisticsFile
from icebench.engine.table import Table
from icebench.errors import ContradictionWarning, CorruptTable, Invalid, Unsupported, ValidationFailed
from tests.services.faulty_store import Fault, FaultyStore

ROWS = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("s", pa.struct([pa.field("x", pa.string())])),
        pa.field("l", pa.list_(pa.int64())),
    ]
)


@pytest.fixture
def table(catalog: icebench.Catalog) -> icebench.Table:
    """Four files whose ranges overlap: ids i, i + 10, i + 20."""
    made = catalog.create_table("db.t", ROWS)
    for i in range(4):
        append(made, i)
    return made


def append(table: icebench.Table, start: int) -> None:
    ids = [start, start + 10, start + 20]
    rows = [{"id": i, "s": {"x": f"x{i}"}, "l": [i]} for i in ids]
    table.append(pa.Table.from_pylist(rows, schema=ROWS))


def planned(table: icebench.Table, filter: str, **options: Any) -> tuple[int, int]:
    """Files that are planned, and files that an index excluded."""
    counters = table.scan(filter, **options).plan().counters
    return counters[FILES_PLANNED], counters[ENTRIES_SKIPPED_BY_INDEX]


def test_rows_that_are_deleted_now_are_in_an_index(table: icebench.Table) -> None:
    before = table.metadata.current_snapshot_id
    table.delete("id = 11", "merge-on-read")
    table.maintenance.build_index("id", kind="values")
    # The delete may be undone.
    assert planned(table, "id = 11") == (1, 3)
    assert before is not None
    table.rollback(snapshot_id=before)
    assert table.scan("id = 11").to_arrow()["id"].to_pylist() == [11]


def test_all_row_groups_of_a_file_are_in_an_index(catalog: icebench.Catalog) -> None:
    schema = pa.schema([pa.field("id", pa.int64())])
    made = catalog.create_table("db.g", schema, properties={"write.parquet.row-group-size-bytes": "64"})
    for start in (0, 1):
        made.append(pa.table({"id": range(start, 200, 2)}, schema=schema))
    made.maintenance.build_index("id", kind="values")
    assert {planned(made, f"id = {i}") for i in range(1, 199)} == {(1, 1)}


def test_files_beside_those_that_are_skipped_keep_their_residuals(catalog: icebench.Catalog) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string())])
    made = catalog.create_table("db.p", schema, partition_spec=[("p", "identity")])
    made.append(pa.table({"id": [1, 21, 2, 22, 11, 31], "p": ["a", "a", "b", "b", "c", "c"]}, schema=schema))
    made.maintenance.build_index("id", kind="values")
    plan = made.scan("id = 11 or p = 'b'").plan()
    partitions = [row["p"] for row in plan.files["partition"].to_pylist()]
    residuals = [str(plan.residuals[code]) for code in plan.residual_codes]
    assert dict(zip(partitions, residuals, strict=True)) == {"b": "true", "c": "id = 11"}
    assert sorted(made.scan("id = 11 or p = 'b'").to_arrow()["id"].to_pylist()) == [2, 11, 22]


@pytest.mark.parametrize("kind", ["bloom", "values"])
def test_files_without_the_value_are_skipped(table: icebench.Table, kind: Any) -> None:
    assert planned(table, "id = 11") == (4, 0)
    built = table.maintenance.build_index("id", kind=kind, fpp=0.0001)
    assert (built.files, built.files_read) == (4, 4)
    assert planned(table, "id = 11") == (1, 3)
    assert planned(table, "id in (11, 12)") == (2, 2)
    assert planned(table, "id = 15") == (0, 4)
    assert planned(table, "id > 11 and id < 20") == (4, 0)  # not what an index is for
    assert planned(table, "id = 11 or s.x = 'x12'") == (3, 1)
    assert table.scan("id = 11").to_arrow()["id"].to_pylist() == [11]
    table.maintenance.build_index("s.x", kind=kind, fpp=0.0001)
    assert planned(table, "id = 11 or s.x = 'x12'") == (2, 2)
    assert planned(table, "s.x = 'x12'") == (1, 2)


def test_what_is_not_sought_does_not_exclude_a_file(table: icebench.Table) -> None:
    table.maintenance.build_index("id", kind="values")
    assert planned(table, "id not in (1, 2)") == (4, 0)
    assert table.scan("id not in (1, 2)").to_arrow().num_rows == 10


def test_what_is_left_of_the_filter_is_that_of_the_files_that_are_left(catalog: icebench.Catalog) -> None:
    table = catalog.create_table("db.other", pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int64())]))
    table.append(pa.table({"id": [1, 3], "n": [0, 1]}))
    table.append(pa.table({"id": [2, 4], "n": [0, 9]}))
    table.maintenance.build_index("id", kind="values")
    assert table.scan("id = 4 and n < 5").to_arrow().num_rows == 0
    assert table.scan("id = 2 and n < 5").to_arrow().num_rows == 1
    assert table.scan("id in (2, 4) and n < 5").to_arrow().num_rows == 1


def test_later_files_are_kept_until_the_index_is_built_again(table: icebench.Table) -> None:
    table.maintenance.build_index("id", kind="values")
    append(table, 4)
    assert planned(table, "id = 11") == (2, 3)
    first = table.snapshots[0].snapshot_id
    assert planned(table, "id = 10", snapshot_id=first) == (1, 0)
    assert planned(table, "id = 11", snapshot_id=first) == (0, 1)
    built = table.maintenance.build_index("id", kind="values")
    assert (built.files, built.files_read) == (5, 1)
    assert planned(table, "id = 11") == (1, 4)
    table.delete("id >= 0 and id < 100 and id <> 11", "copy-on-write")
    built = table.maintenance.build_index("id", kind="values")
    assert (built.files, built.files_read) == (1, 1)
    assert table.maintenance.build_index("id", kind="bloom").files_read == 1  # another kind, anew


def test_an_index_is_loaded_once(table: icebench.Table) -> None:
    table.maintenance.build_index("id")
    reads = []
    for _ in range(2):
        counters = icebench.Counters()
        assert table.scan("id = 15", counters=counters).count() == 0
        reads.append(counters[STORAGE_REQUESTS_RANGE_READ])
    assert reads == [2, 0]


def test_other_statistics_stay(table: icebench.Table) -> None:
    snapshot = table.current_snapshot
    assert snapshot is not None
    sketch = NewBlob(type="apache-datasketches-theta-v1", data=b"sketch", fields=(1,), properties={"ndv": "12"})
    encoded = write_puffin([replace(sketch, compression="zstd")])
    location = f"{table.location}/metadata/theirs.stats"
    table.store.write(location, encoded.data)
    blob = BlobMetadata(type=sketch.type, snapshot_id=1, sequence_number=1, fields=(1,))
    theirs = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=location,
        file_size_in_bytes=len(encoded.data),
        file_footer_size_in_bytes=encoded.footer.size_bytes,
        blob_metadata=(blob,),
    )
    table._change(UpdateStatistics(table=[theirs]))
    for column in ("id", "s.x", "id"):
        built = table.maintenance.build_index(column)
    (file,) = table.metadata.statistics
    # PyIceberg loads no table whose metadata lists a blob of a type that it does not know.
    assert [(b.type, b.fields) for b in file.blob_metadata] == [(sketch.type, (1,))]
    data = table.store.read(built.statistics_path)
    footer = read_footer(data)
    assert [(b.type, b.fields) for b in footer.blobs] == [
        (sketch.type, (1,)),
        (FILE_INDEX, (table.schema().find("s.x").field_id,)),
        (FILE_INDEX, (1,)),
    ]
    assert (len(data), footer.size_bytes) == (file.file_size_in_bytes, file.file_footer_size_in_bytes)
    assert read_blob(data, footer.blobs[0]) == b"sketch"
    assert footer.blobs[0].properties == {"ndv": "12"}


def reopened(table: icebench.Table, **changes: Any) -> Table:
    """The table with other metadata, and nothing cached."""
    metadata = replace(table.metadata, **changes)
    return Table(("t",), TableState(metadata=metadata, metadata_location="x"), table.store, None)


def test_an_index_that_the_storage_refuses_is_done_without(table: icebench.Table) -> None:
    table.maintenance.build_index("id")
    state = TableState(metadata=table.metadata, metadata_location="x")
    store = FaultyStore(table.store)
    assert Table(("t",), state, store, None).scan("id = 11").plan().counters[FILES_PLANNED] == 1
    reads = [number for number, request in enumerate(store.requests) if request.endswith(".stats")]
    assert len(reads) == 2
    for number in reads:
        refusing = FaultyStore(table.store, Fault(number))
        counters = Table(("t",), state, refusing, None).scan("id = 11").plan().counters
        assert (counters[FILES_PLANNED], counters[INDEXES_UNUSABLE]) == (4, 1)


def test_an_index_that_is_gone_or_damaged_is_done_without(table: icebench.Table) -> None:
    built = table.maintenance.build_index("id")
    data = table.store.read(built.statistics_path)
    for place in (20, len(data) - 3):
        damaged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        table.store.write(built.statistics_path, damaged, overwrite=True)
        counters = reopened(table).scan("id = 11").plan().counters
        assert (counters[FILES_PLANNED], counters[INDEXES_UNUSABLE]) == (4, 1)
    table.store.delete(built.statistics_path)
    assert reopened(table).scan("id = 11").plan().counters[INDEXES_UNUSABLE] == 1
    again = table.maintenance.build_index("id", kind="bloom")
    assert again.files_read == 4
    assert planned(table, "id = 11")[0] == 1


def test_an_index_of_values_that_are_read_otherwise_now_is_not_used(table: icebench.Table) -> None:
    table.maintenance.build_index("id", kind="values")
    assert planned(reopened(table), "id = 11") == (1, 3)
    mapping = {"schema.name-mapping.default": '[{"field-id": 1, "names": ["other"]}]'}
    properties = {**table.properties, **mapping}
    assert planned(reopened(table, properties=properties), "id = 11") == (4, 0)
    listed = table.properties["icebench.file-index.1"]
    retyped = listed.removesuffix("long") + "date"
    assert planned(reopened(table, properties={"icebench.file-index.1": retyped}), "id = 11") == (4, 0)
    assert planned(reopened(table, properties={"icebench.file-index.1": listed}), "id = 11") == (1, 3)
    with pytest.warns(ContradictionWarning, match=r"icebench\.file-index\.1='one': is no snapshot"):
        assert planned(reopened(table, properties={"icebench.file-index.1": "one"}), "id = 11") == (4, 0)
    with pytest.raises(Invalid, match=r"icebench\.file-index\.1='one': is no snapshot"):
        table.set_properties({"icebench.file-index.1": "one"})
    table.update_schema(lambda s: s.drop_column("id"))
    table.update_schema(lambda s: s.add_column("id", icebench.LONG))
    assert planned(table, "id = 11")[1] == 0


def test_a_property_that_is_set_back_does_not_name_an_index_of_other_values(
    catalog: icebench.Catalog, tmp_path: Path
) -> None:
    """Of files without field ids, columns are found by the name mapping, as whose values the index has hashed."""
    schema = pa.schema([("id", pa.int64()), ("other", pa.int64())])
    table = catalog.create_table("db.mapped", schema)
    for start in (10, 20):
        pq.write_table(
            pa.table({"a": [start, start + 1], "b": [start + 100, start + 101]}), f"{tmp_path}/{start}.parquet"
        )

    def mapped(first: str, second: str) -> str:
        return json.dumps([{"field-id": 1, "names": [first]}, {"field-id": 2, "names": [second]}])

    table.set_properties({"schema.name-mapping.default": mapped("a", "b")})
    table.add_files([f"{tmp_path}/{start}.parquet" for start in (10, 20)])
    table.maintenance.build_index("id", kind="values")
    before = dict(table.properties)
    table.set_properties({"schema.name-mapping.default": mapped("b", "a")})
    table.maintenance.build_index("id", kind="values")
    assert table.scan("id = 111").to_arrow()["id"].to_pylist() == [111]
    table.set_properties(before)
    assert table.scan("id = 11").to_arrow()["id"].to_pylist() == [11]


def test_an_index_whose_statistics_file_is_gone_or_anothers_is_not_used(table: icebench.Table) -> None:
    table.maintenance.build_index("id", kind="values")
    (file,) = table.metadata.statistics
    assert planned(reopened(table, statistics=()), "id = 11") == (4, 0)
    sketches = write_puffin([NewBlob(type="apache-datasketches-theta-v1", data=b"sketch", fields=(1,))])
    table.store.write(file.statistics_path, sketches.data, overwrite=True)
    size, footer = len(sketches.data), sketches.footer.size_bytes
    theirs = replace(file, file_size_in_bytes=size, file_footer_size_in_bytes=footer)
    counters = reopened(table, statistics=(theirs,)).scan("id = 11").plan().counters
    assert (counters[FILES_PLANNED], counters[INDEXES_UNUSABLE]) == (4, 1)
    table.remove_statistics(file.snapshot_id)
    assert table.maintenance.build_index("id", kind="values").files_read == 4
    assert planned(table, "id = 11") == (1, 3)


def test_another_file_of_the_same_name_is_kept(table: icebench.Table) -> None:
    table.maintenance.build_index("id", kind="values")
    index = decode_index(_blob(table))
    other = replace(index, sizes=index.sizes + 1)
    data = encode_index(other)
    properties = {"hashed-as": "long", "name-mapping": "0"}
    encoded = write_puffin([NewBlob(type=FILE_INDEX, data=data, fields=(1,), properties=properties)])
    (file,) = table.metadata.statistics
    location = f"{table.location}/metadata/other.stats"
    table.store.write(location, encoded.data)
    moved = replace(
        file,
        statistics_path=location,
        file_size_in_bytes=len(encoded.data),
        file_footer_size_in_bytes=encoded.footer.size_bytes,
    )
    assert planned(reopened(table, statistics=(moved,)), "id = 11") == (4, 0)


def _blob(table: icebench.Table) -> bytes:
    data = table.store.read(table.metadata.statistics[0].statistics_path)
    return read_blob(data, read_footer(data).blobs[0])


def test_what_cannot_be_indexed(catalog: icebench.Catalog, table: icebench.Table) -> None:
    maintenance = table.maintenance
    with pytest.raises(Invalid, match="no_such"):
        maintenance.build_index("no_such")
    with pytest.raises(Invalid, match="inside a list"):
        maintenance.build_index("l.element")
    with pytest.raises(Unsupported, match="'s' of type struct"):
        maintenance.build_index("s")
    with pytest.raises(Invalid, match="'bloom' or 'values'"):
        maintenance.build_index("id", kind="btree")  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="between 0 and 1"):
        maintenance.build_index("id", fpp=1)
    with pytest.raises(Invalid, match="without a snapshot"):
        catalog.create_table("db.u", ROWS).maintenance.build_index("id")
    with pytest.raises(Unsupported, match="read-only"):
        reopened(table).maintenance.build_index("id")


def test_false_positives_are_as_few_as_asked_for() -> None:
    rng = np.random.default_rng(7)
    hashes = [rng.integers(0, 2**64, 1000, dtype=np.uint64) for _ in range(200)]
    for fpp, bits in ((0.1, 7), (0.01, 11), (0.001, 18)):
        index = build_index("bloom", [str(i) for i in range(200)], [1] * 200, [np.unique(h) for h in hashes], fpp)
        assert all(index.may_hold(np.array([own[5]]))[i] for i, own in enumerate(hashes))
        strangers = rng.integers(0, 2**64, 200, dtype=np.uint64)
        share = np.mean([index.may_hold(np.array([value])).mean() for value in strangers])
        assert 0.6 * fpp < share < 1.2 * fpp
        assert index.content.nbytes * 8 / 200_000 < bits


def test_a_damaged_blob_is_told() -> None:
    data = encode_index(build_index("values", ["/a"], [1], [np.array([5], np.uint64)], 0.01))
    for place in range(len(data)):
        with pytest.raises(CorruptTable):
            decode_index(data[:place] + bytes([data[place] ^ 8]) + data[place + 1 :])
        with pytest.raises(CorruptTable):
            decode_index(data[:place])


def test_an_index_that_another_writer_builds_meanwhile_is_not_lost(
    table: icebench.Table, catalog: icebench.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer, theirs = table._committer, catalog.load_table("db.t")
    assert committer is not None
    commit = committer.commit

    def after_theirs(*request: Any) -> Outcome:
        monkeypatch.setattr(committer, "commit", commit)
        theirs.maintenance.build_index("s.x")
        return commit(*request)

    monkeypatch.setattr(committer, "commit", after_theirs)
    with pytest.raises(ValidationFailed, match="changed the statistics"):
        table.maintenance.build_index("id")
    assert planned(table.refresh(), "s.x = 'x1'") == (1, 1)
    table.maintenance.build_index("id")
    assert (planned(table, "s.x = 'x1'"), planned(table, "id = 11")) == ((1, 1), (1, 3))
