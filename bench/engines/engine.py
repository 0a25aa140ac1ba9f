"""What an engine under test can do, and what of it is timed.

The timed regions are the same for every engine, so that a figure of one means what a figure of another means:

planning
    From an opened table to the complete list of data files (with their deletes and residuals) in memory.
    `Engine.open` comes before, untimed: it reads metadata.json and nothing below it. The first `plan` of a fresh handle
    is *cold*: no manifest of the table is in any cache of the process, though the operating system's page cache is warm
    and the code is. A second `plan` of the same handle is *warm* and may use whatever the engine keeps by default.
    Parsing the filter is included; converting the list to paths for comparison is not.
scanning
    From an opened table to the last value of the asked columns delivered: Arrow engines iterate over record batches and
    drop each, Spark engines write to Spark's ``noop`` sink. Planning and the application of deletes are included.
    Nothing is counted or summed inside the timed region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from bench.engines.checksum import Checksum

Handle = TypeVar("Handle")


class Ability(Enum):
    """What an engine can be asked for."""

    PLAN = "planning"
    SCAN = "scanning"


class EngineMissing(Exception):
    """The engine is not installed or cannot work here. It is reported as skipped, with this reason."""


class Plan:
    """A finished plan.

    Args:
        paths: Gives the paths of the planned data files, as the engine spells them; called once, outside timing.
        counters: Exact work counters of the planning, where the engine has them.
    """

    def __init__(self, paths: Callable[[], Iterable[str]], counters: Mapping[str, int] | None = None) -> None:
        self._paths = paths
        self.counters: Mapping[str, int] = dict(counters or {})

    @cached_property
    def files(self) -> frozenset[str]:
        """Normalised paths of the planned data files (see `normalised`)."""
        return frozenset(normalised(path) for path in self._paths())


class Engine(Protocol[Handle]):
    """An engine under test. A handle is whatever `open` gives; it is used by one thread, for one table.

    Errors of the engine itself (its own exceptions) come through unchanged; the harness records them as failures.
    """

    name: str
    version: str
    abilities: frozenset[Ability]

    def open(self, metadata_location: str) -> Handle:
        """A fresh handle of the table at that metadata.json, with nothing of the table cached but its metadata."""
        ...

    def plan(self, handle: Handle, filter: str | None) -> Plan:
        """Plan a scan of all columns; `filter` is SQL text, None for all rows. Timed."""
        ...

    def scan(self, handle: Handle, columns: Sequence[str], filter: str | None) -> Mapping[str, int]:
        """Deliver every live row that the filter keeps, and drop it. Gives the engine's work counters. Timed."""
        ...

    def checksum(self, handle: Handle, columns: Sequence[str], filter: str | None) -> Checksum:
        """The checksum of the rows that `scan` delivers, through the same reader. Not timed."""
        ...


def normalised(location: str) -> str:
    """A location with local schemes taken away, so that ``file:/a``, ``file:///a`` and ``/a`` are one."""
    parts = urlsplit(location)
    if parts.scheme != "file":
        return location
    return unquote(parts.path) if "%" in parts.path else parts.path
