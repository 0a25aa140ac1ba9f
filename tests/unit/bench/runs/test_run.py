from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from icebench.bench.engines.engine import AnyEngine, EngineMissing
from icebench.bench.engines.registry import EngineContext
from icebench.bench.errors import ConfigError, DatasetFailed
from icebench.bench.execution.run_file import read_run
from icebench.bench.experiment import Experiment, load_experiment, parse_experiment, parse_values
from icebench.bench.layouts.registry import known_layouts
from icebench.bench.runs import preparation, run
from icebench.bench.runs.run import Finished, Surroundings, _check_same, resume_run, run_experiment, surroundings_of
from icebench.bench.tables.datasets import Dataset
from icebench.bench.tables.raw_files import RawFiles
from icebench.bench.tables.table_builder import BuildCost
from icebench.bench.truth.manifests import live_files
from icebench.bench.truth.metadata import load_table_json
from tests.unit.bench.execution.scripted import (
    NOON,
    Clock,
    ScriptedEngine,
    executor_of,
    no_spark,
    small_rows,
    small_table,
)
from tests.unit.bench.test_experiment import text

FILTER = "id < 50"
DEFINITION = text(root="repetitions = 3\nwarmups = 0\nwarm_seconds = 0").replace("ss_item_sk = 1", FILTER)


def experiment(*engines: str, measurements: str = "planning pruning decimals deletes", more: str = "") -> Experiment:
    named = ", ".join(f'"{name}"' for name in engines or ("icebench", "pyiceberg"))
    made = DEFINITION.replace('"pyiceberg"', named).replace(
        "repetitions", f"measurements = {measurements.split()}\nrepetitions"
    )
    return parse_experiment(made + more)


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_table(tmp_path_factory.mktemp("run"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def where(tmp_path: Path, clock: Clock) -> Surroundings:
    return Surroundings(
        cache=tmp_path / "cache",
        results=tmp_path / "runs",
        session=no_spark,
        executor=executor_of(clock),
        clock=clock,
        now=lambda: NOON,
    )


def scripted(name: str, clock: Clock, location: str) -> ScriptedEngine:
    paths = [file.path for file in live_files(load_table_json(location))]
    rows = small_rows().combine_chunks().to_batches()[0]
    return ScriptedEngine(
        name, clock, plans={(location, None): paths, (location, FILTER): paths}, rows={location: rows}
    )


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch, location: str, clock: Clock, tmp_path: Path) -> dict[str, ScriptedEngine]:
    """The engines that can be made; one that is not among them is missing. Tables are one small one, of layout
    monthly, which has no deletes."""
    found = {"icebench": scripted("icebench", clock, location)}

    def make(name: str, context: EngineContext) -> AnyEngine:
        if name not in found:
            raise EngineMissing(f"{name} is not installed")
        return found[name]

    path = tmp_path / "raw.parquet"
    pq.write_table(small_rows(), path)
    raw = RawFiles(schema=small_rows().schema, paths=(path,), rows=400, size_bytes=path.stat().st_size)
    cost = BuildCost(bytes_written=10, bytes_compacted=4, bytes_on_disk=20, files=3, manifests=1)
    dataset = Dataset(layout=known_layouts()["monthly"], metadata_location=location, raw=raw, cost=cost)
    monkeypatch.setattr(run, "make_engine", make)
    monkeypatch.setattr(preparation, "find_or_build", lambda *_, **__: [dataset])
    return found


def test_a_run_measures_records_and_says_what_is_missing(
    engines: dict[str, ScriptedEngine], where: Surroundings
) -> None:
    result = run_experiment(experiment(), where=where)
    assert result.run.run_id == "20260102T120000Z-small"
    assert not result.failed
    assert {record.measurement for record in result.records} == {"build", "planning", "pruning", "decimals"}
    assert {(s.engine, s.measurement, s.reason) for s in result.run.skipped} == {
        ("pyiceberg", "*", "pyiceberg is not installed"),
        ("*", "deletes", "the table has no deletes"),
    }
    written = read_run(result.path)
    assert written.complete
    assert written == result.run
    assert written.environment["engines"] == {"icebench": "1.0"}
    assert written.environment["software"]["spark"] is None
    assert {(r.layout, r.workload) for r in result.records} == {("monthly", "tpcds")}
    assert {r.detail["columns"] for r in result.records if r.measurement == "decimals"} == {"price"}


def test_the_whole_definition_is_in_the_file(engines: dict[str, ScriptedEngine], where: Surroundings) -> None:
    chosen = experiment(measurements="decimals")
    found = run_experiment(chosen, where=where).run.environment
    assert found["definition"] == chosen.values
    assert (found["digest"], found["experiment"], found["scale"]) == (chosen.digest, "small", 0.01)
    assert found["started"] == "2026-01-02T12:00:00+00:00"


def test_the_end_of_a_run_has_its_time(engines: dict[str, ScriptedEngine], where: Surroundings) -> None:
    found = run_experiment(experiment(measurements="decimals"), where=where)
    assert found.run.finished == "2026-01-02T12:00:00+00:00"
    where.interruption.path = found.path
    assert where.interruption.advice == f"stopped; the run is complete: icebench report {found.path}"


def test_runs_of_one_second_have_ids_of_their_own(engines: dict[str, ScriptedEngine], where: Surroundings) -> None:
    ids = [run_experiment(experiment(measurements="decimals"), where=where).run.run_id for _ in range(3)]
    assert ids == ["20260102T120000Z-small", "20260102T120000Z-small-2", "20260102T120000Z-small-3"]


def test_the_command_is_kept_and_is_no_part_of_what_distinguishes_environments(
    engines: dict[str, ScriptedEngine], where: Surroundings
) -> None:
    asked = replace(where, command=("run", "x"))
    found = [run_experiment(experiment(measurements="decimals"), where=each).run for each in (where, asked)]
    assert len({each.environment["id"] for each in found}) == 1
    assert [each.environment.get("command") for each in found] == [None, ["run", "x"]]


def test_a_run_with_a_failure_has_failed(
    engines: dict[str, ScriptedEngine], location: str, where: Surroundings
) -> None:
    engines["icebench"].rows = {location: RuntimeError("bad page")}
    result = run_experiment(experiment(), where=where)
    assert result.failed
    assert b'"status":"failed"' in result.path.read_bytes().splitlines()[-1]


def test_without_any_engine_there_is_no_run(engines: dict[str, ScriptedEngine], where: Surroundings) -> None:
    with pytest.raises(ConfigError, match=r"none of the engines can run here \(duckdb: duckdb is not installed\)"):
        run_experiment(experiment("duckdb"), where=where)
    assert not where.results.exists()


def test_tables_that_cannot_be_prepared_leave_no_run(
    engines: dict[str, ScriptedEngine], where: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> list[Dataset]:
        raise DatasetFailed("no disk")

    monkeypatch.setattr(preparation, "find_or_build", fail)
    with pytest.raises(DatasetFailed):
        run_experiment(experiment(), where=where)
    assert not where.results.exists()


class Stopping(ScriptedEngine):
    """Is interrupted at a scan."""

    scans_left = 2

    def scan(self, handle: list[str], columns: object, filter: str | None) -> None:
        if not self.scans_left:
            raise KeyboardInterrupt
        self.scans_left -= 1
        self.clock.pass_(2)


def interrupted(engines: dict[str, ScriptedEngine], where: Surroundings) -> Path:
    """The file of a run that was stopped in its second round: one scan gets warm, one is recorded."""
    own = engines["icebench"]
    engines["icebench"] = Stopping(**vars(own))
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(measurements="decimals"), where=where)
    engines["icebench"] = own
    (path,) = where.results.iterdir()
    return path


def scan_times(result: Finished) -> list[float]:
    return [s for r in result.records if r.metric == "scan_time_cold" for s in r.samples]


def test_an_interrupted_run_goes_on_from_its_file(engines: dict[str, ScriptedEngine], where: Surroundings) -> None:
    path = interrupted(engines, where)
    with path.open("ab") as file:
        file.write(b'{"line":"sample","ca')
    result = resume_run(path, where=where)
    assert result.run.complete
    assert result.path == path
    # The first round is as it was; the others took a second each.
    assert scan_times(result) == [2.0, 1.0, 1.0]
    # What favours a case for the life of a process does not outlive it.
    (scan,) = (r for r in result.records if r.metric == "scan_time_cold")
    assert scan.places == ((0, 0), (1, 1), (1, 2))
    with pytest.raises(ConfigError, match="this run is complete"):
        resume_run(path, where=where)


def test_a_run_goes_on_with_the_same_software_alone(engines: dict[str, ScriptedEngine], where: Surroundings) -> None:
    path = interrupted(engines, where)
    engines["icebench"].version = "2.0"
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="cannot go on: engines is not as it was"):
        resume_run(path, where=where)
    assert path.read_bytes() == before


def test_a_run_goes_on_with_the_same_layouts_and_queries_alone(
    engines: dict[str, ScriptedEngine], where: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = interrupted(engines, where)
    changed = replace(known_layouts()["monthly"], files=7)
    with monkeypatch.context() as patch:
        patch.setattr("icebench.bench.experiment.known_layouts", lambda: {"monthly": changed})
        with pytest.raises(ConfigError, match="cannot go on: what the definition names"):
            resume_run(path, where=where)
    assert resume_run(path, where=where).run.complete


@pytest.mark.parametrize(("was", "now", "goes_on"), [(None, "local[2]", True), ("local[2]", "local[16]", False)])
def test_a_run_goes_on_with_the_same_spark_session(was: str | None, now: str | None, goes_on: bool) -> None:
    before, after = ({"software": {"os": "a", "spark": each and {"master": each}}} for each in (was, now))
    with nullcontext() if goes_on else pytest.raises(ConfigError, match="cannot go on: software"):
        _check_same(before, after, Path("run.jsonl"))


def test_every_process_runs_all_rounds_and_pairs_are_of_one_process(
    engines: dict[str, ScriptedEngine], where: Surroundings
) -> None:
    chosen = experiment(measurements="decimals")
    twice = parse_values({**chosen.values, "processes": 3})
    launched: list[int] = []

    def launch(path: Path, process: int, lock: int) -> None:
        launched.append(process)
        assert not resume_run(path, where=where, process=process, lock=lock).run.complete

    result = run_experiment(twice, where=replace(where, launch=launch))
    assert launched == [1, 2]
    assert result.run.complete
    (scan,) = (r for r in result.records if r.metric == "scan_time_cold")
    assert scan.places == tuple((process, number) for process in range(3) for number in range(3))
    with pytest.raises(ConfigError, match="processes: there is no way to start another process here"):
        run_experiment(twice, where=where)


def test_a_further_process_that_was_stopped_is_gone_on_with_by_another(
    engines: dict[str, ScriptedEngine], where: Surroundings
) -> None:
    twice = parse_values({**experiment(measurements="decimals").values, "processes": 2})
    own = engines["icebench"]

    def launch(path: Path, process: int, lock: int) -> None:
        resume_run(path, where=where, process=process, lock=lock)

    def stopped(path: Path, process: int, lock: int) -> None:
        engines["icebench"] = Stopping(**vars(own))
        launch(path, process, lock)

    with pytest.raises(KeyboardInterrupt):
        run_experiment(twice, where=replace(where, launch=stopped))
    engines["icebench"] = own
    (path,) = where.results.iterdir()
    result = resume_run(path, where=replace(where, launch=launch))
    (scan,) = (r for r in result.records if r.metric == "scan_time_cold")
    assert scan.places == ((0, 0), (0, 1), (0, 2), (1, 0), (3, 1), (3, 2))


def test_a_process_that_counts_otherwise_is_a_failure(
    engines: dict[str, ScriptedEngine], location: str, where: Surroundings
) -> None:
    def launch(path: Path, process: int, lock: int) -> None:
        engines["icebench"].rows = {location: small_rows(0, 399).combine_chunks().to_batches()[0]}
        resume_run(path, where=where, process=process, lock=lock)

    twice = parse_values({**experiment(measurements="decimals").values, "processes": 2})
    assert run_experiment(twice, where=replace(where, launch=launch)).failed


def test_a_session_that_made_the_tables_may_be_missing_later(
    engines: dict[str, ScriptedEngine], where: Surroundings
) -> None:
    path = interrupted(engines, where)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"spark":null', '"spark":{"version":"4.1"}', 1), encoding="utf-8")
    assert resume_run(path, where=where).run.complete


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace(FILTER, "nothing < 50"), r"^filters\.one: filter .* names column 'nothing'"),
        (lambda t: t + "\n[decimals]\ncolumns = ['price', 'prize']", r"^decimals\.columns\[1\]: .* no column 'prize'"),
        (lambda t: t + "\n[deletes]\ncolumns = ['prize']", r"^deletes\.columns\[0\]: .* no column 'prize'"),
    ],
)
def test_names_that_the_table_does_not_have_are_reported_before_anything_runs(
    engines: dict[str, ScriptedEngine], where: Surroundings, change: Callable[[str], str], message: str
) -> None:
    chosen = parse_experiment(change(DEFINITION.replace("pyiceberg", "icebench")))
    with pytest.raises(ConfigError, match=message):
        run_experiment(chosen, where=where)
    assert not where.results.exists()


def test_the_usual_places(tmp_path: Path) -> None:
    found = surroundings_of(tmp_path)
    assert found.cache == tmp_path / "datasets" / "cache"
    assert found.results == tmp_path / "results" / "runs"


@pytest.mark.slow
def test_the_first_look_compares_three_layouts_without_spark(tmp_path: Path) -> None:
    where = Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=no_spark)
    values = load_experiment("quick").values
    small = {"repetitions": 1, "warmups": 0, "warm_seconds": 0, "workload": {**values["workload"], "scale": 0.003}}
    done = run_experiment(parse_values({**values, **small}), where=where)
    assert not done.failed
    for measurement in ("planning", "pruning", "filtered"):
        cases = [each.case for each in done.run.measured if each.case.measurement == measurement]
        pairs = {(case.layout, case.engine) for case in cases}
        assert pairs == set(product(("unpartitioned", "monthly", "sorted"), ("icebench", "pyiceberg")))
