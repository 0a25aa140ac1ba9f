"""How large a campaign is, where its chance comes from, and the catalogs that it is run on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import icebench

Figures = Callable[..., None]
"""The fixture that takes a campaign's figures."""

SEED = int(os.environ.get("ICEBENCH_SEED", "1"))
"""Another seed makes another campaign; every message of a failure has what replays it."""

_SCALE = float(os.environ.get("ICEBENCH_SOAK_SCALE", "1"))


def sizes(sample: Any, full: Any, *, hours: float = 2.0) -> pytest.MarkDecorator:
    """The parameter `size` of a test: `sample` among the other tests, `full` in `make soak`."""
    full_marks = [pytest.mark.soak, pytest.mark.timeout(int(hours * 3600))]
    # Seconds, but for what a new checkout has to compile first.
    sampled = pytest.param(sample, id="sample", marks=pytest.mark.timeout(300))
    return pytest.mark.parametrize("size", [sampled, pytest.param(full, id="full", marks=full_marks)])


def scaled(count: int) -> int:
    """A full campaign's number, times what the environment's ICEBENCH_SOAK_SCALE says; at least 1."""
    return max(1, round(count * _SCALE))


@dataclass(frozen=True)
class Place:
    """A catalog that several processes open. `arguments` are those of `icebench.load_catalog`."""

    arguments: dict[str, Any] = field(default_factory=dict)

    def open(self) -> icebench.Catalog:
        return icebench.load_catalog(**self.arguments)


Kind = Callable[[Path, pytest.FixtureRequest], Place]


def directory(home: Path, _: pytest.FixtureRequest) -> Place:
    return Place({"address": f"{home}/wh"})


def sqlite(home: Path, _: pytest.FixtureRequest) -> Place:
    return Place({"address": f"sqlite:///{home}/catalog.db", "warehouse": f"{home}/wh"})


def postgresql(home: Path, request: pytest.FixtureRequest) -> Place:
    # A catalog of its own in the one database of all tests.
    arguments = {"address": request.getfixturevalue("postgres_url"), "warehouse": f"{home}/wh", "name": str(home)}
    return Place(arguments)


KINDS = [directory, sqlite, postgresql]
