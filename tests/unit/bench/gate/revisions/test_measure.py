from __future__ import annotations

import json
import socket
from pathlib import Path
from random import Random

import pytest

from icebench.bench.gate.decisions.history import Measured
from icebench.bench.gate.revisions.measure import measure


class Scripted:
    """A side whose processes take these seconds, one after the other."""

    name = "scripted"

    def __init__(self, *seconds: float) -> None:
        self.seconds = iter(seconds)

    def run(self, module: str, *arguments: str, beside: socket.socket | None = None, **_: float) -> str:
        assert beside is None
        case = {"seconds": [next(self.seconds)]}
        if "--count" not in arguments:
            return json.dumps({"a": case})
        counted = {**case, "counters": {"files_planned": 3, "function_calls": 1000}}
        return json.dumps({"cases": {"a": counted}, "environment": {"python": "3.11"}})


@pytest.mark.parametrize(
    ("head", "ratio"),
    [((3.0, 1.5, 8.0), 3.0), ((4.0, 1.0), 2.0)],  # of two pairs the geometric mean
)
def test_the_ratio_is_the_median_of_pairs_which_are_kept(head: tuple[float, ...], ratio: float) -> None:
    reference = Scripted(*[1.0] * len(head))
    found, environment = measure(
        Scripted(*head), reference, Path("warehouse"), ["a"], pairs=len(head), random=Random(1)
    )
    assert found == {"a": Measured(ratio=ratio, samples=head, counters={"files_planned": 3})}
    assert environment == {"python": "3.11"}
