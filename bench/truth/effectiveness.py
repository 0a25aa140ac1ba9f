"""How well a plan prunes: planned files against the files that hold a matching row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Effectiveness:
    """How a plan compares with the truth. Shares of nothing are 0, except `recall`, which is 1: nothing was missed."""

    recall: float
    false_positive_rate: float
    wasted_files_share: float
    files_planned_share: float
    bytes_planned_share: float
    files_matching_share: float


def effectiveness(sizes: Mapping[str, int], planned: Collection[str], matching: Collection[str]) -> Effectiveness:
    """The figures of one plan.

    Args:
        sizes: File -> bytes, for all files of the table.
        planned: The planned files, all among `sizes`.
        matching: The files that hold a matching row, all among `sizes`.
    """
    chosen, true = set(planned), set(matching)
    wasted = chosen - true
    return Effectiveness(
        recall=_share(len(chosen & true), len(true), of_nothing=1.0),
        false_positive_rate=_share(len(wasted), len(sizes) - len(true)),
        wasted_files_share=_share(len(wasted), len(chosen)),
        files_planned_share=_share(len(chosen), len(sizes)),
        bytes_planned_share=_share(sum(sizes[path] for path in chosen), sum(sizes.values())),
        files_matching_share=_share(len(true), len(sizes)),
    )


def _share(part: int, whole: int, *, of_nothing: float = 0.0) -> float:
    return part / whole if whole else of_nothing
