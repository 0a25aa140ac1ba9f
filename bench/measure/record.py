"""One measured quantity of one case: what was measured, on what, by which engine, and every raw sample."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from bench.experiment import MEASUREMENTS
from bench.statistics.summary import summarize

_KNOWN = (*MEASUREMENTS, "reading", "commits")
"""What experiments of any kind measure."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One metric of one case.

    A case is (`layout`, `engine`, `measurement`, `case`); `case` names the filter, delete variant or column set, and
    `detail` holds what the names stand for (the filter's text, the columns), so that a record can be read alone. The
    metrics are named in ``docs/design/measuring.md``; their units are "s", "rows/s" and "ratio".
    Samples are in `unit`; sample i was taken in round i, and every case of a measurement ran once in each round, so
    that the samples of two engines on one layout and case are pairs. `summary` is derived from the samples by
    `bench.statistics`. `counters` are exact work counts of the engine for this case, never clocks. `checksum`
    identifies the rows that the case delivered, equal for every engine that is right. `environment` is the id of the
    run's environment.
    """

    run_id: str
    time: str
    experiment: str
    workload: str
    scale: float | None
    layout: str
    engine: str
    engine_version: str
    measurement: str
    case: str
    metric: str
    unit: str
    samples: tuple[float, ...]
    summary: Mapping[str, float | int | None] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    checksum: str | None = None
    environment: str
    detail: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.measurement not in _KNOWN:
            raise ValueError(f"unknown measurement {self.measurement!r}; known: {', '.join(_KNOWN)}")
        if not self.summary:
            object.__setattr__(self, "summary", summarize(self.samples).as_dict())

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What makes a record unique in its run: layout, engine, measurement, case, metric."""
        return (self.layout, self.engine, self.measurement, self.case, self.metric)

    def as_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The record that `as_json` gave.

        Raises:
            ValueError: A field is missing, unknown or of the wrong type.
        """
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"unknown field {unknown[0]!r}")
        if missing := sorted(known - set(values)):
            raise ValueError(f"no field {missing[0]!r}")
        _check_types(values)
        return cls(**{**values, "samples": tuple(values["samples"])})


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """Something that was asked for and not measured, and why. `layout` and `case` are "*" where all are meant."""

    engine: str
    measurement: str
    reason: str
    layout: str = "*"
    case: str = "*"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Something that went wrong; a run with a failure has failed. `kind` is the class of the error."""

    kind: str
    message: str
    engine: str = "*"
    measurement: str = "*"
    layout: str = "*"
    case: str = "*"

    def __str__(self) -> str:
        where = "/".join(part for part in (self.layout, self.measurement, self.case, self.engine) if part != "*")
        return f"{where}: {self.message}" if where else self.message


_TEXT = ("run_id", "time", "experiment", "workload", "layout", "engine", "engine_version", "measurement", "case",
         "metric", "unit", "environment")  # fmt: skip


def _check_types(values: Mapping[str, Any]) -> None:
    samples = values["samples"]
    checks = {
        **{name: isinstance(values[name], str) for name in _TEXT},
        "samples": isinstance(samples, list) and bool(samples) and all(type(v) in (int, float) for v in samples),
        "counters": _is_mapping_to(values["counters"], int),
        "detail": _is_mapping_to(values["detail"], str),
        "summary": _is_mapping_to(values["summary"], int, float, type(None)),
        "scale": isinstance(values["scale"], int | float | None),
        "checksum": isinstance(values["checksum"], str | None),
    }
    if wrong := next((name for name, right in checks.items() if not right), None):
        raise ValueError(f"field {wrong!r} is {json.dumps(values[wrong])[:60]}")


def _is_mapping_to(value: object, *kinds: type) -> bool:
    return isinstance(value, dict) and all(isinstance(v, kinds) for v in value.values())
