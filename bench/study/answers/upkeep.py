"""What upkeep saves as a table ages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Record
from icebench.bench.report.charts import Line, LineChart, LinePanel, LinePoint
from icebench.bench.report.compare import Records
from icebench.bench.report.model import Cell, Table, plain
from icebench.bench.report.quantities import count
from icebench.bench.report.tables import NOT_MEASURED
from icebench.bench.statistics.claims import Effect
from icebench.bench.study.comparing import choice, effect, only, within
from icebench.bench.study.page import Page

METRIC = "scan_time_cold"
NEVER = "never compacted"
POLICY = "kept by policy default"
_EVERY = re.compile(r"^compacted every (\d+)$")
_STATE = re.compile(r"^after (\d+) batches$")


def answer(run: Run) -> Page:
    """What reading costs after so many batches, in times of the same rows compacted, by how the table is kept."""
    records = Records(run.records).where(measurement="reading", metric=METRIC)
    engine = records.engines[0]
    own = records.where(engine=engine)
    histories = {layout.split(", ", 1)[1]: layout for layout in own.names("layout")}
    last = max(_batches(own))
    ends = {how: _against_compacted(own.where(layout=layout), last) for how, layout in histories.items()}
    never, kept = (_pair(own.where(layout=histories[how]), last) for how in (NEVER, POLICY))
    said = ", ".join(f"{how} {within(found)}{_since_compaction(how, last)}" for how, found in ends.items())
    of = f"a scan here ({engine}) after {last} batches of changes"
    return Page(
        answer=f"After {last} batches a scan in {engine} takes, in times of the same rows compacted: {said}.",
        chart=_chart(records, histories),
        tables=(_ratios(records, histories), _left_behind(own, histories, last)),
        choices=(
            choice("compacting before a scan", f"{last} batches without upkeep", of, [never]),
            choice("the policy of `icebench maintain run`", "no upkeep", of, [(kept[1], never[1])]),
        ),
    )


def _since_compaction(how: str, batch: int) -> str:
    """How many batches came after the last compaction of a history that is compacted again and again."""
    found = _EVERY.match(how)
    return f" ({count(batch % int(found[1]), 'batch', 'batches')} after the last time)" if found else ""


def _batches(records: Records) -> list[int]:
    return sorted({int(found[1]) for case in records.names("case") if (found := _STATE.match(case))})


def _pair(history: Records, batch: int) -> tuple[Record, Record]:
    """The scan of the same rows compacted, and of the table as it was left."""
    state = f"after {batch} batches"
    return only(history, case=f"{state}, compacted"), only(history, case=state)


def _against_compacted(history: Records, batch: int) -> Effect:
    return effect([_pair(history, batch)])


def _chart(records: Records, histories: dict[str, str]) -> LineChart:
    def line(engine: str, how: str) -> Line:
        history = records.where(engine=engine, layout=histories[how])
        found = [(batch, _against_compacted(history, batch)) for batch in _batches(history)]
        return Line(series=how, points=tuple(LinePoint(x=b, y=it.ratio, low=it.low, high=it.high) for b, it in found))

    panels = tuple(
        LinePanel(title=f"Read by {engine}", lines=tuple(line(engine, how) for how in histories))
        for engine in records.engines
    )
    batch = max(_batches(records))
    worst = _against_compacted(records.where(engine=records.engines[0], layout=histories[NEVER]), batch)
    return LineChart(
        caption=f"Without upkeep a scan takes {within(worst)} the time of the compacted table after "
        f"{count(batch, 'batch', 'batches')} ({records.engines[0]}).",
        x_axis="batches of changes",
        y_axis="times a scan of the table compacted",
        series=tuple(histories),
        panels=panels,
        log_x=False,
        level=1.0,
    )


def _ratios(records: Records, histories: dict[str, str]) -> Table:
    def cells(how: str, batch: int) -> Iterator[Cell]:
        for engine in records.engines:
            history = records.where(engine=engine, layout=histories[how])
            known = history.one(case=f"after {batch} batches") is not None
            yield Cell(text=within(_against_compacted(history, batch))) if known else NOT_MEASURED

    return Table(
        title="By how the table is kept",
        columns=("Upkeep", "Batches", *records.engines),
        rows=tuple(
            (plain(how), Cell(text=f"{batch}"), *cells(how, batch)) for how in histories for batch in _batches(records)
        ),
        note="Times a scan of the same rows compacted, with the 95% interval, from samples of the same rounds.",
    )


def _left_behind(own: Records, histories: dict[str, str], batch: int) -> Table:
    """What a scan has to go through, exactly."""
    names = ("data_files", "delete_files", "delete_records", "manifests")
    found = {how: only(own, layout=layout, case=f"after {batch} batches") for how, layout in histories.items()}
    return Table(
        title=f"What {batch} batches leave behind",
        columns=("Upkeep", *(name.replace("_", " ") for name in names)),
        rows=tuple(
            (plain(how), *(Cell(text=f"{record.counters.get(name, 0):,}") for name in names))
            for how, record in found.items()
        ),
        note="Counted.",
    )
