"""What the tests made of a planted bug, and the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LEAST_KILLED = 0.95


class Verdict(StrEnum):
    """What became of a planted bug."""

    KILLED = "killed"
    KILLED_BY_OTHERS = "killed by others"
    """The tests that the catalogue names passed, others of the room failed: the catalogue is wrong."""
    SURVIVED = "SURVIVED"
    EXPLAINED = "makes no difference"
    WRONGLY_EXPLAINED = "WRONGLY EXPLAINED"
    """The catalogue says that it makes no difference, and a test failed."""
    MOVED = "moved"
    """The code is another by now, and the bug was not planted."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One bug's verdict. `failure` is pytest's first line of a test that failed."""

    room: str
    bug: str
    file: str
    verdict: Verdict
    survives: str
    seconds: float
    failure: str


def verdict(*, passed: bool, wide_passed: bool | None, explained: bool) -> Verdict:
    """What to make of the named tests, and of all tests of the room (None: not run)."""
    if passed and wide_passed is not False:
        return Verdict.EXPLAINED if explained else Verdict.SURVIVED
    if explained:
        return Verdict.WRONGLY_EXPLAINED
    return Verdict.KILLED_BY_OTHERS if passed else Verdict.KILLED


def figures(results: Sequence[Result], *, minutes: float) -> tuple[list[str], float]:
    """The table, a line a room, with what survived; and the share that was killed."""
    killed = {Verdict.KILLED, Verdict.KILLED_BY_OTHERS, Verdict.WRONGLY_EXPLAINED}
    tried = [result for result in results if result.verdict is not Verdict.MOVED]
    lines = ["", "| room | bugs | killed | by other tests | make no difference | survived | minutes |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for room in [*sorted({result.room for result in results}), "all"]:
        own = [result for result in results if room in {result.room, "all"}]
        columns = (set(Verdict), killed, {Verdict.KILLED_BY_OTHERS}, {Verdict.EXPLAINED}, {Verdict.SURVIVED})
        counts = [sum(result.verdict in counted for result in own) for counted in columns]
        took = minutes if room == "all" else sum(result.seconds for result in own) / 60
        lines.append(f"| {room} | {' | '.join(map(str, counts))} | {took:.1f} |")
    lines.append("")
    lines += [
        f"{result.verdict}: {result.file}: {result.bug}{result.survives and f' ({result.survives})'}"
        for result in results
        if result.verdict is not Verdict.KILLED
    ]
    share = sum(result.verdict in killed for result in tried) / len(tried) if tried else 1.0
    lines.append(f"{share:.1%} of {len(tried)} bugs killed")
    if moved := len(results) - len(tried):
        lines.append(f"warning: {moved} were not planted: place them in the code as it is now, or remove them")
    return lines, share
