"""A maintenance pass: the most gain per byte first, within the budget, each decision in the log.

Nothing is kept between passes: what is due follows from the table alone, so that the next pass finishes what was
interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any

import icebench
from icebench.bench.maintenance.decisions import Candidate, find_candidates
from icebench.bench.maintenance.policy import ACTIONS, Policy
from icebench.bench.maintenance.reads import TAG
from icebench.engine.display import size_text
from icebench.errors import CommitStateUnknown, EngineError

_AGAIN = "decided again once the actions above are done"
_UNTAGGED = ("expire_snapshots", "remove_orphan_files", "compute_table_stats", "compute_partition_stats")
"""Calls that make no snapshot."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One line of the log.

    Args:
        action: Its name in policies.
        decision: ``do`` (planned only), ``done``, ``skip`` or ``failed``.
        why: Figures, and what speaks against it.
        worth: See `Candidate`.
        gain_bytes: See `Candidate`.
        work_bytes: See `Candidate`.
        seconds: About what it takes; what it took where it is done.
        dollars: About what it costs.
        result: What the call returned, by name.
    """

    action: str
    decision: str
    why: str
    worth: str = ""
    gain_bytes: int = 0
    work_bytes: int = 0
    seconds: float = 0.0
    dollars: float = 0.0
    result: Mapping[str, int | float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass
class _Spent:
    actions: int = 0
    size_bytes: float = 0.0
    seconds: float = 0.0
    dollars: float = 0.0


def run_pass(
    table: icebench.Table, policy: Policy, *, execute: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[Decision]:
    """Decide, and carry it out if asked to; yields decisions as they are made.

    Raises:
        EngineError: The table could not be profiled. What an action raises goes into its decision, but for an unknown
            commit.
    """
    spent, tried = _Spent(), set[str]()
    while True:
        table.refresh()
        for each in find_candidates(table, table.maintenance.profile(columns=False), policy, decided=tried):
            refusal = _refusal(each, policy, spent)
            tried.add(each.action)
            if refusal is not None:
                yield _decision(each, policy, "skip", refusal)
                continue
            if not execute:
                yield _decision(each, policy, "do", _AGAIN if spent.actions else None)
                _spend(spent, each, policy, policy.seconds(each.work_bytes))
                continue
            started = clock()
            decision = _carry_out(table, each, policy)
            seconds = clock() - started
            _spend(spent, each, policy, seconds)
            yield replace(decision, seconds=seconds)
            break  # the table is another one now
        else:
            break
    for name in ACTIONS:
        if name not in tried:
            why = "not due" if name in policy.actions else "not in the policy"
            yield Decision(action=name, decision="skip", why=why)


def _refusal(candidate: Candidate, policy: Policy, spent: _Spent) -> str | None:
    """Why an action is not to be done; None if it is."""
    if candidate.needs_gain and candidate.gain_bytes < candidate.work_bytes:
        paid, moved = size_text(int(candidate.gain_bytes)), size_text(int(candidate.work_bytes))
        return f"readers have paid {paid} for the lack of it, opens included, and it moves {moved}"
    budget = policy.budget
    for what, used, limit in (
        ("bytes", spent.size_bytes + candidate.work_bytes, budget.size_bytes),
        ("seconds", spent.seconds + policy.seconds(candidate.work_bytes), budget.seconds),
        ("dollars", spent.dollars + policy.dollars(candidate.work_bytes), budget.dollars),
    ):
        if used > limit:
            return f"the budget allows {limit:,.6g} {what}, and with it they would be {used:,.6g}"
    return None


def _spend(spent: _Spent, candidate: Candidate, policy: Policy, seconds: float) -> None:
    spent.actions += 1
    spent.size_bytes += candidate.work_bytes
    spent.seconds += seconds
    spent.dollars += policy.dollars(candidate.work_bytes)


def _carry_out(table: icebench.Table, candidate: Candidate, policy: Policy) -> Decision:
    arguments = dict(candidate.arguments)
    if candidate.call not in _UNTAGGED:
        arguments["snapshot_properties"] = {TAG: candidate.action}
    try:
        done = getattr(table.maintenance, candidate.call)(**arguments)
    except CommitStateUnknown:
        raise
    except EngineError as error:
        return _decision(candidate, policy, "failed", str(error))
    return replace(_decision(candidate, policy, "done", None), result=_figures(done))


def _decision(candidate: Candidate, policy: Policy, decision: str, note: str | None) -> Decision:
    return Decision(
        action=candidate.action,
        decision=decision,
        why=candidate.why if note is None else f"{candidate.why}; {note}",
        worth=candidate.worth,
        gain_bytes=int(candidate.gain_bytes),
        work_bytes=int(candidate.work_bytes),
        seconds=policy.seconds(candidate.work_bytes),
        dollars=policy.dollars(candidate.work_bytes),
    )


def _figures(done: object) -> dict[str, int | float]:
    """Numbers of a result, and how long its lists are."""
    if not is_dataclass(done):
        return {}
    found = {each.name: getattr(done, each.name) for each in fields(done)}
    return {
        name: len(value) if isinstance(value, tuple) else value
        for name, value in found.items()
        if isinstance(value, (int, float, tuple))
    }
