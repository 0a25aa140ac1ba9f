from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.costs.costing import Costing
from icebench.bench.records.record import Record
from icebench.bench.report.build import build_report
from icebench.bench.report.compare import Records
from icebench.bench.report.findings import Ranking, findings_of
from icebench.bench.report.layout_comparison import compare_layouts
from icebench.bench.report.layouts import READ
from icebench.bench.report.model import Tone
from icebench.bench.statistics.claims import Effect
from tests.unit.bench.report.sample_run import DRIFT, record, sample_run

UNSURE = "inconclusive"


def mentions(statement: str, *parts: str) -> bool:
    """Whether a statement has these words and figures, in this order."""
    return re.search(".*".join(map(re.escape, parts)), statement) is not None


def statements(records: tuple[Record, ...]) -> list[str]:
    return [finding.statement for finding in findings_of(Records(records))]


def test_the_sample_run_says_which_layout_and_engine_are_best_and_by_how_much() -> None:
    planning = (
        "fastest are among icebench and icebench-spark",
        UNSURE,
        "icebench-spark 1.20x, 1.08 to 1.33",
        "iceberg-java",
        "4.5x",
        "pyiceberg",
        "18x",
        "as long as with icebench",
    )
    expected = [
        ("one_month", "monthly", "1.64%", "100%", "unpartitioned", "sorted"),
        ("one_item", "sorted", "3.28%", "100%", "unpartitioned", "monthly"),
        ("scan of decimals", UNSURE, "unpartitioned", "monthly (1.10x, 0.99 to 1.22)", "sorted (1.20x, 1.08 to 1.33)"),
        ("Cold planning", *planning),
        ("Warm planning", *planning),
        ("decimal columns", "fastest", "icebench", "pyiceberg", "1.40x", "iceberg-java", "3.1x"),
        ("Deletes in cold scans (1%)", "+68.9% with iceberg-java", "inconclusive", "icebench (1.03x, 0.93 to 1.15)"),
        ("Deletes in cold scans (10%)", "+183.7% with iceberg-java", "inconclusive", "icebench (1.09x, 0.99 to 1.21)"),
        (
            "Deletes in cold scans (refresh)",
            "+114.9% with iceberg-java",
            "inconclusive",
            "icebench (1.06x, 0.95 to 1.17)",
        ),
    ]
    for statement, parts in zip(statements(sample_run().records), expected, strict=True):
        assert mentions(statement, *parts), statement


def test_operations_are_compared_each_with_itself() -> None:
    """An engine's fast upserts are no help to its slow appends; nor are cases compared that only one engine has."""

    def timed(engine: str, case: str, seconds: float) -> Record:
        return record("writing", case, "write_time", "s", [seconds * each for each in DRIFT], engine=engine)

    found = statements(
        (
            *(timed("icebench", case, 1.0) for case in ("append", "append, sorted", "overwrite a partition")),
            *(timed("pyiceberg", case, 4.0) for case in ("append", "append, sorted")),
            timed("icebench", "upsert 1 %, copy-on-write", 8.0),
            timed("pyiceberg", "upsert 1 %, copy-on-write", 1.0),
        )
    )
    assert len(found) == 2
    assert mentions(found[0], "Appending rows is fastest with icebench", "pyiceberg takes 4")
    assert mentions(found[1], "Upserting rows is fastest with pyiceberg", "icebench takes 8")


def queries(**seconds: Mapping[int, float]) -> tuple[Record, ...]:
    """Engine -> number of a query -> what it takes."""
    return tuple(
        record("queries", f"q{number}", "query_time", "s", [each * w for w in DRIFT], engine=engine)
        for engine, own in seconds.items()
        for number, each in own.items()
    )


def test_engines_are_compared_over_the_cases_that_all_have() -> None:
    """One that answers only what is easy for all wins no race over what it did not answer, and loses none."""
    easy, hard = range(4), range(4, 20)
    slow = {**dict.fromkeys(easy, 0.25), **dict.fromkeys(hard, 100.0)}
    some = queries(a=dict.fromkeys(range(20), 1.0), b=dict.fromkeys(easy, 0.25), c=slow)
    (found,) = statements(some)
    assert mentions(found, "fastest are among b and c (inconclusive: c 1.00x, ", "; a takes 4x as long as with b")
    assert found.endswith(" (over 4 of 20 cases: b lacks 16).")
    # Where no case is left, it is without the one that has the fewest.
    (found,) = statements(queries(a={0: 1.0, 1: 1.0}, b={0: 4.0, 1: 4.0}, c={2: 1.0}))
    assert found.endswith("b takes 4x as long (over 2 of 3 cases: a lacks 1, b lacks 1 and c lacks 2).")


ANSWERS = st.tuples(*[st.sampled_from([None, 0.1, 1.0, 10.0])] * 4)


@given(st.tuples(ANSWERS, ANSWERS, ANSWERS))
def test_nothing_is_fastest_that_takes_longer_in_the_cases_that_all_have(
    engines: tuple[tuple[float | None, ...], ...],
) -> None:
    had = {
        name: {number: seconds for number, seconds in enumerate(own) if seconds is not None}
        for name, own in zip("abc", engines, strict=True)
    }
    for statement in statements(queries(**had)):
        ranking = statement.partition(" (over")[0]
        if winner := re.search(r"fastest with (\w)", ranking):
            ranked = set(re.findall(r"\b[a-c]\b", ranking))
            shared = set.intersection(*(set(had[name]) for name in ranked))
            totals = {name: sum(math.log(had[name][number]) for number in shared) for name in ranked}
            assert shared
            assert totals[winner[1]] == pytest.approx(min(totals.values()))


def test_nobody_is_fastest_where_each_is_certainly_slower_than_another() -> None:
    """Pairs may share other rounds, so that their ratios are those of no order."""

    def effect(ratio: float) -> Effect:
        return Effect(ratio=ratio, low=ratio / 1.1, high=ratio * 1.1, p_value=1e-9, processes=1)

    def said(**ratios: float) -> str:
        effects = {(pair[0], pair[1]): effect(ratio) for pair, ratio in ratios.items()}
        race = Ranking(
            what="Reading", preposition="with", slower="{0} takes {1} as long", effects=effects, evidence="Pooled"
        )
        return race.finding(0.01).statement

    assert said(ab=2.0, bc=2.0, ac=0.5) == (
        "Reading: inconclusive between a, b (2x, 1.82 to 2.20) and c (0.50x, 0.45 to 0.55)."
    )
    # a has the least ratios in the mean, and takes longer than b.
    assert said(ab=0.8, ac=100.0, bc=2.0) == "Reading is fastest with b; a takes 1.25x as long and c takes 2x as long."


def test_deletes_that_shorten_a_scan_are_said_to() -> None:
    records = [
        record("deletes", case, "scan_time_cold", "s", [seconds * w for w in DRIFT], engine=engine)
        for engine, less in (("icebench", 0.5), ("pyiceberg", 3.0))
        for case, seconds in (("none", 1.0), ("10%", less))
    ]
    assert statements(tuple(records))[0] == (
        "Deletes in cold scans (10%) make a scan longer by +200.0% with pyiceberg; "
        "they make a scan shorter by 50.0% with icebench."
    )


def test_what_is_counted_has_a_least_effect() -> None:
    """1.66 % against 1.67 % is no finding, nor a rank."""

    def said(*shares: float) -> str:
        records = [
            record("pruning", "one", "bytes_planned_share", "ratio", [share], layout=f"l{n}")
            for n, share in enumerate(shares)
        ]
        return statements(tuple(records))[0]

    assert said(0.0167, 0.0166) == "For one no layout prunes better: each plans 1.66% to 1.67% of its bytes."
    assert said(0.0167, 0.0166, 0.5) == (
        "For one, l1 and l0 plan least: 1.66% to 1.67% of their bytes, against 50% with l2."
    )
    assert said(0.0166, 0.0180) == "For one, l0 plans least: 1.66% of its bytes, against 1.8% with l1."
    assert said(0.0, 0.0166) == "For one, l0 plans least: 0% of its bytes, against 1.66% with l1."


def test_of_many_layouts_the_least_and_the_most_are_named() -> None:
    def shares(count: int) -> tuple[Record, ...]:
        return tuple(
            record("pruning", "one", "bytes_planned_share", "ratio", [(10 + i) / 100], layout=f"l{i}")
            for i in range(count)
        )

    assert statements(shares(9))[0].endswith("17% with l7 and 18% with l8.")
    assert statements(shares(10)) == ["For one, l0 plans least: 10% of its bytes, against 11% to 19% with 9 others."]


SHARES = {"large": 0.02, "small": 0.03, "other": 0.04}


@pytest.mark.parametrize(
    ("read", "found", "compared", "best"),
    [
        (
            {"large": 2048, "small": 1024, "other": 4096},
            "For one, small reads least: 1 KB, against 2 KB with large and 4 KB with other.",
            "one reads least on small (2x on large, 4x on other)",
            ["small"],
        ),
        (
            {"large": 2048, "small": 0, "other": 4096},
            "For one, small reads least: 0 B, against 2 KB with large and 4 KB with other.",
            "one reads least on small (nothing)",
            ["small"],
        ),
        (
            dict.fromkeys(SHARES, 2048),
            "For one no layout reads less: each reads 2 KB.",
            "one reads as much on each layout",
            [],
        ),
        (
            {},
            "For one, large plans least: 2% of its bytes, against 3% with small and 4% with other.",
            "one plans the least share of bytes on large (1.50x on small, 2x on other)",
            ["large"],
        ),
    ],
)
def test_findings_heat_map_and_comparison_agree_on_what_is_read(
    read: Mapping[str, int], found: str, compared: str, best: list[str]
) -> None:
    """The share that is planned of a large layout may be less, and its bytes more."""
    records = [
        record("pruning", "one", "bytes_planned_share", "ratio", [share], layout=layout)
        for layout, share in SHARES.items()
    ]
    records += [
        record("filtered", "one", "scan_time_cold", "s", [1.0], layout=layout, counters={READ: amount})
        for layout, amount in read.items()
    ]
    run = sample_run(records=records, measured=())
    report = build_report(run, results_file="r")
    assert report.findings[0].statement == found
    shown = report.sections[0].switch[0]
    assert [row[0].text for row in shown.rows if row[1].tone is Tone.BEST] == best
    assert compare_layouts(run, (), Costing()).findings[0].statement.startswith(compared)


def test_a_filter_of_which_no_bytes_are_counted_is_ranked_by_what_is_planned() -> None:
    records = [
        record("pruning", case, "bytes_planned_share", "ratio", [share], layout=layout)
        for case in ("one", "two")
        for layout, share in (("a", 0.1), ("b", 0.5))
    ]
    records += [
        record("filtered", "two", "scan_time_cold", "s", [1.0], layout=layout, counters={READ: amount})
        for layout, amount in (("a", 100), ("b", 10))
    ]
    one, two, *_ = findings_of(Records(tuple(records)))
    assert one.statement == "For one, a plans least: 10% of its bytes, against 50% with b."
    assert two.statement == "For two, b reads least: 10 B, against 100 B with a."
    assert (one.evidence, two.evidence) == ("", "Bytes read are counted by icebench.")


def test_engines_that_read_the_same_states_of_a_table_are_compared() -> None:
    records = [
        record("reading", case, metric, "s", [seconds * w for w in DRIFT], engine=engine)
        for metric, case in (("scan_time_cold", "no deletes"), ("scan_time_cold", "1.0%"), ("scan_cpu_first", "large"))
        for engine, seconds in (("icebench", 1.0), ("pyiceberg", 3.0))
    ]
    assert statements(tuple(records)) == [
        "Cold scanning is fastest with icebench; pyiceberg takes 3x as long.",
        "The first scan of a process (processor time) is fastest with icebench; pyiceberg takes 3x as long.",
    ]


def test_the_fastest_engine_is_found_wherever_it_stands() -> None:
    records = tuple(
        record("decimals", "scan", "scan_time_cold", "s", [seconds * w for w in DRIFT], engine=engine)
        for engine, seconds in (("first", 3.0), ("second", 1.0), ("third", 2.0))
    )
    what = "Cold scanning of the decimal columns"
    assert statements(records) == [f"{what} is fastest with second; third takes 2x as long and first takes 3x as long."]


def test_the_mean_of_ratios_is_geometric() -> None:
    records = tuple(
        record("planning", case, "latency_warm", "s", [seconds * w for w in DRIFT], engine=engine)
        for case, other in (("a", 2.0), ("b", 8.0))
        for engine, seconds in (("first", 1.0), ("second", other))
    )
    (found,) = statements(records)
    assert "second takes 4x as long" in found


def test_engines_without_a_measurable_difference_are_not_called_faster() -> None:
    records = tuple(
        record("decimals", "scan", "scan_time_cold", "s", samples, engine=engine)
        for engine, samples in (("a", [1.0, 1.1, 1.0, 1.1, 1.0, 1.1]), ("b", [1.1, 1.0, 1.1, 1.0, 1.1, 1.0]))
    )
    what = "Cold scanning of the decimal columns"
    (equal,) = statements(records)
    assert mentions(equal, what, UNSURE, "a and b (1.00x, 0.87 to 1.15)")
    assert "fastest" not in equal
    slow = record("decimals", "scan", "scan_time_cold", "s", [3.0, 3.1, 3.0, 3.1, 3.0, 3.1], engine="c")
    (slower,) = statements((*records, slow))
    among = f"{what}: fastest are among a and b ({UNSURE}: b 1.00x, 0.87 to 1.15); c takes 2.91x as long as with a."
    assert slower == among


def of_processes(processes: int, **factors: float) -> list[Record]:
    """Engines that take these times the same seconds in all rounds of so many processes."""
    places = tuple((process, place) for process in range(processes) for place in range(3))
    return [
        replace(record("decimals", "scan", "scan_time_cold", "s", [own] * len(places), engine=name), places=places)
        for name, own in factors.items()
    ]


def test_only_an_interval_within_the_least_effect_makes_equals() -> None:
    """One process cannot distinguish 1.01x from 1.1x, nor say that it is 1; twelve can."""
    what = "Cold scanning of the decimal columns"
    (open_,) = statements(tuple(of_processes(1, a=1.0, b=1.01)))
    assert re.fullmatch(rf"{what}: {UNSURE} between a and b \(1.01x, 0\.[89]\d to 1\.1\d\)\.", open_)
    assert statements(tuple(of_processes(12, a=1.0, b=1.01))) == [f"{what} takes as long with a and b, within 5%."]
    # Certain to be within the least effect or not, 4% has an interval beyond it.
    (beyond,) = statements(tuple(of_processes(12, a=1.0, b=1.04)))
    assert re.fullmatch(rf"{what}: {UNSURE} between a and b \(1.04x, 1.0\d to 1.0\d\)\.", beyond)
    assert statements(tuple(of_processes(12, a=1.0, b=1.01, c=2.0)))[0] == (
        f"{what}: fastest are a and b, as long within 5%; c takes 2x as long as with a."
    )


def a_race(**ratios: tuple[float, float, float]) -> str:
    """What is said of a race of ``a`` with others, by their ratio, how far its interval reaches, and its p-value."""
    effects = {
        ("a", name): Effect(ratio=ratio, low=ratio / wide, high=ratio * wide, p_value=p_value, processes=1)
        for name, (ratio, wide, p_value) in ratios.items()
    }
    race = Ranking(what="Reading", preposition="on", slower="{1} as long on {0}", effects=effects, evidence="Pooled")
    return race.finding(0.01).statement


def test_nothing_is_fastest_that_another_may_outrun() -> None:
    sure, unsure, equal = (2.0, 1.1, 1e-9), (1.01, 1.16, 0.9), (1.01, 1.03, 1.0)
    assert a_race(b=sure) == "Reading is fastest on a; 2x as long on b."
    assert a_race(b=unsure, c=sure) == (
        "Reading: fastest are among a and b (inconclusive: b 1.01x, 0.87 to 1.17); 2x as long on c as on a."
    )
    assert a_race(b=equal, c=sure) == "Reading: fastest are a and b, as long within 5%; 2x as long on c as on a."
    assert a_race(b=equal, c=unsure, d=sure) == (
        "Reading: fastest are among a, b and c (as long within 5%: b; inconclusive: c 1.01x, 0.87 to 1.17); "
        "2x as long on d as on a."
    )
    assert a_race(b=equal, c=unsure) == (
        "Reading takes as long on a and b, within 5%; inconclusive between a and c (1.01x, 0.87 to 1.17)."
    )


@pytest.mark.parametrize(
    ("processes", "said"),
    [(1, "are inconclusive with icebench (1.01x, 0.8"), (12, "cost less than 5% with icebench.")],
)
def test_deletes_cost_nothing_only_where_the_interval_says_so(processes: int, said: str) -> None:
    base, head = of_processes(processes, none=1.0, some=1.01)
    deletes = [
        replace(each, measurement="deletes", case=case, engine="icebench")
        for case, each in (("none", base), ("1%", head))
    ]
    assert statements(tuple(deletes))[0].startswith(f"Deletes in cold scans (1%) {said}")


def test_unequal_numbers_of_rounds_are_compared_in_the_rounds_that_both_have() -> None:
    fast = record("decimals", "scan", "scan_time_cold", "s", [1.0 * w for w in DRIFT], engine="fast")
    slow = record("decimals", "scan", "scan_time_cold", "s", [49.0 * w for w in DRIFT[:2]], engine="slow")
    assert statements((fast, slow)) == [
        "Cold scanning of the decimal columns is fastest with fast; slow takes 49x as long."
    ]


def test_the_more_claims_the_more_certain_each_must_be() -> None:
    def run(engines: int) -> tuple[Record, ...]:
        values = [("a", 1.0), ("b", 1.3), *((f"other{n}", 1.0) for n in range(engines))]
        return tuple(
            record("decimals", "scan", "scan_time_cold", "s", [own * w for w in DRIFT], engine=name)
            for name, own in values
        )

    assert "b takes 1.30x as long" in statements(run(0))[0]
    assert re.search(rf"{UNSURE}.* and b \(1.30x, 1\.\d\d to 1\.\d\d\)", statements(run(8))[0])


def test_layouts_that_prune_alike_are_said_to() -> None:
    records = tuple(
        record("pruning", "f", "bytes_planned_share", "ratio", [1.0], layout=layout) for layout in ("a", "b")
    )
    assert statements(records) == ["For f no layout prunes better: each plans 100% of its bytes."]


def test_a_lost_file_comes_before_everything_else() -> None:
    lost = record("pruning", "one_item", "recall", "ratio", [0.5], engine="pyiceberg", layout="sorted")
    found = findings_of(Records((*sample_run().records[:-1], lost)))
    assert found[0].statement.startswith("pyiceberg loses rows: for one_item on sorted")
    assert found[0].evidence == "Recall is 0.500000 and must be exactly 1."


def test_a_run_without_records_finds_nothing() -> None:
    assert statements(()) == []


def test_one_engine_on_one_layout_is_compared_with_nothing() -> None:
    assert statements((record("planning", "all", "latency_cold", "s", [1.0, 1.0, 1.0]),)) == []
