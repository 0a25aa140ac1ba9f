"""What deletes cost a scan."""

from __future__ import annotations

from collections.abc import Iterator

from icebench.bench.execution.run_file import Run
from icebench.bench.report.charts import Line, LineChart, LinePanel, LinePoint
from icebench.bench.report.compare import Records
from icebench.bench.report.model import Cell, Table, plain
from icebench.bench.report.quantities import listed
from icebench.bench.report.tables import NOT_MEASURED
from icebench.bench.statistics.claims import Effect
from icebench.bench.study.comparing import FEW, choice, effect, few, only, within
from icebench.bench.study.page import Page
from icebench.bench.workloads.reading_files import DELETE_TITLES

NONE = "no deletes"
METRIC = "scan_time_cold"
VECTORS, POSITIONS, EQUALITY = (f"{DELETE_TITLES[kind]}, random" for kind in ("vectors", "positions", "equality"))
ONE, TENTH, MANY = "1.0%", "10.0%", 100
SLOW = ("duckdb",)
"""Engines that read equality deletes, and take minutes where they are in a hundred files."""


def answer(run: Run) -> Page:
    """What each kind of deletes adds to a scan, by the share of the rows that it deletes."""
    records = Records(run.records).where(measurement="reading", metric=METRIC)
    engine = records.engines[0]
    own = records.where(engine=engine)
    said = [
        f"{kind.split(',')[0]} {within(_against_none(own, kind, case))}"
        for kind, case in ((VECTORS, ONE), (POSITIONS, ONE), (EQUALITY, _spread_over(ONE, 1)))
    ]
    vectors, positions = (only(own, workload=kind, case=TENTH) for kind in (VECTORS, POSITIONS))
    cases = (NONE, _spread_over(ONE, 1), _spread_over(ONE, MANY))
    none, one, many = (only(own, workload=EQUALITY, case=case) for case in cases)
    of = f"a scan here ({engine})"
    return Page(
        answer=f"With 1 % of the rows deleted all over the table, a scan in {engine} takes, relative to one without "
        f"deletes: {', '.join(said)}; the same equality deletes in {MANY} files "
        f"{within(_against_none(own, EQUALITY, _spread_over(ONE, MANY)))}.",
        chart=_chart(records),
        tables=(_by_share(records), _by_files(records)),
        choices=(
            choice("deletion vectors", "position deletes", f"{of} with 10 % deleted", [(vectors, positions)]),
            choice("one file of equality deletes", f"the same in {MANY}", f"{of} with 1 % deleted", [(one, many)]),
            choice("rewriting equality deletes away", f"1 % in {MANY} files", of, [(none, many)]),
        ),
    )


def _spread_over(share: str, files: int) -> str:
    return f"{share}, {files} delete files"


def _against_none(records: Records, kind: str, case: str) -> Effect:
    scans = records.where(workload=kind)
    return effect([(only(scans, case=NONE), only(scans, case=case))])


def _share(case: str) -> float:
    return float(case.split("%", maxsplit=1)[0])


def _cases(records: Records, kind: str, files: int = 1) -> Iterator[tuple[float, str]]:
    """Per cent of the rows that are deleted, and the case."""
    for case in records.where(workload=kind).names("case"):
        if case != NONE and ("delete files" not in case or case == _spread_over(case.split(",")[0], files)):
            yield _share(case), case


def _chart(records: Records) -> LineChart:
    panels = []
    for kind in (VECTORS, POSITIONS, EQUALITY):
        lines = []
        for engine in records.where(workload=kind).engines:
            own = records.where(engine=engine)
            found = [(share, _against_none(own, kind, case)) for share, case in _cases(own, kind)]
            points = tuple(LinePoint(x=share, y=it.ratio, low=it.low, high=it.high) for share, it in found)
            lines.append(Line(series=engine, points=points))
        panels.append(LinePanel(title=f"{kind.split(',')[0].capitalize()}, all over the table", lines=tuple(lines)))
    largest = f"{max(share for share, _ in _cases(records, VECTORS)):.1f}%"
    first = records.where(engine=records.engines[0])
    said = ", ".join(
        f"{kind.split(',')[0]} {within(_against_none(first, kind, case))}"
        for kind, case in ((VECTORS, largest), (POSITIONS, largest), (EQUALITY, _spread_over(largest, 1)))
    )
    return LineChart(
        caption=f"With {largest} of the rows deleted a scan of {records.engines[0]} takes, relative to one without "
        f"deletes: {said}.",
        x_axis="per cent of the rows that are deleted",
        y_axis="times a scan without deletes",
        series=records.engines,
        panels=tuple(panels),
        level=1.0,
    )


def _by_share(records: Records) -> Table:
    kinds = records.names("workload")
    rows = [
        (plain(kind), Cell(text=f"{share:g} %"), *_ratios(records, kind, case))
        for kind in kinds
        for share, case in _cases(records, kind)
    ]
    return Table(
        title="By the share of the rows",
        columns=("Deletes", "Deleted", *records.engines),
        rows=tuple(rows),
        note="Times a scan of the same data files without deletes, with the 95% interval, from samples of the same "
        f"rounds. {_left_out(records)} Equality deletes are in one delete file. {FEW}",
    )


def _left_out(records: Records) -> str:
    """Why engines have no figure of some kinds: most do not read them."""
    slow = [name for name in SLOW if name in records.engines and name not in records.where(workload=EQUALITY).engines]
    kind = "An engine without a figure does not read the kind"
    if not slow:
        return f"{kind}."
    return f"{kind}, except {listed(slow)}: it reads equality deletes, but takes minutes where many files have them."


def _by_files(records: Records) -> Table:
    found = records.where(workload=EQUALITY)
    cases = [case for case in found.names("case") if case.startswith(f"{ONE},")]
    return Table(
        title=f"Equality deletes of {ONE.replace('.0%', ' %')} of the rows, by how many files have them",
        columns=("Delete files", *found.engines),
        rows=tuple((Cell(text=case.split()[1]), *_ratios(found, EQUALITY, case, found.engines)) for case in cases),
        note="As above.",
    )


def _ratios(records: Records, kind: str, case: str, engines: tuple[str, ...] | None = None) -> Iterator[Cell]:
    scans = records.where(workload=kind)
    for engine in engines or records.engines:
        base, head = (scans.one(engine=engine, case=each) for each in (NONE, case))
        if base is None or head is None:
            yield NOT_MEASURED
        else:
            yield Cell(text=within(effect([(base, head)])) + few(base, head))
