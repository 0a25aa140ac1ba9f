"""Scans in fresh processes: processor time of the first scan and of the second, and memory.

What engines deliver is checked once, in this process; of a fresh process rows are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from icebench.bench.engines.engine import Ability
from icebench.bench.engines.pyarrow_files import PyArrowFiles
from icebench.bench.execution.trial import Bench, Timed, Trial
from icebench.bench.processes.fresh_process import fresh_process
from icebench.bench.processes.fresh_scan import SCANNERS
from icebench.bench.records.case import Case, Evidence
from icebench.bench.trials.scanning import Scanning
from icebench.bench.truth.metadata import load_table_json


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
        case = replace(self.case, cache="fresh")
        columns = self.columns or [column.name for column in load_table_json(self.location).columns]
        tables, rows = {case.configuration: self.location}, {case.configuration: self.rows}
        bench.progress(case.measurement, f"{case.layout}: {case.label}, checking rows", 0, 1)
        engines = bench.able(case, Ability.SCAN, among=[name for name in SCANNERS if name in self.engines])
        right = Scanning(case=case, tables=tables, columns=columns, rows=rows).delivered(bench, engines, case)
        checksums: dict[str, str | None] = {name: checksum.text for name, (_, checksum) in right.items()}
        if PyArrowFiles.name in bench.engines:  # no engine
            checksums[PyArrowFiles.name] = None
        for name, checksum in checksums.items():
            evidence = Evidence(counters={"rows_returned": self.rows}, checksum=checksum)
            yield Trial(case=case.of(name), evidence=evidence, prepare=partial(self._start, name))

    def _start(self, engine: str) -> Timed:
        arguments = ("icebench.bench.processes.fresh_scan", engine, self.location, *self.columns)
        return partial(fresh_process, arguments, exactly={"rows": self.rows})
