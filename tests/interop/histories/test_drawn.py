"""Histories that chance draws, by three engines in turns and at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from icebench.bench.setup_jars import is_cached
from tests.fault.campaign import SEED, Figures, scaled, sizes
from tests.interop.histories.at_once import write_at_once
from tests.interop.histories.drawn import draw_history
from tests.interop.histories.filters import Where
from tests.interop.histories.language import Engine, History, Step
from tests.interop.histories.model import State
from tests.interop.histories.places import Place
from tests.interop.histories.playing import Play, saying
from tests.interop.histories.shapes import ON_READ, ON_WRITE, PLAIN

pytestmark = pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache")

STEPS, STEPS_OF_SAMPLE = 30, 12
READ_EACH = 6
"""Steps from one reading by all engines to the next; ours reads after each."""
Places = Callable[[str], Place]


class Drawn(Play):
    """A history that all engines read in between, too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.made, self.every = 0, self.readers.by_name

    def _step(self, step: Step) -> None:
        super()._step(step)
        self.made += 1
        if self.made % READ_EACH == 0:
            self._check_readers()

    def _check_readers(self, where: Where | None = None) -> None:
        files = self.table.inspect.files().to_pylist()
        of_vectors = {file["spec_id"] for file in files if file["file_format"] == "PUFFIN"}
        # PyIceberg refuses deletes by key that it sees; DuckDB exchanges vectors of several specs.
        without = {"PyIceberg"} if any(file["content"] == 2 for file in files) else set()
        without |= {"DuckDB"} if len(of_vectors) > 1 else set()
        self.readers.by_name = {name: read for name, read in self.every.items() if name not in without}
        super()._check_readers(where)


def seeds(size: int) -> range:
    first = SEED * 1_000_000
    return range(first, first + (size if size < 10 else scaled(size)))


@sizes(1, 150)
def test_engines_in_turns_leave_the_same_rows(size: int, place_of: Places, figures: Figures) -> None:
    steps: Counter[str] = Counter()
    for seed in seeds(size):
        history, version = draw_history(seed, STEPS_OF_SAMPLE if size == 1 else STEPS)
        with saying(f"history of seed {seed}: {history.steps}"):
            Drawn(history, version, place_of(history.catalog)).run()
        steps.update(step.engine for step in history.steps)
    figures(histories=size, **steps)


@sizes(1, 150)
def test_engines_at_the_same_time_lose_nothing(size: int, place_of: Places, figures: Figures) -> None:
    came: Counter[str] = Counter()
    for seed in seeds(size):
        with saying(f"seed {seed}"):
            came += play_at_once(seed, place_of)
    figures(histories=size, **came)


def play_at_once(seed: int, place_of: Places) -> Counter[str]:
    """Three writers beside each other; then every engine reads the rows of all."""
    rng = Random(seed)
    version = rng.choice([1, 2, 2, 3])
    engines: list[Engine] = ["ours", "java", "pyiceberg" if version < 3 else "ours"]
    history = History(
        name=f"at once, seed {seed}",
        columns=PLAIN,
        steps=[],
        partition=rng.choice([[], [("id", "bucket[4]")], [("id", "truncate[1000]")]]),
        properties=rng.choice([ON_READ, ON_WRITE]) if version > 1 else {},
        catalog=rng.choice(["sql", "rest"]),
        coda=(),
    )
    play = Drawn(history, version, place_of(history.catalog))
    writers = write_at_once(play.place, play.name, engines, seed)
    rows = tuple(row for writer in writers for row in writer.model.state().rows)
    play.model.branches["main"] = State(rows, play.model.columns, 0)
    play.table.refresh()
    play.run()
    return Counter(
        changes=sum(each.made for each in writers),
        refused=sum(each.refused for each in writers),
        unknown=sum(each.unknown for each in writers),
    )
