"""The simulated world: files, time, names and chance, all of which a seed decides, and the scheduler of actors.

Everything runs in one thread. An actor is a greenlet that runs the engine's own code; each of its calls to a store or a
catalog goes through `World.call`, where the schedule may let another actor run, fail the call, lose its answer, or end
the process.
"""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NoReturn, Protocol, TypeVar
from unittest import mock

from greenlet import greenlet

from icebench.engine.codec.avro.file import read_header
from icebench.engine.codec.avro.reading import block_columns
from icebench.engine.codec.manifests import manifest_list
from icebench.engine.codec.manifests import reader as manifest
from icebench.errors import EngineError, StorageFailed
from tests.simulation.schedule import Interrupt, Point

T = TypeVar("T")

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000
_MOST_CALLS = 5_000


class Died(BaseException):
    """The process of an actor ended: nothing that it would still do happens."""


class Violation(BaseException):
    """Something happened that must not; `kind` is the same however the text reads."""

    def __init__(self, kind: str, detail: str) -> None:
        self.kind = kind
        super().__init__(f"{kind}: {detail}")


def raising(error: Exception, after: Callable[[], object] = lambda: None) -> Callable[[], Any]:
    """A fault: carry something out, and raise."""

    def fault() -> NoReturn:
        after()
        raise error

    return fault


class Chooser(Protocol):
    """Decides what happens at each point."""

    def at(self, point: Point, what: str, others: Sequence[int]) -> Interrupt | None:
        """What interrupts this call; None: nothing. `others` are the actors that could run instead."""
        ...


class Replay:
    """Does what was recorded."""

    def __init__(self, interrupts: Mapping[Point, Interrupt]) -> None:
        self._interrupts = interrupts

    def at(self, point: Point, what: str, others: Sequence[int]) -> Interrupt | None:
        return self._interrupts.get(point)


@dataclass(eq=False)
class Actor:
    """One writer, and where it is."""

    index: int
    run: Callable[[Actor], None]
    operation: int = 0
    calls: int = 0
    is_dead: bool = False
    ids: int = 0
    greenlet: greenlet | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it is somewhere between its first line and its last."""
        return bool(self.greenlet)

    def resume(self) -> None:
        """Go on, or begin, until it stops."""
        assert self.greenlet is not None
        self.greenlet.switch(*(() if self.has_begun else (self,)))

    @property
    def is_done(self) -> bool:
        """Whether it has nothing left to do."""
        return self.greenlet is not None and self.greenlet.dead


@dataclass(frozen=True, slots=True)
class Event:
    """One line of what happened: an actor began or ended an operation, was interrupted, or committed."""

    actor: int
    kind: str
    text: str


@dataclass
class World:
    """Everything that one run has; see the module.

    `author` is whose call is carried out, where that is not what the running actor calls: actor, operation, and 0.
    """

    files: dict[str, tuple[bytes, int]]
    chooser: Chooser
    now_ms: int = START_MS
    ids: int = 0
    actors: list[Actor] = field(default_factory=list)
    current: Actor | None = None
    events: list[Event] = field(default_factory=list)
    trace: list[tuple[int, int, str, str]] | None = None
    failure: Violation | None = None
    author: Point | None = None
    _hub: greenlet | None = None
    _next: int = -1
    _total: int = 0

    # Time and names.

    def sleep(self, seconds: float) -> None:
        """Pass time, and let others run."""
        self.now_ms += int(seconds * 1000)
        self.call("sleep", "", lambda: None)

    def monotonic(self) -> float:
        """Seconds."""
        return self.now_ms / 1000

    def time_ms(self) -> int:
        """The clock of all actors and of the storage."""
        return self.now_ms

    def number(self) -> int:
        """One that was not given before; those of an actor depend on what it did itself alone."""
        if self.current is None:
            self.ids += 1
            return self.ids
        self.current.ids += 1
        return (self.current.index + 1) * 1_000 + self.current.ids

    def new_uuid(self) -> uuid.UUID:
        """Likewise."""
        return uuid.UUID(int=self.number(), version=4)

    def random_bytes(self, count: int) -> bytes:
        """Likewise; in place of `os.urandom`."""
        return self.number().to_bytes(count, "big")

    # Actors.

    def call(
        self,
        what: str,
        where: str,
        action: Callable[[], T],
        *,
        faults: Mapping[str, Callable[[], T]] = MappingProxyType({}),
    ) -> T:
        """Carry out a call of the running actor, unless the schedule has something else in mind.

        Args:
            what: The kind of call.
            where: For messages.
            action: Carries it out.
            faults: What happens instead at interrupts that this call has ways of its own for.
        """
        actor = self.current
        if actor is None:
            return action()
        if actor.is_dead:
            raise Died
        interrupt = self._arrive(actor, what, where)
        kind = None if interrupt is None else interrupt.kind
        if kind is None or kind in ("switch", "stall"):
            return action()
        if kind in ("die", "die-after"):
            self.note("dies", f"{'before' if kind == 'die' else 'after'} {what} {where}")
            if kind == "die-after":
                self._try(action)
            actor.is_dead = True
            raise Died
        self.note("fails", f"{what} {where}: {kind}")
        if kind in faults:
            return faults[kind]()
        if kind == "lose":
            action()
        raise StorageFailed(f"cannot {what} {where}: made to fail ({kind})")

    def point(self, what: str) -> None:
        """A point between calls, where others may run."""
        assert self.current is not None
        self._arrive(self.current, what, "")

    def as_now(self, action: Callable[[], object]) -> Callable[[], None]:
        """The same action, to be carried out later and laid to the actor and the operation that run now."""
        author = None if self.current is None else (self.current.index, self.current.operation, 0)

        def later() -> None:
            former, self.author = self.author, author
            try:
                action()
            finally:
                self.author = former

        return later

    def note(self, kind: str, text: str) -> None:
        """Add to what happened."""
        self.events.append(Event(-1 if self.current is None else self.current.index, kind, text))

    def fail(self, kind: str, detail: str) -> None:
        """Note a violation; the first one counts, and ends the run."""
        if self.failure is None:
            self.failure = Violation(kind, detail)

    def run(self) -> None:
        """Let the actors run until all are done, or something went wrong."""
        self._hub = greenlet.getcurrent()
        for actor in self.actors:
            actor.greenlet = greenlet(actor.run)
        chosen = 0
        while not self.is_over:
            waiting = [actor for actor in self.actors if not actor.is_done]
            if not waiting:
                break
            actor = next((each for each in waiting if each.index == chosen), waiting[0])
            self.current, self._next = actor, -1
            actor.resume()
            self.current = None
            chosen = self._next
        self._end_all()

    @property
    def is_over(self) -> bool:
        """Whether something went wrong."""
        return self.failure is not None

    def _end_all(self) -> None:
        for actor in self.actors:
            if actor.has_begun:
                actor.is_dead, self.current = True, actor
                actor.resume()
        self.current = None

    def _arrive(self, actor: Actor, what: str, where: str) -> Interrupt | None:
        self.now_ms += 1
        self._total += 1
        if self._total > _MOST_CALLS:
            raise AssertionError(f"more than {_MOST_CALLS} calls: {what} {where}")
        point = (actor.index, actor.operation, actor.calls)
        actor.calls += 1
        if self.trace is not None:
            self.trace.append((actor.index, self.now_ms, what, where))
        others = [each.index for each in self.actors if each is not actor and not each.is_done]
        interrupt = self.chooser.at(point, what, others)
        if interrupt is None:
            return None
        if interrupt.kind == "stall":
            self.now_ms += interrupt.to * DAY_MS
            self.note("stalls", f"for {interrupt.to} days before {what} {where}")
        elif interrupt.kind == "switch" and interrupt.to in others:
            self.note("stops", f"before {what} {where}")
            self._next = interrupt.to
            assert self._hub is not None
            self._hub.switch()
            if actor.is_dead:
                raise Died
            self.note("goes on", f"with {what} {where}")
        return interrupt

    @staticmethod
    def _try(action: Callable[[], Any]) -> None:
        with suppress(EngineError):
            action()


class _Present:
    world: World | None = None


@contextmanager
def present(world: World) -> Iterator[World]:
    """The world whose names `os.urandom` gives."""
    former, _Present.world = _Present.world, world
    try:
        yield world
    finally:
        _Present.world = former


@contextmanager
def deterministic() -> Iterator[None]:
    """A block in which the engine's defaults of chance and threads are the present world's; not for other threads."""
    own = threading.get_ident()
    urandom = os.urandom

    def chance(count: int) -> bytes:
        if _Present.world is None or threading.get_ident() != own:
            return urandom(count)
        return _Present.world.random_bytes(count)

    with (
        mock.patch.object(manifest, "decode_objects", _remembering(block_columns.decode_objects)),
        mock.patch.object(manifest_list, "decode_objects", _remembering(block_columns.decode_objects)),
        mock.patch.object(os, "urandom", chance),
        mock.patch.object(os, "sched_getaffinity", create=True, return_value={0}),
    ):
        yield


def _remembering(decode: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of bytes, which remembers results: schedules decode the same manifests again and again."""

    @lru_cache(20_000)
    def decoded(data: bytes, selection: Any, keys: tuple[int, ...]) -> Any:
        return decode(data, read_header(data), selection, keys=keys)

    def remembered(data: bytes, header: object, selection: Any, *, keys: Sequence[int] = (), **_: object) -> Any:
        return decoded(data, selection, tuple(keys))

    return remembered


class Drawn:
    """Draws interrupts, and records them."""

    def __init__(self, rng: random.Random, *, switches: float, faults: Sequence[str], fault_rate: float) -> None:
        self._random = rng.random
        self._rng = rng
        self._switches = switches
        self._faults = faults
        self._fault_rate = fault_rate
        self._left = 2
        self.recorded: dict[Point, Interrupt] = {}

    def at(self, point: Point, what: str, others: Sequence[int]) -> Interrupt | None:
        interrupt = self._drawn(what, others)
        if interrupt is not None:
            self.recorded[point] = interrupt
        return interrupt

    def _drawn(self, what: str, others: Sequence[int]) -> Interrupt | None:
        if others and self._random() < self._switches * (3 if what in _DECISIVE else 1):
            return Interrupt("switch", self._rng.choice(others))
        if self._faults and self._left and what != "begin" and self._random() < self._fault_rate:
            self._left -= 1
            kind = self._rng.choice(self._faults)
            return Interrupt(kind, self._rng.choice((1, 4)) if kind == "stall" else 0)
        return None


_DECISIVE = frozenset({"begin", "write", "commit", "load", "sleep"})
"""Calls before which it is likely to matter what others do."""
