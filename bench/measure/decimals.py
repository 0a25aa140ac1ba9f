"""Scanning decimals: every row of the table's decimal columns delivered, in rows a second."""

from __future__ import annotations

from bench.engines.engine import Ability
from bench.experiment import Repetitions
from bench.measure.recorder import CaseId, Evidence
from bench.measure.scans import checked_scans, right_engines, time_scans
from bench.measure.subject import Bench, Subject

NAME = "decimals"
SCAN = "scan"
"""The only case."""


def measure_decimals(bench: Bench, subject: Subject, often: Repetitions) -> None:
    """Record `scan_time` and `rows_per_second` for every engine that scans; engines whose rows differ are failures.

    A table without decimal columns, or without rows, is recorded as skipped.
    """
    case = CaseId(layout=subject.layout, measurement=NAME, case=SCAN)
    columns = subject.decimal_columns
    if not columns:
        bench.recorder.skip(case, "the table has no decimal column")
        return
    rounds = often.warmups + often.repetitions
    bench.progress(NAME, f"{subject.layout}: checking rows", 0, 1 + rounds)
    engines = bench.able(Ability.SCAN, subject, NAME)
    opened, checksums = checked_scans(bench, engines, subject.metadata_location, columns, case)
    right = right_engines(bench, case, subject.metadata_location, columns, checksums)
    if any(checksum.rows == 0 for checksum in checksums.values()):
        bench.recorder.skip(case, "the table has no rows")
        return

    def after_round(done: int, total: int) -> None:
        bench.progress(NAME, f"{subject.layout}: scanned in round {done} of {total}", 1 + done, 1 + total)

    scans = {name: table for name, table in opened.items() if name in right}
    timings = time_scans(bench, scans, columns, often, after_round=after_round)
    bench.recorder.fail_each(case, timings.errors)
    for engine, seconds in timings.seconds.items():
        rows = checksums[engine].rows
        evidence = Evidence(
            counters={"rows_returned": rows},
            checksum=checksums[engine].text,
            detail={"columns": ", ".join(columns)},
        )
        bench.recorder.record(case.of(engine), "scan_time", "s", seconds, evidence)
        bench.recorder.record(case.of(engine), "rows_per_second", "rows/s", [rows / s for s in seconds], evidence)
