"""Tables opened by engines, with errors turned into recorded failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from bench.engines.engine import AnyEngine
from bench.measure.recorder import CaseId, Recorder

R = TypeVar("R")


@dataclass(frozen=True)
class Opened:
    """A table in an engine's hands: its handle, and a filter in the engine's own form."""

    engine: AnyEngine
    location: str
    handle: Any
    filter: Any

    @classmethod
    def of(cls, engine: AnyEngine, location: str, filter: str | None) -> Opened:
        """Open the table and parse the filter."""
        handle = engine.open(location)
        return cls(engine, location, handle, engine.compile(handle, filter))

    def afresh(self) -> Opened:
        """The same table and filter with a new handle, which has nothing cached."""
        return Opened(self.engine, self.location, self.engine.open(self.location), self.filter)


def try_each(
    engines: Mapping[str, AnyEngine], attempt: Callable[[AnyEngine], R], recorder: Recorder, case: CaseId
) -> dict[str, R]:
    """What `attempt` gives for every engine, without those for which it raised; their errors are recorded."""
    results: dict[str, R] = {}
    for name, engine in engines.items():
        try:
            results[name] = attempt(engine)
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; the run reports it and goes on
            recorder.fail(case.of(name), error)
    return results
