"""Engines in a process of their own: those that need another Spark session or working directory than this process has.

A question and its answer go over a socket as pickles. Handles and compiled filters stay there, and are known here by
number.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pkgutil import resolve_name
from typing import Any, cast

from icebench.bench.engines.access import Access, absolute
from icebench.bench.engines.checksum import Checksum
from icebench.bench.engines.engine import (
    Ability,
    AnyEngine,
    EngineMissing,
    Forgetting,
    Plan,
    Querying,
    Quotable,
    TookTooLong,
)
from icebench.bench.engines.registry import EngineContext
from icebench.bench.errors import BenchError, EngineFailed
from icebench.bench.spark_session import SparkSettings, spark_session

_ENDING_SECONDS = 30


class Remote:
    """A handle or a compiled filter of the other process."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass(frozen=True)
class _Failure:
    """An exception there, which need not be known here."""

    is_missing: bool
    text: str
    seconds: float | None = None
    """Where it took too long: what was given."""


class OwnProcess:
    """An engine that scans and may answer queries, in a process of its own. It ends with this process, and when nothing
    refers to it.

    Args:
        factory: ``module:class`` of the engine, which is given an `EngineContext`.
        context: What the engines of this process share.
        settings: Of the Spark session there, if the engine starts one.

    Raises:
        EngineMissing: It is not installed or cannot work here.
        EngineFailed: The process ended.
    """

    def __init__(self, factory: str, context: EngineContext, settings: SparkSettings | None = None) -> None:
        self._access = context.access
        own, other = socket.socketpair()
        command = [sys.executable, "-m", "icebench.bench.engines.own_process", str(other.fileno())]
        with other:
            # In a group of its own it does not see Ctrl-C: a run stops after the sample.
            self.process = subprocess.Popen(
                command, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, process_group=0
            )
        self._connection = Connection(own.detach())
        weakref.finalize(self, _end, self._connection, self.process)
        self._dropped: list[int] = []
        self.name: str
        self.version: str
        self.abilities: frozenset[Ability]
        self.dialect: str
        self.name, self.version, self.abilities, self.dialect = self._ask("make", factory, settings)

    def forget(self) -> None:
        self._ask("forget")

    def open(self, metadata_location: str) -> Remote:
        return self._kept(self._ask("open", absolute(metadata_location), self._access(metadata_location)))

    def compile(self, handle: Remote, filter: str | None) -> Remote:
        return self._kept(self._ask("compile", handle.number, filter))

    def plan(self, handle: Remote, filter: Remote) -> Plan:
        raise AssertionError("planning is not among the abilities")

    def query(self, handle: Remote, columns: Sequence[str] | None, filter: str | None) -> str:
        text: str = self._ask("query", handle.number, None if columns is None else list(columns), filter)
        return text

    def scan(self, handle: Remote, columns: Sequence[str], filter: Remote) -> None:
        self._ask("scan", handle.number, list(columns), filter.number)

    def checksum(self, handle: Remote, columns: Sequence[str], filter: Remote) -> Checksum:
        found: Checksum = self._ask("checksum", handle.number, list(columns), filter.number)
        return found

    def open_tables(self, locations: Mapping[str, str]) -> Remote:
        there = {name: (absolute(location), self._access(location)) for name, location in locations.items()}
        return self._kept(self._ask("open_tables", there))

    def answer(
        self, tables: Remote, query: str, names: Sequence[str], seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._ask("answer", tables.number, query, list(names), seconds)
        return rows

    def kept(self) -> int:
        """How many handles and compiled filters are kept there."""
        count: int = self._ask("kept")
        return count

    def _kept(self, number: int) -> Remote:
        remote = Remote(number)
        weakref.finalize(remote, self._dropped.append, number)
        return remote

    def _ask(self, question: str, *arguments: object) -> Any:  # noqa: ANN401 - by question
        dropped, self._dropped[:] = self._dropped[:], []
        try:
            self._connection.send((question, arguments, dropped))
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            code = self.process.wait(_ENDING_SECONDS)
            raise EngineFailed(f"the engine's process ended with exit code {code}") from error
        if isinstance(answer, _Failure):
            if answer.seconds is not None:
                raise TookTooLong(answer.seconds)
            raise (EngineMissing if answer.is_missing else EngineFailed)(answer.text)
        return answer


def _end(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_ENDING_SECONDS)
        return
    process.kill()
    process.wait()


class _Served:
    """The engine in its process, with what `Remote`s stand for."""

    def __init__(self) -> None:
        self._engine: AnyEngine
        self._accesses: dict[str, Access] = {}
        self._kept: dict[int, Any] = {}
        self._next = 0

    def make(self, factory: str, settings: SparkSettings | None) -> tuple[str, str, frozenset[Ability], str]:
        make: Callable[[EngineContext], AnyEngine] = resolve_name(factory)
        self._engine = make(
            EngineContext(spark=partial(spark_session, settings or SparkSettings()), access=self._accesses.__getitem__)
        )
        served = self._engine.abilities & {Ability.SCAN, Ability.QUERY}
        return self._engine.name, self._engine.version, served, getattr(self._engine, "dialect", "")

    def forget(self) -> None:
        if isinstance(self._engine, Forgetting):
            self._engine.forget()

    def open(self, metadata_location: str, access: Access) -> int:
        self._accesses[metadata_location] = access
        return self._keep(self._engine.open(metadata_location))

    def compile(self, handle: int, filter: str | None) -> int:
        return self._keep(self._engine.compile(self._kept[handle], filter))

    def query(self, handle: int, columns: list[str] | None, filter: str | None) -> str:
        return self._engine.query(self._kept[handle], columns, filter) if isinstance(self._engine, Quotable) else ""

    def scan(self, handle: int, columns: list[str], filter: int) -> None:
        self._engine.scan(self._kept[handle], columns, self._kept[filter])

    def checksum(self, handle: int, columns: list[str], filter: int) -> Checksum:
        return self._engine.checksum(self._kept[handle], columns, self._kept[filter])

    def open_tables(self, tables: Mapping[str, tuple[str, Access]]) -> int:
        self._accesses.update(tables.values())
        return self._keep(self._querying.open_tables({name: location for name, (location, _) in tables.items()}))

    def answer(self, tables: int, query: str, names: list[str], seconds: float | None) -> list[tuple[Any, ...]]:
        return self._querying.answer(self._kept[tables], query, names, seconds)

    @property
    def _querying(self) -> Querying:
        return cast("Querying", self._engine)

    def kept(self) -> int:
        return len(self._kept)

    def drop(self, numbers: list[int]) -> None:
        for number in numbers:
            del self._kept[number]

    def _keep(self, what: object) -> int:
        self._next += 1
        self._kept[self._next] = what
        return self._next


def serve(connection: Connection) -> None:
    """Answer questions until the other side closes the connection."""
    served = _Served()
    while True:
        try:
            question, arguments, dropped = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        try:
            served.drop(dropped)
            answer = getattr(served, question)(*arguments)
        except ImportError as error:
            answer = _Failure(True, f"{error.name or error} is not installed: pip install 'icebench[peers]'")
        except EngineMissing as error:
            answer = _Failure(True, str(error))
        except TookTooLong as error:
            answer = _Failure(False, str(error), error.seconds)
        except BenchError as error:
            answer = _Failure(question == "make", str(error))
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is its answer
            answer = _Failure(False, f"{type(error).__name__}: {error}")
        connection.send(answer)


if __name__ == "__main__":
    # As it is imported there, not as `__main__`: what is pickled has the same name on both sides.
    module = resolve_name("icebench.bench.engines.own_process")
    module.serve(Connection(int(sys.argv[1])))
