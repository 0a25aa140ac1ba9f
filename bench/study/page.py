"""What a page of the study says, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from icebench.bench.report.charts import Chart
from icebench.bench.report.model import Table


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What one choice moves the cost by.

    Args:
        better: What is chosen, as a phrase: ``sort by the filtered column``.
        worse: Instead of what.
        of: Which cost, of which engine.
        ratio: How many times what is chosen the other costs.
        low: Lower end of the 95 % interval of that; None for a count or a model, which have none.
        high: Its upper end.
    """

    better: str
    worse: str
    of: str
    ratio: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Page:
    """The answer to a question.

    Args:
        answer: One sentence, with its interval.
        chart: The figure; its caption states what is seen.
        tables: Its figures, and others.
        limits: Where this run shows that the answer does not hold, beside those of the question.
        choices: For the ranking of all pages.
        modelled: The titles of the tables that have figures of the model of an object store.
        model_error: How far that model was off, where the run shows it: for the notes of such tables on all pages.
    """

    answer: str
    chart: Chart
    tables: tuple[Table, ...]
    limits: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    modelled: tuple[str, ...] = ()
    model_error: str = ""
