"""What campaigns share: the process that forks writers, and the figures that they report."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.fault.fork_server import ForkServer

_FIGURES = "figures"


@pytest.fixture(scope="session")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Forks processes that run jobs of `tests.fault.writer`."""
    with ForkServer("tests.fault.writer", tmp_path_factory.mktemp("writers") / "stderr.log") as server:
        yield server


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Call it with named numbers: they are shown when all tests are over."""

    def record(**numbers: object) -> None:
        record_property(_FIGURES, ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in numbers.items()))

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows the figures of campaigns that passed."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == _FIGURES and "full" in report.nodeid:
                terminalreporter.write_line(f"{report.nodeid.rpartition('/')[2]} ({report.duration:.0f} s): {text}")
