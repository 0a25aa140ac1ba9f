"""Records put side by side: which is best, by how much, and how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from icebench.bench.engines.registry import ENGINES
from icebench.bench.errors import ConfigError
from icebench.bench.records.record import Record
from icebench.bench.statistics.claims import Effect, Series, effect_between, effect_of

FLOOR = "inflate"
_FLOORS = (FLOOR, "pyarrow")
"""Measured beside the engines without being one: never the best of them."""
IN_TICKS = "in ticks of 10 ms"
"""Of processor time that is too short for the clock of processes (`icebench.bench.processes.process_tree`)."""
_FEWEST_SECONDS = 0.1
"""Ten ticks."""


def ratio(base: Record, head: Record) -> Effect | None:
    """``head / base``, in pairs of the same rounds; None if a sample is not positive: a ratio to nothing says nothing.

    The effect is of this one case, and not corrected for others that are looked at beside it.
    """
    return pooled([(base, head)])


def pooled(cases: Sequence[tuple[Record, Record]]) -> Effect | None:
    """The effect over several cases, each a base and a head; None as for `ratio`, or of no cases."""
    if not cases or min(min(record.samples) for case in cases for record in case) <= 0:
        return None
    return effect_of([(series_of(base), series_of(head)) for base, head in cases])


def between(cases: Sequence[tuple[Record, Record]]) -> Effect | None:
    """The effect of one run against another over the cases of both; None as for `pooled`."""
    if not cases or min(min(record.samples) for case in cases for record in case) <= 0:
        return None
    return effect_between([(series_of(base), series_of(head)) for base, head in cases])


def series_of(record: Record) -> Series:
    """The record's samples, for statistics."""
    return Series(np.array(record.samples), np.array(record.places), record.spread)


def median(record: Record) -> float:
    """The median of a record's samples."""
    return _number(record, "median") or 0.0


def bounds(record: Record) -> tuple[float, float] | None:
    """The interval of the median, where there are samples enough for one."""
    low, high = _number(record, "ci_low"), _number(record, "ci_high")
    return None if low is None or high is None else (low, high)


def confidence(record: Record) -> float:
    """What the interval of the median attains; 0 without one."""
    return _number(record, "confidence") or 0.0


def spread(record: Record) -> float:
    """The interquartile range as a share of the median; 0 for one sample."""
    first, third, middle = (_number(record, name) for name in ("first_quartile", "third_quartile", "median"))
    return (third - first) / middle if first is not None and third is not None and middle else 0.0


def _number(record: Record, name: str) -> float | None:
    value = record.summary.get(name)
    return None if value is None else float(value)


def best(records: Iterable[Record]) -> Record | None:
    """The record of the lowest median, the first of equals; None of none. The floor is out of competition."""
    return min((record for record in records if record.engine not in _FLOORS), key=median, default=None)


def is_in_ticks(record: Record) -> bool:
    """Whether its samples are processor time of an engine that works in other processes, and less than ten ticks of
    their clock: one tick more or less is then what a comparison would see."""
    if record.unit != "s" or "cpu" not in record.metric or median(record) >= _FEWEST_SECONDS:
        return False
    try:
        entry = ENGINES[record.engine]
    except (ConfigError, KeyError):
        return False
    return entry.needs_spark or entry.own_process


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Records of which one is compared with the others.

    Args:
        leader: What the others are compared with; None of none.
        is_best: Whether it has the least median and takes no longer than any other in samples of the same rounds. The
            two may disagree, as one may have run in the calm rounds alone.
        effects: How many times the leader the others take, by engine, where that is known.
    """

    leader: Record | None
    is_best: bool
    effects: Mapping[str, Effect]


def beside(records: Iterable[Record]) -> Beside:
    """The records of several engines, each compared with the one of the least median; or if another takes less in
    samples of the same rounds, with the one that takes least. What `is_in_ticks` has no part in it."""
    timed = [record for record in records if not is_in_ticks(record)]
    first = best(timed)
    effects = _effects_on(first, timed)
    faster = [record for record in timed if record.engine in effects and record.engine not in _FLOORS]
    least = min(faster, key=lambda record: effects[record.engine].ratio, default=first)
    if least is None or least is first or effects[least.engine].ratio >= 1:
        return Beside(leader=first, is_best=first is not None, effects=effects)
    return Beside(leader=least, is_best=False, effects=_effects_on(least, timed))


def _effects_on(base: Record | None, records: Iterable[Record]) -> dict[str, Effect]:
    others = [] if base is None else [(record, ratio(base, record)) for record in records if record is not base]
    return {record.engine: found for record, found in others if found is not None}


def ordered(values: Iterable[str], order: Sequence[str] = ()) -> tuple[str, ...]:
    """The distinct values: those of `order` first, in its order, then others as they first come."""
    distinct = list(dict.fromkeys(values))
    return (*[v for v in order if v in distinct], *[v for v in distinct if v not in order])


def table_names(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    """Workload and layout -> what a table is called among those of the records: its layout, after the workload's name
    where several workloads have that layout."""
    tables = list(dict.fromkeys((r.workload, r.layout) for r in records))
    shared = Counter(layout for _, layout in tables)
    return {(work, layout): f"{work}, {layout}" if shared[layout] > 1 else layout for work, layout in tables}


@dataclass(frozen=True)
class Records:
    """The records of a run, to be asked by their fields; the orders are those of rows, columns and colours."""

    all: tuple[Record, ...]
    layout_order: tuple[str, ...] = ()
    engine_order: tuple[str, ...] = ()

    def where(self, **wanted: str) -> Records:
        """Those whose fields have these values."""
        found = tuple(r for r in self.all if all(getattr(r, name) == value for name, value in wanted.items()))
        return replace(self, all=found)

    def of_cases(self, start: str) -> Records:
        """Those of cases whose names begin so."""
        return replace(self, all=tuple(r for r in self.all if r.case.startswith(start)))

    @property
    def competing(self) -> Records:
        """Those of engines, without the floor."""
        return replace(self, all=tuple(r for r in self.all if r.engine not in _FLOORS))

    def by_workload(self) -> Iterator[tuple[str, Records]]:
        """The records of each workload, with its name where there are several, else an empty one. Workloads share no
        rounds, and may have layouts and cases of the same names: figures are compared within one."""
        names = self.names("workload")
        for name in names:
            yield (name if len(names) > 1 else ""), self.where(workload=name)

    def one(self, **wanted: str) -> Record | None:
        """The only record of these values, out of one workload and cache; None when there is none."""
        return next(iter(self.where(**wanted).all), None)

    def names(self, field: str) -> tuple[str, ...]:
        """The distinct values of a field, in the order in which they come."""
        return tuple(dict.fromkeys(getattr(r, field) for r in self.all))

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines that have records, in their order."""
        return ordered(self.names("engine"), self.engine_order)

    def cases(self) -> Iterator[tuple[str, str, Records]]:
        """Case, layout and their records: cases as they come, layouts in their order. What a case gave with several
        caches are several cases, whose names say which."""
        layouts = ordered(self.names("layout"), self.layout_order)
        for case in self.names("case"):
            own = self.where(case=case)
            caches = own.names("cache")
            for cache, layout in product(caches, layouts):
                if found := own.where(cache=cache, layout=layout):
                    yield (f"{case}, {cache}" if len(caches) > 1 else case), layout, found

    def __bool__(self) -> bool:
        return bool(self.all)
