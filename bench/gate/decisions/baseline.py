"""The baseline: what each case counted when it was last accepted, and its JSON form (a line per counter)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icebench.bench.errors import ConfigError

FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """What one case did.

    Args:
        counters: Exact work counters by name; no negative values.
        checksum: Of the answer (the rows, or the set of planned files), independent of their order.
        snapshot: That the answer is of; empty where the case makes its table, and the answer is always the same.
            Answers of different snapshots are not compared.
    """

    counters: Mapping[str, int]
    checksum: str
    snapshot: str = ""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Accepted results by case, and what the counters that are not exact depend on (names and versions)."""

    cases: Mapping[str, CaseResult] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def encode(baseline: Baseline) -> str:
    """The JSON text of a baseline: sorted, one counter per line, ending in a newline."""
    return (
        json.dumps(
            {
                "format": FORMAT,
                "environment": dict(sorted(baseline.environment.items())),
                "cases": {
                    name: {
                        "checksum": case.checksum,
                        **({"snapshot": case.snapshot} if case.snapshot else {}),
                        "counters": dict(sorted(case.counters.items())),
                    }
                    for name, case in sorted(baseline.cases.items())
                },
            },
            indent=2,
        )
        + "\n"
    )


def decode(text: str) -> Baseline:
    """The baseline in a JSON text.

    Raises:
        ConfigError: Not JSON, another format number, or a value of the wrong type; the message gives the path.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"not JSON, {error.msg}", path=f"line {error.lineno}, column {error.colno}") from error
    top = _mapping(document, "the file")
    if top.get("format") != FORMAT:
        raise ConfigError(f"is {top.get('format')!r}, this version reads {FORMAT}", path="format")
    cases = _mapping(top.get("cases"), "cases")
    environment = _mapping(top.get("environment"), "environment")
    return Baseline(
        cases={name: _case(value, f"cases.{name}") for name, value in cases.items()},
        environment={name: _text(value, f"environment.{name}") for name, value in environment.items()},
    )


def _case(value: object, path: str) -> CaseResult:
    case = _mapping(value, path)
    counters = _mapping(case.get("counters"), f"{path}.counters")
    return CaseResult(
        counters={name: _count(n, f"{path}.counters.{name}") for name, n in counters.items()},
        checksum=_text(case.get("checksum"), f"{path}.checksum"),
        snapshot=_text(case.get("snapshot", ""), f"{path}.snapshot"),
    )


def _mapping(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"an object is expected, found {_found(value)}", path=path)
    return value


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"a text is expected, found {_found(value)}", path=path)
    return value


def _count(value: object, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigError(f"a whole number from 0 up is expected, found {_found(value)}", path=path)
    return value


def _found(value: object) -> str:
    return "nothing" if value is None else json.dumps(value)[:40]
