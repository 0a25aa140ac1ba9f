"""What regressed, as a page: verdicts, counters that differ, and flame graphs of both sides on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icebench.bench.gate.decisions.outcome import Outcome
from icebench.bench.gate.decisions.stacks import Frame, tree
from icebench.bench.report.html import page
from icebench.bench.report.quantities import quantity

_LEAST = 0.004
"""Of the longer side: narrower frames cannot be seen."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """A frame as it is drawn. `left` and `width` are percent of the whole graph; `heat` is how much more the head takes
    here, in percent of a full colour, negative where it takes less."""

    function: str
    title: str
    left: float
    width: float
    heat: int


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A flame graph: rows of boxes, the outermost call first."""

    title: str
    rows: Sequence[Sequence[Box]]


def render_regression(outcome: Outcome) -> str:
    """The page of an outcome."""
    cases = [
        (name, case, graphs(tree(case.stacks[0]), tree(case.stacks[1])))
        for name, case in outcome.cases.items()
        if case.stacks
    ]
    return page("regression.html.j2", outcome=outcome, cases=cases, quantity=quantity)


def graphs(base: Frame, head: Frame) -> list[Graph]:
    """Both sides on one scale, so that what is longer is slower; colours compare a frame with the same of the other."""
    scale = max(base.seconds, head.seconds) or 1.0
    return [_graph("base", base, head, scale, coloured=False), _graph("head", head, base, scale, coloured=True)]


def _graph(title: str, frame: Frame, other: Frame, scale: float, *, coloured: bool) -> Graph:
    rows: list[list[Box]] = []

    def place(frame: Frame, other: Frame | None, left: float, depth: int) -> None:
        if frame.seconds < _LEAST * scale:
            return
        if depth == len(rows):
            rows.append([])
        beside = other.seconds if other else 0.0
        label = f"{frame.function}: {quantity(frame.seconds, 's')}, {frame.seconds / scale:.1%}"
        rows[depth].append(
            Box(
                function=frame.function,
                title=f"{label}; the other side {quantity(beside, 's')}",
                left=round(100 * left / scale, 3),
                width=round(100 * frame.seconds / scale, 3),
                heat=round(max(-100.0, min(100.0, 400 * (frame.seconds - beside) / scale))) if coloured else 0,
            )
        )
        for callee in sorted(frame.callees.values(), key=lambda callee: callee.function):
            place(callee, other.callees.get(callee.function) if other else None, left, depth + 1)
            left += callee.seconds

    place(frame, other, 0.0, 0)
    return Graph(title=f"{title}: {quantity(frame.seconds, 's')} a run", rows=rows)
