"""The cost of applying deletes: the same scan of the same data files, with deletes and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.engines.checksum import Checksum
from bench.engines.engine import Ability
from bench.errors import Disagreement
from bench.experiment import Repetitions
from bench.measure.opened import Opened
from bench.measure.recorder import CaseId, Evidence, Recorder
from bench.measure.scans import checked_scans, right_engines, time_scans
from bench.measure.subject import Bench, Subject

NAME = "deletes"
NONE = "none"
"""The case without deletes."""


def measure_deletes(bench: Bench, subject: Subject, often: Repetitions) -> None:
    """Record `scan_time` without deletes and with every variant, and what a variant costs more, for every engine.

    All scans of all engines are interleaved, so that a cost is a difference within a round. Engines whose rows differ,
    or whose number of rows is not what the deletes leave, are failures. A table without deletes is recorded as
    skipped.
    """
    everything = CaseId(layout=subject.layout, measurement=NAME)
    if not subject.with_deletes or subject.without_deletes is None:
        bench.recorder.skip(everything, "the table has no deletes")
        return
    engines = bench.able(Ability.SCAN, subject, NAME)
    rounds = often.warmups + often.repetitions
    variants = {NONE: subject.without_deletes, **subject.with_deletes}
    scans: dict[tuple[str, str], Opened] = {}
    checksums: dict[str, dict[str, Checksum]] = {}
    for done, (variant, location) in enumerate(variants.items()):
        bench.progress(NAME, f"{subject.layout}: {variant}, checking rows", done, len(variants) + rounds)
        case = CaseId(layout=subject.layout, measurement=NAME, case=variant)
        opened, checksums[variant] = checked_scans(bench, engines, location, subject.delete_columns, case)
        right = right_engines(bench, case, location, subject.delete_columns, checksums[variant])
        good = right & _counting(bench.recorder, case, subject, checksums)
        scans |= {(engine, variant): opened[engine] for engine in opened if engine in good}

    def after_round(done: int, total: int) -> None:
        text = f"{subject.layout}: scanned in round {done} of {total}"
        bench.progress(NAME, text, len(variants) + done, len(variants) + total)

    named = {f"{engine} {variant}": (engine, variant) for engine, variant in scans}
    opened_by_name = {name: scans[key] for name, key in named.items()}
    timings = time_scans(bench, opened_by_name, subject.delete_columns, often, after_round=after_round)
    for name, error in timings.errors.items():
        engine, variant = named[name]
        bench.recorder.fail(CaseId(layout=subject.layout, measurement=NAME, case=variant, engine=engine), error)
    seconds = {named[name]: values for name, values in timings.seconds.items()}
    for engine, variant in seconds:
        case = CaseId(layout=subject.layout, measurement=NAME, case=variant, engine=engine)
        _record(bench.recorder, case, seconds, checksums, columns=subject.delete_columns)


def _counting(
    recorder: Recorder, case: CaseId, subject: Subject, checksums: Mapping[str, Mapping[str, Checksum]]
) -> set[str]:
    """The engines whose rows with deletes are as many as their rows without, less the deleted ones."""
    without, deleted = checksums[NONE], subject.deleted_rows.get(case.case, 0)
    right = set()
    for engine, checksum in checksums[case.case].items():
        if engine not in without:
            continue
        if case.case in subject.deleted_rows and checksum.rows != without[engine].rows - deleted:
            message = f"delivers {checksum.rows} of {without[engine].rows} rows, of which {deleted} are deleted"
            recorder.fail(case.of(engine), Disagreement(message))
        else:
            right.add(engine)
    return right


def _record(
    recorder: Recorder,
    case: CaseId,
    seconds: Mapping[tuple[str, str], list[float]],
    checksums: Mapping[str, Mapping[str, Checksum]],
    *,
    columns: Sequence[str],
) -> None:
    engine, variant = case.engine, case.case
    own, without = seconds[engine, variant], seconds.get((engine, NONE))
    checksum = checksums[variant][engine]
    evidence = Evidence(
        counters={"rows_returned": checksum.rows, "rows_deleted": checksums[NONE][engine].rows - checksum.rows},
        checksum=checksum.text,
        detail={"columns": ", ".join(columns)},
    )
    recorder.record(case, "scan_time", "s", own, evidence)
    if variant != NONE and without is not None:
        pairs = list(zip(own, without, strict=True))
        recorder.record(case, "delete_cost", "s", [a - b for a, b in pairs], evidence)
        recorder.record(case, "delete_cost_ratio", "ratio", [(a - b) / b for a, b in pairs], evidence)
