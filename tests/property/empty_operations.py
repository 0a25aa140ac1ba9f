"""The operations of `tests.property.empty_tables`: what reads a table, and what changes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

import icebench
from icebench.engine.columnar.schemas import to_arrow_type
from icebench.engine.inspect.inspector import TABLES
from icebench.engine.maintenance.maintenance import Maintenance
from icebench.engine.operations.row_changes import Mode
from icebench.errors import EngineError, Invalid, Unsupported
from tests.property.empty_tables import Case, Column, Row, plain_rows

MODES: tuple[Mode, ...] = ("copy-on-write", "merge-on-read")

# ---- reading ---------------------------------------------------------------------------------------------------------


def _filters(case: Case) -> list[Any]:
    """Filters that no row of the table matches, by text, by columns of each type, and by what is computed."""
    found: list[Any] = list(case.filters)
    for column in case.comparable:
        c, nothing = icebench.col(column.source), icebench.col("id") < 0
        found += [c.is_null() & nothing, c.not_null() & nothing]
        if (value := case.literal(column)) is not None:
            found += [(c == value) & (icebench.col("id") == 2), c.isin([value, value]) & nothing]
    return found


def _read_arrow(case: Case, table: icebench.Table) -> None:
    whole = table.scan().to_arrow()
    assert whole.schema.equals(case.arrow, check_metadata=True)
    assert plain_rows(whole) == case.plain(case.live)
    for filter in case.filters:
        found = table.scan(filter).to_arrow()
        assert found.schema.equals(case.arrow, check_metadata=True)
        assert not found.num_rows
    assert sum(batch.num_rows for batch in table.scan(limit=2).to_batches(batch_rows=1)) == min(2, len(case.live))
    narrow = table.scan(case.filters[0]).to_arrow(decimal_width="narrow")
    assert not narrow.num_rows
    assert narrow.schema.names == case.arrow.names
    for column in case.columns:
        part = table.scan(columns=[column.name]).to_arrow()
        assert part.num_rows == len(case.live)
        assert part.schema.names == [column.name]
        if column.place == "struct":
            assert table.scan(columns=[f"{column.name}.v"]).to_arrow().num_rows == len(case.live)


def _read_filters(case: Case, table: icebench.Table) -> None:
    for filter in _filters(case):
        assert table.scan(filter).count() == 0, filter
        assert not table.scan(filter).to_arrow().num_rows, filter


def _read_combined(case: Case, table: icebench.Table) -> None:
    """What callers do with results."""
    whole = table.scan(case.filters[0]).to_arrow()
    assert not whole.combine_chunks().num_rows
    reader = pa.ipc.open_stream(_ipc(whole))
    assert reader.schema.equals(whole.schema)


def _ipc(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _read_plan(case: Case, table: icebench.Table) -> None:
    for filter in (None, *case.filters):
        scan = table.scan(filter)
        plan = scan.plan()
        for by_partition in (False, True):
            pieces = [int(file) for task in plan.tasks(by_partition=by_partition) for file in task.file_index]
            assert sorted(set(pieces)) == list(range(plan.files.num_rows))
        groups = scan.row_groups(plan)
        assert set(groups.column("file_path").to_pylist()) <= set(plan.files.column("file_path").to_pylist())
        assert sum(b.num_rows for b in scan.sample_files(1)) <= len(case.live)
        assert scan.sample(2).num_rows == (min(2, len(case.live)) if filter is None else 0)
        assert scan.count() == (len(case.live) if filter is None else 0)


def _read_metadata_columns(case: Case, table: icebench.Table) -> None:
    names = ["id", "_file", "_pos", "_spec_id", "_partition"]
    if table.metadata.format_version >= 3:
        names += ["_row_id", "_last_updated_sequence_number"]
    for filter in (None, *case.filters):
        found = table.scan(filter, names).to_arrow()
        assert found.column("id").to_pylist() == ([] if filter else [row["id"] for row in case.live])
        assert table.scan(filter, [*names, "_deleted"]).to_arrow().num_rows >= found.num_rows


def _read_pandas(case: Case, table: icebench.Table) -> None:
    frame = table.scan().to_pandas()
    assert list(frame.columns) == case.arrow.names
    assert len(frame) == len(case.live)
    for filter in case.filters:
        frame = table.scan(filter).to_pandas()
        assert list(frame.columns) == case.arrow.names
        assert not len(frame)


def _read_polars(case: Case, table: icebench.Table) -> None:
    for filter in (None, *case.filters):
        lazy = table.scan(filter).to_polars()
        assert len(lazy.collect()) == (0 if filter else len(case.live))
        assert lazy.collect_schema().names() == case.arrow.names
        assert not len(lazy.filter(pl.col("id") > 100).collect())
        assert not len(lazy.filter(pl.col("id") + 1 > 100).collect())
        assert len(lazy.select(case.arrow.names[-1]).head(1).collect()) == (0 if filter else min(1, len(case.live)))


def _read_duckdb(case: Case, table: icebench.Table) -> None:
    for filter in (None, *case.filters):
        with duckdb.connect() as connection:
            relation = table.scan(filter).to_duckdb(connection)
            assert relation.columns == case.arrow.names
            assert relation.to_arrow_table().num_rows == (0 if filter else len(case.live))
            assert relation.filter("id > 100").to_arrow_table().num_rows == 0
            assert relation.filter("id + 1 > 100").count("*").fetchall() == [(0,)]


def _read_incremental(case: Case, table: icebench.Table) -> None:
    head = table.current_snapshot
    found = table.incremental_append_scan(filter=case.filters[0] if case.live else None)
    assert found.to_arrow().schema.equals(case.arrow, check_metadata=True)
    assert found.count() == found.to_arrow().num_rows
    if head is not None:
        nothing = table.incremental_append_scan(head.snapshot_id)
        assert nothing.count() == 0
        assert not nothing.to_arrow().num_rows


def _read_changelog(case: Case, table: icebench.Table) -> None:
    head = table.current_snapshot
    starts = (None,) if head is None else (None, head.snapshot_id)
    all_options: tuple[dict[str, Any], ...] = ({}, {"net_changes": True}, {"identifier_columns": ["id"]})
    for start, filter, options in product(starts, (None, *case.filters), all_options):
        found = table.changelog_scan(start, filter=filter, **options).to_arrow()
        assert found.schema.names[:-3] == case.arrow.names
        if start is not None or (filter and case.live):
            assert not found.num_rows
        elif options == {"net_changes": True}:
            assert found.num_rows == len(case.live), (filter, found.num_rows)
    part = table.changelog_scan(columns=[case.columns[0].name], net_changes=True).to_arrow()
    assert part.num_rows == len(case.live)


def _read_inspect(case: Case, table: icebench.Table) -> None:
    for name in TABLES:
        found = getattr(table.inspect, name)()
        assert isinstance(found, pa.Table)
        assert found.combine_chunks().num_rows == found.num_rows


def _read_profile(case: Case, table: icebench.Table) -> None:
    for deep in (False, True):
        assert table.maintenance.profile(deep=deep, sample_files=1).to_dict()
    assert not table.maintenance.contradictions()


READS: dict[str, Callable[[Case, icebench.Table], None]] = {
    "arrow": _read_arrow,
    "filters": _read_filters,
    "combined": _read_combined,
    "plan": _read_plan,
    "metadata columns": _read_metadata_columns,
    "pandas": _read_pandas,
    "polars": _read_polars,
    "duckdb": _read_duckdb,
    "incremental": _read_incremental,
    "changelog": _read_changelog,
    "inspect": _read_inspect,
    "profile": _read_profile,
}

# ---- changing --------------------------------------------------------------------------------------------------------

Write = Callable[[Case, icebench.Table], list[Row] | None]
"""What changes a table; returns the rows that it should have afterwards, None for those that it had."""


def _no_chunks(case: Case) -> pa.Table:
    return pa.Table.from_batches([], case.arrow)


def _empty_reader(case: Case) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(case.arrow, [])


def _own(case: Case, ids: tuple[int, ...]) -> pa.Table:
    """Rows as a scan returns them, with extension types."""
    other = Case(case.columns, "new", version=3)
    table = other.table
    table.append(case.given(ids))
    return table.scan().to_arrow()


def _append(data: Callable[[Case], Any], **options: Any) -> Write:
    def run(case: Case, table: icebench.Table) -> None:
        table.append(data(case), **options)

    return run


def _append_rows(case: Case, table: icebench.Table) -> list[Row]:
    table.append(_own(case, (1, 7)))
    return [*case.live, *case.rows((1, 7))]


def _append_batch(case: Case, table: icebench.Table) -> None:
    assert table.append_batch(_no_chunks(case), stream_id="s", batch_id=0) is None


def _overwrite(data: Callable[[Case], Any], filter: bool) -> Write:
    def run(case: Case, table: icebench.Table) -> list[Row] | None:
        table.overwrite(data(case), case.filters[-1] if filter else None)
        return None if filter else []

    return run


def _overwrite_rows(case: Case, table: icebench.Table) -> list[Row]:
    table.overwrite(_own(case, (3, 7)), case.filters[-1])
    return [*case.live, *case.rows((3, 7))]


def _overwrite_partitions(case: Case, table: icebench.Table) -> None:
    table.overwrite_partitions(_no_chunks(case))
    table.overwrite_partitions(case.given(()))


def _delete(mode: Mode) -> Write:
    def run(case: Case, table: icebench.Table) -> None:
        for filter in _filters(case):
            assert table.delete(filter, mode) is None or not case.live, filter

    return run


def _update(mode: Mode) -> Write:
    def run(case: Case, table: icebench.Table) -> None:
        for filter in case.filters:
            table.update(filter, {"id": icebench.sql("id + 1")}, mode)
            for column in case.columns:
                table.update(filter, {column.name: None}, mode)
                if column in case.comparable and column.place == "top":
                    table.update(filter, {column.name: icebench.sql(column.name)}, mode)
                table.update(filter, {column.name: lambda rows, name=column.name: rows.column(name)}, mode)
            table.update(filter, lambda rows: rows, mode)

    return run


def _literal(column: Column) -> Any:
    """A value of a column; Python has no nanoseconds."""
    value = column.value(0)
    return pa.scalar(value, to_arrow_type(column.leaf)) if column.type_name.endswith("_ns") else value


def _update_rows(mode: Mode) -> Write:
    """Rows that there are, where there are any: to null, to themselves, to the type's values."""

    def run(case: Case, table: icebench.Table) -> list[Row]:
        nothing = {column.name: None for column in case.columns}
        table.update("id = 1", nothing, mode)
        table.update("id = 3", {"id": icebench.sql("id + 1")}, mode)
        own = {c.name: _literal(c) for c in case.columns if c.place == "top" and c.value(0) is not None}
        if own:
            table.update("id = 4", own, mode)
        changes: dict[int, Row] = {1: nothing, 3: {**own, "id": 4}}
        return [{**row, **changes.get(row["id"], {})} for row in case.live]

    return run


def _upsert(data: Callable[[Case], Any], mode: Mode) -> Write:
    def run(case: Case, table: icebench.Table) -> None:
        for key in (["id"], *([c.name] for c in case.keys)):
            assert table.upsert(data(case), key, mode) is None

    return run


def _upsert_new(mode: Mode) -> Write:
    def run(case: Case, table: icebench.Table) -> list[Row]:
        table.upsert(_own(case, (7, 9)), ["id"], mode)
        return [*case.live, *case.rows((7, 9))]

    return run


def _upsert_column(mode: Mode) -> Write:
    """By each column as the key; of rows with the same value only one can be given."""

    def run(case: Case, table: icebench.Table) -> list[Row]:
        rows = list(case.live)
        for number, column in enumerate(case.keys):
            given = _own(case, (1,)).set_column(0, "id", pa.array([101 + number]))
            table.upsert(given, [column.name], mode)
            (new,) = case.rows((1,))
            rows = [row for row in rows if row[column.name] != new[column.name]] + [{**new, "id": 101 + number}]
        return rows

    return run


def _keyed_stream(case: Case, table: icebench.Table) -> list[Row]:
    stream = table.keyed_stream(["id"])
    assert stream.commit() is None
    stream.delete(pa.table({"id": pa.array([77], pa.int64())}))
    stream.commit()
    stream.insert(_no_chunks(case))
    stream.update(case.given(()))
    stream.commit()
    stream.update(_own(case, (7,)))
    stream.delete(pa.table({"id": pa.array([7], pa.int64())}))
    stream.insert(case.given((9,)))
    stream.commit()
    return [*case.live, *case.rows((9,))]


def _keyed_columns(case: Case, table: icebench.Table) -> None:
    for column in case.keys:
        stream = table.keyed_stream([column.name])
        stream.delete(_no_chunks(case).select([column.name]))
        stream.commit()


def _rewrite(**options: Any) -> Write:
    def run(case: Case, table: icebench.Table) -> None:
        table.maintenance.rewrite_data_files(**options, rewrite_all=True)
        for filter in case.filters:
            table.maintenance.rewrite_data_files(**options, where=filter, rewrite_all=True)

    return run


def _rewrite_by_columns(strategy: Any) -> Write:
    def run(case: Case, table: icebench.Table) -> None:
        for column in case.comparable:
            how: dict[str, Any] = {
                "sort": {"sort_order": [column.source]},
                "zorder": {"zorder_by": ["id", column.source]},
                "hilbert": {"hilbert_by": ["id", column.source]},
            }[strategy]
            for where in (None, *case.filters):
                table.maintenance.rewrite_data_files(strategy, where=where, rewrite_all=True, **how)

    return run


def _maintain(run_on: Callable[[Maintenance], object]) -> Write:
    def run(_: Case, table: icebench.Table) -> None:
        run_on(table.maintenance)

    return run


def _stats(case: Case, table: icebench.Table) -> None:
    table.maintenance.compute_table_stats()
    for column in case.comparable:
        table.maintenance.compute_table_stats([column.source])


def _index(case: Case, table: icebench.Table) -> None:
    for column in case.comparable:
        for kind in ("bloom", "values"):
            table.maintenance.build_index(column.source, kind=kind)
        _ = [table.scan(filter).count() for filter in _filters(case)]


def _expire(case: Case, table: icebench.Table) -> None:
    table.maintenance.expire_snapshots(older_than=2**41, retain_last=1)


def _orphans(case: Case, table: icebench.Table) -> None:
    table.maintenance.remove_orphan_files(older_than=2**41, dry_run=False)


def _table_path(case: Case, table: icebench.Table) -> None:
    done = table.maintenance.rewrite_table_path(table.location, "memory://elsewhere/t")
    assert done is not None


def _transaction(case: Case, table: icebench.Table) -> list[Row]:
    with table.transaction() as changes:
        changes.append(_no_chunks(case))
        changes.delete(case.filters[0])
        changes.update(case.filters[-1], {"id": 0})
        changes.upsert(_own(case, (7,)), ["id"], "copy-on-write")
        changes.delete("id = 7", "copy-on-write")
    return case.live


WRITES: dict[str, Write] = {
    "append no chunks": _append(_no_chunks),
    "append no batches": _append(_empty_reader),
    "append no rows": _append(lambda case: case.given(())),
    "append no rows, merging": _append(_no_chunks, merge_schema=True),
    "append rows": _append_rows,
    "append batch": _append_batch,
    "overwrite all": _overwrite(_no_chunks, filter=False),
    "overwrite matching": _overwrite(_no_chunks, filter=True),
    "overwrite matching by rows": _overwrite_rows,
    "overwrite partitions": _overwrite_partitions,
    **{f"delete {mode}": _delete(mode) for mode in MODES},
    **{f"update {mode}": _update(mode) for mode in MODES},
    **{f"update rows {mode}": _update_rows(mode) for mode in MODES},
    **{f"upsert nothing {mode}": _upsert(_no_chunks, mode) for mode in MODES},
    **{f"upsert no rows {mode}": _upsert(lambda case: case.given(()), mode) for mode in MODES},
    **{f"upsert new {mode}": _upsert_new(mode) for mode in MODES},
    **{f"upsert by column {mode}": _upsert_column(mode) for mode in MODES},
    "keyed stream": _keyed_stream,
    "keyed stream by column": _keyed_columns,
    "bin-pack": _rewrite(strategy="binpack"),
    "remove dangling deletes": _rewrite(strategy="binpack", remove_dangling_deletes=True),
    "sort": _rewrite_by_columns("sort"),
    "z-order": _rewrite_by_columns("zorder"),
    "hilbert": _rewrite_by_columns("hilbert"),
    "rewrite position deletes": _maintain(lambda m: m.rewrite_position_deletes(rewrite_all=True)),
    "convert equality deletes": _maintain(lambda m: m.convert_equality_deletes()),
    "rewrite manifests": _maintain(lambda m: m.rewrite_manifests()),
    "table statistics": _stats,
    "partition statistics": _maintain(lambda m: m.compute_partition_stats()),
    "index": _index,
    "expire": _expire,
    "orphans": _orphans,
    "table path": _table_path,
    "transaction": _transaction,
}

REFUSALS: tuple[tuple[str, type[EngineError], str], ...] = (
    ("rewrite manifests", Invalid, "has no manifests to rewrite"),
    ("table statistics", Invalid, "a table without a snapshot has no values to count"),
    ("table statistics", Unsupported, "distinct values of column '.*' of type unknown"),
    ("index", Invalid, "a table without a snapshot has no files to index"),
    ("index", Unsupported, "an index of column '.*' of type unknown"),
    ("partition statistics", Invalid, "a table that is not partitioned"),
    ("partition statistics", Invalid, "a table without a snapshot has no partitions to count"),
    ("partition statistics", Unsupported, "partition field '.*', whose type is not known"),
    ("keyed stream.*", Unsupported, "a keyed stream into a table that is partitioned by"),
)
"""What may be refused: operation, error and message."""


def check(case: Case, name: str) -> None:
    """Run an operation on the table as it was, and compare the rows that there are afterwards."""
    table = case.table
    try:
        if name in READS:
            READS[name](case, table)
            return
        rows = WRITES[name](case, table)
    except (Invalid, Unsupported) as error:
        expected = [text for operation, kind, text in REFUSALS if re.fullmatch(operation, name) and type(error) is kind]
        if not any(re.search(text, str(error)) for text in expected):
            raise
        rows = case.live
    assert plain_rows(table.refresh().scan().to_arrow()) == case.plain(case.live if rows is None else rows)
