"""The samples behind the figures of a page, as the one JSON value that its script shows them from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from icebench.bench.records.record import Record
from icebench.bench.report.compare import bounds, confidence, median
from icebench.bench.report.model import Report
from icebench.bench.report.quantities import scaled
from icebench.bench.report.tables import meaning

_DIGITS = 4


class Evidence:
    """The records of a report's cells, each once; what many of them share is kept once as well."""

    def __init__(self, report: Report) -> None:
        found = {_key(record): record for record in _records(report)}
        self._places = {key: number for number, key in enumerate(found)}
        self._shared: dict[str, int] = {}
        self._cases = [self._case(record) for record in found.values()]

    def place(self, record: Record) -> int:
        """Which case of `data` it is."""
        return self._places[_key(record)]

    def data(self) -> dict[str, Any]:
        """The cases, and the values to which their places, names, counts, meaning and query are indices."""
        return {"shared": [json.loads(text) for text in self._shared], "cases": self._cases}

    def _case(self, record: Record) -> list[Any]:
        """Unit, samples in it, their interval and its confidence; places, names of counters, counts, meaning, query."""
        scale, unit = scaled(median(record), record.unit)
        ends = bounds(record) or ()
        return [
            unit,
            [_short(sample / scale) for sample in record.samples],
            [*(_short(end / scale) for end in ends), _short(100 * confidence(record))] if ends else [],
            self._once(record.places),
            self._once([name.replace("_", " ") for name in record.counters]),
            self._once(list(record.counters.values())),
            self._once(meaning(record)),
            self._once(record.query),
        ]

    def _once(self, value: object) -> int:
        return self._shared.setdefault(json.dumps(value), len(self._shared))


def _key(record: Record) -> tuple[object, ...]:
    """A page of two runs has two records of a case."""
    return (*record.key, record.samples)


def _records(report: Report) -> Iterator[Record]:
    for section in report.sections:
        for table in section.all_tables:
            yield from (cell.record for row in table.rows for cell in row if cell.record is not None)


def _short(value: float) -> float | int:
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded
