"""How large a campaign is, where its chance comes from, and the catalogs that it is run on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import icebench

if TYPE_CHECKING:
    from tests.services.s3_server import S3Server, Transient

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
    """A catalog that several processes open.

    Args:
        arguments: Those of `icebench.load_catalog`.
        s3: Where its files are, if they are there; else calls of the process change them.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    s3: S3Server | None = None

    def open(self) -> icebench.Catalog:
        return icebench.load_catalog(**self.arguments)

    @contextmanager
    def killing(self, at: int, random: Random) -> Iterator[Callable[[int], None]]:
        """Have S3 kill a process when its request number `at` comes, before or after carrying it out. The process is
        the one whose id is given to the function; no answer reaches it."""
        assert self.s3 is not None
        process: SimpleQueue[int] = SimpleQueue()
        numbers = count()
        how: Transient = random.choice(["reset-before", "reset-after"])

        def kill(_: str) -> Transient | None:
            if next(numbers) != at:
                return None
            os.kill(process.get(timeout=60), signal.SIGKILL)
            return how

        self.s3.transient = kill
        try:
            yield process.put
        finally:
            self.s3.transient = lambda _: None


Kind = Callable[[Path, pytest.FixtureRequest], Place]


def directory(home: Path, _: pytest.FixtureRequest) -> Place:
    return Place({"address": f"{home}/wh"})


def sqlite(home: Path, _: pytest.FixtureRequest) -> Place:
    return Place({"address": f"sqlite:///{home}/catalog.db", "warehouse": f"{home}/wh"})


def postgresql(home: Path, request: pytest.FixtureRequest) -> Place:
    # A catalog of its own in the one database of all tests.
    arguments = {"address": request.getfixturevalue("postgres_url"), "warehouse": f"{home}/wh", "name": str(home)}
    return Place(arguments)


def rest(_: Path, request: pytest.FixtureRequest) -> Place:
    return Place({"address": request.getfixturevalue("rest_address")})


def s3(_: Path, request: pytest.FixtureRequest) -> Place:
    server, bucket = request.getfixturevalue("s3_server"), request.getfixturevalue("bucket")
    return Place({"address": f"s3://{bucket}/wh", **server.properties}, server)


KINDS = [directory, sqlite, postgresql]
REMOTE = [rest, s3]
