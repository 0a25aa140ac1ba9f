from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.bench.engines.checksum import checksum_of
from icebench.bench.engines.engine import Ability
from icebench.bench.engines.registry import ENGINES
from icebench.bench.errors import DatasetFailed
from icebench.bench.execution.run_file import RunWriter
from icebench.bench.records.case import Case
from icebench.bench.trials.scanning import Scanning
from icebench.bench.truth.oracle import Answer, Oracle
from icebench.bench.truth.sql import Disputed, NoTruth
from tests.unit.bench.execution.scripted import Clock, Recorded, ScriptedEngine, pace_of, recorded


def rows(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": pa.array(values, pa.int64())})


TABLES = {"all": rows(1, 2, 3, 4), "some": rows(2, 3, 4), "half": rows(3, 4)}
SECONDS = {"all": 2.0, "some": 2.5, "half": 4.0}
WHOLE = Scanning(case=Case(workload="w", layout="small", measurement="decimals"), tables={"": "all"}, columns=("x",))
DELETED = Scanning(
    case=Case(workload="w", layout="small", measurement="deletes"),
    tables={"25%": "some", "50%": "half", "none": "all"},
    columns=("x",),
    base="none",
    rows={"none": 4, "25%": 3, "50%": 2},
    counts_deleted=True,
)


def engine(name: str, clock: Clock, seconds: float = 2.0, **tables: pa.RecordBatch | Exception) -> ScriptedEngine:
    return ScriptedEngine(name, clock, rows={**TABLES, **tables}, seconds={"all": seconds})


def test_time_and_rate(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine("one", clock), engine("two", clock, 0.5, all=rows(4, 3, 2, 1)))
    made.measure(WHOLE)
    assert made.samples("one", "all", "scan_time_cold") == [2.0] * 3
    assert made.samples("one", "all", "scan_cpu_cold") == [2.0] * 3
    assert made.samples("one", "all", "rows_per_second_cold") == [2.0] * 3
    assert made.samples("two", "all", "rows_per_second_cold") == [8.0] * 3
    assert not made.failures
    assert {(r.checksum, r.counters["rows_returned"], r.detail["columns"]) for r in made.records} == {
        (made.records[0].checksum, 4, "x")
    }


def test_who_differs_from_the_truth_is_wrong_even_in_the_majority(writer: RunWriter) -> None:
    clock = Clock()
    wrong = [engine(name, clock, all=rows(1, 3)) for name in ("one", "two")]
    made = recorded(writer, clock, *wrong, engine("odd", clock, all=rows(1, 2)), truth={"all": rows(2, 1)})
    made.measure(WHOLE)
    assert [(f.engine, f.kind) for f in made.failures] == [("one", "WrongAnswer"), ("two", "WrongAnswer")]
    assert made.failures[0].message == "delivers wrong rows: column x: sum 4 against 3"
    assert {r.engine for r in made.records} == {"odd"}


def test_raw_files_are_the_truth_where_there_are_any(writer: RunWriter, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="needs the extra 'peers'")
    pq.write_table(pa.Table.from_batches([rows(1, 2)]), tmp_path / "raw.parquet")
    clock = Clock()
    engines = [engine("right", clock, all=rows(2, 1)), engine("wrong", clock, all=rows(1, 3))]
    made = recorded(writer, clock, *engines, truth={"all": DatasetFailed("nothing there")})
    made.measure(replace(WHOLE, truth=lambda _: Oracle([tmp_path / "raw.parquet"])))
    assert [(f.engine, f.message) for f in made.failures] == [
        (
            "wrong",
            "delivers wrong rows: column x: sum 4 against 3 (the table's files say no more: nothing there)",
        )
    ]
    assert {r.engine for r in made.records} == {"right"}


def test_without_the_truth_all_must_deliver_the_same(writer: RunWriter) -> None:
    clock = Clock()
    unknown = {"all": NoTruth("DuckDB is not there")}
    one, two = engine("one", clock, all=rows(1)), engine("two", clock, all=rows(1, 2))
    made = recorded(writer, clock, one, two, truth=unknown)
    made.measure(WHOLE)
    assert {f.engine for f in made.failures} == {"one", "two"}
    assert "1 rows against 2; one: 1 rows; two: 2 rows" in made.failures[0].message
    assert not made.records
    assert [(s.engine, s.reason) for s in made.skipped] == [
        ("oracle", "engines are only compared with each other: DuckDB is not there")
    ]


def test_where_the_truth_is_disputed_nobody_is_wrong(writer: RunWriter) -> None:
    clock = Clock()
    disputed = {"all": Disputed("two evaluators of the filter differ")}
    made = recorded(writer, clock, engine("one", clock, all=rows(1)), engine("two", clock, all=rows(2)), truth=disputed)
    made.measure(WHOLE)
    assert not made.failures
    assert not made.records
    how = "column x: sum 1 against 2"
    assert {(s.engine, s.reason) for s in made.skipped} == {
        ("oracle", "engines are only compared with each other: two evaluators of the filter differ"),
        ("one", f"engines deliver different rows ({how}; one: 1 rows; two: 1 rows), and none is known wrong"),
        ("two", f"engines deliver different rows ({how}; one: 1 rows; two: 1 rows), and none is known wrong"),
    }
    equal = recorded(writer, clock, engine("one", clock), engine("two", clock), truth=disputed)
    equal.measure(WHOLE)
    assert {r.engine for r in equal.records} == {"one", "two"}


def test_where_the_files_of_the_table_are_disputed_nobody_is_wrong(writer: RunWriter, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="needs the extra 'peers'")
    pq.write_table(pa.Table.from_batches([rows(1, 2)]), tmp_path / "raw.parquet")
    clock = Clock()
    engines = [engine("right", clock, all=rows(2, 1)), engine("other", clock, all=rows(1, 3))]
    made = recorded(writer, clock, *engines, truth={"all": Disputed("two evaluators differ")})
    made.measure(replace(WHOLE, truth=lambda _: Oracle([tmp_path / "raw.parquet"])))
    assert not made.failures
    assert {r.engine for r in made.records} == {"right"}
    assert [(s.engine, s.reason) for s in made.skipped] == [
        ("other", "delivers other rows (column x: sum 4 against 3), and is not known wrong: two evaluators differ")
    ]


def test_without_the_truth_equal_engines_are_timed(writer: RunWriter) -> None:
    clock = Clock()
    engines = [engine(name, clock) for name in ("one", "two")]
    made = recorded(writer, clock, *engines, truth={"all": NoTruth("DuckDB is not there")})
    made.measure(WHOLE)
    assert not made.failures
    assert {r.engine for r in made.records} == {"one", "two"}


def test_a_table_whose_files_cannot_be_read_is_a_failure(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine("one", clock), truth={"all": DatasetFailed("file f cannot be read")})
    made.measure(WHOLE)
    assert [(f.engine, f.message) for f in made.failures] == [("oracle", "file f cannot be read")]
    assert not made.records


def test_all_are_wrong_where_the_number_of_rows_is_known(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine("one", clock), engine("two", clock))
    made.measure(replace(WHOLE, rows={"": 5}))
    assert {f.message for f in made.failures} == {"delivers 4 rows, not 5"}
    assert not made.records


def test_an_engine_that_cannot_read_is_a_failure(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine("one", clock), engine("two", clock, all=RuntimeError("bad page")))
    made.measure(WHOLE)
    assert [(f.engine, f.message) for f in made.failures] == [("two", "bad page")]
    assert {r.engine for r in made.records} == {"one"}


def test_what_cannot_be_measured_is_skipped(writer: RunWriter) -> None:
    clock = Clock()
    plans = ScriptedEngine("plans", clock, abilities=frozenset({Ability.PLAN}))
    made = recorded(writer, clock, engine("one", clock, all=rows()), plans)
    made.measure(WHOLE)
    assert [(s.engine, s.reason) for s in made.skipped] == [
        ("plans", "plans offers no scanning"),
        ("*", "the table has no rows"),
    ]
    assert not made.records
    assert not made.failures


def test_a_filter_that_one_engine_refuses_is_skipped_for_it(writer: RunWriter) -> None:
    clock = Clock()
    takes = replace(engine("takes", clock), plans={("all", "x < 1"): []})
    made = recorded(writer, clock, takes, engine("refuses", clock))
    made.measure(replace(WHOLE, filters={"few": "x < 1"}))
    assert {(r.engine, r.case, r.detail["filter"]) for r in made.records} == {("takes", "few", "x < 1")}
    assert [(s.engine, s.case) for s in made.skipped] == [("refuses", "few")]


def deletes(writer: RunWriter, *engines: ScriptedEngine) -> Recorded:
    made = recorded(writer, engines[0].clock, *engines, pace=pace_of(4))
    made.measure(DELETED)
    return made


def test_the_cost_is_the_difference_within_a_round(writer: RunWriter) -> None:
    clock = Clock()
    one = ScriptedEngine("one", clock, rows=TABLES, seconds=SECONDS)
    two = ScriptedEngine("two", clock, rows=TABLES, seconds=dict.fromkeys(SECONDS, 1.0))
    made = deletes(writer, one, two)
    assert not made.failures
    assert made.samples("one", "none", "scan_time_cold") == [2.0] * 4
    assert made.samples("one", "25%", "scan_time_cold") == [2.5] * 4
    assert made.samples("one", "25%", "delete_cost_cold") == [0.5] * 4
    assert made.samples("one", "50%", "delete_cost_ratio_cold") == [1.0] * 4
    assert made.samples("two", "50%", "delete_cost_cold") == [0.0] * 4
    half = next(r for r in made.records if (r.engine, r.case) == ("one", "50%"))
    assert half.counters == {"rows_returned": 2, "rows_deleted": 2}
    assert {r.metric for r in made.records if r.case == "none"} == {"scan_time_cold", "scan_cpu_cold"}


class SlowingEngine(ScriptedEngine):
    """Every scan of a location takes a second longer than the one before, as on a machine that others load."""

    def scan(self, handle: list[str], columns: Sequence[str], filter: str | None) -> None:
        self.seconds = {**self.seconds, handle[0]: self.seconds[handle[0]] + 1}
        super().scan(handle, columns, filter)


def test_scans_of_different_rounds_are_not_compared(writer: RunWriter) -> None:
    made = deletes(writer, SlowingEngine("one", Clock(), rows=TABLES, seconds=SECONDS))
    without = made.samples("one", "none", "scan_time_cold")
    assert sorted(set(without)) == without
    assert len(set(without)) == 4
    assert made.samples("one", "25%", "delete_cost_cold") == [0.5] * 4
    assert made.samples("one", "50%", "delete_cost_ratio_cold") == [2 / seconds for seconds in without]


def test_deleted_rows_that_come_back_are_a_failure(writer: RunWriter) -> None:
    clock = Clock()
    good = [ScriptedEngine(name, clock, rows=TABLES, seconds=SECONDS) for name in ("one", "two")]
    forgets = ScriptedEngine("forgets", clock, rows={**TABLES, "some": TABLES["all"]}, seconds=SECONDS)
    made = deletes(writer, *good, forgets)
    assert {(f.engine, f.case) for f in made.failures} == {("forgets", "25%")}
    assert not [r for r in made.records if (r.engine, r.case) == ("forgets", "25%")]
    assert made.samples("forgets", "50%", "delete_cost_cold") == [2.0] * 4


def test_even_where_the_tables_own_files_say_so(writer: RunWriter) -> None:
    clock = Clock()
    wrong = {**TABLES, "half": TABLES["some"]}
    made = deletes(writer, *(ScriptedEngine(name, clock, rows=wrong) for name in ("one", "two")))
    assert {(f.engine, f.case, f.message) for f in made.failures} == {
        (name, "50%", "delivers 3 rows, not 2") for name in ("one", "two")
    }


def test_who_deletes_as_many_but_other_rows_is_not_timed(writer: RunWriter) -> None:
    clock = Clock()
    good = [ScriptedEngine(name, clock, rows=TABLES, seconds=SECONDS) for name in ("one", "two")]
    made = deletes(writer, *good, ScriptedEngine("other", clock, rows={**TABLES, "some": rows(1, 3, 4)}))
    assert {(f.engine, f.case) for f in made.failures} == {("other", "25%")}
    assert not [r for r in made.records if (r.engine, r.case) == ("other", "25%")]


def test_an_engine_that_cannot_apply_deletes_keeps_its_other_figures(writer: RunWriter) -> None:
    clock = Clock()
    partial = ScriptedEngine("partial", clock, rows={**TABLES, "half": NotImplementedError("too many")})
    made = deletes(writer, ScriptedEngine("one", clock, rows=TABLES), partial)
    assert [(f.engine, f.case, f.message) for f in made.failures] == [("partial", "50%", "too many")]
    assert made.samples("partial", "25%", "delete_cost_cold") == [0.0] * 4


@pytest.mark.parametrize("same", [True, False])
def test_tables_that_must_have_the_same_rows(writer: RunWriter, same: bool) -> None:
    clock = Clock()
    scanning = replace(
        DELETED,
        case=replace(DELETED.case, measurement="reading"),
        tables={"none": "all", "other": "some"},
        rows={},
        same_rows=same,
    )
    made = recorded(writer, clock, ScriptedEngine("one", clock, rows=TABLES, seconds=SECONDS))
    made.measure(scanning)
    if same:
        assert made.failures[0].message.startswith("delivers other rows than from none: 3 rows against 4")
    else:
        assert made.samples("one", "other", "scan_time_cold_added") == [0.25] * 3
        assert made.samples("one", "other", "scan_cpu_cold_added") == [0.25] * 3


def test_filtered_reads_say_what_they_did_where_the_engine_reports_it(writer: RunWriter) -> None:
    clock = Clock()

    class Telling(ScriptedEngine):
        def count_scan(self, handle: list[str], columns: Sequence[str], filter: str | None) -> Mapping[str, int]:
            assert handle == ["all"]  # nothing was planned with it before
            return {"bytes_read": 9, "rows_returned": 99}

    telling = Telling("telling", clock, plans={("all", "x < 9"): []}, rows=TABLES, seconds=SECONDS)
    silent = replace(engine("silent", clock), plans={("all", "x < 9"): []})
    made = recorded(writer, clock, telling, silent)
    made.measure(replace(WHOLE, counts_work=True, filters={"few": "x < 9"}))
    counted = {r.engine: dict(r.counters) for r in made.records}
    assert counted == {"telling": {"bytes_read": 9, "rows_returned": 4}, "silent": {"rows_returned": 4}}
    assert made.samples("telling", "few", "scan_time_cold") == [2.0] * 3


@dataclass
class CachingEngine(ScriptedEngine):
    """Opening takes a second. A scan takes 4.5 s of a new handle, and 2 s less for each of what the handle and the
    process have cached of it."""

    cached: set[str] = field(default_factory=set)

    def forget(self) -> None:
        self.cached.clear()

    def open(self, metadata_location: str) -> list[str]:
        self.clock.pass_(1.0)
        return super().open(metadata_location)

    def scan(self, handle: list[str], columns: Sequence[str], filter: str | None) -> None:
        self.clock.pass_(4.5 - 2 * (len(handle) > 1) - 2 * (handle[0] in self.cached))
        handle[1:] = ["scanned"]
        self.cached.add(handle[0])


def test_a_cold_scan_opens_the_table_and_a_warm_one_has_all_that_is_cached(writer: RunWriter) -> None:
    clock = Clock()
    few: dict[tuple[str, str | None], Sequence[str] | Exception] = {
        (table, text): [] for table in TABLES for text in ("x < 9", "x < 5")
    }
    made = recorded(writer, clock, CachingEngine("one", clock, plans=few, rows=TABLES), pace=pace_of(6))
    case = replace(WHOLE.case, measurement="filtered")
    filters = {"few": "x < 9", "fewer": "x < 5"}
    made.measure(
        *(
            replace(WHOLE, case=replace(case, layout=name), tables={"": name}, filters=filters, warm=["few"])
            for name in TABLES
        )
    )
    assert not made.failures
    assert {s for r in made.records if r.metric == "scan_time_cold" for s in r.samples} == {5.5}
    # Though cold scans of other tables empty what the process caches.
    assert {s for r in made.records if r.metric == "scan_time_warm" for s in r.samples} == {0.5}
    assert {r.case for r in made.records if r.metric == "scan_time_warm"} == {"few"}


def test_a_warm_scan_says_what_is_kept_and_is_compared_with_a_warm_base(writer: RunWriter) -> None:
    clock = Clock()
    one = ScriptedEngine("duckdb", clock, rows=TABLES, seconds=SECONDS)
    made = recorded(writer, clock, one)
    made.measure(replace(DELETED, warm=["all"]))
    assert made.samples("duckdb", "50%", "delete_cost_cold") == made.samples("duckdb", "50%", "delete_cost_warm")
    kept = {(r.cache, r.detail.get("kept", "")) for r in made.records}
    assert kept == {("cold", ""), ("warm", ENGINES["duckdb"].keeps)}
    assert "no handle" in ENGINES["duckdb"].keeps


class _Rows:
    """Knows the rows that it is given."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._checksum = checksum_of([batch], ("x",))

    def answer(self, columns: Sequence[str], filter: str | None = None) -> Answer:
        return Answer({"raw.parquet": self._checksum})


def test_rows_are_held_against_the_raw_ones_and_not_against_the_tables_own(writer: RunWriter) -> None:
    clock = Clock()
    truth = {"all": rows(1, 2, 3), "some": rows(2, 3, 4), "half": rows(3, 4)}
    made = recorded(writer, clock, engine("one", clock, all=rows(1, 2, 3)), truth=truth)
    raw = {"none": rows(1, 2, 3, 4), "25%": rows(2, 3, 4), "50%": rows(3, 4)}
    made.measure(replace(DELETED, rows={}, truth=lambda variant: _Rows(raw[variant])))
    assert [(f.case, f.message) for f in made.failures] == [
        ("none", "delivers wrong rows: 3 rows against 4 (as the files of the table have them)")
    ]
    assert {r.case for r in made.records} == {"25%", "50%"}


def test_what_the_tables_own_files_say_of_a_fault_is_reported(writer: RunWriter) -> None:
    clock = Clock()
    made = recorded(writer, clock, engine("one", clock, all=rows(1, 2)), truth={"all": rows(1, 2, 3)})
    made.measure(replace(WHOLE, truth=lambda _: _Rows(rows(4, 3, 2, 1))))
    assert [f.message for f in made.failures] == [
        "delivers wrong rows: 2 rows against 4 (of the table: 2 rows against 3)"
    ]
    assert not made.records
