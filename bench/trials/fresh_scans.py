"""Scans in fresh processes: processor time of the first scan and of the second, and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from icebench.bench.engines.pyarrow_files import PyArrowFiles
from icebench.bench.execution.trial import Bench, Timed, Trial
from icebench.bench.processes.fresh_process import fresh_process
from icebench.bench.processes.fresh_scan import SCANNERS
from icebench.bench.records.case import Case, Evidence


@dataclass(frozen=True, kw_only=True)
class FreshScans:
    """Scans of a table, each in a process of its own.

    Args:
        case: The table's, whatever the engine.
        location: Its metadata file.
        rows: What a scan must give.
        engines: Names of those that read it.
        columns: What is scanned; none: every column.
    """

    case: Case
    location: str
    rows: int
    engines: Sequence[str]
    columns: Sequence[str] = ()

    def trials(self, bench: Bench) -> Iterator[Trial]:
        for name in SCANNERS:
            if name in bench.engines and name in (*self.engines, PyArrowFiles.name):
                case = replace(self.case, cache="fresh", engine=name)
                evidence = Evidence(counters={"rows_returned": self.rows})
                yield Trial(case=case, evidence=evidence, prepare=partial(self._start, name))

    def _start(self, engine: str) -> Timed:
        arguments = ("icebench.bench.processes.fresh_scan", engine, self.location, *self.columns)
        return partial(fresh_process, arguments, exactly={"rows": self.rows})
