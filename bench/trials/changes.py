"""Changes of the rows of a table: upserts by its key, and the overwrite of a partition.

Every engine changes equal copies of a table whose files this project's engine wrote. Before anything is timed each
makes the change once; what then is in the table is read back, and compared with the rows that pyarrow makes of the same
ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import icebench
from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Ability, AnyEngine, Changing, Forgetting, MergeMode
from icebench.bench.engines.sql_text import quoted
from icebench.bench.errors import Disagreement
from icebench.bench.execution.opened import try_each
from icebench.bench.execution.trial import Bench, Trial
from icebench.bench.records.case import Case, Evidence
from icebench.bench.trials.commits import workspace
from icebench.bench.trials.read_back import read_back
from icebench.bench.trials.restorable import Restorable
from icebench.bench.truth.manifests import DATA, live_files
from icebench.bench.truth.metadata import TableJson, load_table_json

UPSERT, OVERWRITE = "upsert", "overwrite a partition"
"""What the names of these cases begin with."""
CHANGES = "changes of rows"
"""What those have in common that an engine does not offer."""
_NAME = "bench.sales"


class NoPartition(Exception):
    """There is no partition that a filter keeps and nothing else; the message says why."""


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """A change of the rows of a table.

    Args:
        given: What an engine is given.
        expected: The rows after.
        key: By which they are upserted; empty for an overwrite.
        filter: Keeps the rows of the partition that is overwritten, as SQL; empty for an upsert.
    """

    given: pa.Table
    expected: Checksum
    key: tuple[str, ...] = ()
    filter: str = ""

    def apply(self, own: Changing, target: Any, given: Any) -> None:  # noqa: ANN401 - its own
        """Have an engine make it. Timed."""
        if self.key:
            own.upsert_rows(target, given, self.key)
        else:
            own.overwrite_partition(target, given, self.filter)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Upserts and an overwrite of the rows of a table.

    Args:
        case: Of all engines and changes.
        location: The table that has the rows.
        partition_columns: Source columns of its partitions.
        identifier_columns: Its key; empty where none is known.
        rows: The most that the changed table has.
        workspace: Directory for what is written, which is deleted.
        upserts: Shares of the rows that are upserted.
        overwrite: Whether a partition is overwritten, of a table that has some.
        most_keys: Engine -> the most rows that it is asked to upsert.
    """

    case: Case
    location: str
    partition_columns: tuple[str, ...]
    identifier_columns: tuple[str, ...]
    rows: int
    workspace: Path
    upserts: tuple[float, ...] = ()
    overwrite: bool = False
    most_keys: Mapping[str, int] = field(default_factory=dict)

    def trials(self, bench: Bench) -> Iterator[Trial]:
        wanted: list[tuple[str, float, MergeMode]] = [
            (f"{UPSERT} {100 * share:.4g} %, {mode}", share, mode)
            for share in self.upserts
            for mode in get_args(MergeMode)
        ]
        if self.overwrite and self.partition_columns:
            wanted.append((OVERWRITE, 0.0, "copy-on-write"))
        able = bench.able(replace(self.case, configuration=CHANGES), Ability.CHANGE) if wanted else {}
        if not able:
            return
        rows = icebench.load_table(self.location).scan(limit=self.rows).to_arrow()
        folder = bench.resources.enter_context(workspace(self.workspace))
        for number, (name, share, mode) in enumerate(wanted):
            case, place = replace(self.case, configuration=name), folder / f"{number}"
            engines = self._upserting(able, bench, case, _keys(rows, share), mode) if share else able
            if not engines:
                continue
            if share:
                base, change = self._upsert(rows, share)
                table = self._table(base, mode, place)
            else:
                table = self._table(rows, mode, place)
                try:
                    change = _overwrite(rows, table)
                except NoPartition as error:
                    for engine in engines:
                        bench.recorder.skip(case.of(engine), str(error))
                    continue
            made = _Made(case=case, bench=bench, change=change, mode=mode, table=table)
            yield from try_each(engines, made.checked, bench.recorder, case).values()

    def _upserting(
        self, able: Mapping[str, AnyEngine], bench: Bench, case: Case, keys: int, mode: MergeMode
    ) -> dict[str, AnyEngine]:
        """The engines that upsert so many rows in a mode; the others are recorded as skipped."""
        engines = dict(able)
        for name, each in able.items():
            most = self.most_keys.get(name)
            if not self.identifier_columns:
                reason = f"no key of {case.workload} is known, to upsert by"
            elif mode not in cast("Changing", each).merge_modes:
                reason = f"{name} has no {mode} upserts"
            elif most is not None and keys > most:
                reason = f"{name} is asked to upsert {most:,} rows at most, by writing.most_keys, and not {keys:,}"
            else:
                continue
            bench.recorder.skip(case.of(name), reason)
            del engines[name]
        return engines

    def _upsert(self, rows: pa.Table, share: float) -> tuple[pa.Table, RowChange]:
        """The rows of the table before, and the change. Half of the given rows are the table's, with other values in
        all columns but those of key and partition, and half are new; both are spread evenly over the rows after."""
        half = _keys(rows, share) // 2
        step = rows.num_rows // half
        updated = np.arange(half) * step
        added = updated + step // 2
        kept = {*self.identifier_columns, *self.partition_columns}
        given = pa.concat_tables([_with_other_values(rows, updated, kept), rows.take(added)])
        after = pa.concat_tables([_without(rows, np.concatenate([updated, added])), given])
        return _without(rows, added), RowChange(given=given, expected=_checksum(after), key=self.identifier_columns)

    def _table(self, rows: pa.Table, mode: MergeMode, folder: Path) -> ChangedTable:
        """A table of these rows, with the columns and partitions of the one that has them."""
        source = icebench.load_table(self.location)
        files = Restorable(place=folder / "warehouse", aside=folder / "aside")
        files.place.mkdir(parents=True)
        catalog = icebench.load_catalog(str(files.place))
        properties = {"format-version": "2", "write.merge.mode": mode}
        table = catalog.create_table(_NAME, source.schema(), partition_spec=source.spec, properties=properties)
        table.append(rows)
        catalog.close()
        files.keep()
        return ChangedTable(files=files, before=frozenset(_parquet(files.place)), location=table.metadata_location)


@dataclass(frozen=True, kw_only=True)
class ChangedTable:
    """A table in a directory catalog, to be changed again and again.

    Args:
        files: The catalog.
        before: Paths of its Parquet files before it was changed.
        location: Its metadata file before it was changed.
    """

    files: Restorable
    before: frozenset[str]
    location: str

    def written(self) -> Mapping[str, float]:
        """Bytes and number of the Parquet files that the last change wrote."""
        new = set(_parquet(self.files.place)) - self.before
        return {"write_bytes": sum(Path(path).stat().st_size for path in new), "write_files": len(new)}


@dataclass(frozen=True, kw_only=True)
class _Made:
    """One change of one table, by all engines."""

    case: Case
    bench: Bench
    change: RowChange
    mode: MergeMode
    table: ChangedTable

    def checked(self, engine: AnyEngine) -> Trial:
        """Make it once, and read the table back."""
        own, bench, expected = cast("Changing", engine), self.bench, self.change.expected
        given = own.take_rows(self.change.given, bench.resources)
        target, timed = self._ready(own, given)
        start = bench.clock()
        timed()
        seconds = bench.clock() - start
        location = own.written_to(target)
        files = live_files(load_table_json(location))
        deletes = sum(file.content != DATA for file in files)
        if (deletes > 0) != (self.mode == "merge-on-read"):
            raise Disagreement(f"{own.name} leaves {deletes} delete files where the table asks for {self.mode}")
        if fault := expected.difference(read_back(own, location, list(expected.columns), bench)):
            raise Disagreement(f"what {own.name} left is not the table with the change: {fault}")
        counters = {"rows_given": self.change.given.num_rows, "delete_files": deletes}
        return Trial(
            case=self.case.of(own.name),
            evidence=Evidence(counters=counters, checksum=expected.text),
            prepare=lambda: self._ready(own, given)[1],
            seconds=seconds,
            after=self.table.written,
        )

    def _ready(self, own: Changing, given: Any) -> tuple[Any, Callable[[], object]]:  # noqa: ANN401 - its own
        """The table as it was before, open, of which nothing is cached; and what makes the change."""
        self.table.files.restore()
        if isinstance(own, Forgetting):
            own.forget()
        target = own.open_target(self.table.files.place, _NAME)
        return target, partial(self.change.apply, own, target, given)


def _overwrite(rows: pa.Table, table: ChangedTable) -> RowChange:
    """The partition with the most rows is replaced by as many, with other values in all columns but the partition's.

    Raises:
        NoPartition: No range of a column is that partition.
    """
    column, low, high, records = _largest_partition(load_table_json(table.location))
    values = rows[column]
    is_in = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    places = np.flatnonzero(pc.fill_null(is_in, fill_value=False).to_numpy())
    if len(places) != records:
        raise NoPartition(f"no range of {column} is a partition")
    given = _with_other_values(rows, places, {column})
    after = pa.concat_tables([_without(rows, places), given])
    filter = f"{column} >= {_literal(low)} and {column} <= {_literal(high)}"
    return RowChange(given=given, expected=_checksum(after), filter=filter)


def _largest_partition(table: TableJson) -> tuple[str, pa.Scalar, pa.Scalar, int]:
    """The column that a table is partitioned by, its least and greatest value in the partition with the most rows, and
    how many those are."""
    files = [file for file in live_files(table) if all(value is not None for value in file.partition.values())]
    if len(table.partition_columns) != 1 or not files:
        raise NoPartition("no single column has the partitions")
    (column,) = table.partition_columns
    records: Counter[str] = Counter()
    for file in files:
        records[str(file.partition)] += file.records
    ((largest, most),) = records.most_common(1)
    values = pa.concat_tables(
        pq.ParquetFile(file.path).read(columns=[column]) for file in files if str(file.partition) == largest
    )
    ends = pc.min_max(values[column])
    return column, ends["min"], ends["max"], most


def _literal(value: pa.Scalar) -> str:
    """A value as every engine's filters have it."""
    found = value.as_py()
    return (
        str(found) if isinstance(found, int) else quoted(found.isoformat() if isinstance(found, date) else str(found))
    )


def _with_other_values(rows: pa.Table, places: npt.NDArray[np.int64], kept: Collection[str]) -> pa.Table:
    """The rows at some places, in all columns but the kept ones with the values of rows half a table away."""
    own, other = rows.take(places), rows.take((places + rows.num_rows // 2) % rows.num_rows)
    return pa.table([(own if name in kept else other)[name] for name in rows.column_names], schema=rows.schema)


def _without(rows: pa.Table, places: npt.NDArray[np.int64]) -> pa.Table:
    kept = np.ones(rows.num_rows, np.bool_)
    kept[places] = False
    return rows.filter(pa.array(kept))


def _keys(rows: pa.Table, share: float) -> int:
    """How many rows are upserted: an even number."""
    return 2 * max(1, round(rows.num_rows * share / 2))


def _checksum(rows: pa.Table) -> Checksum:
    return checksum_of(rows.to_batches(), rows.column_names)


def _parquet(folder: Path) -> Iterator[str]:
    return map(str, folder.rglob("*.parquet"))
