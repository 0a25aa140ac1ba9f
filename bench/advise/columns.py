"""Column lifecycle: what each column costs, which ones queries use, and what follows from that.

Only metadata is changed, and only what a reader cannot notice: metrics modes, and the order of columns. Dropping a
column is proposed, for people to decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import icebench
from icebench.bench.advise.queries import Queries, Query, Unused, read_queries, read_scans
from icebench.bench.definition import one_of

_METRICS = "write.metadata.metrics."
_MAX_INFERRED = f"{_METRICS}max-inferred-column-defaults"
_DEFAULT_INFERRED = 100
_KEYS = "icebench.clustering.keys"


@dataclass(frozen=True, kw_only=True)
class ColumnUse:
    """A column of the current schema.

    Args:
        name: Its full name.
        type: As text.
        data_bytes: In data files: of their footers if they were opened, otherwise by their metrics.
        statistics_bytes: Of its metrics in manifests, before compression.
        planning_share: Of the bytes of all metrics: what of a plan's decoding it takes.
        read: The share of queries, by weight, that read it.
        filtered: The share that filters or joins by it.
        needed: What else needs it: partition, sort, clustering, identifier, or aggregate (see `Query.aggregated`).
    """

    name: str
    type: str
    data_bytes: int
    statistics_bytes: int
    planning_share: float
    read: float
    filtered: float
    needed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A change that the use of columns suggests.

    Args:
        change: ``metrics``, ``order`` or ``drop``.
        column: Which.
        why: Figures.
        saved_data_bytes: Of data files, once they are rewritten; the most that it can be.
        saved_statistics_bytes: Of metrics in manifests, likewise.
        properties: Table properties that make the change; empty where it takes more.
    """

    change: str
    column: str
    why: str
    saved_data_bytes: int = 0
    saved_statistics_bytes: int = 0
    properties: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class ColumnAdvice:
    """What is known of a table's columns.

    Args:
        uses: Most expensive first.
        proposals: What follows from the uses.
        not_understood: Queries that are not counted. Where there are any, nothing is proposed that rests on a column
            not being used.
    """

    uses: tuple[ColumnUse, ...]
    proposals: tuple[Proposal, ...]
    not_understood: tuple[Unused, ...] = ()


def examine_columns(
    table: icebench.Table,
    *,
    queries: Path | None = None,
    scans: Path | None = None,
    used: Sequence[str] = (),
    deep: bool = False,
) -> ColumnAdvice:
    """The use of columns by SQL, by scan reports, or by filters on columns that are named; and what follows from it.

    Raises:
        ConfigError: A file cannot be read, or has no query of the table; a name that no column has.
    """
    if queries is not None:
        asked = read_queries(queries, table)
    elif scans is not None:
        asked = read_scans(scans, table)
    else:
        known = set(table.schema().name_of.values())
        for name in used:
            one_of(name, known, "column", "--used")
        # Nothing is known of what else is read.
        asked = Queries(queries=(Query(name="used", columns=tuple(known), equalities=tuple(used)),))
    uses = column_uses(table, table.maintenance.profile(deep=deep), asked.queries)
    proposals = propose(table, uses, knows_all_queries=not asked.not_understood)
    return ColumnAdvice(uses=tuple(uses), proposals=tuple(proposals), not_understood=asked.not_understood)


def column_uses(table: icebench.Table, profile: icebench.TableProfile, queries: Sequence[Query]) -> list[ColumnUse]:
    """The primitive columns, most expensive first."""
    total = sum(query.weight for query in queries) or 1.0
    filtered = filtered_shares(table, queries)
    stored = sum(each.statistics_bytes for each in profile.columns) or 1
    stored_columns = () if profile.footers is None else profile.footers.columns
    footers = {each.field_id: each.compressed_bytes for each in stored_columns}
    needed = _needed(table, queries)
    found = [
        ColumnUse(
            name=each.name,
            type=each.type,
            data_bytes=footers.get(each.field_id, each.data_bytes),
            statistics_bytes=each.statistics_bytes,
            planning_share=each.statistics_bytes / stored,
            read=sum(q.weight for q in queries if _is_of(each.name, q.columns)) / total,
            filtered=filtered[each.name],
            needed=needed.get(each.name, ()),
        )
        for each in profile.columns
        if each.is_current
    ]
    return sorted(found, key=lambda each: -each.data_bytes - each.statistics_bytes)


def filtered_shares(table: icebench.Table, queries: Sequence[Query]) -> dict[str, float]:
    """The share of the queries, by weight, that filter or join by a column, by its name, or by a source column of a
    partition field, by the field's name."""
    total, names = sum(query.weight for query in queries) or 1.0, table.schema().name_of
    sources = {field.name: field.source_ids for spec in table.metadata.partition_specs for field in spec.fields}
    sources |= {name: (field_id,) for field_id, name in names.items()}
    found = dict.fromkeys(sources, 0.0)
    for query in queries:
        used = {*query.equalities, *query.ranges, *query.other_tests, *query.join_keys}
        for name, ids in sources.items():
            if any(names.get(field_id) in used for field_id in ids):
                found[name] += query.weight / total
    return found


def propose(table: icebench.Table, uses: Sequence[ColumnUse], *, knows_all_queries: bool = True) -> list[Proposal]:
    """What the use suggests, by kind.

    Args:
        table: Whose columns they are.
        uses: Of the columns.
        knows_all_queries: False: a column may be used without being known to be, and only what speeds up known uses is
            proposed.
    """
    if not knows_all_queries:
        return list(_order(table, uses))
    return [*_metrics(table, uses), *_order(table, uses), *_drops(uses)]


def apply_proposals(table: icebench.Table, proposals: Sequence[Proposal]) -> int:
    """Make the changes that concern metadata alone: modes of metrics, and the order of columns; says how many."""
    properties = {name: value for each in proposals for name, value in (each.properties or {}).items()}
    if properties:
        table.set_properties(properties)
    first = [each.column for each in proposals if each.change == "order"]
    if first:
        table.update_schema(lambda update: [update.move_first(name) for name in reversed(first)])
    return len(first) + sum(each.properties is not None for each in proposals)


def _is_of(name: str, read: Sequence[str]) -> bool:
    """Whether a query that reads these columns reads the one, or a struct that it is in."""
    return any(name == each or name.startswith(f"{each}.") for each in read)


def _needed(table: icebench.Table, queries: Sequence[Query]) -> dict[str, tuple[str, ...]]:
    metadata, schema = table.metadata, table.schema()
    names = schema.name_of
    reasons: dict[str, list[str]] = {}
    for what, ids in (
        ("partition", [i for spec in metadata.partition_specs for f in spec.fields for i in f.source_ids]),
        ("sort", [i for f in metadata.sort_order.fields for i in f.source_ids]),
        ("identifier", list(schema.identifier_field_ids)),
        ("aggregate", [schema.id_of[name] for query in queries for name in query.aggregated]),
    ):
        for field_id in dict.fromkeys(ids):
            if field_id in names:
                reasons.setdefault(names[field_id], []).append(what)
    for name in metadata.properties.get(_KEYS, "").split(","):
        if name.strip():
            reasons.setdefault(name.strip(), []).append("clustering")
    return {name: tuple(found) for name, found in reasons.items()}


def _metrics(table: icebench.Table, uses: Sequence[ColumnUse]) -> Iterator[Proposal]:
    for each in uses:
        key = f"{_METRICS}column.{each.name}"
        if each.filtered or each.needed or not each.statistics_bytes or table.metadata.properties.get(key) == "none":
            continue
        yield Proposal(
            change="metrics",
            column=each.name,
            why=f"no query filters by it, and its metrics are {each.planning_share:.1%} of those that plans decode",
            saved_statistics_bytes=each.statistics_bytes,
            properties={key: "none"},
        )


def _order(table: icebench.Table, uses: Sequence[ColumnUse]) -> Iterator[Proposal]:
    """Columns that filters use, beyond those that get metrics by default: so many at first that are not nested, and
    sort keys."""
    properties = table.metadata.properties
    most = int(properties.get(_MAX_INFERRED, _DEFAULT_INFERRED))
    if f"{_METRICS}default" in properties:
        return
    keys = {f.source_id for f in table.metadata.sort_order.fields if f.transform.preserves_order}
    plain = [field for field in table.schema().fields if isinstance(field.type, icebench.PrimitiveType)]
    late = {field.name for field in plain[most:] if field.field_id not in keys}
    for each in sorted((each for each in uses if each.filtered and each.name in late), key=lambda each: -each.filtered):
        if f"{_METRICS}column.{each.name}" not in properties:
            why = f"{each.filtered:.0%} of the queries filter by it, and only the first {most} columns get metrics"
            yield Proposal(change="order", column=each.name, why=why)


def _drops(uses: Sequence[ColumnUse]) -> Iterator[Proposal]:
    for each in uses:
        if not each.read and not each.needed:
            yield Proposal(
                change="drop",
                column=each.name,
                why="no query reads it",
                saved_data_bytes=each.data_bytes,
                saved_statistics_bytes=each.statistics_bytes,
            )
