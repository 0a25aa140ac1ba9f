"""What the tests of measurements share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from icebench.bench.execution.run_file import RunWriter


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunWriter]:
    """An open run file."""
    with RunWriter(tmp_path / "run.jsonl", run_id="r", environment={"id": "e"}) as made:
        yield made
