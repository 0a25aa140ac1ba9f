"""What the storage of decimals costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Record
from icebench.bench.report.charts import DotChart, DotPanel, DotRow
from icebench.bench.report.compare import Records, best, median
from icebench.bench.report.model import Cell, Table, Tone, plain
from icebench.bench.report.quantities import listed, quantity
from icebench.bench.report.tables import NOT_MEASURED
from icebench.bench.statistics.claims import Effect
from icebench.bench.study.comparing import ATTAINED, choice, dot, effect, median_within, only, varied, within
from icebench.bench.study.page import Page

METRIC = "scan_time_cold"
WORKLOAD = "decimals"
NO_NULLS = ", 0% null"
PLAIN, DICTIONARY, FIXED, FIXED_DICTIONARY, LONG, LONG_FIXED, WIDE = (
    f"{storage}{NO_NULLS}"
    for storage in (
        "decimal(7,2) INT32, plain",
        "decimal(7,2) INT32, dictionary",
        "decimal(7,2) FIXED, plain",
        "decimal(7,2) FIXED, dictionary",
        "decimal(18,2) INT64, plain",
        "decimal(18,2) FIXED, plain",
        "decimal(38,2) FIXED, plain",
    )
)
CODEC, USUAL, SLOW = "compression-codec", "zstd", "gzip"
PAGES, FIRST, SECOND = "page-version", "v1", "v2"


def answer(run: Run) -> Page:
    """What precision, physical type, encoding and compression cost a scan of decimals."""
    records = Records(run.records)
    stored = records.where(measurement="reading", workload=WORKLOAD, metric=METRIC).competing
    scans = records.where(measurement="decimals", metric=METRIC).competing
    engine, codecs, pages = stored.engines[0], varied(run, CODEC), varied(run, PAGES)
    integers, dictionary, fixed, long, long_fixed, wide = (
        only(stored, engine=engine, case=case) for case in (PLAIN, DICTIONARY, FIXED, LONG, LONG_FIXED, WIDE)
    )
    usual, slow = (only(scans, engine=engine, layout=codecs[codec]) for codec in (USUAL, SLOW))
    first, second = (only(scans, engine=engine, layout=pages[version]) for version in (FIRST, SECOND))
    of = f"a scan here ({engine})"
    stored_as = [(integers, fixed), (long, long_fixed)]
    return Page(
        answer=f"In {engine} decimals of 7 digits as bytes of a fixed length take "
        f"{within(effect([(integers, fixed)]))} the time of integers, of 38 digits "
        f"{within(effect([(integers, wide)]))}; integers of a thousand values in a dictionary take "
        f"{within(effect([(integers, dictionary)]))} the time of plain ones; files in {SLOW} take "
        f"{within(effect([(usual, slow)]))} the time of those in {USUAL}; pages of version 2 "
        f"{within(effect([(first, second)]))} the time of those of version 1.",
        chart=_chart(stored),
        tables=(
            _storages(stored),
            _written(records, scans, "Codec", codecs, "By compression, of twelve columns of decimal(7,2)"),
            _written(records, scans, "Data pages", pages, "By version of Parquet's data pages, of the same columns"),
        ),
        limits=tuple(_exceptions(stored)),
        choices=(
            choice("integers for decimals of 7 and 18 digits", "bytes of a fixed length", of, stored_as),
            choice("decimals that fit an integer (7 digits)", "decimals of 38 digits", of, [(integers, wide)]),
            choice(f"{USUAL} for decimals", SLOW, of, [(usual, slow)]),
        ),
    )


def _exceptions(stored: Records) -> Iterator[str]:
    """The engines in which bytes of a fixed length are not slower than integers, and those in which a dictionary makes
    them slower."""

    def over(engine: str, *pairs: tuple[str, str]) -> Effect:
        own = stored.where(engine=engine)
        return effect([(only(own, case=base), only(own, case=head)) for base, head in pairs])

    fixed = {engine: over(engine, (PLAIN, FIXED), (LONG, LONG_FIXED)) for engine in stored.engines}
    if fast := [f"{engine} ({within(found)})" for engine, found in fixed.items() if found.low <= 1]:
        yield f"Bytes of a fixed length are not slower than integers of 7 and 18 digits in {listed(fast)}."
    encoded = {engine: over(engine, (FIXED, FIXED_DICTIONARY)) for engine in stored.engines}
    if slow := [f"{engine} ({within(found)})" for engine, found in encoded.items() if found.low > 1]:
        yield f"A dictionary makes scans of 7 digits as bytes of a fixed length slower in {listed(slow)}."


def _chart(stored: Records) -> DotChart:
    cases = [case for case in stored.names("case") if case.endswith(NO_NULLS)]
    rows = tuple(
        DotRow(
            label=case.removesuffix(NO_NULLS).removeprefix("decimal"),
            points=tuple(dot(record, record.engine, 1e3) for record in stored.where(case=case).all),
        )
        for case in cases
    )
    fastest = {case: best(stored.where(case=case).all) for case in (PLAIN, WIDE)}
    said = " and ".join(
        f"{case.removesuffix(NO_NULLS)} takes {quantity(median(record), 's')} ({record.engine})"
        for case, record in fastest.items()
        if record is not None
    )
    return DotChart(
        caption=f"The same rows by how their decimals are stored: at the fastest {said}.",
        axis="milliseconds of a scan of four columns",
        log=True,
        series=stored.engines,
        panels=(DotPanel(title="Storage of decimals", rows=rows),),
    )


def _cells(records: Records, **wanted: str) -> Iterator[Cell]:
    """Medians of the engines, the least marked."""
    found = records.where(**wanted)
    least = best(found.all)
    for engine in records.engines:
        record = found.one(engine=engine)
        yield NOT_MEASURED if record is None else _cell(record, is_best=record is least)


def _cell(record: Record, *, is_best: bool) -> Cell:
    return Cell(text=median_within(record), tone=Tone.BEST if is_best else Tone.PLAIN)


def _storages(stored: Records) -> Table:
    return Table(
        title="By type, encoding and share of nulls",
        columns=("Storage", *stored.engines),
        rows=tuple((plain(case), *_cells(stored, case=case)) for case in stored.names("case")),
        note=f"Median of a cold scan of four columns and its interval; the least of a row stands out. {ATTAINED}",
    )


def _written(records: Records, scans: Records, axis: str, layouts: Mapping[str, str], title: str) -> Table:
    sizes = {layout: only(records, layout=layout, metric="build_bytes_on_disk") for layout in layouts.values()}
    return Table(
        title=title,
        columns=(axis, "Size", *scans.engines),
        rows=tuple(
            (
                plain(setting),
                Cell(text=quantity(median(sizes[layout]), "bytes")),
                *_cells(scans, layout=layout),
            )
            for setting, layout in layouts.items()
        ),
        note="As above; the size is of the whole table.",
    )
