from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.engine.commit.changes.stream_batch import StreamBatch
from icebench.engine.operations.keyed_stream import KeyedStream
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partition_evolution import PartitionSpecUpdate
from icebench.errors import Invalid, Unsupported, ValidationFailed

ROWS = pa.schema([pa.field("id", pa.int32()), pa.field("data", pa.string())])
Change = tuple[str, int, str | None]


def table(catalog: icebench.Catalog, version: int = 2, spec: list[tuple[str, str]] | None = None) -> icebench.Table:
    return catalog.create_table("db.t", ROWS, partition_spec=spec or [], properties={"format-version": str(version)})


def take(stream: KeyedStream, *changes: Change) -> None:
    for op, id_, data in changes:
        row = pa.table({"id": [id_], "data": [data]}, schema=ROWS)
        match op:
            case "+I":
                stream.insert(row)
            case "+U":
                stream.update(row)
            case "-D" | "-U":
                stream.delete(row.select(["id"]))


def rows(table: icebench.Table) -> list[tuple[int, str | None]]:
    read = table.scan().to_arrow()
    return sorted(zip(read["id"].to_pylist(), read["data"].to_pylist(), strict=True), key=str)


def added(table: icebench.Table) -> list[tuple[str, int]]:
    """The files that the head added: what they hold, and their rows."""
    head = table.current_snapshot
    assert head is not None
    kinds = {0: "data", 1: "position", 2: "equality"}
    return sorted(
        (kinds[e["data_file"]["content"]], e["data_file"]["record_count"])
        for e in table.inspect.entries().to_pylist()
        if e["snapshot_id"] == head.snapshot_id and e["status"] == 1
    )


CASES: list[tuple[list[list[Change]], list[tuple[str, int]], list[tuple[int, str]], dict[int, int]]] = [
    # changes by commit -> files of the last commit, rows, manifests by content
    ([[("+I", 1, "a"), ("+I", 2, "b")]], [("data", 2)], [(1, "a"), (2, "b")], {0: 1}),
    ([[("+I", 1, "a")], [("+I", 2, "b")]], [("data", 1)], [(1, "a"), (2, "b")], {0: 2}),
    ([[("+I", 1, "a"), ("-D", 1, None)]], [("data", 1), ("equality", 1), ("position", 1)], [], {0: 1, 1: 1}),
    ([[("+I", 1, "a")], [("-D", 1, None)]], [("equality", 1)], [], {0: 1, 1: 1}),
    ([[("+I", 1, "a"), ("+U", 1, "b")]], [("data", 2), ("position", 1)], [(1, "b")], {0: 1, 1: 1}),
    ([[("+I", 1, "a")], [("-U", 1, None), ("+U", 1, "b")]], [("data", 1), ("equality", 1)], [(1, "b")], {0: 2, 1: 1}),
    ([[("+I", 1, "a")], [("+U", 1, "b")]], [("data", 1), ("equality", 1)], [(1, "b")], {0: 2, 1: 1}),
    (
        [[("+I", 1, "a"), ("-D", 1, None), ("+I", 1, "c")]],
        [("data", 2), ("equality", 1), ("position", 1)],
        [(1, "c")],
        {0: 1, 1: 1},
    ),
]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("commits", "files", "left", "manifests"), CASES)
def test_the_files_of_each_stream(
    catalog: icebench.Catalog,
    *,
    commits: list[list[Change]],
    files: list[tuple[str, int]],
    left: list[tuple[int, str]],
    manifests: dict[int, int],
    version: int,
) -> None:
    made = table(catalog, version)
    stream = made.keyed_stream(["id"])
    for changes in commits:
        take(stream, *changes)
        stream.commit()
    assert (added(made), rows(made)) == (files, left)
    contents = made.inspect.manifests()["content"].to_pylist()
    assert {content: contents.count(content) for content in set(contents)} == manifests
    if version == 3 and ("position", 1) in files:
        assert {d["file_format"].lower() for d in made.inspect.delete_files().to_pylist() if d["content"] == 1} == {
            "puffin"
        }


def test_a_position_delete_is_on_the_row_it_means(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    stream = made.keyed_stream(["id"])
    take(stream, ("+I", 7, "x"), ("+I", 1, "a"), ("+I", 8, "y"), ("+U", 1, "b"))
    stream.commit()
    seen = made.scan(columns=["id", "data", "_pos", "_deleted"]).to_arrow()
    gone = [r for r in seen.to_pylist() if r["_deleted"]]
    assert [(r["id"], r["data"], r["_pos"]) for r in gone] == [(1, "a", 1)]


def test_partitions_and_files_that_roll_over(catalog: icebench.Catalog) -> None:
    made = table(catalog, spec=[("id", "bucket[4]")])
    made.set_properties({"write.target-file-size-bytes": "1"})
    stream = made.keyed_stream(["id"])
    stream.insert(pa.table({"id": range(100), "data": ["a"] * 100}, schema=ROWS))
    stream.update(pa.table({"id": range(0, 100, 3), "data": ["b"] * 34}, schema=ROWS))
    stream.commit()
    stream.delete(pa.table({"id": pa.array(range(0, 100, 2), pa.int32())}))
    stream.update(pa.table({"id": range(90, 110), "data": ["c"] * 20}, schema=ROWS))
    stream.commit()
    expected = dict.fromkeys(range(100), "a") | dict.fromkeys(range(0, 100, 3), "b")
    expected = {i: d for i, d in expected.items() if i % 2} | dict.fromkeys(range(90, 110), "c")
    assert dict(rows(made)) == expected
    assert len(rows(made)) == len(expected)


def test_keys_of_former_partition_specs(catalog: icebench.Catalog) -> None:
    made = table(catalog, spec=[("id", "bucket[4]")])
    stream = made.keyed_stream(["id"])
    take(stream, ("+I", 1, "a"), ("+I", 2, "b"))
    stream.commit()
    made.update_spec(lambda s: s.drop_field("id_bucket").add_field("id", icebench.parse_transform("bucket[7]")))
    take(stream, ("+U", 1, "c"), ("-D", 2, None))
    stream.commit()
    assert rows(made) == [(1, "c")]


def meanwhile(stream: KeyedStream, *acts: Callable[[], object]) -> list[int]:
    """Others act once the stream has written its files, one act each time. Returns how often it wrote, when asked."""
    waiting, written, prepare = list(acts), [], stream._prepare

    def prepared(metadata: TableMetadata, batch_id: int | None) -> StreamBatch:
        change = prepare(metadata, batch_id)
        written.append(len(change.delete_files))
        if waiting:
            waiting.pop(0)()
        return change

    stream._prepare = prepared  # type: ignore[method-assign]
    return written


def evolved(table: icebench.Table, *fields: tuple[str, str], id_: int = 1) -> None:
    """Partition the table by these fields only, and write a row."""

    def change(spec: PartitionSpecUpdate) -> PartitionSpecUpdate:
        for field in table.spec.fields:
            spec = spec.drop_field(field.name)
        for column, transform in fields:
            spec = spec.add_field(column, icebench.parse_transform(transform))
        return spec

    table.refresh().update_spec(change)
    table.append(pa.table({"id": [id_], "data": ["theirs"]}, schema=ROWS))


@pytest.mark.parametrize("stream_id", [None, "s"])
@pytest.mark.parametrize("version", [2, 3])
def test_keys_are_deleted_in_specs_that_come_meanwhile(
    catalog: icebench.Catalog, version: int, stream_id: str | None
) -> None:
    made, theirs = table(catalog, version, [("id", "bucket[4]")]), catalog.load_table("db.t")
    stream = made.keyed_stream(["id"], stream_id=stream_id)
    take(stream, ("+I", 1, "a"), ("+I", 2, "b"))
    stream.commit(1 if stream_id else None)
    written = meanwhile(
        stream, lambda: evolved(theirs, ("id", "bucket[7]")), lambda: evolved(theirs, ("id", "truncate[2]"), id_=2)
    )
    take(stream, ("+U", 1, "c"), ("-D", 2, None))
    stream.commit(2 if stream_id else None)
    assert rows(made) == [(1, "c")]
    assert len(written) == 3
    named = {info.location for info in made.store.list(made.location) if "/data/" in info.location}
    listed = made.inspect.all_files()["file_path"].to_pylist()
    assert {path.rpartition("/")[2] for path in named} == {path.rpartition("/")[2] for path in listed}


def test_deletes_that_are_global_reach_specs_that_come_meanwhile(catalog: icebench.Catalog) -> None:
    made, theirs = table(catalog), catalog.load_table("db.t")
    stream = made.keyed_stream(["id"])
    written = meanwhile(stream, lambda: evolved(theirs, ("id", "bucket[7]")))
    take(stream, ("-D", 1, None))
    stream.commit()
    assert (rows(made), written) == ([], [1])


def test_a_spec_without_files_needs_no_deletes(catalog: icebench.Catalog) -> None:
    made, theirs = table(catalog, spec=[("id", "bucket[4]")]), catalog.load_table("db.t")
    stream = made.keyed_stream(["id"])
    take(stream, ("+I", 1, "a"))
    stream.commit()
    written = meanwhile(
        stream, lambda: theirs.update_spec(lambda s: s.add_field("id", icebench.parse_transform("void")))
    )
    take(stream, ("-D", 1, None))
    stream.commit()
    assert (rows(made), written) == ([], [1])


def test_inserts_alone_may_stay_in_their_spec(catalog: icebench.Catalog) -> None:
    made, theirs = table(catalog, spec=[("id", "bucket[4]")]), catalog.load_table("db.t")
    stream = made.keyed_stream(["id"])
    written = meanwhile(stream, lambda: evolved(theirs, ("id", "bucket[7]")))
    take(stream, ("+I", 5, "a"))
    stream.commit()
    assert (rows(made), written) == ([(1, "theirs"), (5, "a")], [0])


def test_a_spec_that_the_key_does_not_determine_is_refused_when_it_comes(catalog: icebench.Catalog) -> None:
    made, theirs = table(catalog, spec=[("id", "bucket[4]")]), catalog.load_table("db.t")
    stream = made.keyed_stream(["id"])
    meanwhile(stream, lambda: evolved(theirs, ("data", "identity")))
    take(stream, ("+U", 1, "a"))
    with pytest.raises(Unsupported, match="'data', whose source is no key column"):
        stream.commit()
    assert rows(made.refresh()) == [(1, "theirs")]


def test_a_transaction_with_a_batch_fails_where_a_spec_comes_meanwhile(catalog: icebench.Catalog) -> None:
    made, theirs = table(catalog, spec=[("id", "bucket[4]")]), catalog.load_table("db.t")
    transaction = made.transaction()
    stream = transaction.keyed_stream(["id"])
    take(stream, ("+U", 1, "a"))
    stream.commit()
    evolved(theirs, ("id", "bucket[7]"))
    with pytest.raises(ValidationFailed, match="files of partition spec 1"):
        transaction.commit()


def test_rows_of_a_batch_are_deleted_as_the_version_at_its_commit_wants(catalog: icebench.Catalog) -> None:
    made, theirs = table(catalog), catalog.load_table("db.t")
    stream = made.keyed_stream(["id"])
    written = meanwhile(stream, lambda: theirs.upgrade_format(3))
    take(stream, ("+I", 1, "a"), ("+U", 1, "b"))
    stream.commit()
    assert (rows(made), len(written)) == ([(1, "b")], 2)
    assert made.inspect.delete_files()["file_format"].to_pylist() == ["PUFFIN"]


def test_a_partition_that_the_key_does_not_determine(catalog: icebench.Catalog) -> None:
    made = table(catalog, spec=[("data", "identity")])
    with pytest.raises(Unsupported, match="'data', whose source is no key column"):
        made.keyed_stream(["id"])
    made.keyed_stream(["id", "data"])


def test_null_keys(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    stream = made.keyed_stream(["id"])
    null: Any = None
    take(stream, ("+I", null, "n"), ("+I", 1, "a"))
    stream.commit()
    take(stream, ("-D", null, None))
    stream.commit()
    assert rows(made) == [(1, "a")]


def test_a_batch_is_committed_once(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    stream = made.keyed_stream(["id"], stream_id="s")
    assert stream.last_batch is None
    take(stream, ("+I", 1, "a"))
    assert stream.commit(1) is not None
    # Started again, it does not know that its batch was committed.
    again = made.keyed_stream(["id"], stream_id="s")
    files = {info.location for info in made.store.list(made.location)}
    take(again, ("+I", 1, "a"))
    assert again.commit(1) is None
    assert {info.location for info in made.store.list(made.location)} == files
    assert again.last_batch == 1
    take(again, ("+I", 2, "b"))
    assert again.commit(2) is not None
    other = made.keyed_stream(["id"], stream_id="t")
    take(other, ("+I", 3, "c"))
    assert other.commit(1) is not None
    assert rows(made) == [(1, "a"), (2, "b"), (3, "c")]
    assert again.last_batch == 2


def test_what_is_refused(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    stream = made.keyed_stream(["id"])
    assert stream.commit() is None
    with pytest.raises(Invalid, match="numbers its batches"):
        stream.commit(1)
    with pytest.raises(Invalid, match="numbers its batches"):
        made.keyed_stream(["id"], stream_id="s").commit()
    with pytest.raises(Invalid, match="not in the table"):
        stream.delete(pa.table({"data": ["a"]}))
    take(stream, ("+I", 1, "a"))
    made.update_schema(lambda s: s.add_column("x", icebench.LONG))
    with pytest.raises(Invalid, match="schema has changed"):
        stream.commit()
    catalog.create_table("db.old", ROWS, properties={"format-version": "1"})
    with pytest.raises(Unsupported, match="format version 1"):
        catalog.load_table("db.old").keyed_stream(["id"])


def test_others_meanwhile_do_not_matter(catalog: icebench.Catalog) -> None:
    made, theirs = table(catalog), catalog.load_table("db.t")
    stream = made.keyed_stream(["id"])
    take(stream, ("+I", 1, "a"))
    stream.commit()
    take(stream, ("+U", 1, "b"))
    theirs.append(pa.table({"id": [5], "data": ["t"]}, schema=ROWS))
    stream.commit()
    assert rows(made) == [(1, "b"), (5, "t")]
