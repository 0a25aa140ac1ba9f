"""Scans of a table with rows: its decimals, what deletes add, and what filters leave."""

from __future__ import annotations

from collections.abc import Iterator

from icebench.bench.definition import one_of
from icebench.bench.execution.context import Context
from icebench.bench.execution.trial import Measurement
from icebench.bench.records.case import EVERYTHING, NONE
from icebench.bench.trials.scanning import Scanning
from icebench.bench.trials.subject import Subject, Unmeasured


def decimals(subject: object, context: Context) -> Iterator[Measurement]:
    """All rows of the decimal columns."""
    assert isinstance(subject, Subject)
    case = subject.case("decimals")
    columns = subject.chosen(context.options, subject.decimal_columns, "decimals.columns")
    if columns:
        yield Scanning(case=case, tables={"": subject.location}, columns=columns, truth=subject.truth)
    else:
        yield Unmeasured(case=case, reason="the table has no decimal column")


def deletes(subject: object, context: Context) -> Iterator[Measurement]:
    """The same data files without deletes and with each variant of them."""
    assert isinstance(subject, Subject)
    case = subject.case("deletes")
    columns = subject.chosen(context.options.columns, subject.scanned, "deletes.columns")
    if subject.without_deletes is None or not subject.with_deletes:
        yield Unmeasured(case=case, reason="the table has no deletes")
        return
    yield Scanning(
        case=case,
        tables={NONE: subject.without_deletes, **subject.with_deletes},
        columns=columns,
        base=NONE,
        readers=subject.readers,
        counts_deleted=True,
        truth=subject.truth,
    )


def filtered(subject: object, context: Context) -> Iterator[Measurement]:
    """The rows that each filter keeps, and all where the definition asks for them."""
    assert isinstance(subject, Subject)
    filters = {**({EVERYTHING: None} if context.options.everything else {}), **subject.filters}
    for index, name in enumerate(context.options.warm):
        one_of(name, filters, "filter", f"filtered.warm[{index}]")
    yield Scanning(
        case=subject.case("filtered"),
        tables={"": subject.location},
        columns=subject.chosen(context.options.columns, subject.scanned, "filtered.columns"),
        filters=filters,
        counts_work=True,
        warm=context.options.warm,
        truth=subject.truth,
    )
