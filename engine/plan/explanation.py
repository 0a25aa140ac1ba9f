"""Why a plan has the files that it has: the test of the filter that excludes each skipped one, and the evidence for it.

A filter cannot be true where one part of an AND cannot, or no part of an OR can; `blocking_tests` finds such tests from
the outcomes by which the plan itself decided. The evidence is read from the same manifests again: bounds and counts as
stored, and partition values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import ManifestColumns, number_array, offsets_of, values_of
from icebench.engine.display import count_text, html_fold, html_table, printable, size_text, some_lines
from icebench.engine.errors import CorruptTable
from icebench.engine.expressions.bound import (
    BoundAnd,
    BoundComputed,
    BoundConstant,
    BoundIsNaN,
    BoundIsNull,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    Column,
    leaves,
    value_text,
)
from icebench.engine.expressions.bounds import Flags
from icebench.engine.expressions.literal_intervals import TRUE
from icebench.engine.file_indexes.lookup import index_of
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.plan.plan_text import NO_TARGET, SKIPPED_BY, funnel_rows
from icebench.engine.plan.pruning import fields_of_source
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.plan.trace import SkippedEntries, SkippedManifests, Trace
from icebench.engine.plan.trusted_metrics import metric_bounds
from icebench.engine.runtime.counters import (
    ENTRIES_SKIPPED_BY_INDEX,
    ENTRIES_SKIPPED_BY_METRICS,
    ENTRIES_SKIPPED_BY_SCHEMA_ID,
)
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.partition_paths import human_string
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.types import DecimalType, PrimitiveType
from icebench.engine.spec.values import decimal_of, decode_value

ALL_MATCH = "all rows match"
NEEDED = "every row may match: no filter"
NEVER = "no row can match this filter"
NO_FILES = "it lists no live file"
READ = "read"


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A manifest or file, and why it was planned or skipped.

    Args:
        path: Its location.
        kind: ``data``, or of deletes ``position deletes``, ``equality deletes`` and ``deletion vector``.
        size_in_bytes: Its size.
        record_count: Its rows; 0 for a manifest.
        is_planned: Whether the plan has it: a manifest was read, a file is to be read.
        skipped_by: What it was skipped by, as `plan_text` counts; None for one that is planned.
        tests: Tests of the filter of which none can be true there; the filter cannot be true without one of them. Empty
            for one that is planned.
        why: All of that in words; for a planned file, what is left to test in its rows, the partition values and bounds
            by which these may pass, and what its deletes add.
    """

    path: str
    kind: str
    size_in_bytes: int
    record_count: int = 0
    is_planned: bool
    skipped_by: str | None = None
    tests: tuple[str, ...] = ()
    why: str


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a plan has its files. `print` shows it as text, a notebook as tables that fold.

    Args:
        plan: The plan.
        manifests: All manifests of the snapshot.
        files: All live data files of the manifests that were read.
        delete_files: All live delete files of the manifests that were read.
        row_groups: As `icebench.Scan.row_groups`; None unless asked for.
        spark_readers: What reads the plan in a Spark session, and why not in native code; empty unless asked for.
    """

    plan: ScanPlan
    manifests: tuple[Explained, ...]
    files: tuple[Explained, ...]
    delete_files: tuple[Explained, ...]
    row_groups: pa.Table | None = None
    spark_readers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = repr(self.plan).splitlines()
        if self.row_groups is not None:
            lines.append(f"  {_row_groups(self.row_groups)}")
        lines += [f"  on Spark: {line}" for line in self.spark_readers]
        for title, parts in self._parts():
            planned = [f"  + {_line(each)}" for each in parts if each.is_planned and each.why != READ]
            skipped = [f"  - {_line(each)}" for each in parts if not each.is_planned]
            lines += [f"{title}{':' if planned or skipped else ''}", *some_lines(planned), *some_lines(skipped)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        stages = funnel_rows(self.plan.counters)
        if self.row_groups is not None:
            skipped = sum(self.row_groups["is_skipped"].to_pylist())
            count = self.row_groups.num_rows
            stages.append(("row groups", count, f"{skipped:,} by their statistics" if skipped else "", count - skipped))
        folds = [
            html_fold(title, [html_table(("", "", "bytes", "rows", "why"), [_row(each) for each in parts])])
            for title, parts in self._parts()
        ]
        funnel = html_table(("stage", "had", "skipped", "left"), stages)
        if self.spark_readers:
            folds.append(html_fold("on Spark", [html_table(("",), [(line,) for line in self.spark_readers])]))
        return html_fold(repr(self.plan).splitlines()[0], [funnel, *folds], is_open=True)

    def _parts(self) -> list[tuple[str, tuple[Explained, ...]]]:
        named = (
            ("manifests are read", self.manifests),
            ("data files in these are planned", self.files),
            ("delete files in these are needed", self.delete_files),
        )
        return [
            (f"{sum(each.is_planned for each in parts):,} of {len(parts):,} {title}", parts)
            for title, parts in named
            if parts
        ]


def _line(part: Explained) -> str:
    size = size_text(part.size_in_bytes)
    rows = f", {count_text(part.record_count, 'row')}" if part.record_count else ""
    return f"{_end(part.path)} ({part.kind}, {size}{rows}): {part.why}"


def _row(part: Explained) -> tuple[object, ...]:
    return (
        "+" if part.is_planned else "-",
        f"{_end(part.path)} ({part.kind})",
        part.size_in_bytes,
        part.record_count,
        part.why,
    )


def _end(path: str) -> str:
    return printable(path.rpartition("/")[2], 60)


def _row_groups(groups: pa.Table) -> str:
    skipped = sum(groups["is_skipped"].to_pylist())
    return f"row groups: {groups.num_rows - skipped:,} of {groups.num_rows:,} are read" + (
        f"; skipped {skipped:,} by their statistics" if skipped else ""
    )


def explained_plan(scan: TableScan, trace: Trace, plan: ScanPlan) -> Explanation:
    """Explain a plan of the scan that was recorded in `trace`."""
    return _Explainer(scan, trace, plan).explanation()


def blocking_tests(bound: BoundPredicate, outcomes: Sequence[int]) -> tuple[int, ...] | None:
    """The fewest leaves, by their index, of which none can be true, so that the filter cannot; None if it can be true.

    Args:
        bound: The filter.
        outcomes: Of each of its leaves, the set of outcomes that it may have.
    """
    numbered = iter(enumerate(outcomes))
    return _blocking(bound, numbered)


def _blocking(bound: BoundPredicate, outcomes: Iterator[tuple[int, int]]) -> tuple[int, ...] | None:
    match bound:
        case BoundConstant(value):
            return None if value else ()
        case BoundComputed():
            return None
        case BoundAnd(children):
            found = [each for child in children if (each := _blocking(child, outcomes)) is not None]
            return min(found, key=len, default=None)
        case BoundOr(children):
            each_of = [_blocking(child, outcomes) for child in children]
            known = [each for each in each_of if each is not None]
            return tuple(i for each in known for i in each) if len(known) == len(each_of) else None
        case _:
            index, own = next(outcomes)
            return None if own & TRUE else (index,)


@dataclass(frozen=True)
class _Explainer:
    scan: TableScan
    trace: Trace
    plan: ScanPlan
    _tests: list[BoundLeaf] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tests", leaves(self.plan.predicate))

    def explanation(self) -> Explanation:
        places = {m.manifest_path: i for i, m in enumerate(self.trace.listed)}
        skipped = sorted(self.trace.entries, key=lambda each: places[each.entries.manifest.manifest_path])
        data = [each for each in skipped if each.entries.manifest.content == ManifestContent.DATA]
        deletes = [each for each in skipped if each.entries.manifest.content == ManifestContent.DELETES]
        return Explanation(
            plan=self.plan,
            manifests=tuple(self._manifests()),
            files=(*self._planned(), *(file for each in data for file in self._skipped(each))),
            delete_files=(*self._deletes(), *(file for each in deletes for file in self._skipped(each))),
        )

    def _manifests(self) -> Iterator[Explained]:
        why = {
            manifest.manifest_path: (each, place)
            for each in self.trace.manifests
            for place, manifest in enumerate(each.manifests)
        }
        for manifest in self.trace.listed:
            skipped = why.get(manifest.manifest_path)
            by, tests, words = (None, (), READ) if skipped is None else self._why_manifest(*skipped, manifest)
            yield Explained(
                path=manifest.manifest_path,
                kind=manifest.content.name.lower(),
                size_in_bytes=manifest.manifest_length,
                is_planned=skipped is None,
                skipped_by=by,
                tests=tests,
                why=words,
            )

    def _why_manifest(
        self, skipped: SkippedManifests, place: int, manifest: ManifestFile
    ) -> tuple[str, tuple[str, ...], str]:
        by = SKIPPED_BY[skipped.counter]
        if manifest.added_files_count == 0 and manifest.existing_files_count == 0:
            return by, (), NO_FILES
        spec = self.plan.metadata.spec_by_id[manifest.partition_spec_id]
        blocking = blocking_tests(self.plan.predicate, [int(each[place]) for each in skipped.outcomes]) or ()
        shown = [(self._tests[i], self._summaries(manifest, spec, self._tests[i].column)) for i in blocking]
        return by, tuple(str(test) for test, _ in shown), self._words(shown)

    def _summaries(self, manifest: ManifestFile, spec: PartitionSpec, column: Column) -> list[str]:
        found = []
        for index, partition in fields_of_source(spec, column.field_id):
            if manifest.partitions is None or len(manifest.partitions) != len(spec.fields):
                continue
            summary = manifest.partitions[index]
            bounds = [self._human(partition, column, raw) for raw in (summary.lower_bound, summary.upper_bound)]
            if None not in bounds:
                found.append(f"partition field {printable(partition.name)} is {_range(*map(str, bounds))}")
            elif summary.contains_null:
                found.append(f"partition field {printable(partition.name)} is null")
        return found

    def _human(self, partition: PartitionField, column: Column, raw: bytes | None) -> str | None:
        if raw is None or not isinstance(column.type, PrimitiveType) or not partition.transform.accepts(column.type):
            return None
        try:
            value = decode_value(partition.transform.result_type(column.type), raw)
            return human_string(partition.transform, column.type, value)
        except (CorruptTable, ValueError, OverflowError):
            return raw.hex()

    def _words(self, shown: Sequence[tuple[BoundLeaf, Sequence[str]]], *, is_old: bool = False) -> str:
        if not shown:
            return NEVER
        parts = []
        for test, evidence in shown:
            said = [f"{printable(test.column)} was added later"] if is_old and not evidence else list(evidence)
            parts.append(f"not {printable(test)}{': ' if said else ''}{', '.join(said)}")
        return "; ".join(parts)

    def _planned(self) -> Iterator[Explained]:
        columns = ("file_path", "file_size_in_bytes", "record_count", "residual")
        entries = ((each, place) for each in self.trace.files for place in each.rows.tolist())
        codes = self.plan.residual_codes.tolist()
        rows, applied = self.plan.files.select(columns).to_pylist(), _applied(self.plan.files["deletes"])
        for row, (deletes, records), code, (listed, place) in zip(rows, applied, codes, entries, strict=True):
            if row["residual"] is not None:
                evidence = self._may_match(listed, place, self.plan.residuals[code])
                why = "; ".join([f"rows may match; left to test: {printable(row['residual'])}", *evidence])
            else:
                why = NEEDED if self.plan.predicate == BoundConstant(True) else ALL_MATCH
            if deletes:
                why += f"; {count_text(deletes, 'delete file')} of {count_text(records, 'row')} to apply"
            yield Explained(
                path=row["file_path"],
                kind="data",
                size_in_bytes=row["file_size_in_bytes"],
                record_count=row["record_count"],
                is_planned=True,
                why=why,
            )

    def _may_match(self, listed: LiveEntries, row: int, residual: BoundPredicate) -> list[str]:
        """What the metadata say of the columns that are left to test; nothing where they say nothing."""
        spec = self.plan.metadata.spec_by_id[listed.manifest.partition_spec_id]
        found: dict[str, None] = {}
        for test in leaves(residual):
            found |= dict.fromkeys(self._partition_values(listed.columns, row, spec, test.column))
            found |= dict.fromkeys(self._bounds(listed.columns, row, test.column))
        return [", ".join(found)] if found else []

    def _deletes(self) -> Iterator[Explained]:
        used = _uses(self.plan.files["deletes"])
        for entries in self.trace.deletes:
            for row, number in zip(entries.rows.tolist(), entries.sequence_number.tolist(), strict=True):
                file = _file(entries.columns, row)
                count = used.get((file["file_path"], number, file["content_offset"]), 0)
                applies = f"applies to {count_text(count, 'planned file')}"
                yield Explained(
                    path=file["file_path"],
                    kind=file["kind"],
                    size_in_bytes=file["file_size_in_bytes"],
                    record_count=file["record_count"],
                    is_planned=bool(count),
                    skipped_by=None if count else NO_TARGET,
                    why=applies if count else "applies to no planned file",
                )

    def _skipped(self, skipped: SkippedEntries) -> Iterator[Explained]:
        entries, by = skipped.entries, SKIPPED_BY[skipped.counter]
        spec = self.plan.metadata.spec_by_id[entries.manifest.partition_spec_id]
        for place, row in enumerate(entries.rows.tolist()):
            blocking = blocking_tests(self.plan.predicate, [int(each[place]) for each in skipped.outcomes]) or ()
            tests = [self._tests[i] for i in blocking]
            shown = [(test, self._evidence(entries.columns, row, spec, test, skipped.counter)) for test in tests]
            file = _file(entries.columns, row)
            yield Explained(
                path=file["file_path"],
                kind=file["kind"],
                size_in_bytes=file["file_size_in_bytes"],
                record_count=file["record_count"],
                is_planned=False,
                skipped_by=by,
                tests=tuple(map(str, tests)),
                why=self._words(shown, is_old=skipped.counter == ENTRIES_SKIPPED_BY_SCHEMA_ID),
            )

    def _evidence(
        self, columns: ManifestColumns, row: int, spec: PartitionSpec, test: BoundLeaf, counter: str
    ) -> list[str]:
        column = test.column
        found = self._partition_values(columns, row, spec, column)
        if counter in (ENTRIES_SKIPPED_BY_METRICS, ENTRIES_SKIPPED_BY_INDEX):
            found += self._bounds(columns, row, column)
            if isinstance(test, BoundIsNull | BoundIsNaN) and not test.negated:
                found.append("there are none")
        index = index_of(self.plan.metadata, self.plan.schema, column.field_id)
        if counter == ENTRIES_SKIPPED_BY_INDEX and index is not None:
            found.append(f"the index of {printable(column)} has no such value")
        return found

    def _partition_values(self, columns: ManifestColumns, row: int, spec: PartitionSpec, column: Column) -> list[str]:
        return [
            f"partition field {printable(partition.name)} is {text}"
            for _, partition in fields_of_source(spec, column.field_id)
            if (text := _partition_value(columns, row, partition, column)) is not None
        ]

    def _bounds(self, columns: ManifestColumns, row: int, column: Column) -> list[str]:
        """The bounds that are believed, and which kinds of values there are not."""
        if not isinstance(column.type, PrimitiveType):
            return []
        known = metric_bounds(columns, column.field_id, self.plan.schema)
        bounds = [
            _bound(columns, row, column, name)
            if vector is not None and (vector.valid is None or bool(vector.valid[row]))
            else None
            for name, vector in (("lower_bounds", known.lower), ("upper_bounds", known.upper))
        ]
        low, high = bounds
        found = []
        if low is not None and high is not None:
            found.append(f"{printable(column)} is {_range(low, high)}")
        elif low is not None or high is not None:
            found.append(f"{printable(column)} is {f'at least {low}' if high is None else f'at most {high}'}")
        if not _flag(known.presence.value, row):
            found.append(f"{printable(column)} has only nulls{' or NaN' if column.is_floating else ''}")
        return found


def _flag(flags: Flags, row: int) -> bool:
    return flags if isinstance(flags, bool) else bool(flags[row])


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _bound(columns: ManifestColumns, row: int, column: Column, name: str) -> str | None:
    stored = columns.get(name, column.field_id)
    raw = None if stored is None else stored[row].as_py()
    if raw is None:
        return None
    try:
        return printable(value_text(column, decode_value(column.primitive, raw)), 60)
    except (CorruptTable, ValueError, OverflowError):
        return str(raw.hex())


def _partition_value(columns: ManifestColumns, row: int, partition: PartitionField, column: Column) -> str | None:
    values = columns.get("partition", partition.field_id)
    if values is None or not isinstance(column.type, PrimitiveType) or not partition.transform.accepts(column.type):
        return None
    raw, type_ = values[row].as_py(), partition.transform.result_type(column.type)
    try:
        if isinstance(raw, bytes) and isinstance(type_, DecimalType):
            value: Any = decimal_of(int.from_bytes(raw, "big", signed=True), type_.scale)
        else:
            value = decode_value(type_, raw) if isinstance(raw, bytes) else raw
        shown = bool(value) if type_.name == "boolean" and value is not None else value
        return printable(human_string(partition.transform, column.type, shown), 60)
    except (CorruptTable, ValueError, OverflowError):
        return str(raw)


def _applied(deletes: pa.ChunkedArray) -> list[tuple[int, int]]:
    """The number of delete files of each data file, and that of their rows."""
    found: list[tuple[int, int]] = []
    for chunk in deletes.chunks:
        references = chunk.flatten()
        records = values_of(references.dictionary.field("record_count"))[values_of(references.indices)]
        counts = np.diff(offsets_of(chunk))
        ends, total = np.cumsum(counts), np.concatenate(([0], np.cumsum(records)))
        found += zip(counts.tolist(), (total[ends] - total[ends - counts]).tolist(), strict=True)
    return found


def _uses(deletes: pa.ChunkedArray) -> dict[tuple[str, int, int | None], int]:
    """To how many data files each delete file applies, by its path, sequence number and offset."""
    found: dict[tuple[str, int, int | None], int] = {}
    for chunk in deletes.chunks:
        references = chunk.flatten()
        numbers, counts = np.unique(values_of(references.indices), return_counts=True)
        for each, count in zip(references.dictionary.take(number_array(numbers)).to_pylist(), counts, strict=True):
            key = (each["file_path"], each["sequence_number"], each["content_offset"])
            found[key] = found.get(key, 0) + int(count)
    return found


def _file(columns: ManifestColumns, row: int) -> Mapping[str, Any]:
    """What is said of a file, from its manifest entry."""
    found = {name: columns[name][row].as_py() for name in ("file_size_in_bytes", "record_count", "content_offset")}
    content = FileContent(columns["content"][row].as_py())
    is_vector = content == FileContent.POSITION_DELETES and found["content_offset"] is not None
    kind = "deletion vector" if is_vector else content.name.lower().replace("_", " ")
    return {**found, "file_path": columns["file_path"][row].as_py().decode(), "kind": kind}
