"""What campaigns share: the process that forks writers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fault.fork_server import ForkServer


@pytest.fixture(scope="session")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Forks processes that run jobs of `tests.fault.writer`."""
    with ForkServer("tests.fault.writer", tmp_path_factory.mktemp("writers") / "stderr.log") as server:
        yield server
