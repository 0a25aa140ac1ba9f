"""Tables of records: engines side by side, every raw sample, every counter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from icebench.bench.records.record import Record
from icebench.bench.report.compare import (
    FLOOR,
    IN_TICKS,
    Beside,
    Records,
    beside,
    bounds,
    is_in_ticks,
    median,
    ratio,
)
from icebench.bench.report.findings import WITHIN
from icebench.bench.report.model import Cell, Table, Tone, plain
from icebench.bench.report.quantities import interval, quantity, signed_percent, times
from icebench.bench.report.remarks import is_noisy

OWN = "icebench"
"""The engine that the others are compared with."""

NOT_MEASURED = Cell(text="-", detail="not measured")
AGED = {cache: f"scan_time_{cache}_added" for cache in ("cold", "warm")}
"""Cache -> the metric of what a scan takes more than that of its base."""
_TICKS = f" {IN_TICKS}: processor time of other processes, which is compared from ten ticks on."
_KEPT = "kept"
"""What of a warm case's detail is its engine's, not its name's."""
_LEFT_BEHIND = ("data_files", "data_bytes", "delete_files", "delete_records", "manifests")


def comparison(records: Records, *, title: str, case_name: str, folded: bool = False) -> Table:
    """Medians of one metric of time: a row for each case and layout, a column for each engine.

    Args:
        records: Of one metric.
        title: Of the table.
        case_name: What a case is here: a filter, a scan.
        folded: Whether it is only for looking things up.
    """
    engines = records.engines
    rows = []
    for case, layout, found in records.cases():
        compared = beside(found.all)
        cells = (_against(found.one(engine=engine), compared) for engine in engines)
        rows.append((plain(case), plain(layout), *cells))
    in_ticks = any(map(is_in_ticks, records.all))
    within = " (of this process)" if len({process for r in records.all for process, _ in r.places}) == 1 else ""
    return Table(
        title=title,
        columns=(case_name, "Layout", *engines),
        rows=tuple(rows),
        note=f"Median, its interval{within}, and the ratio to the best of the row, from samples of the same rounds; "
        f"even: the interval of that ratio is within {WITHIN} of 1; undecided: it includes 1. Where another has the "
        "least median than takes least in the same rounds, none is marked, and ratios are to the latter."
        f"{_TICKS if in_ticks else ''}",
        folded=folded,
    )


def _against(record: Record | None, compared: Beside) -> Cell:
    if record is None:
        return NOT_MEASURED
    middle = median(record)
    ends = bounds(record)
    words = [IN_TICKS] if is_in_ticks(record) else []
    if record is not compared.leader and (worse := compared.effects.get(record.engine)) is not None:
        words.append(times(worse.ratio))
        words += [] if worse.differs else ["even" if worse.is_equal else "undecided"]
    words += ["noisy"] if is_noisy(record) else []
    detail = f"{interval(*ends, record.unit, like=middle) if ends else ''} {', '.join(words)}".strip()
    tone = _tone(compared.is_best and record is compared.leader, record)
    return Cell(text=quantity(middle, record.unit), detail=detail, tone=tone, record=record)


def _tone(best_of_row: bool, timed: Record | None) -> Tone:  # noqa: FBT001 - private
    if best_of_row:
        return Tone.BEST
    return Tone.DOUBTFUL if timed is not None and is_noisy(timed) else Tone.PLAIN


def against_own(records: Records, title: str, case_name: str) -> Table | None:
    """Ratio of the others to this project's engine; None without it."""
    others = [engine for engine in records.engines if engine != OWN]
    rows = []
    for case, layout, found in records.cases():
        own = found.one(engine=OWN)
        if own is not None:
            rows.append((plain(case), plain(layout), *(_advantage(own, found.one(engine=e)) for e in others)))
    if not rows or not others:
        return None
    return Table(
        title=f"{title}: how many times that of {OWN}",
        columns=(case_name, "Layout", *others),
        rows=tuple(rows),
        note="Ratio of paired samples and its interval; above 1 the other takes more, and where it is below 1 for "
        f"certain {OWN} does. even: the interval is within {WITHIN} of 1; undecided: it includes 1.",
    )


def _advantage(own: Record, other: Record | None) -> Cell:
    """How many times this project's engine another takes; only what is undecided is doubtful, and where this engine
    certainly takes more, it says so."""
    if other is not None and (is_in_ticks(own) or is_in_ticks(other)):
        return Cell(text="-", detail=IN_TICKS)
    found = None if other is None else ratio(own, other)
    if other is None or found is None:
        return NOT_MEASURED
    ends = f"[{times(found.low)}, {times(found.high)}]"
    if other.engine == FLOOR:
        return Cell(text=times(found.ratio), detail=ends)
    words, tone = "", Tone.PLAIN
    if not found.differs:
        words, tone = ("even", Tone.PLAIN) if found.is_equal else ("undecided", Tone.DOUBTFUL)
    elif found.ratio < 1:
        words = f"{OWN} takes more"
    return Cell(text=times(found.ratio), detail=f"{ends} {words}".strip(), tone=tone)


def aged_scans(records: Records, metric: str) -> Records:
    """What scans of tables take more than of the same rows compacted, where it is known what is in the tables; `metric`
    is out of `AGED`."""
    added = records.where(metric=metric)
    return replace(added, all=tuple(each for each in added.all if _LEFT_BEHIND[0] in each.counters))


def left_behind(aged: Records, cache: str) -> Table:
    """What was added to scans, cold or warm ones, beside what they went through."""
    rows = []
    for case, layout, found in aged.cases():
        counters = found.all[0].counters
        added = (found.one(engine=engine) for engine in aged.engines)
        counts = (Cell(text=f"{counters[name]:,}") for name in _LEFT_BEHIND)
        cells = (NOT_MEASURED if each is None else Cell(text=signed_percent(median(each))) for each in added)
        rows.append((plain(layout), plain(case), *counts, *cells))
    return Table(
        title=f"What batches leave behind, and what it adds to a {cache} scan",
        columns=("Table", "Scan", *(name.replace("_", " ") for name in _LEFT_BEHIND), *aged.engines),
        rows=tuple(rows),
        note="Exact counts of the table; added time as a share of the scan of the same rows compacted.",
    )


def added_costs(costs: Records, scans: Records, *, title: str, case_name: str, base: str) -> Table:
    """What cases add to a scan: a row for each case and layout, a column for each engine.

    Args:
        costs: Of a metric such as ``delete_cost_ratio``: shares of the base that are added.
        scans: Of the metric that they are about, for the small print.
        title: Of the table.
        case_name: What a case is here.
        base: What the cases are compared with, in words.
    """
    engines = costs.engines
    rows = []
    for case, layout, found in costs.cases():
        with_deletes = scans.where(case=found.all[0].case, cache=found.all[0].cache, layout=layout)
        winner = _adds_least(found, with_deletes)
        cells = (_cost(found.one(engine=e), with_deletes.one(engine=e), winner) for e in engines)
        rows.append((plain(case), plain(layout), *cells))
    return Table(
        title=title,
        columns=(case_name, "Layout", *engines),
        rows=tuple(rows),
        note=f"Added time as a share of {base} in the same round: median, interval, and the whole scan's time.",
    )


def _adds_least(costs: Records, scans: Records) -> Record | None:
    """What adds the least share, by medians and in samples of the same rounds alike; None where these disagree."""
    known = [r for r in costs.all if (scan := scans.one(engine=r.engine)) is None or not is_in_ticks(scan)]
    factors = [replace(r, samples=tuple(1 + share for share in r.samples), summary={}) for r in known]
    found = beside(factors)
    return costs.one(engine=found.leader.engine) if found.leader is not None and found.is_best else None


def _cost(record: Record | None, scan: Record | None, winner: Record | None) -> Cell:
    if record is None:
        return NOT_MEASURED
    ends = bounds(record)
    detail = f"[{signed_percent(ends[0])}, {signed_percent(ends[1])}]" if ends else ""
    if scan is not None:
        detail += f" {quantity(median(scan), scan.unit)}"
        detail += f" {IN_TICKS}" if is_in_ticks(scan) else ""
        detail += " noisy" if is_noisy(scan) else ""
    return Cell(text=signed_percent(median(record)), detail=detail.strip(), tone=_tone(record is winner, scan))


def kept_warm(records: Records) -> Table | None:
    """What each engine keeps between the scans of a warm case; None without warm cases that say so."""
    kept = {r.engine: r.detail[_KEPT] for r in records.all if _KEPT in r.detail}
    if not kept:
        return None
    return Table(
        title="What is kept for a warm scan",
        columns=("Engine", "Kept"),
        rows=tuple((plain(engine), plain(kept[engine])) for engine in records.engines if engine in kept),
        note="By the engine's own defaults. A cold scan has none of it.",
    )


def lookups(records: Records, *, raw_samples: bool = True) -> Iterator[Table]:
    """The folded tables of a section: what names stand for, counters, samples."""
    for table in (_definitions(records), _counters(records), _raw(records) if raw_samples else None):
        if table is not None:
            yield table


def _raw(records: Records) -> Table:
    """Every record's own numbers, to look things up."""
    columns = ("Case", "Layout", "Engine", "Metric", "Samples", "Minimum", "Quartiles", "Median", "Maximum")
    return Table(
        title="All samples, summed up",
        columns=columns,
        rows=tuple(_raw_row(record) for record in records.all),
        folded=True,
    )


def _raw_row(record: Record) -> tuple[Cell, ...]:
    def shown(name: str) -> Cell:
        value = record.summary.get(name)
        return Cell(text="-" if value is None else quantity(float(value), record.unit, like=median(record)))

    quartiles = " to ".join(shown(name).text for name in ("first_quartile", "third_quartile"))
    return (
        plain(record.case),
        plain(record.layout),
        plain(record.engine),
        plain(record.metric),
        Cell(text=str(len(record.samples))),
        shown("minimum"),
        Cell(text=quartiles),
        shown("median"),
        shown("maximum"),
    )


def _counters(records: Records) -> Table | None:
    """Exact work counters: a row for each case that has any, a column for each counter."""
    counted = {(r.case, r.layout, r.engine, r.cache): r.counters for r in records.all if r.counters}
    if not counted:
        return None
    names = sorted({name for found in counted.values() for name in found})
    rows = tuple(
        (*(plain(part) for part in key), *(Cell(text=f"{found[n]:,}" if n in found else "-") for n in names))
        for key, found in counted.items()
    )
    return Table(
        title="Exact work counters",
        columns=("Case", "Layout", "Engine", "Cache", *(name.replace("_", " ") for name in names)),
        rows=rows,
        note="The same in every run; engines that do not count are left out.",
        folded=True,
    )


def meaning(record: Record) -> str:
    """What the name of its case stands for; empty where nothing says."""
    return "; ".join(f"{name}: {text or 'none'}" for name, text in sorted(record.detail.items()))


def _definitions(records: Records) -> Table | None:
    """What the names of cases stand for."""
    details = {r.case: meaning(r) for r in records.all if r.detail and _KEPT not in r.detail}
    rows = tuple((plain(case), plain(detail)) for case, detail in details.items())
    return (
        Table(title="What the names stand for", columns=("Name", "Meaning"), rows=rows, folded=True) if rows else None
    )
