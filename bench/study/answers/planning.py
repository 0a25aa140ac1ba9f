"""How planning grows with files, columns and manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from icebench.bench.execution.run_file import Run
from icebench.bench.experiment import parse_values
from icebench.bench.records.record import Record
from icebench.bench.report.charts import Line, LineChart, LinePanel, LinePoint
from icebench.bench.report.compare import Records, median
from icebench.bench.report.model import Cell, Table, plain
from icebench.bench.report.quantities import count
from icebench.bench.report.tables import NOT_MEASURED
from icebench.bench.study.comparing import ATTAINED, choice, effect, line_point, median_within, only, within
from icebench.bench.study.page import Page
from icebench.bench.workloads.described import DescribedWorkload
from icebench.bench.workloads.metadata_files import NARROW, MetadataFiles

METRIC = "latency_cold"
_FROM_DISK, _WARM = "latency_disk", "latency_warm"
ALL, MONTH = "all", "partition"

Tables = Mapping[str, MetadataFiles]
"""Described tables by the name of their workload."""


def answer(run: Run) -> Page:
    """What a cold plan takes by files, by columns, by manifests, and by their order."""
    described = _described(run)
    planned = Records(run.records).where(measurement="planning")
    records = planned.where(metric=METRIC).competing
    engine = records.engines[0]
    own = records.where(engine=engine)
    by_files = _clustered(
        described, lambda files: files.columns == NARROW and not files.manifests, lambda files: files.files
    )
    scattered = next(name for name, files in described.items() if not files.clustered)
    ordered = next(name for name in by_files if described[name].files == described[scattered].files)
    wide = max(described, key=lambda name: described[name].columns)
    by_columns = _clustered(described, lambda files: files.files == described[wide].files, lambda files: files.columns)
    listed = {name: _manifests(own, name) for name, files in described.items() if files.manifests or name == ordered}
    by_manifests = sorted(listed, key=listed.__getitem__)
    most, one = by_manifests[-1], by_manifests[0]
    grown = effect([_pair(own, by_files[0], by_files[-1], ALL)])
    widened = effect([_pair(own, by_columns[0], wide, ALL)])
    many, single = _pair(own, ordered, most, ALL), _pair(own, ordered, one, MONTH)
    order = _pair(own, ordered, scattered, MONTH)
    largest = only(own, workload=by_files[-1], case=ALL)
    return Page(
        answer=f"{engine} plans {by_files[-1]} in {median_within(largest)}, {within(grown)} the time of {by_files[0]}; "
        f"with {count(described[wide].columns, 'column')} in place of {described[by_columns[0]].columns} a plan of "
        f"{count(described[wide].files, 'file')} takes {within(widened)} as long. {ordered} in "
        f"{count(listed[most], 'manifest')} take {within(effect([many]))} as long as in {listed[ordered]}; a filter on "
        f"the month takes {within(effect([single]))} as long where all files are in {count(listed[one], 'manifest')}, "
        f"and {within(effect([order]))} where months are scattered over manifests.",
        chart=LineChart(
            caption=_caption(records, by_files[-1]),
            x_axis="files, columns, or manifests",
            y_axis="milliseconds of a cold plan",
            series=records.engines,
            panels=(
                _panel(f"By files, of {NARROW} columns", records, {name: described[name].files for name in by_files}),
                _panel(
                    f"By columns, of {count(described[wide].files, 'file')}",
                    records,
                    {name: described[name].columns for name in by_columns},
                ),
                _panel(f"By manifests, of {ordered}", records, {name: listed[name] for name in by_manifests}),
            ),
        ),
        tables=(_times(records), _again(planned, by_files)),
        limits=(*_one_manifest(own, ordered, one), _of_columns(own, described, by_columns[0], wide)),
        choices=(
            choice(
                "manifests in the order of what is filtered (rewrite_manifests)",
                "months scattered over manifests",
                f"a cold plan of a month, of {ordered} ({engine})",
                [order],
            ),
            choice(
                f"{listed[ordered]} manifests (rewrite_manifests)",
                f"{listed[most]:,} manifests",
                f"a cold plan of {ordered} ({engine})",
                [many],
            ),
        ),
    )


def _one_manifest(own: Records, ordered: str, one: str) -> Iterator[str]:
    """That fewest manifests are best without a filter, where they are."""
    found = effect([_pair(own, ordered, one, ALL)])
    if found.high < 1:
        single = count(_manifests(own, one), "manifest")
        yield f"Without a filter {ordered} in {single} take {within(found)} as long as in {_manifests(own, ordered)}."


def _of_columns(own: Records, described: Tables, narrow: str, wide: str) -> str:
    """What else differs between the tables of few and of many columns."""
    return (
        f"More columns mean more manifests, too: {count(described[wide].files, 'file')} of "
        f"{count(described[wide].columns, 'column')} are in {count(_manifests(own, wide), 'manifest')}, those of "
        f"{described[narrow].columns} in {_manifests(own, narrow)}."
    )


def _described(run: Run) -> Tables:
    workloads = parse_values(dict(run.environment["definition"])).workloads
    return {each.name: each.files for each in workloads if isinstance(each, DescribedWorkload)}


def _clustered(
    described: Tables, wanted: Callable[[MetadataFiles], bool], by: Callable[[MetadataFiles], int]
) -> list[str]:
    found = [name for name, files in described.items() if files.clustered and wanted(files)]
    return sorted(found, key=lambda name: by(described[name]))


def _manifests(records: Records, workload: str) -> int:
    return int(only(records, workload=workload, case=ALL).counters["manifests_in_list"])


def _pair(records: Records, base: str, head: str, case: str) -> tuple[Record, Record]:
    return only(records, workload=base, case=case), only(records, workload=head, case=case)


def _cell(record: Record | None) -> Cell:
    return NOT_MEASURED if record is None else Cell(text=median_within(record))


def _caption(records: Records, largest: str) -> str:
    found = sorted(records.where(workload=largest, case=ALL).all, key=median)
    first, last = found[0], found[-1]
    return (
        f"A cold plan of {largest} takes {median_within(first)} with {first.engine}, the fastest, and "
        f"{median_within(last)} with {last.engine}."
    )


def _panel(title: str, records: Records, places: Mapping[str, int]) -> LinePanel:
    def points(engine: str) -> Iterator[LinePoint]:
        for workload, place in places.items():
            record = records.one(workload=workload, engine=engine, case=ALL)
            if record is not None:
                yield line_point(place, record, 1e3)

    return LinePanel(
        title=title, lines=tuple(Line(series=engine, points=tuple(points(engine))) for engine in records.engines)
    )


def _times(records: Records) -> Table:
    rows = [
        (
            plain(workload),
            plain("no filter" if case == ALL else "one month" if case == MONTH else "one item"),
            *(_cell(records.one(workload=workload, case=case, engine=engine)) for engine in records.engines),
        )
        for workload in records.names("workload")
        for case in records.where(workload=workload).names("case")
    ]
    return Table(
        title="Time of a cold plan",
        columns=("Files", "Filter", *records.engines),
        rows=tuple(rows),
        note=f"Median and its interval. {ATTAINED}",
    )


def _again(planned: Records, workloads: Sequence[str]) -> Table:
    """Plans of engines that kept something of an earlier one."""
    everything = planned.where(case=ALL)
    states = ((_FROM_DISK, "from the disk cache"), (_WARM, "warm"))
    columns = [
        (everything.where(metric=metric, engine=engine), f"{engine}, {state}")
        for metric, state in states
        for engine in everything.where(metric=metric).competing.engines
    ]

    return Table(
        title="Time of another plan",
        columns=("Files", *(title for _, title in columns)),
        rows=tuple((plain(name), *(_cell(own.one(workload=name)) for own, _ in columns)) for name in workloads),
        note="No filter. From the disk cache: the first plan of a new handle, with nothing in memory, where an "
        "earlier plan left decoded manifests on a local disk. Warm: another plan of the same handle.",
    )
