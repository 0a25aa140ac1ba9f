"""Planning latency: from an opened table to the list of files, cold and warm (see `icebench.bench.engines.engine`),
from a disk cache, and in fresh processes. Every plan is looked at before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Protocol, cast

import numpy as np

from icebench.bench.engines.access import scheme_of
from icebench.bench.engines.engine import Ability, AnyEngine, CachesOnDisk, Plan, normalised
from icebench.bench.engines.iceberg_java import IcebergJava
from icebench.bench.engines.inflate import Inflate
from icebench.bench.errors import BenchError, Disagreement, WrongAnswer
from icebench.bench.execution.context import Context
from icebench.bench.execution.opened import Opened, try_each
from icebench.bench.execution.trial import Bench, Measurement, Timed, Trial
from icebench.bench.processes.fresh_plan import PLANNERS
from icebench.bench.processes.fresh_process import fresh_process
from icebench.bench.records.case import EVERYTHING, Case, Evidence
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.metadata_tables import rewritten_by_java
from icebench.bench.trials.commits import workspace
from icebench.bench.trials.plans import check_files, check_rows, plan_checksum
from icebench.bench.trials.subject import Subject, Unmeasured, described_table
from icebench.bench.truth.manifests import FileEntry
from icebench.bench.truth.metadata import load_table_json
from icebench.bench.truth.sql import NoTruth
from icebench.bench.workloads.described import DescribedWorkload
from icebench.bench.workloads.metadata_files import MetadataFiles, ordinal_of

NAME = "planning"
_JAVA = "iceberg-java"
_FRESH = (EVERYTHING, "metric")
"""Filters of described files that fresh processes plan."""


class Truth(Protocol):
    """What plans of a table are checked against."""

    abilities: ClassVar[tuple[Ability, ...]]
    """A planner must have one of these to be checked."""

    def check(self, plan: Plan, engine: AnyEngine, filter: str | None) -> Evidence:
        """What the plan did.

        Args:
            plan: Of the whole table, or under a filter.
            engine: Whose.
            filter: The filter's name; None without one.

        Raises:
            Disagreement: The plan lacks a file, or has one that it must not have.
        """
        ...

    def fewest(self, filter: str | None) -> int:
        """How many files a right plan has at least."""
        ...

    def doubt(self, filter: str) -> str | None:
        """Why it is unknown which files have rows that the filter keeps; None where it is known."""
        ...


@dataclass(frozen=True)
class TableFiles:
    """The files of a table that exists, by normalised path, and the rows of each that a filter keeps, by its name.
    `matching` may raise NoTruth and BenchError."""

    files: Mapping[str, FileEntry]
    matching: Callable[[str], Mapping[str, int]]
    abilities: ClassVar[tuple[Ability, ...]] = (Ability.PLAN,)

    def check(self, plan: Plan, engine: AnyEngine, filter: str | None) -> Evidence:
        check_files(plan, self.files, everything=filter is None)
        if filter is not None and self.doubt(filter) is None:
            check_rows(plan, self.matching(filter))
        return Evidence(counters=plan.counters, checksum=plan_checksum(plan, self.files))

    def fewest(self, filter: str | None) -> int:
        return len(self.files) if filter is None else 0

    def doubt(self, filter: str) -> str | None:
        try:
            self.matching(filter)
        except (NoTruth, BenchError) as error:
            return str(error)
        return None


@dataclass(frozen=True)
class DescribedFiles:
    """Files that are described and do not exist: what bounds leave room for is known from how they were made. A plan
    that lacks a file is wrong. One that has more is looser than bounds allow, and its counters say by how much."""

    files: MetadataFiles
    abilities: ClassVar[tuple[Ability, ...]] = (Ability.PLAN, Ability.COUNT_PLAN)

    def check(self, plan: Plan, engine: AnyEngine, filter: str | None) -> Evidence:
        if engine.name == Inflate.name:
            return Evidence(counters=plan.counters)
        kept = self.files.kept(filter)
        if Ability.PLAN in engine.abilities:
            planned = np.zeros(self.files.files, np.bool_)
            planned[[ordinal_of(path) for path in plan.files]] = True
            if missing := int((kept & ~planned).sum()):
                raise WrongAnswer(f"does not plan {missing} of {int(kept.sum())} files that may hold matching rows")
            beyond = int((planned & ~kept).sum())
        else:
            beyond = plan.counters["files_planned"] - int(kept.sum())
            if beyond < 0:
                raise WrongAnswer(f"plans {-beyond} files too few, of {int(kept.sum())} that may hold matching rows")
        pairs = plan.counters.get("delete_pairs")
        if pairs is not None and beyond == 0 and pairs != (left := self.files.delete_pairs(filter)):
            raise Disagreement(f"matches {pairs} deletes to data files, and bounds leave {left}")
        return Evidence(counters={**plan.counters, "files_beyond_bounds": beyond})

    def fewest(self, filter: str | None) -> int:
        return int(self.files.kept(filter).sum())

    def doubt(self, filter: str) -> str | None:
        return None


@dataclass(frozen=True, kw_only=True)
class Planning:
    """Plans of one table.

    Args:
        case: The table's, whatever the filter, cache and engine.
        location: Its metadata file.
        filters: Name -> SQL text.
        truth: What plans are checked against.
        engines: Names of those that are measured; None for all.
        fresh: Filters that fresh processes plan, `EVERYTHING` for none.
        floorless: Filters under which engines skip manifests, so that inflating all of them is no floor.
        workspace: Directory for what engines keep of manifests on disk, which is deleted; None where no plan from there
            is measured.
    """

    case: Case
    location: str
    filters: Mapping[str, str]
    truth: Truth
    engines: Sequence[str] | None = None
    fresh: Sequence[str] = ()
    floorless: Sequence[str] = ()
    workspace: Path | None = None

    def trials(self, bench: Bench) -> Iterator[Trial]:
        floor = {name: e for name, e in bench.engines.items() if name == Inflate.name and name in (self.engines or ())}
        others = [name for name in (bench.engines if self.engines is None else self.engines) if name not in floor]
        able = bench.able(replace(self.case, filter="*"), *self.truth.abilities, among=others)
        filters: dict[str, str | None] = {EVERYTHING: None, **self.filters}
        for done, (name, text) in enumerate(filters.items()):
            bench.progress(self.case.measurement, f"{self.case.layout}: {name}, checking plans", done, len(filters))
            engines = able if name in self.floorless else {**able, **floor}
            case = replace(self.case, filter=name)
            if text is not None and (doubt := self.truth.doubt(name)) is not None:
                bench.recorder.skip(case.of("oracle"), f"plans are not searched for files that they lack: {doubt}")
            for made in try_each(engines, partial(self._checked, bench, case, text), bench.recorder, case).values():
                yield from made
        for name in self.fresh:
            for engine in (name for name in PLANNERS if name in able):
                yield self._fresh(replace(self.case, cache="fresh", filter=name, engine=engine), filters[name])

    def _checked(self, bench: Bench, case: Case, text: str | None, engine: AnyEngine) -> list[Trial]:
        opened = Opened.of(engine, self.location, text)
        start = bench.clock()
        plan = engine.plan(opened.handle, opened.filter)
        seconds = bench.clock() - start
        if Ability.PLAN in engine.abilities and seconds < bench.pace.case_seconds:
            self._check_cold(bench, opened)
        found = self.truth.check(plan, engine, None if text is None else case.filter)
        query, table = opened.quoted(None, text)
        evidence = replace(found, detail={"filter": text or ""}, query=query, table=table)
        cold = Trial(
            case=replace(case, cache="cold", engine=engine.name),
            evidence=evidence,
            prepare=partial(_cold, opened),
            seconds=seconds,
        )
        # An engine that reports only the number of files (Polars) answers a repeated question from its former answer;
        # one for which one plan is too long keeps nothing that would make the next one shorter.
        if Ability.PLAN not in engine.abilities or seconds >= bench.pace.case_seconds:
            return [cold]
        trials = [cold, replace(cold, case=replace(cold.case, cache="warm"), prepare=partial(_warm, opened))]
        if self.workspace is not None and isinstance(engine, CachesOnDisk):
            directory = bench.resources.enter_context(workspace(self.workspace))
            prepare = partial(_from_disk, engine, opened, directory)
            self._check_from_disk(bench, opened, prepare)
            # Not quoted: a query does not say where its table's manifests are kept.
            unquoted = replace(evidence, query="", table="")
            trials.append(replace(cold, case=replace(cold.case, cache="disk"), prepare=prepare, evidence=unquoted))
        return trials

    def _check_cold(self, bench: Bench, opened: Opened) -> None:
        """Raise Disagreement where a fresh handle, of a table and filter that were planned before, plans by reading
        less than the manifest list."""
        read = self._bytes_read(bench, opened, partial(_cold, opened))
        if read is not None and read < (least := self._manifest_list_bytes()):
            raise Disagreement(
                f"claims a cold plan and reads {read} bytes, where the manifest list alone has {least}: "
                "something of the table is cached"
            )

    def _check_from_disk(self, bench: Bench, opened: Opened, prepare: Callable[[], Callable[[], object]]) -> None:
        """Raise Disagreement where such a plan reads the manifest list: what the directory has is mapped, not read."""
        read = self._bytes_read(bench, opened, prepare)
        if read is not None and read >= self._manifest_list_bytes() > 0:
            raise Disagreement(f"claims a plan from the disk cache and reads {read} bytes: it is not used")

    def _bytes_read(self, bench: Bench, opened: Opened, prepare: Callable[[], Callable[[], object]]) -> int | None:
        """How much the plan that is prepared reads; None where that is not known."""
        if bench.bytes_read(opened.engine.name) is None or scheme_of(self.location):
            return None
        plan = prepare()
        before = bench.bytes_read(opened.engine.name) or 0
        plan()
        return (bench.bytes_read(opened.engine.name) or 0) - before

    def _manifest_list_bytes(self) -> int:
        snapshot = load_table_json(self.location).snapshot or {}
        manifest_list = Path(normalised(snapshot.get("manifest-list", "")))
        return manifest_list.stat().st_size if manifest_list.is_file() else 0

    def _fresh(self, case: Case, text: str | None) -> Trial:
        """From starting a process to its finished plan."""
        fewest = self.truth.fewest(None if text is None else case.filter)
        own = [] if text is None else [text]
        arguments = ("icebench.bench.processes.fresh_plan", case.engine, self.location, *own)

        def start() -> Timed:
            return partial(fresh_process, arguments, least={"files": fewest})

        return Trial(case=case, evidence=Evidence(detail={"filter": text or ""}), prepare=start)


def _cold(opened: Opened) -> Callable[[], object]:
    fresh = opened.afresh()
    return lambda: fresh.engine.plan(fresh.handle, fresh.filter)


def _warm(opened: Opened) -> Callable[[], object]:
    """With all that the plan just before leaves in the handle and in the engine, whose caches cold cases empty."""

    def plan() -> object:
        return opened.engine.plan(opened.handle, opened.filter)

    plan()
    return plan


def _from_disk(engine: CachesOnDisk, opened: Opened, directory: Path) -> Callable[[], object]:
    """With what an earlier plan left in the directory, and nothing in memory."""
    opened.forget()
    if not any(directory.iterdir()):
        opened.engine.plan(engine.open_with_cache(opened.location, directory), opened.filter)
    handle = engine.open_with_cache(opened.location, directory)
    return lambda: opened.engine.plan(handle, opened.filter)


def measurements(subject: object, context: Context) -> Iterator[Measurement]:
    """Plans of a table with rows, or of described files in the manifests of each of their writers."""
    match subject:
        case Subject():
            truth = TableFiles(subject.files, lambda name: subject.matching.matching(subject.filters[name]))
            case = subject.case(NAME)
            yield Planning(case=case, location=subject.location, filters=subject.filters, truth=truth)
        case DescribedWorkload():
            own = described_table(subject, context)
            for writer in subject.writers:
                yield _described(subject, own, writer, context)


def _described(workload: DescribedWorkload, own: str, writer: str, context: Context) -> Measurement:
    """Plans of the table in the manifests of one of its writers."""
    name = workload.name if writer != _JAVA else f"{workload.name}, written by {_JAVA}"
    case, location = Case(workload=workload.name, layout=name, measurement=NAME), own
    if writer == _JAVA and _JAVA not in context.engines:
        return Unmeasured(case=case, reason=f"{_JAVA}, which would write the table, is missing")
    if writer == _JAVA:
        context.progress("tables", f"{name}: manifests", 0, 1)
        try:
            location = rewritten_by_java(own, cast("IcebergJava", context.engines[_JAVA]), DatasetCache(context.cache))
        except BenchError as error:
            return Unmeasured(case=case, error=error)
    return Planning(
        case=case,
        location=location,
        filters=workload.files.filters(),
        truth=DescribedFiles(workload.files),
        engines=(*(workload.engines or context.asked), Inflate.name),
        fresh=_FRESH if workload.fresh and writer != _JAVA else (),
        floorless=("partition",),
        workspace=context.cache if workload.disk_cache else None,
    )
