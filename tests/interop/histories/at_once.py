"""Engines that change one table at the same time, each the rows of its own keys: what it was answered is there."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from random import Random

import icebench
from icebench.errors import EngineError
from tests.interop.histories.actor_java import Java
from tests.interop.histories.actor_ours import Ours
from tests.interop.histories.actor_pyiceberg import PyIceberg
from tests.interop.histories.filters import Row, col
from tests.interop.histories.language import (
    Actor,
    Append,
    Change,
    Delete,
    Engine,
    Expire,
    RewriteData,
    RewriteManifests,
    Update,
    Upsert,
)
from tests.interop.histories.model import Model, bag
from tests.interop.histories.places import Place
from tests.interop.histories.playing import saying
from tests.interop.histories.readers import rows_of
from tests.interop.histories.shapes import PLAIN

CHANGES = 10
"""Of each engine at least; who is faster goes on until all have made as many."""
MOST_CHANGES = 20
KEYS = 1_000
"""From the first key of one engine to that of the next."""
ATTEMPTS = 20
LAYOUT: dict[Engine, list[Change]] = {
    "ours": [RewriteData(), RewriteManifests(), Expire(3)],
    "java": [RewriteData(), RewriteManifests(), Expire(3)],
}


@dataclass
class Writer:
    """One engine, its keys, and what of them the table holds.

    Args:
        engine: Its name.
        actor: It.
        ours: A handle of our engine, by which the writer looks at what came of a change.
        first: Its first key.
        rng: Where chance comes from.
    """

    engine: Engine
    actor: Actor
    ours: icebench.Table
    first: int
    rng: Random
    model: Model = field(default_factory=lambda: Model(tuple(PLAIN)))
    made: int = 0
    refused: int = 0
    unknown: int = 0
    errors: list[BaseException] = field(default_factory=list)

    def run(self, all_writers: list[Writer]) -> None:
        """All its changes; what fails is kept in `errors`."""
        try:
            while self.made < MOST_CHANGES and any(each.made < CHANGES and not each.errors for each in all_writers):
                change = self._draw()
                with saying(f"{self.engine} makes {change}"):
                    self._make(change)
        except BaseException as error:  # noqa: BLE001 - who began the thread raises it
            self.errors.append(error)

    def _draw(self) -> Change:
        rows = self.model.state().rows
        kind = self.rng.randrange(6 if self.engine in LAYOUT else 5)
        if kind < 2 or not rows:
            return Append([self._row(self.first + self.made * 10 + place) for place in range(self.rng.randrange(1, 6))])
        chosen = sorted(row["id"] for row in self.rng.sample(rows, min(len(rows), 2)))
        where = col("id") == chosen[0] if len(chosen) == 1 else col("id").isin(*chosen)
        if kind == 2:
            return Delete(where)
        if kind == 3 and self.engine in LAYOUT:
            return Update(where, {"n": self.rng.randrange(100), "p": self.rng.choice(["a", "z"])})
        if kind == 5:
            return self.rng.choice(LAYOUT[self.engine])
        return Upsert([*(self._row(each) for each in chosen), self._row(self.first + self.made * 10 + 9)])

    def _row(self, id: int) -> Row:
        return {"id": id, "p": self.rng.choice(["a", "b", None]), "n": self.rng.choice([None, 1, 2, 3])}

    def _make(self, change: Change) -> None:
        """Make a change until it is acknowledged. One that fails is there whole or not at all."""
        before = self.model.state().rows
        change.apply(self.model)
        after = self.model.state().rows
        for _ in range(ATTEMPTS):
            refusal = self._refusal(change)
            found = self.found()
            if refusal is None:
                assert found == bag(after), "acknowledged, and not what is there"
                break
            if found == bag(after) != bag(before):
                self.unknown += 1
                break
            assert found == bag(before), f"after {refusal!r} neither what was before it nor what is after it: {found}"
            self.refused += 1
            if not isinstance(change, Append | Delete | Update | Upsert):
                break
        else:
            raise AssertionError(f"refused {ATTEMPTS} times")
        self.made += 1

    def _refusal(self, change: Change) -> Exception | None:
        try:
            self.actor.perform(change)
        except Exception as error:
            # Others have errors of their own, and none but the rows is believed.
            if self.engine == "ours" and not isinstance(error, EngineError):
                raise
            return error
        return None

    def found(self) -> list[str]:
        """The rows of its keys, as the table has them now."""
        where = f"id >= {self.first} and id < {self.first + KEYS}"
        return bag(rows_of(self.ours.refresh().scan(where).to_arrow()))


def write_at_once(place: Place, name: str, engines: list[Engine], seed: int) -> list[Writer]:
    """Have each engine make its changes on a thread of its own; raises what any of them found."""

    def writer(number: int, engine: Engine) -> Writer:
        table, seen = place.ours.load_table(name), place.ours.load_table(name)
        actors: dict[Engine, Actor] = {
            "ours": Ours(table),
            "java": Java(place.spark, place.spark_catalog, table),
            "pyiceberg": PyIceberg(place.pyiceberg, table),
        }
        return Writer(engine, actors[engine], seen, number * KEYS, Random(f"{seed}-{number}"))

    writers = [writer(number, engine) for number, engine in enumerate(engines)]
    threads = [threading.Thread(target=each.run, args=(writers,), name=each.engine) for each in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in writers:
        for error in each.errors:
            raise error
    return writers
