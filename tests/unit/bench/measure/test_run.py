from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.engines.engine import AnyEngine, EngineMissing
from bench.engines.registry import EngineContext
from bench.errors import ConfigError, DatasetFailed
from bench.experiment import MEASUREMENTS, TIMED, Repetitions, SparkDefinition, parse_experiment
from bench.measure import experiments, run
from bench.measure.brute.manifests import live_files
from bench.measure.brute.metadata import load_table_json
from bench.measure.datasets import Dataset
from bench.measure.interleave import ClockExecutor
from bench.measure.run import RunPlan, SparkUse, Surroundings, execute
from bench.measure.run_file import read_run
from bench.measure.subject import Subject
from tests.unit.bench.measure.scripted import NOON, Clock, ScriptedEngine, small_rows, small_table
from tests.unit.bench.test_experiment import text

PLAN = RunPlan(
    name="x",
    workload="tpcds",
    scale=0.5,
    engines=("one", "gone"),
    measurements=MEASUREMENTS,
    repetitions=dict.fromkeys(TIMED, Repetitions(repetitions=3, warmups=0)),
    seed=1,
)
FILTER = "id < 50"


def no_session() -> SparkSession:
    raise AssertionError("nothing here needs Spark")


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
        session=no_session,
        executor=ClockExecutor(clock, lambda: None),
        now=lambda: NOON,
    )


@pytest.fixture
def spark(where: Surroundings) -> SparkUse:
    return SparkUse(SparkDefinition(master="local[1]"), where)


def scripted(name: str, clock: Clock, location: str) -> ScriptedEngine:
    paths = [file.path for file in live_files(load_table_json(location))]
    rows = small_rows().combine_chunks().to_batches()[0]
    return ScriptedEngine(
        name, clock, plans={(location, None): paths, (location, FILTER): paths}, rows={location: rows}
    )


def register(monkeypatch: pytest.MonkeyPatch, engines: Mapping[str, ScriptedEngine]) -> None:
    def make(name: str, context: EngineContext) -> AnyEngine:
        if name not in engines:
            raise EngineMissing(f"{name} is not installed")
        return engines[name]

    monkeypatch.setattr(run, "make_engine", make)


def subject(location: str) -> Subject:
    return Subject(layout="small", metadata_location=location, filters={"some": FILTER}, decimal_columns=("price",))


def test_a_run_measures_records_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, location: str, clock: Clock, where: Surroundings, spark: SparkUse
) -> None:
    register(monkeypatch, {"one": scripted("one", clock, location)})
    result = execute(PLAN, lambda: [subject(location)], spark=spark, where=where)
    assert result.run_id == "20260102T120000Z-x"
    assert not result.failed
    assert {record.measurement for record in result.records} == {"planning", "pruning", "decimals"}
    assert {(s.engine, s.measurement, s.reason) for s in result.skipped} == {
        ("gone", "*", "gone is not installed"),
        ("*", "deletes", "the table has no deletes"),
    }
    written = read_run(result.path)
    assert written.complete
    assert (written.records, written.skipped, written.failures) == (result.records, result.skipped, result.failures)
    assert written.environment["engines"] == {"one": "1.0"}
    assert written.environment["software"]["spark"] is None


def test_runs_of_one_second_have_ids_of_their_own(
    monkeypatch: pytest.MonkeyPatch, location: str, clock: Clock, where: Surroundings, spark: SparkUse
) -> None:
    register(monkeypatch, {"one": scripted("one", clock, location)})
    plan = replace(PLAN, measurements=("decimals",))
    ids = [execute(plan, lambda: [subject(location)], spark=spark, where=where).run_id for _ in range(3)]
    assert ids == ["20260102T120000Z-x", "20260102T120000Z-x-2", "20260102T120000Z-x-3"]


def test_the_command_is_kept_and_is_no_part_of_what_tells_environments_apart(
    monkeypatch: pytest.MonkeyPatch, location: str, clock: Clock, where: Surroundings, spark: SparkUse
) -> None:
    register(monkeypatch, {"one": scripted("one", clock, location)})
    plan = replace(PLAN, measurements=("decimals",))
    asked = replace(where, command=("run", "x"))
    results = [execute(plan, lambda: [subject(location)], spark=spark, where=each) for each in (where, asked)]
    assert len({record.environment for result in results for record in result.records}) == 1
    assert [read_run(result.path).environment.get("command") for result in results] == [None, ["run", "x"]]


def test_a_run_with_a_failure_has_failed(
    monkeypatch: pytest.MonkeyPatch, location: str, clock: Clock, where: Surroundings, spark: SparkUse
) -> None:
    engine = scripted("one", clock, location)
    engine.rows = {location: RuntimeError("bad page")}
    register(monkeypatch, {"one": engine})
    result = execute(PLAN, lambda: [subject(location)], spark=spark, where=where)
    assert result.failed
    assert b'"status":"failed"' in result.path.read_bytes().splitlines()[-1]


def test_the_same_seed_runs_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch, location: str, clock: Clock, where: Surroundings, spark: SparkUse
) -> None:
    orders: list[list[str]] = []

    class Noting(ScriptedEngine):
        def scan(self, handle: list[str], columns: object, filter: str | None) -> Mapping[str, int]:
            orders[-1].append(self.name)
            self.clock.pass_(1)
            return {}

    for seed in (3, 3, 4):
        orders.append([])
        engines = {name: Noting(**vars(scripted(name, clock, location))) for name in ("one", "two", "three")}
        register(monkeypatch, engines)
        often = dict.fromkeys(TIMED, Repetitions(repetitions=9, warmups=0))
        plan = replace(PLAN, engines=tuple(engines), measurements=("decimals",), seed=seed, repetitions=often)
        execute(plan, lambda: [subject(location)], spark=spark, where=where)
    assert orders[0] == orders[1] != orders[2]


def test_without_any_engine_there_is_no_run(
    monkeypatch: pytest.MonkeyPatch, location: str, where: Surroundings, spark: SparkUse
) -> None:
    register(monkeypatch, {})
    with pytest.raises(ConfigError, match=r"none of the engines can run here \(one: one is not installed; gone:"):
        execute(PLAN, lambda: [subject(location)], spark=spark, where=where)
    assert not where.results.exists()


def test_tables_that_cannot_be_prepared_leave_no_run(
    monkeypatch: pytest.MonkeyPatch, location: str, clock: Clock, where: Surroundings, spark: SparkUse
) -> None:
    register(monkeypatch, {"one": scripted("one", clock, location)})

    def fail() -> list[Subject]:
        raise DatasetFailed("no disk")

    with pytest.raises(DatasetFailed):
        execute(PLAN, fail, spark=spark, where=where)
    assert not where.results.exists()


EXPERIMENT = text().replace('["pyiceberg"]', '["icebench", "pyiceberg"]').replace("ss_item_sk = 1", FILTER)


def prepared(monkeypatch: pytest.MonkeyPatch, dataset: Dataset) -> list[object]:
    requests: list[object] = []

    def find(request: object, *_: object, **__: object) -> list[Dataset]:
        requests.append(request)
        return [dataset]

    monkeypatch.setattr(experiments, "find_or_build", find)
    return requests


def test_an_experiment_is_run_on_its_tables(
    monkeypatch: pytest.MonkeyPatch, location: str, clock: Clock, where: Surroundings
) -> None:
    one = scripted("icebench", clock, location)
    register(monkeypatch, {"icebench": one, "pyiceberg": replace(one, name="pyiceberg")})
    requests = prepared(monkeypatch, Dataset(layout="monthly", metadata_location=location))
    result = experiments.run_experiment(parse_experiment(EXPERIMENT), where=where, only={"pruning", "decimals"})
    assert not result.failed
    assert {r.measurement for r in result.records} == {"pruning", "decimals"}
    assert {(r.layout, r.experiment, r.scale) for r in result.records} == {("monthly", "small", 0.01)}
    assert {r.detail["columns"] for r in result.records if r.measurement == "decimals"} == {"price"}
    assert [request.deletes for request in requests] == [None]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace(FILTER, "nothing < 50"), r"^filters\.one: filter .* names column 'nothing'"),
        (lambda t: t + "\n[decimals]\ncolumns = ['price', 'prize']", r"^decimals\.columns\[1\]: .* no column 'prize'"),
        (lambda t: t + "\n[deletes]\ncolumns = ['prize']", r"^deletes\.columns\[0\]: .* no column 'prize'"),
    ],
)
def test_names_that_the_table_does_not_have_are_told_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
    location: str,
    where: Surroundings,
    change: Callable[[str], str],
    message: str,
) -> None:
    register(monkeypatch, {"icebench": scripted("icebench", Clock(), location)})
    prepared(monkeypatch, Dataset(layout="monthly", metadata_location=location))
    with pytest.raises(ConfigError, match=message):
        experiments.run_experiment(parse_experiment(change(EXPERIMENT)), where=where)
    assert not where.results.exists()


def test_the_usual_places(tmp_path: Path) -> None:
    found = experiments.surroundings_of(tmp_path)
    assert found.cache == tmp_path / "datasets" / "cache"
    assert found.results == tmp_path / "results" / "runs"
