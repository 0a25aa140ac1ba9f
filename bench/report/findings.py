"""What the figures say, in sentences: derived from records, never written by hand.

Who is faster is a claim (`bench.statistics.claims`), and all claims of a report are corrected together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from bench.measure.record import Failure
from bench.report.compare import Records, best, median, pooled
from bench.report.model import Finding
from bench.report.quantities import count, listed, quantity, signed_percent, times
from bench.report.remarks import SHOWN, WRONG
from bench.statistics.claims import FALSE_CLAIMS, LEAST_EFFECT, Effect, holm

WITHIN = f"{math.expm1(LEAST_EFFECT):.0%}"
"""By how much equals may differ."""
NONE = "none"
"""The case of scans without deletes."""


_MOST_GROUPS = 8
"""Of layouts that are told one by one."""


def findings_of(
    records: Records, answers: Sequence[Finding] = (), failures: Sequence[Failure] = ()
) -> tuple[Finding, ...]:
    """The findings of a run: what went wrong first, then the answers to what its definition asks, then layouts, then
    engines, measurement by measurement."""
    planning = records.where(measurement="planning").competing
    scans = records.where(measurement="decimals", metric="scan_time")
    contests: list[_Race | _Added] = [
        *_layouts_by_scan(scans),
        _engines(planning.where(metric="latency_cold"), "Cold planning"),
        _engines(planning.where(metric="latency_warm"), "Warm planning"),
        _engines(scans, "Scanning the decimal columns"),
        _engines(records.where(measurement="filtered", metric="scan_time"), "Reading under filters"),
        *_deletes(records.where(measurement="deletes", metric="scan_time")),
        _engines(records.where(measurement="commits", metric="latency_commit"), "Committing described files"),
        _engines(records.where(measurement="maintenance", metric="upkeep_time"), "Upkeep"),
    ]
    return (
        *_wrong_answers(failures),
        *_lost_files(records.where(measurement="pruning", metric="recall")),
        *answers,
        *_layouts_by_filter(records.where(measurement="pruning")),
        *_told(contests),
    )


def fastest_layouts(records: Records) -> dict[str, Finding]:
    """For each filter of one metric and engine, the layout that is fastest; corrected for all filters together."""
    races = {case: _layouts(records.where(case=case), case) for case in records.names("case")}
    held = {case: race for case, race in races.items() if race.effects}
    return dict(zip(held, _told(held.values()), strict=True))


def _told(contests: Iterable[_Race | _Added]) -> Iterator[Finding]:
    """What may be said of contests that are read together."""
    held = [contest for contest in contests if contest.effects]
    p_values = [effect.p_value for contest in held for effect in contest.effects.values()]
    for contest in held:
        yield contest.finding(least_sure(p_values))


def least_sure(p_values: Sequence[float]) -> float:
    """The largest p-value that is a claim among these; negative where none is."""
    corrected = zip(p_values, holm(p_values), strict=True)
    return max((own for own, adjusted in corrected if adjusted <= FALSE_CLAIMS), default=-1.0)


def reach(effects: Iterable[Effect]) -> str:
    """What effects of which none is claimed may be."""
    lows, highs = zip(*((effect.low, effect.high) for effect in effects), strict=True)
    return f"their intervals reach from {min(lows):.2f} to {max(highs):.2f}"


def _wrong_answers(failures: Sequence[Failure]) -> Iterator[Finding]:
    """Each engine with wrong answers, and where."""
    wrong: dict[str, list[Failure]] = {}
    for failure in failures:
        if failure.kind == WRONG:
            wrong.setdefault(failure.engine, []).append(failure)
    for engine, own in wrong.items():
        cases = list(dict.fromkeys(f"{each.measurement} of {each.case} on {each.layout}" for each in own))
        more = f", and {len(cases) - SHOWN} more" if len(cases) > SHOWN else ""
        yield Finding(
            statement=f"{engine} answers wrongly in {count(len(cases), 'case')}, where its time does not count: "
            f"{'; '.join(cases[:SHOWN])}{more}.",
            evidence="; ".join(dict.fromkeys(each.message for each in own[:SHOWN])),
        )


def _lost_files(recalls: Records) -> Iterator[Finding]:
    for record in recalls.all:
        if median(record) != 1:
            yield Finding(
                statement=f"{record.engine} loses rows: for {record.case} on {record.layout} it does not plan "
                "every file that holds a matching row.",
                evidence=f"Recall is {median(record):.6f} and must be exactly 1.",
            )


def _layouts_by_filter(pruning: Records) -> Iterator[Finding]:
    """For each filter, the layout of which the least is read, and how much less that is."""
    for case in pruning.names("case"):
        of_case = pruning.where(case=case)
        engine = next(iter(of_case.engines))
        own = of_case.where(engine=engine)
        planned = {r.layout: median(r) for r in own.where(metric="bytes_planned_share").all}
        if not planned:
            planned = {r.layout: median(r) for r in own.where(metric="files_planned_share").all}
        if len(planned) < 2:
            continue
        ranked = sorted(planned, key=lambda layout: planned[layout])
        first, others = ranked[0], ranked[1:]
        if planned[first] == planned[others[-1]]:
            statement = (
                f"For {case} no layout prunes better: each reads {quantity(planned[first], 'ratio')} of the table."
            )
        else:
            rest = _grouped((quantity(planned[layout], "ratio"), layout) for layout in others)
            statement = (
                f"For {case}, {first} reads least: {quantity(planned[first], 'ratio')} of the table, against {rest}."
            )
        text = own.all[0].detail.get("filter")
        evidence = [f"{text}."] if text else []
        evidence += _truth(own, first)
        yield Finding(statement=statement, evidence=" ".join(evidence))


def _grouped(figures: Iterable[tuple[str, str]]) -> str:
    """Equal figures told once: ``20% with b, 100% with c and d``; of many, the least and the most."""
    groups: dict[str, list[str]] = {}
    for figure, layout in figures:
        groups.setdefault(figure, []).append(layout)
    if len(groups) > _MOST_GROUPS:
        least, *_, most = groups
        return f"{least} to {most} with {sum(map(len, groups.values()))} others"
    return listed([f"{figure} with {listed(layouts)}" for figure, layouts in groups.items()])


def _truth(own: Records, layout: str) -> Iterator[str]:
    needed = own.one(metric="files_matching_share", layout=layout)
    wasted = own.one(metric="wasted_files_share", layout=layout)
    if needed is not None and wasted is not None:
        yield (
            f"Perfect pruning of {layout} would plan {quantity(median(needed), 'ratio')} of its files; of the planned "
            f"ones {quantity(median(wasted), 'ratio')} hold no match."
        )


@dataclass(frozen=True, kw_only=True)
class _Race:
    """Competitors that do the same, and for each pair of them (base, head) how many times the base the head takes."""

    what: str
    preposition: str
    slower: str
    effects: Mapping[tuple[str, str], Effect]
    evidence: str

    def finding(self, least_sure: float) -> Finding:
        """Who is fastest, who is slower by how much, who takes as long, and who cannot be told apart."""
        names = dict.fromkeys(name for pair in self.effects for name in pair)
        first, *others = sorted(names, key=self._pace)
        told = [(name, to) for name in others if (to := self._effect(first, name)) is not None]
        slower = [self.slower.format(name, times(to.ratio)) for name, to in told if to.p_value <= least_sure]
        equal = [name for name, to in told if to.is_equal]
        unsure = _unsure(told, least_sure)
        said = [f"is fastest {self.preposition} {first}; {listed(slower)}"] if slower else []
        said += [f"takes as long {self.preposition} {listed([first, *equal])}, within {WITHIN}"] if equal else []
        if unsure and not said:
            statement = f"{self.what}: {listed([first, *unsure])} cannot be told apart"
        else:
            said += [f"{listed(unsure)} cannot be told apart from {first}"] if unsure else []
            statement = f"{self.what} {'; '.join(said)}"
        return Finding(statement=f"{statement}.", evidence=f"{self.evidence}: {_intervals(told)}.")

    def _effect(self, base: str, head: str) -> Effect | None:
        if (base, head) in self.effects:
            return self.effects[base, head]
        found = self.effects.get((head, base))
        return None if found is None else found.inverse

    def _pace(self, name: str) -> float:
        """The mean logarithm of how many times the others it takes."""
        others = [other for pair in self.effects if name in pair for other in pair if other != name]
        ratios = [found.ratio for other in others if (found := self._effect(other, name)) is not None]
        return sum(map(math.log, ratios)) / len(ratios)


@dataclass(frozen=True, kw_only=True)
class _Added:
    """What deletes add to a scan, by engine."""

    case: str
    effects: Mapping[tuple[str, str], Effect]

    def finding(self, least_sure: float) -> Finding:
        """Who takes longer by how much, and for whom that cannot be said."""
        ranked = sorted(((name, effect) for (_, name), effect in self.effects.items()), key=lambda own: own[1].ratio)
        longer = [f"{signed_percent(to.ratio - 1)} with {name}" for name, to in ranked if to.p_value <= least_sure]
        equal = [name for name, to in ranked if to.is_equal]
        unsure = _unsure(ranked, least_sure)
        said = [f"make a scan longer by {listed(longer)}"] if longer else []
        said += [f"cost less than {WITHIN} with {listed(equal)}"] if equal else []
        said += [f"have no cost that can be told with {listed(unsure)}"] if unsure else []
        evidence = f"Times the scan without deletes, pooled over layouts: {_intervals(ranked)}."
        return Finding(statement=f"Deletes ({self.case}) {'; they '.join(said)}.", evidence=evidence)


def _unsure(told: Iterable[tuple[str, Effect]], least_sure: float) -> list[str]:
    """Those of whom nothing is claimed, with what they may be: ``b (1.65x, 1.19 to 2.30)``."""
    return [
        f"{name} ({times(to.ratio)}, {to.low:.2f} to {to.high:.2f})"
        for name, to in told
        if to.p_value > least_sure and not to.is_equal
    ]


def _intervals(told: Iterable[tuple[str, Effect]]) -> str:
    return "; ".join(f"{name} {times(to.ratio)} (95% interval {to.low:.2f} to {to.high:.2f})" for name, to in told)


def _layouts_by_scan(scans: Records) -> Iterator[_Race]:
    """Which layout is scanned fastest in full, for the engine that scans fastest."""
    for case in scans.names("case"):
        fastest = best(scans.where(case=case).all)
        if fastest is not None:
            yield _layouts(scans.where(case=case, engine=fastest.engine), "A full scan of decimals")


def _layouts(records: Records, what: str) -> _Race:
    """How layouts stand to one another, in one case of one engine."""
    return _Race(
        what=what,
        preposition="on",
        slower="{1} as long on {0}",
        effects=_effects(records, "layout", records.names("layout")),
        evidence=records.engines[0],
    )


def _engines(records: Records, what: str) -> _Race:
    """How engines stand to one another, over all cases."""
    cases = count(len(list(records.cases())), "case")
    return _Race(
        what=what,
        preposition="with",
        slower="{0} takes {1} as long",
        effects=_effects(records, "engine", records.engines),
        evidence=f"Pooled over {cases}",
    )


def _deletes(scans: Records) -> Iterator[_Added]:
    for case in scans.names("case"):
        if case != NONE:
            found = {}
            for engine in scans.engines:
                own = scans.where(engine=engine)
                pairs = [
                    (base, head)
                    for head in own.where(case=case).all
                    if (base := own.one(case=NONE, layout=head.layout))
                ]
                if effect := pooled(pairs):
                    found[NONE, engine] = effect
            yield _Added(case=case, effects=found)


def _effects(records: Records, field: str, names: Sequence[str]) -> dict[tuple[str, str], Effect]:
    """For each pair of names, the effect over all cases that both have."""
    found = {}
    for base, head in combinations(names, 2):
        cases = [found for _, _, found in records.cases()] if field == "engine" else [records]
        pairs = [(of.one(**{field: base}), of.one(**{field: head})) for of in cases]
        effect = pooled([(first, second) for first, second in pairs if first is not None and second is not None])
        if effect is not None:
            found[base, head] = effect
    return found
