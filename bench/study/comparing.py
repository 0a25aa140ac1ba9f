"""Two records of a run side by side, in the words of a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icebench.bench.execution.run_file import Run
from icebench.bench.experiment import parse_values
from icebench.bench.records.record import Record
from icebench.bench.report.charts import LinePoint, Point
from icebench.bench.report.compare import Records, between, bounds, confidence, median, pooled
from icebench.bench.report.quantities import digits, interval, quantity, times
from icebench.bench.statistics.claims import CONFIDENCE, Effect
from icebench.bench.study.page import Choice
from icebench.bench.workloads.definitions import RowsWorkload

ALONE = "at 95%, compared alone"
"""How sure it is that one of many does not differ from the best: intervals beside each other are not corrected."""
ATTAINED = "What an interval attains is in parentheses where few samples give less than 95%."
"""For the notes of tables with intervals that `attained` follows."""

FEWEST, MARK = 3, "†"
FEW = f"{MARK}: of fewer than {FEWEST} samples."
"""For the notes of tables with figures that `few` marks."""


def effect(cases: Sequence[tuple[Record, Record]]) -> Effect:
    """How many times the first of each pair the second takes, over all pairs. Rounds of two workloads are not the same
    rounds: pairs across workloads are compared as those of two runs are.

    Raises:
        ValueError: There is none, or a sample is not positive.
    """
    found = (pooled if all(base.workload == head.workload for base, head in cases) else between)(cases)
    if found is None:
        raise ValueError("nothing to compare")
    return found


def least_of(names: Sequence[str], over: Callable[[str, str], Effect]) -> str:
    """Which of several takes the least, where `over` gives how many times the first of two the second takes."""
    first = names[0]
    ratios = {name: 1.0 if name == first else over(first, name).ratio for name in names}
    return min(ratios, key=lambda name: ratios[name])


def within(found: Effect) -> str:
    """A ratio with its interval: ``4.1x [3.8, 4.4]``."""
    return f"{times(found.ratio)} [{digits(found.low)}, {digits(found.high)}]"


def few(*records: Record) -> str:
    """A mark where records share fewer rounds than `FEWEST`, or one has fewer samples."""
    rounds = set.intersection(*(set(record.places) for record in records))
    return MARK if len(rounds) < FEWEST else ""


def attained(record: Record) -> str:
    """What the interval of a record's median attains, where too few samples give less than 95 %: `` (87.5%)``."""
    share = confidence(record)
    return f" ({digits(100 * share)}%)" if 0 < share < CONFIDENCE else ""


def median_within(record: Record) -> str:
    """A median, its interval, and what that attains below 95 %: ``2.52 s [2.5, 2.58] (75%)``."""
    value, ends = median(record), bounds(record)
    within_ends = "" if ends is None else f" {interval(*ends, record.unit, like=value)}{attained(record)}"
    return f"{quantity(value, record.unit)}{within_ends}"


def choice(better: str, worse: str, of: str, cases: Sequence[tuple[Record, Record]]) -> Choice:
    """A choice that was timed, by pairs of what is chosen and what is not."""
    found = effect(cases)
    return Choice(better=better, worse=worse, of=of, ratio=found.ratio, low=found.low, high=found.high)


def only(records: Records, **wanted: str) -> Record:
    """The record of these values.

    Raises:
        ValueError: There is none.
    """
    record = records.one(**wanted)
    if record is None:
        raise ValueError(f"the run has no record of {', '.join(wanted.values())}")
    return record


def varied(run: Run, axis: str) -> dict[str, str]:
    """The values of an axis, by its short name, and the layout that has each, where one layout is varied one axis at a
    time.

    Raises:
        ValueError: The run has no such axis.
    """
    definition = parse_values(dict(run.environment["definition"]))
    levels = definition.axes.levels.get(axis)
    if levels is None:
        raise ValueError(f"the run has no axis {axis}")
    usual = definition.layouts[0].name
    return {level: f"{usual} ({axis}={level})" if place else usual for place, level in enumerate(levels)}


def rows_of(run: Run) -> int:
    """How many rows the first generated table of a run has.

    Raises:
        ValueError: It generates none.
    """
    definition = parse_values(dict(run.environment["definition"]))
    made = next((each.rows.rows for each in definition.workloads if isinstance(each, RowsWorkload)), None)
    if made is None:
        raise ValueError("the run generates no rows")
    return made


def dot(record: Record, series: str, scale: float = 1.0) -> Point:
    """The median of a record and its interval, to be drawn; `scale` turns its unit into the axis's."""
    ends = bounds(record)
    low, high = (None, None) if ends is None else (ends[0] * scale, ends[1] * scale)
    return Point(series=series, value=median(record) * scale, low=low, high=high)


def line_point(x: float, record: Record, scale: float = 1.0) -> LinePoint:
    """The median of a record and its interval at a place of a line."""
    ends = bounds(record)
    low, high = (None, None) if ends is None else (ends[0] * scale, ends[1] * scale)
    return LinePoint(x=x, y=median(record) * scale, low=low, high=high)
