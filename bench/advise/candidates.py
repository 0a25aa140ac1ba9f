"""Layouts that queries might be served better by, made from the columns that their filters use, and searched.

A layout is partition fields, an order, and sizes of files and row groups. All of them are too many to try, so that the
search goes in steps: every partitioning and every single sort key first, then orders by two and three columns along
with the best partitionings, and last other sizes of files and of row groups for the best few.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations

import icebench
from icebench.bench.advise.estimate import Estimate, Estimator, spec_of, target_size
from icebench.bench.advise.queries import Query
from icebench.bench.layouts.layout import ROW_GROUP_SIZE, TARGET_SIZE, Layout, Term

_COLUMNS = 6
_BEAM = 5
_TEMPORAL = ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
_WHOLE = ("int", "long")
_FILES_PER_PARTITION = 1.25
"""Partitions at most, for each file of the target size: more would leave small files."""
_PARTITIONS_BY_TIME = 1_000
"""Partitions by time at most, however small the table is, where files count in the score: it decides then, and a trial
of more takes too long."""
_CORRELATED = 8
"""Two fields have fewer partitions than the product of their own; where they would have to have so many fewer, they are
not tried."""
_WIDTHS = 1 << 31
"""Widths of truncate are 32-bit integers."""
_SMALLEST_TARGET = 8 << 20
_ROW_GROUP_SIZES = (32 << 20, 8 << 20, 2 << 20)

Score = Callable[[Estimate], float]


def columns_of(queries: Sequence[Query], schema: icebench.Schema) -> tuple[str, ...]:
    """The top-level columns that filters use, the most used first."""
    used: Counter[str] = Counter()
    for query in queries:
        for column in {*query.equalities, *query.ranges}:
            used[column] += query.weight  # type: ignore[assignment]
    tops = {field.name for field in schema.fields if isinstance(field.type, icebench.PrimitiveType)}
    return tuple(column for column, _ in used.most_common() if column in tops)[:_COLUMNS]


def todays_layout(table: icebench.Table) -> Layout:
    """The layout that the table declares: its partition spec, and its sort order as far as it is of plain columns."""
    schema = table.schema()
    names = {field_id: name for name, field_id in schema.id_of.items()}
    partition = tuple(
        Term(column=names[f.source_id], transform=str(f.transform))
        for f in table.spec.fields
        if f.source_id in names and str(f.transform) != "void"
    )
    sort = [Term(column=names[f.source_id], transform=str(f.transform)) for f in table.sort_order.fields]
    is_plain = all(term.transform == "identity" and "." not in term.column for term in sort)
    return Layout(name="today", partition=partition, sort=tuple(sort) if is_plain else ())


def partitionings(
    estimator: Estimator, queries: Sequence[Query], today: Layout, *, counts_files: bool = False
) -> list[tuple[Term, ...]]:
    """Partition fields worth a try: today's, none, those of one column, and of two.

    Args:
        estimator: Of the sample.
        queries: Of the table.
        today: The table's own layout.
        counts_files: More files make a score worse: take in partitions by time that leave small files, and hours.
    """
    schema, files = estimator.sample.table.schema(), _files(estimator, today)
    equal = {column for query in queries for column in query.equalities}
    limit = _FILES_PER_PARTITION * files
    singles = []
    for column in columns_of(queries, schema):
        by_time = counts_files and str(schema.find(column).type) in _TEMPORAL
        most = max(limit, _PARTITIONS_BY_TIME) if by_time else limit
        for transform in _transforms(estimator, column, files, has_equality=column in equal):
            term = Term(column=column, transform=transform)
            if (by_time or transform != "hour") and 2 <= _count(estimator, (term,)) <= most:
                singles.append(term)
    pairs = [
        (first, second)
        for first, second in combinations(singles, 2)
        if first.column != second.column
        and _count(estimator, (first,)) * _count(estimator, (second,)) <= _CORRELATED * limit
        and _count(estimator, (first, second)) <= limit
    ]
    return list(dict.fromkeys([today.partition, (), *((term,) for term in singles), *pairs]))


def _files(estimator: Estimator, layout: Layout) -> float:
    return max(1.0, estimator.sample.live_bytes / target_size(layout, estimator.sample.table))


def _count(estimator: Estimator, terms: tuple[Term, ...]) -> int:
    return estimator.model.partition_count(spec_of(terms, estimator.sample.table.schema()))


def _transforms(estimator: Estimator, column: str, files: float, *, has_equality: bool) -> Iterator[str]:
    field = estimator.sample.table.schema().find(column)
    kind = str(field.type)
    if kind in _TEMPORAL:
        yield from ("day", "month", "year") if kind == "date" else ("hour", "day", "month", "year")
        return
    if kind in _WHOLE or kind == "string":
        yield "identity"
    ranked = estimator.model.ranked(field.field_id)
    if kind in _WHOLE and len(ranked.values):
        spread = ranked.values[-1].as_py() - ranked.values[0].as_py()
        for parts in (files, files / 4):
            width = round(spread / max(parts, 1))
            rounded = round(width, 1 - len(str(width)))
            if 1 < rounded < _WIDTHS:
                yield f"truncate[{rounded}]"
    if kind == "string":
        yield from (f"truncate[{length}]" for length in (1, 2, 4))
    if has_equality and kind in (*_WHOLE, "string"):
        for parts in (files, files / 4):
            yield f"bucket[{1 << max(1, int(math.log2(max(parts, 2))))}]"


def orders(columns: Sequence[str], *, most: int = 3) -> Iterator[dict[str, tuple[str, ...]]]:
    """Orders of rows by some of the columns: sorts, and curves through two columns or more."""
    yield {}
    for count in range(1, min(most, len(columns)) + 1):
        for chosen in permutations(columns, count):
            yield {"sort": chosen}
        if count > 1:
            for chosen in combinations(columns, count):
                yield {"zorder": chosen}
                yield {"hilbert": chosen}


def layout_of(
    partition: tuple[Term, ...], order: Mapping[str, tuple[str, ...]], properties: Mapping[str, str] | None = None
) -> Layout:
    """A layout, named by what it is."""
    words = [f"{how} by {', '.join(columns)}" for how, columns in order.items()]
    words += [f"partitioned by {', '.join(map(term_text, partition))}"] if partition else []
    words = words or ["compaction"]
    for name, what in ((TARGET_SIZE, "files"), (ROW_GROUP_SIZE, "row groups")):
        size = (properties or {}).get(name)
        words += [f"{what} of {int(size) >> 20} MiB"] if size else []
    return Layout(
        name="; ".join(words),
        partition=partition,
        sort=tuple(Term(column=column) for column in order.get("sort", ())),
        zorder=tuple(order.get("zorder", ())),
        hilbert=tuple(order.get("hilbert", ())),
        properties=dict(properties or {}),
    )


def term_text(term: Term) -> str:
    """``bucket(16, id)``."""
    if term.transform == "identity":
        return term.column
    name, _, width = term.transform.rstrip("]").partition("[")
    return f"{name}({width}, {term.column})" if width else f"{name}({term.column})"


def search(
    estimator: Estimator, queries: Sequence[Query], today: Layout, score: Score, *, counts_files: bool = True
) -> list[Estimate]:
    """The best layouts that were found, the best first.

    Args:
        estimator: Of the sample.
        queries: Of the table.
        today: The table's own layout.
        score: Less is better.
        counts_files: Files and requests count in the score: try other sizes of files and row groups, and partitions by
            time that leave small files.
    """
    columns = columns_of(queries, estimator.sample.table.schema())
    found: dict[tuple[object, ...], tuple[float, Estimate]] = {}

    def attempt(layouts: Iterable[Layout]) -> None:
        for layout in layouts:
            key = (layout.partition, layout.sort, layout.zorder, layout.hilbert, tuple(layout.properties.items()))
            if key not in found:
                made = estimator.estimate(layout)
                found[key] = (score(made), made)

    def best() -> list[Estimate]:
        return [made for _, made in sorted(found.values(), key=lambda own: own[0])]

    every = partitionings(estimator, queries, today, counts_files=counts_files)
    singles = list(orders(columns, most=1))
    attempt(layout_of(partition, order) for partition in every for order in singles)
    for count in (2, 3):
        leading = list(dict.fromkeys([today.partition, (), *(made.layout.partition for made in best())]))[:_BEAM]
        begun = list(dict.fromkeys(tuple(t.column for t in m.layout.sort) or m.layout.curve for m in best()))[:_BEAM]
        chosen = [order for order in orders(columns, most=count) if len(_keys(order)) == count]
        attempt(
            layout_of(partition, order)
            for partition in leading
            for order in chosen
            if "sort" not in order or count < 3 or order["sort"][:2] in begun
        )
    if counts_files:
        usual, whole = target_size(today, estimator.sample.table), estimator.sample.live_bytes
        smaller = [size for size in (usual // 4, usual // 16) if _SMALLEST_TARGET <= size < whole]
        attempt(_resized(made.layout, TARGET_SIZE, size) for made in best()[:_BEAM] for size in smaller)
        attempt(
            _resized(made.layout, ROW_GROUP_SIZE, size)
            for made in best()[:_BEAM]
            for size in _ROW_GROUP_SIZES
            if _rows_together(estimator, made.layout) > estimator.model.rows_per_row_group({ROW_GROUP_SIZE: str(size)})
        )
    return best()


def _keys(order: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return next(iter(order.values()), ())


def _rows_together(estimator: Estimator, layout: Layout) -> float:
    """Rows per row group of a layout, where a file has that many."""
    own = min(estimator.rows_per_file(layout), estimator.model.rows_per_row_group(layout.properties))
    return min(own, estimator.sample.table_rows)


def _resized(layout: Layout, size_property: str, size: int) -> Layout:
    order = {how: own for how in ("zorder", "hilbert") if (own := getattr(layout, how))}
    order |= {"sort": tuple(term.column for term in layout.sort)} if layout.sort else {}
    return layout_of(layout.partition, order, {**layout.properties, size_property: str(size)})
