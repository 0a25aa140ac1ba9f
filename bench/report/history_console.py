"""The history on the terminal: processor time by case, then each revision that changed something."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table as Grid

from icebench.bench.gate.decisions.history import TIME, Change, Entry, Series
from icebench.bench.report.history_page import shown_causes, shown_confidence, shown_digest, shown_ratio
from icebench.bench.report.quantities import count, digits, times

_BLOCKS = "\N{LOWER ONE EIGHTH BLOCK}▂▃▄▅▆▇\N{FULL BLOCK}"


def print_history(
    out: Console, entries: Sequence[Entry], series: Sequence[Series], *, long: bool, revisions: bool = False
) -> None:
    """Sparklines of processor time, then the change points by revision.

    Args:
        out: Where to.
        entries: All, oldest first.
        series: Of these entries.
        long: Also each counter that changed, and what could not be run, which are counted otherwise.
        revisions: Also each revision with its ratios.
    """
    first, last = entries[0], entries[-1]
    made = {entry.pairs for entry in entries}
    pairs = " to ".join(map(str, sorted({min(made), max(made)})))
    of_cases = f", cases {digest}" if (digest := shown_digest(entries)) else ""
    out.print(
        f"{count(len(entries), 'revision')} from {first.date[:10]} to {last.date[:10]}, each interleaved with "
        f"{last.reference[:9]} (pairs of processes: {pairs}{of_cases})",
        soft_wrap=True,
    )
    grid = Grid("case", "processor time / reference", "oldest", "newest", "revisions", box=None)
    for each in series:
        if each.quantity == TIME:
            ends = (times(math.exp(each.values[0])), times(math.exp(each.values[-1])))
            grid.add_row(each.case, sparkline(each.values), *ends, str(len(each.values)))
    out.print(grid)
    if revisions:
        _print_revisions(out, entries, [each.case for each in series if each.quantity == TIME])
    found = sorted(((change, each) for each in series for change in each.changes), key=lambda it: it[0].at.number)
    if revisions and found:
        out.print("\nChanges:", style="bold")
    for _, group in groupby(found, lambda it: it[0].at.revision):
        _print_changes(out, list(group), long=long)
    _print_errors(out, entries, long=long)


def sparkline(values: Sequence[float]) -> str:
    """A block for each value, from the least to the greatest."""
    low, high = min(values), max(values)
    if high == low:
        return _BLOCKS[0] * len(values)
    return "".join(_BLOCKS[round((value - low) / (high - low) * (len(_BLOCKS) - 1))] for value in values)


def _print_revisions(out: Console, entries: Sequence[Entry], names: Sequence[str]) -> None:
    """Oldest first, as in the sparklines."""
    longest = max(map(len, names), default=0)
    for entry in entries:
        _print_revision(out, entry)
        for name in names:
            if (case := entry.cases.get(name)) is not None:
                out.print(f"  {name:{longest}}  {shown_ratio(case)}", markup=False, soft_wrap=True)


def _print_revision(out: Console, entry: Entry) -> None:
    out.print(f"\n{entry.revision[:9]} {entry.date[:16]} {entry.subject}", style="bold", markup=False, soft_wrap=True)


def _print_changes(out: Console, changes: Sequence[tuple[Change, Series]], *, long: bool) -> None:
    """Those of one revision."""
    _print_revision(out, changes[0][0].at)
    counted = [change for change, each in changes if each.quantity != TIME]
    for change, each in changes if long else [it for it in changes if it[1].quantity == TIME]:
        is_time = each.quantity == TIME
        before, now = map(times if is_time else digits, (change.before, change.now))
        line = f"  {each.case}: {each.quantity} {before} -> {now} ({change.size})"
        line += f", confidence {shown_confidence(change.confidence)}" if is_time else ""
        line += f", since {change.after.revision[:9]}{shown_causes(change)}"
        out.print(line, markup=False, soft_wrap=True)
    if counted and not long:
        more = sum(change.now > change.before for change in counted)
        cases = len({each.case for _, each in changes if each.quantity != TIME})
        out.print(f"  counters of {count(cases, 'case')}: {more} up, {len(counted) - more} down", style="dim")


def _print_errors(out: Console, entries: Sequence[Entry], *, long: bool) -> None:
    """Cases of today that an engine of then cannot run, and revisions that cannot be built."""
    errors = [
        (entry, name, error)
        for entry in entries
        for name, error in (("all cases", entry.error), *((name, case.error) for name, case in entry.cases.items()))
        if error
    ]
    if not errors:
        return
    revisions = len({entry.revision for entry, _, _ in errors})
    more = ":" if long else "; --long has their errors"
    out.print(
        f"\n{count(revisions, 'revision')} could not run some or all cases{more}", style="bold" if long else "dim"
    )
    for entry, name, error in errors if long else ():
        out.print(f"  {entry.revision[:9]} {name}: {error}", markup=False, soft_wrap=True)
