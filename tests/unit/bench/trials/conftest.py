"""What several measurements are tested with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from icebench.bench.execution.run_file import RunWriter
from tests.unit.bench.execution.scripted import Clock, Recorded, recorded


@pytest.fixture
def bench_of(writer: RunWriter) -> Callable[..., Recorded]:
    """A bench of these engines that records."""
    return lambda *engines: recorded(writer, Clock(), *engines)
