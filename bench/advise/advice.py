"""Advice on a table's layout: what to change, what it gains and costs, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import icebench
from icebench.bench.advise.candidates import Score, columns_of, search, todays_layout
from icebench.bench.advise.estimate import Estimate, Estimator
from icebench.bench.advise.planned import Reading
from icebench.bench.advise.queries import Queries, Query
from icebench.bench.advise.rates import Rates, TimedRead, TimedRewrite, fit, rewrite_seconds
from icebench.bench.advise.sample import Sample, take_sample
from icebench.bench.advise.timing import time_reads
from icebench.bench.advise.trial import (
    Trial,
    WholeFiles,
    time_other_sizes,
    time_rewrites,
    try_layouts,
    try_today,
    write_whole_files,
)
from icebench.bench.costs.object_store import GIGABYTE, LOCAL, S3_STANDARD, SAME_REGION, Profile, dollars_per_month
from icebench.bench.engines.access import scheme_of
from icebench.bench.errors import ConfigError
from icebench.bench.garbage import out_of_collection
from icebench.bench.layouts.layout import Layout
from icebench.engine.display import count_text, html_fold, html_table, printable

Quantity = Literal["seconds", "bytes", "dollars"]
QUANTITIES: tuple[Quantity, ...] = ("seconds", "bytes", "dollars")
_CORRECTED = 12
"""Estimates of the search whose bias is taken off."""
_TRIALS = 5
_LEAST_GAIN = 0.05
"""A layout that saves less is not advised: it is within what a rewrite may change by itself."""
_SURE, _LIKELY = 0.1, 0.3
_ALIKE = 0.05
"""Layouts whose costs differ by less are much the same."""
_MACHINE_DOLLARS_PER_HOUR = 0.192
"""m5.xlarge, on demand, us-east-1."""
_MOST_BYTES = 64 << 20
"""What a query reads of the table itself in order to be timed, at most."""
_TABLE_SECONDS = 2.0
"""For timed reads of the table itself, which are nearest to what is asked for."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to look for advice.

    Args:
        minimize: What a layout is rated by: the weighted mean of a query.
        profile: Where the client stands to the store.
        queries_per_day: Of all queries together.
        sample_rows: Rows that are drawn, at most about.
        sample_bytes: Bytes of data files that are read for it, at most about.
        trials: Layouts that are built for real.
        seed: Of the sample.
    """

    minimize: Quantity = "seconds"
    profile: Profile = SAME_REGION
    queries_per_day: float = 1_000.0
    sample_rows: int = 200_000
    sample_bytes: int = 1 << 30
    trials: int = _TRIALS
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a layout does to one query; `worst` is at the upper end of what the sample leaves open."""

    query: Query
    before: Reading
    after: Reading
    worst: Reading


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """What it takes to bring the whole table into a layout."""

    bytes_read: float
    bytes_written: float
    seconds: float
    dollars: float


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A layout that is better than today's.

    Args:
        layout: Which.
        effects: Of each query.
        before: The quantity that was minimized, as the weighted mean of a query, today.
        after: The same with the layout.
        worst: The same at the upper end of what the sample leaves open.
        rewrite: What the change takes.
        data_bytes: Of the table with it.
        files: Data files of the table with it, about.
        break_even_days: Until the seconds of the rewrite have been saved by queries; None if they save none.
        confidence: ``measured`` on all rows, or ``high``, ``medium`` and ``low`` by how much of the gain the sample
            leaves open.
        trial: The layout of the sample, built and read for real.
        is_best: No other is better in the minimized quantity.
    """

    layout: Layout
    effects: tuple[Effect, ...]
    before: float
    after: float
    worst: float
    rewrite: Rewrite
    data_bytes: float
    files: float
    break_even_days: float | None
    confidence: str
    trial: Trial
    is_best: bool = False

    @property
    def gain(self) -> float:
        """Share of today's cost that is saved."""
        return 1 - self.after / self.before if self.before else 0.0

    def is_much_like(self, best: Recommendation) -> bool:
        """Whether queries gain no more by the best one: the costs are within a twentieth, or their intervals meet."""
        return self.after <= max(best.after * (1 + _ALIKE), best.worst)

    @property
    def worse(self) -> tuple[Effect, ...]:
        """Queries that read at least a twentieth more."""
        return tuple(e for e in self.effects if e.after.bytes_read > e.before.bytes_read * (1 + _LEAST_GAIN))


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What there is to say about a table and its queries.

    Args:
        table: Its name.
        queries: What was asked, and what of it could not be used.
        options: How it was looked for.
        today: What each query reads today.
        cost: The minimized quantity today, as the weighted mean of a query.
        sample_rows: Rows that were drawn.
        table_rows: Of the table, about.
        data_bytes: Of its data files.
        files: Its data files.
        tried: Layouts that were modelled.
        rates: Seconds of what queries read, on this machine.
        recommendations: None of which another beats in all of cost, rewrite and storage; the best first. Empty: today's
            layout is as good as any that was found.
    """

    table: str
    queries: Queries
    options: Options
    today: tuple[Reading, ...]
    cost: float
    sample_rows: int
    table_rows: float
    data_bytes: float
    files: int
    tried: int
    rates: Rates
    recommendations: tuple[Recommendation, ...]

    def __repr__(self) -> str:
        asked = f"{count_text(len(self.queries.queries), 'query')}, {count_text(self.tried, 'layout')} tried"
        best = [
            f"  {printable(each.layout.name)}: {100 * each.gain:.0f}% fewer {self.options.minimize}, "
            f"confidence: {each.confidence}"
            for each in self.recommendations[:5]
        ]
        lines = [f"Advice({printable(self.table)}, {asked})", *(best or ["  today's layout is as good as any found"])]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (each.layout.name, f"{100 * each.gain:.0f}%", each.break_even_days, each.confidence)
            for each in self.recommendations
        ]
        header = ("layout", f"fewer {self.options.minimize}", "days to break even", "confidence")
        return html_fold(repr(self).splitlines()[0], [html_table(header, rows)], is_open=True)


def advise(
    table: icebench.Table,
    queries: Queries,
    options: Options | None = None,
    progress: Callable[[str], object] = lambda _: None,
) -> Advice:
    """Look for layouts that serve the queries better than today's, and prove the best on a sample.

    Args:
        table: Its current snapshot is read.
        queries: What is asked of it.
        options: How to look; by default for where the table is (`profile_of`).
        progress: Called at each step.

    Raises:
        ConfigError: The table has no rows, or every query is a preview, which is left out.
        EngineError: It cannot be read.
        Disagreement: A trial found other rows than another.
    """
    options = options or Options(profile=profile_of(table))
    queries = replace(queries, queries=tuple(query for query in queries.queries if not query.is_preview))
    if not queries.queries:
        raise ConfigError("every query returns any rows up to a limit", path="--queries")
    progress("sample")
    sample = take_sample(table, rows=options.sample_rows, read_bytes=options.sample_bytes, seed=options.seed)
    today = tuple(sample.stored.reading(query) for query in queries.queries)
    own = todays_layout(table)
    progress("rates")
    known = _known(sample, own, queries)
    rates = fit(known.reads, known.own)
    estimator = Estimator(sample, queries.queries)

    def score(estimate: Estimate) -> float:
        return mean(estimator.readings(estimate), queries, options, rates)

    progress("layouts")
    found = search(estimator, queries.queries, own, score, counts_files=options.minimize != "bytes")
    progress("trials")
    chosen = _chosen(estimator, found, own.partition, score, options)
    trials = try_layouts(
        [each.layout for each in chosen], sample, queries.queries, today=known.today.layout, expected=known.today.rows
    )
    rates = fit([*known.reads, *(read for trial in trials for read in trial.reads)], known.own)
    rewrites = [*known.rewrites, *(trial.timed for trial in trials)]
    proof = _Proof(estimator, known, queries, options, today, rates, rewrites)
    made = [proof.recommendation(estimate, trial) for estimate, trial in zip(chosen, trials, strict=True)]
    better = [each for each in made if each.gain >= _LEAST_GAIN and each.worst < each.before]
    return Advice(
        table=table.name,
        queries=queries,
        options=options,
        today=today,
        cost=mean(today, queries, options, rates),
        sample_rows=sample.rows.num_rows,
        table_rows=sample.table_rows,
        data_bytes=sample.data_bytes,
        files=len(sample.stored.sizes),
        tried=len(found),
        rates=rates,
        recommendations=_front(better),
    )


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What is measured before any layout is tried.

    Args:
        today: The sample's rows in today's layout, without an order.
        whole: Some of the table's files, where there are more rows than the sample has.
        reads: Of all that was written for it.
        own: Of the table itself, where it is in local files.
        rewrites: Of the sample and of a part of it.
    """

    today: Trial
    whole: WholeFiles
    reads: tuple[TimedRead, ...]
    own: tuple[TimedRead, ...]
    rewrites: tuple[TimedRewrite, ...]


def _known(sample: Sample, own: Layout, queries: Queries) -> _Known:
    as_it_is, asked = replace(own, sort=()), queries.queries
    with out_of_collection():
        today = try_today(as_it_is, sample, asked)
        whole = WholeFiles(row_bytes={}, reads=())
        if not sample.is_whole:
            whole = write_whole_files(as_it_is, sample, asked)
        here = not scheme_of(sample.table.location)
        own_reads = time_reads(sample.table, asked, most_bytes=_MOST_BYTES, budget=_TABLE_SECONDS) if here else []
        other = time_other_sizes(as_it_is, sample, asked)
        rewrites = time_rewrites(as_it_is, sample, _sortable(queries, sample))
    reads = (*today.reads, *whole.reads, *other)
    return _Known(today=today, whole=whole, reads=reads, own=tuple(own_reads), rewrites=tuple(rewrites))


def _sortable(queries: Queries, sample: Sample) -> str:
    """A column by which rows can be sorted: of filters, if they use any."""
    schema = sample.table.schema()
    plain = [field.name for field in schema.fields if isinstance(field.type, icebench.PrimitiveType)]
    return next(iter((*columns_of(queries.queries, schema), *plain)))


def profile_of(table: icebench.Table) -> Profile:
    """Where a table's files are: on a local file system, or in an object store of the same region."""
    return SAME_REGION if scheme_of(table.location) else LOCAL


def mean(readings: Sequence[Reading], queries: Queries, options: Options, rates: Rates) -> float:
    """The minimized quantity of a query, by weight."""
    total = sum(
        query.weight * quantity_of(reading, options, rates)
        for query, reading in zip(queries.queries, readings, strict=True)
    )
    return total / (queries.total_weight or 1.0)


def quantity_of(reading: Reading, options: Options, rates: Rates) -> float:
    """The minimized quantity of one reading."""
    match options.minimize:
        case "bytes":
            return reading.bytes_read
        case "dollars":
            return reading.dollars(options.profile)
    return reading.seconds(options.profile, rates)


def _chosen(
    estimator: Estimator, found: Sequence[Estimate], partition: object, score: Score, options: Options
) -> list[Estimate]:
    """What to build: the best, and the best that leaves the partitioning as it is, which is the lesser change."""
    corrected = sorted((estimator.estimate(each.layout, corrected=True) for each in found[:_CORRECTED]), key=score)
    kept = next((each for each in found if each.layout.partition == partition), None)
    chosen = corrected[: options.trials]
    if kept is not None and all(kept.layout != each.layout for each in chosen):
        chosen = [*chosen[: max(1, options.trials - 1)], estimator.estimate(kept.layout, corrected=True)]
    return chosen


@dataclass(frozen=True)
class _Proof:
    """What layouts that were built on the sample say of the table.

    Args:
        estimator: Of the sample.
        known: What was measured before.
        queries: Of the table.
        options: What is minimized, and where.
        today: What each query reads today.
        rates: Of this machine.
        rewrites: That were timed.
    """

    estimator: Estimator
    known: _Known
    queries: Queries
    options: Options
    today: Sequence[Reading]
    rates: Rates
    rewrites: Sequence[TimedRewrite]

    def recommendation(self, estimate: Estimate, trial: Trial) -> Recommendation:
        """Of one layout."""
        estimator, sample = self.estimator, self.estimator.sample
        ratios = _ratios(trial, self.known.today, self.known.whole.row_bytes, sample.rows.num_rows)
        estimate = replace(estimate, ratios=ratios)
        after = trial.readings if sample.is_whole else tuple(estimator.readings(estimate))
        worst = trial.readings if sample.is_whole else tuple(estimator.worst(estimate))
        effects = zip(self.queries.queries, self.today, after, worst, strict=True)
        data_bytes = trial.data_bytes if sample.is_whole else estimator.data_bytes(estimate)
        rewrite = self._rewrite(trial, data_bytes, estimate.all_files)
        in_seconds = replace(self.options, minimize="seconds")
        saved = self._mean(self.today, in_seconds) - self._mean(after, in_seconds)
        found = Recommendation(
            layout=estimate.layout,
            effects=tuple(Effect(query=q, before=b, after=a, worst=w) for q, b, a, w in effects),
            before=self._mean(self.today, self.options),
            after=self._mean(after, self.options),
            worst=self._mean(worst, self.options),
            rewrite=rewrite,
            data_bytes=data_bytes,
            files=trial.files if sample.is_whole else estimate.all_files,
            break_even_days=rewrite.seconds / (saved * self.options.queries_per_day) if saved > 0 else None,
            confidence="measured",
            trial=trial,
        )
        return found if sample.is_whole else replace(found, confidence=_confidence(found))

    def _mean(self, readings: Sequence[Reading], options: Options) -> float:
        return mean(readings, self.queries, options, self.rates)

    def _rewrite(self, trial: Trial, data_bytes: float, files: float) -> Rewrite:
        """By the seconds that trials took for their shares of the rows, and what the table's files and the store
        add."""
        sample, profile, rates = self.estimator.sample, self.options.profile, self.rates
        opened = len(sample.stored.sizes) * rates.file + sample.stored.manifests * rates.manifest
        transfer = (sample.data_bytes + data_bytes) / profile.network_bytes_per_second if profile != LOCAL else 0.0
        rewritten = rewrite_seconds(self.rewrites, trial.timed, files=files, rows=sample.table_rows)
        seconds = rewritten + opened + transfer
        reads = 2 * len(sample.stored.sizes) * S3_STANDARD.per_thousand_reads
        requests = (reads + files * S3_STANDARD.per_thousand_writes) / 1000
        out = sample.data_bytes / GIGABYTE * profile.dollars_per_gigabyte_out
        return Rewrite(
            bytes_read=sample.data_bytes,
            bytes_written=data_bytes,
            seconds=seconds,
            dollars=requests + out + seconds / 3600 * _MACHINE_DOLLARS_PER_HOUR,
        )


def _ratios(
    trial: Trial, baseline: Trial, writers: Mapping[str, tuple[float, float]], sample_rows: int
) -> dict[str, float]:
    """Bytes of each column as multiples of what they are today, by the order of rows and by the writer."""
    known = baseline.column_bytes
    return {
        name: _row_bytes(size / sample_rows, known[name] / sample_rows, writers[name][0]) / writers[name][1]
        for name, size in trial.column_bytes.items()
        if name in writers and known[name]
    }


def _row_bytes(trial: float, baseline: float, unsampled: float) -> float:
    """Bytes per row that a column has in a layout of the table.

    The rows of a sample have gaps, so that a column in order takes more per row than in the table. Without order gaps
    make no difference: then the trial's own bytes hold.

    Args:
        trial: In the layout of the sample.
        baseline: In the sample in today's order.
        unsampled: In today's order without gaps.
    """
    gaps, lost_order = baseline - unsampled, trial - baseline
    if gaps <= 0 or lost_order <= 0:
        return trial * unsampled / baseline
    return trial - max(0.0, gaps - lost_order)


def _confidence(found: Recommendation) -> str:
    saved = found.before - found.after
    is_open = (found.worst - found.after) / saved if saved > 0 else 1.0
    return "high" if is_open <= _SURE else "medium" if is_open <= _LIKELY else "low"


def _front(found: Sequence[Recommendation]) -> tuple[Recommendation, ...]:
    """Those that no other beats in cost, rewrite and storage, the best first."""

    def figures(each: Recommendation) -> tuple[float, float, float]:
        return each.after, each.rewrite.seconds, each.data_bytes

    def is_beaten(each: Recommendation) -> bool:
        own = figures(each)
        return any(
            figures(other) != own and all(o <= m for o, m in zip(figures(other), own, strict=True)) for other in found
        )

    front = sorted((each for each in found if not is_beaten(each)), key=lambda each: each.after)
    return tuple(replace(each, is_best=place == 0) for place, each in enumerate(front))


def storage_dollars(recommendation: Recommendation, advice: Advice) -> float:
    """What the table costs more to keep for a month."""
    return dollars_per_month(round(recommendation.data_bytes)) - dollars_per_month(round(advice.data_bytes))
