"""Scans checked once, outside timing: every engine must deliver the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.engines.checksum import Checksum
from bench.engines.engine import AnyEngine
from bench.errors import Disagreement
from bench.experiment import Repetitions
from bench.measure.interleave import Case, Timings, interleave
from bench.measure.opened import Opened, try_each
from bench.measure.recorder import CaseId, Recorder
from bench.measure.subject import Bench


def checked_scans(
    bench: Bench, engines: Mapping[str, AnyEngine], location: str, columns: Sequence[str], case: CaseId
) -> tuple[dict[str, Opened], dict[str, Checksum]]:
    """Every engine's open table and the checksum of its rows; engines that fail are recorded and left out."""
    opened = try_each(engines, lambda engine: Opened.of(engine, location, None), bench.recorder, case)
    checksums = try_each(
        {name: engines[name] for name in opened},
        lambda engine: engine.checksum(opened[engine.name].handle, columns, opened[engine.name].filter),
        bench.recorder,
        case,
    )
    return {name: opened[name] for name in checksums}, checksums


def agreeing(recorder: Recorder, case: CaseId, checksums: Mapping[str, Checksum]) -> set[str]:
    """The engines whose rows are those that most engines deliver; the others are recorded as failures.

    Where no answer has more votes than another nobody can say who is wrong: every engine is a failure and none is
    given.
    """
    votes = Counter(checksum.text for checksum in checksums.values()).most_common()
    if len(votes) < 2:
        return set(checksums)
    if votes[0][1] == votes[1][1]:
        answers = "; ".join(f"{name}: {checksum.rows} rows" for name, checksum in sorted(checksums.items()))
        first, *others = checksums.values()
        how = next(filter(None, (first.difference(other) for other in others)))
        for engine in checksums:
            recorder.fail(case.of(engine), Disagreement(f"engines deliver different rows ({how}; {answers})"))
        return set()
    right = next(checksum for checksum in checksums.values() if checksum.text == votes[0][0])
    agreed = set()
    for engine, checksum in checksums.items():
        if difference := checksum.difference(right):
            message = f"delivers other rows than {votes[0][1]} engines do: {difference}"
            recorder.fail(case.of(engine), Disagreement(message))
        else:
            agreed.add(engine)
    return agreed


def time_scans(
    bench: Bench,
    scans: Mapping[str, Opened],
    columns: Sequence[str],
    often: Repetitions,
    *,
    after_round: Callable[[int, int], None],
) -> Timings:
    """Seconds of each named scan, interleaved; `after_round` is told how many rounds of how many are done."""
    return interleave(
        [Case(name, partial(_scan, opened, columns)) for name, opened in scans.items()],
        repetitions=often.repetitions,
        warmups=often.warmups,
        random=bench.random,
        executor=bench.executor,
        after_round=after_round,
    )


def _scan(opened: Opened, columns: Sequence[str]) -> Callable[[], object]:
    return lambda: opened.engine.scan(opened.handle, columns, opened.filter)
