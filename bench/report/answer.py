"""The answer of a run in one sentence, with its doubts: the same objects as its findings and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from icebench.bench.costs.object_store import undecided_up_to
from icebench.bench.report.layout_costs import LayoutCost, baseline_of, pays_words
from icebench.bench.report.model import Finding, named
from icebench.bench.report.quantities import count, factor, listed, times
from icebench.bench.report.remarks import Remark, Severity

_DOUBTS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def answer_of(
    costs: Mapping[str, Sequence[LayoutCost]],
    contests: Sequence[Finding],
    remarks: Sequence[Remark],
    *,
    measured: bool,
) -> str:
    """Which layout is best, over the baseline, and when it pays, if builds were timed; of a run without costs of
    layouts the first finding of its contests.

    Args:
        costs: Of layouts, `claimed`, by the workload's name, which is empty where it is the only one.
        contests: Findings of what engines and layouts were compared by.
        remarks: Of the report; errors and warnings are doubts.
        measured: Whether the run has records.
    """
    said = [
        named(workload, "; ".join([*_best(own), *_object_store(own)]))
        for workload, own in costs.items()
        if any(cost.effect for cost in own)
    ]
    if not said and contests:
        said = [contests[0].statement.removesuffix(".")]
    elif not said and measured:
        said = ["No two layouts or engines were compared: the tables have what was measured"]
    elif not said:
        said = ["Nothing was measured"]
    return f"{'; '.join([*said, *_doubts(remarks)])}."


def _best(costs: Sequence[LayoutCost]) -> Iterator[str]:
    """The layout of the largest claimed saving, with those of which the intervals reach it: they may be as good."""
    baseline = baseline_of(costs)
    effects = {cost.layout: cost.effect for cost in costs if cost.effect is not None}
    queries = f"For these queries (left out: {costs[0].left_out})" if costs[0].left_out else "For these queries"
    faster = [cost for cost in costs if cost.saved is not None and cost.saved.amount > 0]
    if not faster:
        unsure = [cost.layout for cost in costs if cost.layout in effects and cost.saved is None]
        if unsure:
            yield f"{queries} no layout is best for certain: undecided between {listed([baseline, *unsure])}"
        else:
            verb = "takes" if len(effects) == 1 else "take"
            yield f"{queries} {baseline} is best: {listed(list(effects))} {verb} longer"
        return
    best = min(faster, key=lambda cost: effects[cost.layout].ratio)
    effect = effects[best.layout]
    than = effect.inverse
    rivals = [name for name, own in effects.items() if name != best.layout and own.low <= effect.high]
    if rivals:
        which = f"the best is among {listed([best.layout, *rivals])} (undecided)"
        takes, who = f"{times(than.ratio)} the {best.clock} of {best.layout}", best.layout
    else:
        which, takes, who = f"{best.layout} is best", f"{times(than.ratio)} its {best.clock}", "it"
    yield (
        f"{queries} {which}: {baseline} takes {takes} by {best.read} [{factor(than.low)}, {factor(than.high)}]"
        f"{_payment(best, who) if best.builds_timed else ''}"
    )


def _payment(best: LayoutCost, who: str) -> str:
    """When the best layout pays, as the end of a sentence that calls it `who`."""
    when, bounds = pays_words(best)
    if best.pays_after() is None:
        return f", and when {who} pays is {when}"
    return f", and {who} pays {when} {bounds}".rstrip()


def _object_store(costs: Sequence[LayoutCost]) -> Iterator[str]:
    """The layouts whose modelled time of a query may be the least, as far as the model decides; with the engine, if it
    is another."""
    seconds = {cost.layout: cost.query["s3"] for cost in costs if "s3" in cost.query}
    if len(seconds) > 1:
        most = undecided_up_to(min(seconds.values()))
        close = sorted((name for name in seconds if seconds[name] <= most), key=lambda name: seconds[name])
        of = "" if costs[0].modelled in ("", costs[0].engine) else f" for {costs[0].modelled}"
        yield f"on S3 (modelled{of}) {'undecided between all' if len(close) == len(seconds) else listed(close)}"


def _doubts(remarks: Sequence[Remark]) -> Iterator[str]:
    found = ((word, sum(r.severity is severity for r in remarks)) for severity, word in _DOUBTS.items())
    said = [count(number, word) for word, number in found if number]
    if said:
        yield f"doubts: {listed(said)}"
