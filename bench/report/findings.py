"""What the figures say, in sentences: derived from records, never written by hand.

Who is faster is a claim (`icebench.bench.statistics.claims`), and all claims of a report are corrected together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pkgutil import resolve_name

from icebench.bench.execution.measurement import MEASUREMENTS, MeasurementKind, Race, kind_of
from icebench.bench.records.case import NONE
from icebench.bench.records.record import Failure
from icebench.bench.report.compare import Records, best, pooled
from icebench.bench.report.model import Finding
from icebench.bench.report.quantities import count, factor, listed, signed_percent, times
from icebench.bench.report.remarks import SHOWN, WRONG
from icebench.bench.statistics.claims import FALSE_CLAIMS, LEAST_EFFECT, Effect, holm

WITHIN = f"{math.expm1(LEAST_EFFECT):.0%}"
"""By how much equals may differ."""


def findings_of(
    records: Records,
    answers: Sequence[Finding] = (),
    failures: Sequence[Failure] = (),
    claims: Claims | None = None,
) -> tuple[Finding, ...]:
    """The findings of a run: what went wrong first, then the answers to what its definition asks, then layouts, then
    engines, measurement by measurement; `claims` corrects with them what else the report claims."""
    claims = claims or Claims.of(records)
    kinds = _kinds(records)
    faults = _given_by([kind.faults for kind in kinds.values()], records)
    further = _given_by([kind.findings for kind in kinds.values()], records)
    return (*_wrong_answers(failures), *faults, *answers, *further, *claims.findings())


@dataclass(frozen=True)
class Claims:
    """All claims of a report, corrected together: what measurements ask, and the largest p-value of a claim."""

    contests: Sequence[tuple[str, Ranking | _Added]]
    least: float

    @classmethod
    def of(cls, records: Records, others: Sequence[float] = ()) -> Claims:
        """Those of the records, workload by workload, and `others`, by their p-values."""
        contests = [(workload, contest) for workload, own in records.by_workload() for contest in _contested(own)]
        return cls(contests, least_sure([*p_values_of(contest for _, contest in contests), *others]))

    def findings(self) -> list[Finding]:
        """What may be said of each contest."""
        return [contest.finding(self.least).of_workload(workload) for workload, contest in self.contests]


def _kinds(records: Records) -> dict[str, MeasurementKind]:
    measured = records.names("measurement")
    return {name: kind_of(name) for name in MEASUREMENTS if name in measured}


def _contested(records: Records) -> list[Ranking | _Added]:
    """What measurements ask, of what there is something to say."""
    # What a run is mostly made for comes first.
    races = sorted(
        ((name, race) for name, kind in _kinds(records).items() for race in kind.races),
        key=lambda own: own[1].between != "layouts",
    )
    found = (
        contest
        for name, race in races
        for contest in _contests(
            race, records.where(measurement=name, metric=race.metric).of_cases(race.cases).competing
        )
    )
    return [contest for contest in found if contest.effects]


def _given_by(functions: Iterable[str], records: Records) -> list[Finding]:
    """What functions find in the records of each workload, given as ``module:function``, or empty."""
    return [
        finding.of_workload(workload)
        for function in functions
        if function
        for workload, own in records.by_workload()
        for finding in resolve_name(function)(own)
    ]


def _contests(race: Race, records: Records) -> Iterator[Ranking | _Added]:
    match race.between:
        case "engines":
            yield _engines(records, race.what)
        case "layouts":
            yield from _layouts_by_scan(records, race.what)
        case "base":
            yield from _added(records, race.what)


def races_of_layouts(records: Records) -> dict[str, Ranking]:
    """For each filter of one metric and engine, how layouts stand to one another."""
    races = {case: _layouts(records.where(case=case), case) for case in records.names("case")}
    return {case: race for case, race in races.items() if race.effects}


def p_values_of(contests: Iterable[Ranking | _Added]) -> list[float]:
    """Of all claims that contests may make."""
    return [effect.p_value for contest in contests for effect in contest.effects.values()]


def least_sure(p_values: Sequence[float]) -> float:
    """The largest significant p-value after correction; negative where none is."""
    corrected = zip(p_values, holm(p_values), strict=True)
    return max((own for own, adjusted in corrected if adjusted <= FALSE_CLAIMS), default=-1.0)


def reach(effects: Iterable[Effect]) -> str:
    """The range of effects of which none is significant."""
    lows, highs = zip(*((effect.low, effect.high) for effect in effects), strict=True)
    return f"their intervals reach from {factor(min(lows))} to {factor(max(highs))}"


def _wrong_answers(failures: Sequence[Failure]) -> Iterator[Finding]:
    """Each engine with wrong answers, and where."""
    wrong: dict[str, list[Failure]] = {}
    for failure in failures:
        if failure.kind == WRONG:
            wrong.setdefault(failure.engine, []).append(failure)
    for engine, own in wrong.items():
        cases = list(dict.fromkeys(f"{each.measurement} of {each.case} on {each.table}" for each in own))
        more = f", and {len(cases) - SHOWN} more" if len(cases) > SHOWN else ""
        yield Finding(
            statement=f"{engine} answers wrongly in {count(len(cases), 'case')}, where its time does not count: "
            f"{'; '.join(cases[:SHOWN])}{more}.",
            evidence="; ".join(dict.fromkeys(each.message for each in own[:SHOWN])),
        )


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Competitors that do the same, and the ratio head / base of each pair of them, over the same cases; `over` says
    which, where some competitors lack cases."""

    what: str
    preposition: str
    slower: str
    effects: Mapping[tuple[str, str], Effect]
    evidence: str
    over: str = ""

    def finding(self, least_sure: float) -> Finding:
        """Which is fastest, which are slower by how much, which take as long, and which are inconclusive. One is called
        fastest only where it is a claim that each other takes longer; otherwise those that may be are named together.
        None is fastest that takes longer than another for certain, as may be where pairs share other rounds."""
        first, *others = self._ranked(least_sure)
        measured = [(name, to) for name in others if (to := self._effect(first, name)) is not None]
        claimed = [(name, to) for name, to in measured if to.p_value <= least_sure]
        is_beaten = any(to.ratio < 1 for _, to in claimed)
        slower = [] if is_beaten else [self.slower.format(name, times(to.ratio)) for name, to in claimed]
        equal = [name for name, to in measured if to.is_equal]
        unsure = (claimed if is_beaten else []) + _unsure(measured, least_sure)
        if slower:
            said = self._ahead(first, equal, unsure, listed(slower))
        elif unsure and not equal:
            said = f": inconclusive between {listed([first, *_with_intervals(unsure)])}"
        else:
            said = f" takes as long {self.preposition} {listed([first, *equal])}, within {WITHIN}"
            said += f"; inconclusive between {first} and {listed(_with_intervals(unsure))}" if unsure else ""
        return Finding(statement=f"{self.what}{said}{self.over}.", evidence=f"{self.evidence}: {_intervals(measured)}.")

    def _ahead(self, first: str, equal: list[str], unsure: Sequence[tuple[str, Effect]], slower: str) -> str:
        """The end of a sentence on those of which no other is faster for certain, and those that take longer."""
        if not equal and not unsure:
            return f" is fastest {self.preposition} {first}; {slower}"
        than = f"{slower} as {self.preposition} {first}"
        if not unsure:
            return f": fastest are {listed([first, *equal])}, as long within {WITHIN}; {than}"
        rivals = listed([first, *equal, *(name for name, _ in unsure)])
        alike = f"as long within {WITHIN}: {listed(equal)}; " if equal else ""
        return f": fastest are among {rivals} ({alike}inconclusive: {_open(unsure)}); {than}"

    def _ranked(self, least_sure: float) -> list[str]:
        """The competitors, fastest first; those that take longer than another for certain come after all others."""
        names = dict.fromkeys(name for pair in self.effects for name in pair)
        sure = [(pair, to) for pair, to in self.effects.items() if to.p_value <= least_sure]
        beaten = {head if to.ratio > 1 else base for (base, head), to in sure}
        return sorted(names, key=lambda name: (name in beaten, self._pace(name)))

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
    """What the cases of a measurement add to a scan, by engine."""

    what: str
    case: str
    effects: Mapping[tuple[str, str], Effect]

    def finding(self, least_sure: float) -> Finding:
        """Which take longer and which shorter, by how much, and which are inconclusive."""
        ranked = sorted(((name, effect) for (_, name), effect in self.effects.items()), key=lambda own: own[1].ratio)
        sure = [(name, to.ratio) for name, to in ranked if to.p_value <= least_sure]
        longer = [f"{signed_percent(ratio - 1)} with {name}" for name, ratio in sure if ratio > 1]
        shorter = [f"{1 - ratio:.1%} with {name}" for name, ratio in sure if ratio < 1]
        equal = [name for name, to in ranked if to.is_equal]
        unsure = _with_intervals(_unsure(ranked, least_sure))
        said = [f"make a scan longer by {listed(longer)}"] if longer else []
        said += [f"make a scan shorter by {listed(shorter)}"] if shorter else []
        said += [f"cost less than {WITHIN} with {listed(equal)}"] if equal else []
        said += [f"are inconclusive with {listed(unsure)}"] if unsure else []
        evidence = f"Ratio to the scan without {self.what.lower()}, pooled over layouts: {_intervals(ranked)}."
        return Finding(statement=f"{self.what} ({self.case}) {'; they '.join(said)}.", evidence=evidence)


def _unsure(measured: Iterable[tuple[str, Effect]], least_sure: float) -> list[tuple[str, Effect]]:
    """The inconclusive ones."""
    return [(name, to) for name, to in measured if to.p_value > least_sure and not to.is_equal]


def _with_intervals(measured: Iterable[tuple[str, Effect]]) -> list[str]:
    """Each with its interval: ``b (1.65x, 1.19 to 2.30)``."""
    return [f"{name} ({_within(to)})" for name, to in measured]


def _open(unsure: Iterable[tuple[str, Effect]]) -> str:
    """The same within parentheses: ``b 1.65x, 1.19 to 2.30; c 1.10x, 0.98 to 1.23``."""
    return "; ".join(f"{name} {_within(to)}" for name, to in unsure)


def _within(found: Effect) -> str:
    return f"{times(found.ratio)}, {factor(found.low)} to {factor(found.high)}"


def _intervals(measured: Iterable[tuple[str, Effect]]) -> str:
    shown = ((name, times(to.ratio), factor(to.low), factor(to.high)) for name, to in measured)
    return "; ".join(f"{name} {ratio} (95% interval {low} to {high})" for name, ratio, low, high in shown)


def _layouts_by_scan(scans: Records, what: str) -> Iterator[Ranking]:
    """Which layout is fastest, case by case, for the engine that is fastest."""
    for case in scans.names("case"):
        fastest = best(scans.where(case=case).all)
        if fastest is not None:
            yield _layouts(scans.where(case=case, engine=fastest.engine), what)


def _layouts(records: Records, what: str) -> Ranking:
    """How layouts stand to one another, in one case of one engine."""
    return Ranking(
        what=what,
        preposition="on",
        slower="{1} as long on {0}",
        effects=_effects(records, "layout", records.names("layout")),
        evidence=records.engines[0],
    )


def _engines(records: Records, what: str) -> Ranking:
    """How engines stand to one another, over the cases that all of them have: over others an engine would be compared
    with one in the easy cases and with another in the hard ones."""
    cases = [found for _, _, found in records.cases()]
    had = {engine: sum(engine in found.engines for found in cases) for engine in records.engines}
    compared, shared = list(had), cases
    while not (shared := [found for found in cases if set(compared) <= set(found.engines)]) and compared:
        compared.remove(min(compared, key=lambda engine: had[engine]))
    lacking = [f"{engine} lacks {len(cases) - number}" for engine, number in had.items() if number < len(cases)]
    return Ranking(
        what=what,
        preposition="with",
        slower="{0} takes {1} as long",
        effects=_effects(replace(records, all=tuple(r for found in shared for r in found.all)), "engine", compared),
        evidence=f"Pooled over {count(len(shared), 'case')}",
        over=f" (over {len(shared)} of {count(len(cases), 'case')}: {listed(lacking)})" if lacking else "",
    )


def _added(scans: Records, what: str) -> Iterator[_Added]:
    """What each case adds to its base, for every engine."""
    for case in scans.names("case"):
        if case != NONE:
            found = {}
            for engine in scans.engines:
                own = scans.where(engine=engine)
                pairs = [
                    (base, head)
                    for head in own.where(case=case).all
                    if (base := own.one(case=NONE, layout=head.layout, cache=head.cache))
                ]
                if effect := pooled(pairs):
                    found[NONE, engine] = effect
            yield _Added(what=what, case=case, effects=found)


def _effects(records: Records, field: str, names: Sequence[str]) -> dict[tuple[str, str], Effect]:
    """For each pair of names, the effect over all cases that both have, of an engine or of the only case."""
    found = {}
    for base, head in combinations(names, 2):
        cases = [found for _, _, found in records.cases()] if field == "engine" else [records]
        pairs = [(of.one(**{field: base}), of.one(**{field: head})) for of in cases]
        effect = pooled([(first, second) for first, second in pairs if first is not None and second is not None])
        if effect is not None:
            found[base, head] = effect
    return found
