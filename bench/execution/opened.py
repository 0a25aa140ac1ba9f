"""Tables opened by engines, with errors turned into recorded failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from icebench.bench.engines.engine import AnyEngine, EngineMissing, Forgetting, Quotable, TookTooLong
from icebench.bench.execution.trial import Recording
from icebench.bench.records.case import Case

R = TypeVar("R")


class FilterRefused(Exception):
    """An engine's parser does not take a filter."""


@dataclass(frozen=True)
class Opened:
    """A table in an engine's hands: its handle, and a filter in the engine's own form."""

    engine: AnyEngine
    location: str
    handle: Any
    filter: Any

    @classmethod
    def of(cls, engine: AnyEngine, location: str, filter: str | None) -> Opened:
        """Open the table and parse the filter.

        Raises:
            FilterRefused: The engine's own parser does not take the filter.
            Exception: Whatever opening the table raises.
        """
        handle = engine.open(location)
        try:
            return cls(engine, location, handle, engine.compile(handle, filter))
        except Exception as error:
            if filter is None:
                raise
            raise FilterRefused(f"{engine.name} does not take the filter: {error}") from error

    def forget(self) -> None:
        """Empty what the engine caches of tables besides its handles."""
        if isinstance(self.engine, Forgetting):
            self.engine.forget()

    def quoted(self, columns: Sequence[str] | None, filter: str | None) -> tuple[str, str]:
        """What a scan of these columns under this text of a filter asks in the engine's own words, or a plan where
        `columns` is None, and of which metadata file; both empty where the engine cannot say it."""
        query = self.engine.query(self.handle, columns, filter) if isinstance(self.engine, Quotable) else ""
        return query, self.location if query else ""

    def afresh(self) -> Opened:
        """The same table and filter with a new handle; nothing of the table is cached but its metadata."""
        self.forget()
        return Opened(self.engine, self.location, self.engine.open(self.location), self.filter)


def try_each(
    engines: Mapping[str, AnyEngine], attempt: Callable[[AnyEngine], R], recorder: Recording, case: Case
) -> dict[str, R]:
    """What `attempt` gives for every engine, without those for which it raised; their errors are recorded.

    An engine that cannot reach the table's store skips it, and so does one that takes too long. A filter that some
    engines refuse is one of their limits, and a case that they skip. A filter that all refuse is a failure.
    """
    results: dict[str, R] = {}
    refused: dict[str, FilterRefused] = {}
    for name, engine in engines.items():
        try:
            results[name] = attempt(engine)
        except FilterRefused as error:
            refused[name] = error
        except (EngineMissing, TookTooLong) as error:
            recorder.skip(case.of(name), str(error))
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; the run reports it and goes on
            recorder.fail(case.of(name), error)
    for name, refusal in refused.items():
        if len(refused) == len(engines):
            recorder.fail(case.of(name), refusal)
        else:
            recorder.skip(case.of(name), " ".join(str(refusal).split()))
    return results
