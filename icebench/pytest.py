"""A pytest plug-in: the fixture `iceberg_gate` fails a test if a query plans more of an Iceberg table than allowed.

::

    def test_one_user(iceberg_gate):
        events = icebench.load_table("wh/db/events")
        iceberg_gate.check(events.scan("user_id = 77"), files=3, bytes=20_000_000)  # at most
        iceberg_gate.check(events.scan("user_id = 77"))  # what was accepted: `pytest --icebench-accept`

Counts are exact, so a check that passes once also passes on a busy machine. pytest loads this module wherever icebench
is installed; the first check loads the engine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import icebench
    from icebench.bench.gate.cases.planned_work import PlannedWork

__all__ = ["IcebergGate"]

_ACCEPT = "--icebench-accept"
_PROPERTY = "iceberg_gate"
"""The report property that carries counts to the process that writes baselines; with pytest-xdist this is not the
process of the test."""
_COLLECTED = "iceberg_gate_collected"
"""The name under which a worker of pytest-xdist hands over the ids of its tests."""


class IcebergGate:
    """Compares the plans of scans with limits, or with a baseline; the value of the fixture `iceberg_gate`.

    Args:
        request: The request of a test.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._item: pytest.Item = request.node
        self._accepts: bool = request.config.getoption(_ACCEPT)
        benchmark = request.getfixturevalue("benchmark") if "benchmark" in request.fixturenames else None
        self._extra_info: dict[str, Any] = getattr(benchmark, "extra_info", {})
        self._names: set[str] = set()

    def check(
        self,
        scan: icebench.Scan,
        name: str | None = None,
        *,
        files: int | None = None,
        bytes: int | None = None,  # noqa: A002 - as `files`: what is limited
        delete_files: int | None = None,
        manifests: int | None = None,
        requests: int | None = None,
    ) -> PlannedWork:
        """Plan a scan as a new process would, without manifests decoded before, and fail if the plan exceeds a limit.

        Each count may reach its limit; counts without a limit are not compared. Without any limit, counts may reach the
        baseline of the test module, ``test_events.icebench.json`` beside ``test_events.py``; bytes may exceed it by
        5 %. ``--icebench-accept`` writes baselines instead of comparing with them.

        Args:
            scan: A scan from `icebench.Table.scan`.
            name: Distinguishes the scans of one test in the baseline; by default they are numbered.
            files: Maximum number of data files.
            bytes: Maximum size of these data files.
            delete_files: Maximum number of delete files and deletion vectors that apply to them.
            manifests: Maximum number of manifests that planning reads.
            requests: Maximum number of storage requests by planning.

        Returns:
            The counts. In a test with the fixture `benchmark` of pytest-benchmark, its `extra_info` has them, too.

        Raises:
            AssertionError: A count exceeds its limit or the baseline, or the baseline does not have the scan.
            ConfigError: The baseline cannot be decoded.
            EngineError: The scan cannot be planned.
            TypeError: `scan` is not an `icebench.Scan`.
            ValueError: The test has already checked a scan of this name.
        """
        __tracebackhide__ = True
        # local import: pytest loads this module at its start, for tests of other things, too
        from icebench.bench.cli import gate_tests
        from icebench.bench.gate.cases import planned_work
        from icebench.engine.scan import Scan

        if not isinstance(scan, Scan):
            raise TypeError(f"a scan of `icebench.Table.scan` is expected, not {type(scan).__name__}")
        label = self._label(name)
        test = self._item.nodeid.partition("::")[2]
        case = f"{test}/{label}" if label else test
        work = planned_work.planned_work(scan)
        counters = dict(work.counters)
        self._extra_info.update({f"{label}/{counter}" if label else counter: n for counter, n in counters.items()})
        given = {
            planned_work.FILES: files,
            planned_work.BYTES: bytes,
            planned_work.DELETE_FILES: delete_files,
            planned_work.MANIFESTS: manifests,
            planned_work.REQUESTS: requests,
        }
        limits = {counter: limit for counter, limit in given.items() if limit is not None}
        if limits:
            compared = gate_tests.compare_with_limits(limits, counters)
        elif self._accepts:
            self._report(case=case, counters=counters)
            return work
        else:
            compared = gate_tests.compare_with_baseline(self._item.path, case, counters)
        if compared.faults:
            raise AssertionError(compared.message(scan, counters))
        if compared.less:
            self._report(less=list(compared.less))
        return work

    def _label(self, name: str | None) -> str:
        label = name or ("" if not self._names else str(len(self._names) + 1))
        if label in self._names:
            raise ValueError(f"this test has checked a scan named {label!r}; give another name")
        self._names.add(label)
        return label

    def _report(self, **found: object) -> None:
        self._item.user_properties.append((_PROPERTY, {"module": str(self._item.path), **found}))


@pytest.fixture
def iceberg_gate(request: pytest.FixtureRequest) -> IcebergGate:
    """Fails the test if a scan plans more files, bytes, delete files, manifests or requests than allowed:
    ``iceberg_gate.check(table.scan("id = 7"), files=3)``, or without limits, than in the test module's baseline.
    """
    return IcebergGate(request)


class _Session:
    """Collects the reports of a session, in the process that receives all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._accepts: bool = config.getoption(_ACCEPT)
        self._cases: dict[Path, dict[str, dict[str, int]]] = {}
        self._passed: dict[Path, set[str]] = {}
        self._collected: dict[Path, set[str]] = {}
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or not report.passed:
            return
        module, test = self._place(report.nodeid)
        for name, found in report.user_properties:
            if name == _PROPERTY and isinstance(found, dict):
                module = Path(found["module"])
                self._lines += found.get("less", ())
                if "case" in found:
                    self._cases.setdefault(module, {})[found["case"]] = found["counters"]
        self._passed.setdefault(module, set()).add(test)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        if self._accepts:
            self._collect(item.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401 - pytest-xdist, which has its type, may be missing
        for nodeid in getattr(node, "workeroutput", {}).get(_COLLECTED, ()):
            self._collect(nodeid)

    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workeroutput"):
            ids = [f"{module}::{test}" for module, tests in self._collected.items() for test in tests]
            self._config.workeroutput[_COLLECTED] = sorted(ids)
        elif self._accepts:
            self._lines = self._accept()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lines:
            terminalreporter.section("icebench")
            title = "Accepted:" if self._accepts else f"Less than the baseline; pytest {_ACCEPT} keeps it so:"
            for line in [title, *self._lines]:
                terminalreporter.write_line(line)

    def _accept(self) -> list[str]:
        from icebench.bench.cli.gate_tests import accept_cases, baseline_of  # local import: as in `IcebergGate.check`

        lines = []
        for module, passed in sorted(self._passed.items()):
            cases = self._cases.get(module, {})
            if cases or baseline_of(module).is_file():
                collected = None if self._collects_some() else self._collected.get(module)
                lines += accept_cases(module, cases, passed, collected)
        return lines or ["nothing: the baselines are as they were"]

    def _collects_some(self) -> bool:
        """Whether a module may have tests that pytest was not asked to collect."""
        return any("::" in each for each in self._config.args) or bool(self._config.getoption("lf", default=False))

    def _collect(self, nodeid: str) -> None:
        module, test = self._place(nodeid)
        self._collected.setdefault(module, set()).add(test)

    def _place(self, nodeid: str) -> tuple[Path, str]:
        path, _, test = nodeid.partition("::")
        return self._config.rootpath / path, test


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Adds the option that writes baselines."""
    group = parser.getgroup("icebench", "gates of Iceberg tables")
    group.addoption(_ACCEPT, action="store_true", help="write the baselines of iceberg_gate")
    # pytest rewrites the assertions of each distribution that has a plug-in: here it would compile a whole engine
    # again, and slow it down. There is no public way to opt out.
    marked = getattr(pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("icebench")


def pytest_configure(config: pytest.Config) -> None:
    """Follows the reports of the session."""
    config.pluginmanager.register(_Session(config), "icebench-session")
