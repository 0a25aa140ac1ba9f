"""Scans: every row of some columns delivered, of one table or of several that are compared.

`Scanning` measures a table's decimals, what deletes cost, what a filter leaves, and the matrices of reading.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from icebench.bench.engines.checksum import Checksum
from icebench.bench.engines.engine import Ability, AnyEngine, Counting
from icebench.bench.engines.registry import ENGINES
from icebench.bench.errors import BenchError, Disagreement, WrongAnswer
from icebench.bench.execution.opened import Opened, try_each
from icebench.bench.execution.trial import Bench, Recording, TableTruth, Trial
from icebench.bench.records.case import EVERYTHING, Case, Evidence
from icebench.bench.truth.sql import Disputed, NoTruth

Delivered = Mapping[str, tuple[Opened, Checksum]]
"""By engine: the open table, and what it delivered."""

NOTHING: Delivered = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Scanning:
    """Scans that belong together.

    Args:
        case: The case that all of them share, whatever the configuration, filter and engine.
        tables: Configuration -> metadata file; the configuration is empty where there is one.
        columns: What is scanned.
        filters: Name -> SQL text; `EVERYTHING` has none.
        engines: Names of those that can read these tables; None for all.
        base: The configuration that the others are compared with; None where only engines are compared.
        same_rows: Whether every configuration must deliver the rows of the base.
        rows: Configuration -> how many rows it must deliver without a filter, where that is known.
        counters: Configuration -> what is known of its table, to be recorded with each scan.
        readers: Configuration -> names of those that can read it, where not all can.
        counts_work: Whether engines that can are asked for the work of planning, reading and storage.
        warm: Names of filters under which warm scans are measured in addition to cold ones.
        counts_deleted: Whether to count how many of the base's rows each configuration lacks.
        truth: Returns the ground truth for the rows of a configuration, and may raise NoTruth; None if there is only
            what the table's own files hold.
    """

    case: Case
    tables: Mapping[str, str]
    columns: Sequence[str]
    filters: Mapping[str, str | None] = field(default_factory=lambda: {EVERYTHING: None})
    engines: Sequence[str] | None = None
    base: str | None = None
    same_rows: bool = False
    rows: Mapping[str, int] = field(default_factory=dict)
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts_work: bool = False
    warm: Collection[str] = ()
    counts_deleted: bool = False
    truth: Callable[[str], TableTruth] | None = None

    def trials(self, bench: Bench) -> Iterator[Trial]:
        if not self.columns:
            bench.recorder.skip(self.case, "the table has no column to scan")
            return
        engines = bench.able(replace(self.case, filter="*"), Ability.SCAN, among=self.engines)
        wanted = [(name, text) for name, text in self.filters.items()]
        for done, (name, text) in enumerate(wanted):
            base = NOTHING
            # The base comes first, whatever its place: the others are compared with it.
            for configuration in sorted(self.tables, key=lambda each: each != self.base):
                case = replace(self.case, configuration=configuration, filter=name, cache="cold")
                bench.progress(case.measurement, f"{case.layout}: {case.label}, checking rows", done, len(wanted))
                found = self.delivered(bench, engines, case, text, base)
                base = found if configuration == self.base else base
                for cache in ("cold", "warm") if name in self.warm else ("cold",):
                    own_case = replace(case, cache=cache)
                    yield from (self._trial(own_case.of(e), *own, base.get(e)) for e, own in found.items())

    def delivered(
        self,
        bench: Bench,
        engines: Mapping[str, AnyEngine],
        case: Case,
        text: str | None = None,
        base: Delivered = NOTHING,
    ) -> Delivered:
        """The engines that deliver the right rows, and what they deliver; the others are recorded as failures.

        Args:
            bench: What it works with.
            engines: By name.
            case: Of all of them, with a configuration of `tables`.
            text: A filter.
            base: What was delivered of the base.
        """
        location = self.tables[case.configuration]
        readers = self.readers.get(case.configuration, tuple(engines))
        for name in (name for name in engines if name not in readers):
            bench.recorder.skip(case.of(name), f"{name} does not read {case.label}")
        engines = {name: engine for name, engine in engines.items() if name in readers}
        opened = try_each(engines, lambda engine: Opened.of(engine, location, text), bench.recorder, case)
        checksums = try_each(
            {name: engines[name] for name in opened},
            lambda engine: engine.checksum(opened[engine.name].handle, self.columns, opened[engine.name].filter),
            bench.recorder,
            case,
        )
        right = self._right_engines(bench, case, checksums, text)
        expected = self.rows.get(case.configuration) if text is None else None
        for name in sorted(right):
            difference = None
            if expected is not None and checksums[name].rows != expected:
                difference = f"delivers {checksums[name].rows} rows, not {expected}"
            elif self.same_rows and name in base and (found := checksums[name].difference(base[name][1])):
                difference = f"delivers other rows than from {self.base}: {found}"
            if difference is not None:
                bench.recorder.fail(case.of(name), WrongAnswer(difference))
                right.discard(name)
        if text is None and right and not any(checksums[name].rows for name in right):
            bench.recorder.skip(case, "the table has no rows")
            return {}
        return {name: (opened[name], checksums[name]) for name in opened if name in right}

    def _right_engines(self, bench: Bench, case: Case, found: Mapping[str, Checksum], text: str | None) -> set[str]:
        """The engines whose rows are the true ones; the others are recorded as failures.

        Without a truth, which is recorded as skipped, all engines must deliver the same rows: if they do not, nobody
        can say who is wrong, every engine is a failure and none is given. Where two evaluators dispute what is true,
        engines that differ are skipped, not failures.
        """
        if not found:
            return set()
        location = self.tables[case.configuration]
        try:
            truth = bench.truth(location) if self.truth is None else self.truth(case.configuration)
            answer = truth.answer(self.columns, text)
        except NoTruth as reason:
            bench.recorder.skip(case.of("oracle"), f"engines are only compared with each other: {reason}")
            return _unanimous(bench.recorder, case, found, disputed=isinstance(reason, Disputed))
        except BenchError as error:
            bench.recorder.fail(case.of("oracle"), error)
            return set()
        faults = {engine: fault for engine, own in found.items() if (fault := answer.fault_of(own)) is not None}
        for engine, fault in faults.items():
            try:
                more = "" if self.truth is None else self._verdict_of_files(bench, location, text, found[engine])
            except Disputed as dispute:
                bench.recorder.skip(
                    case.of(engine), f"delivers other rows ({fault}), and is not known wrong: {dispute}"
                )
            else:
                bench.recorder.fail(case.of(engine), WrongAnswer(f"delivers wrong rows: {fault}{more}"))
        return set(found) - set(faults)

    def _verdict_of_files(self, bench: Bench, location: str, text: str | None, found: Checksum) -> str:
        """What the table's own files show of a fault: whether the writer made it, or which of them a reader lacks.

        Raises:
            Disputed: Two evaluators differ on the rows of the files.
        """
        try:
            fault = bench.truth(location).answer(self.columns, text).fault_of(found)
        except Disputed:
            raise
        except (NoTruth, BenchError) as error:
            return f" (the table's files say no more: {error})"
        return f" ({'as the files of the table have them' if fault is None else f'of the table: {fault}'})"

    def _trial(self, case: Case, opened: Opened, checksum: Checksum, base: tuple[Opened, Checksum] | None) -> Trial:
        is_warm = case.cache == "warm"
        counters = {**self.counters.get(case.configuration, {}), "rows_returned": checksum.rows}
        if self.counts_work and isinstance(opened.engine, Counting):
            if is_warm:
                opened.engine.scan(opened.handle, self.columns, opened.filter)
            handle = opened.handle if is_warm else opened.afresh().handle
            counters = {**opened.engine.count_scan(handle, self.columns, opened.filter), **counters}
        if base is not None and self.counts_deleted:
            counters["rows_deleted"] = base[1].rows - checksum.rows
        text = self.filters[case.filter]
        held = base is not None and case.configuration != self.base and self.base is not None
        detail = {"columns": ", ".join(self.columns)[:1000], **({} if text is None else {"filter": text})}
        query, table = opened.quoted(self.columns, text)
        evidence = Evidence(
            counters=counters,
            checksum=checksum.text,
            detail={**detail, **(_kept(case.engine) if is_warm else {})},
            base=replace(case, configuration=self.base or "") if held else None,
            query=query,
            table=table,
        )
        return Trial(case=case, evidence=evidence, prepare=partial(_warm if is_warm else _cold, opened, self.columns))


def _unanimous(recorder: Recording, case: Case, checksums: Mapping[str, Checksum], *, disputed: bool) -> set[str]:
    first = next(iter(checksums.values()))
    how = next((found for c in checksums.values() if (found := first.difference(c))), None)
    if how is None:
        return set(checksums)
    answers = "; ".join(f"{name}: {checksum.rows} rows" for name, checksum in sorted(checksums.items()))
    for engine in checksums:
        if disputed:
            recorder.skip(
                case.of(engine), f"engines deliver different rows ({how}; {answers}), and none is known wrong"
            )
        else:
            recorder.fail(case.of(engine), Disagreement(f"engines deliver different rows ({how}; {answers})"))
    return set()


def _kept(engine: str) -> dict[str, str]:
    """What the engine keeps for a warm scan, where that is known."""
    keeps = ENGINES[engine].keeps if engine in ENGINES else ""
    return {"kept": keeps} if keeps else {}


def _cold(opened: Opened, columns: Sequence[str]) -> Callable[[], object]:
    opened.forget()
    return lambda: opened.engine.scan(opened.engine.open(opened.location), columns, opened.filter)


def _warm(opened: Opened, columns: Sequence[str]) -> Callable[[], object]:
    """With all that the scan just before leaves in the handle and in the engine."""

    def scan() -> object:
        return opened.engine.scan(opened.handle, columns, opened.filter)

    scan()
    return scan
