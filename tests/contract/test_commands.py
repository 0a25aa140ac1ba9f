"""Every command that takes a table, with tables on S3 whose address and keys are known to their catalog alone: to its
configuration, or to the REST server that gives them with a table."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.execution.run_file import Run, read_run
from icebench.engine.storage.retrying import Retries
from icebench.errors import NotFound
from tests.services.rest_over_catalog import RestOverCatalog
from tests.services.s3_server import KEY, REGION, SECRET, S3Server
from tests.services.scripted_http import Reply, Seen, scripted_server
from tests.unit.bench.cli.test_main import exit_code

ROWS = pa.table({"id": range(100), "day": [f"d{n // 50}" for n in range(100)]})
LAKES = ("sql", "directory", "rest")


@pytest.fixture(scope="module")
def token() -> str:
    """A secret among the keys: the server ignores it, and nothing may show it."""
    return f"zq{secrets.token_hex(12)}"


@contextmanager
def lending(inner: icebench.Catalog, config: Mapping[str, str]) -> Iterator[str]:
    """A REST server that gives storage options with each table; its address."""
    over = RestOverCatalog(inner._inner)

    def answer(request: Seen) -> Reply:
        reply = over(request)
        if isinstance(reply.body, dict) and "metadata" in reply.body:
            reply.body["config"] = config
        return reply

    with scripted_server(answer) as server:
        yield server.address


@contextmanager
def configured(properties: Mapping[str, str], catalog: str = "lake") -> Iterator[str]:
    """The name of a catalog that variables configure."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in properties.items():
            key = name.upper().replace(".", "__").replace("-", "_")
            patch.setenv(f"PYICEBERG_CATALOG__{catalog.upper()}__{key}", value)
        yield catalog


@pytest.fixture(scope="module", params=["sql", "directory", "rest"])
def lake(
    request: pytest.FixtureRequest, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory, token: str
) -> Iterator[str]:
    """The name of a configured catalog with two tables on S3: db.own, which commands change, and db.kept."""
    bucket = f"lake-{request.param}"
    s3_server.client().create_bucket(Bucket=bucket)
    own = {**s3_server.properties, "s3.session-token": token}
    root, database = f"s3://{bucket}/wh", f"sqlite:///{tmp_path_factory.mktemp('lake')}/catalog.db"
    with ExitStack() as held:
        if request.param == "directory":
            at = {"type": "hadoop", "warehouse": root}
            made = icebench.load_catalog(root, properties=own)
        else:
            at = {"uri": database, "warehouse": root}
            made = icebench.load_catalog(database, warehouse=root, name="lake", properties=own)
        held.callback(made.close)
        for name in ("db.own", "db.kept"):
            table = made.create_table(name, ROWS.schema, partition_spec=[("day", "identity")])
            table.append(ROWS)
            table.delete("id < 5", mode="merge-on-read")
        if request.param == "rest":
            at, own = {"uri": held.enter_context(lending(made, own))}, {}
        yield held.enter_context(configured({**at, **own}))


ICEBENCH = ("--only", "icebench")
COMMANDS: dict[str, tuple[str, ...]] = {
    "table": ("table", "files", "db.own"),
    "profile": ("profile", "db.own", "--deep", "--sample", "2"),
    "sql": ("sql", "select count(*) as n, min(id) as least from own", "db.own", "--format", "csv"),
    "doctor": ("doctor", "db.own"),
    "advise": ("advise", "db.own", "--queries", "{queries}", "--called", "db.own"),
    "rewrite-data-files": ("maintain", "rewrite-data-files", "db.own", "--rewrite-all"),
    "cluster": ("maintain", "cluster", "db.own", "--strategy", "sort", "--key", "id"),
    "run": ("maintain", "run", "db.own", "--execute"),
    "columns": ("maintain", "columns", "db.own", "--used", "id", "--deep"),
    "rewrite-position-deletes": ("maintain", "rewrite-position-deletes", "db.own", "--rewrite-all"),
    "convert-equality-deletes": ("maintain", "convert-equality-deletes", "db.own"),
    "compute-table-stats": ("maintain", "compute-table-stats", "db.own"),
    "compute-partition-stats": ("maintain", "compute-partition-stats", "db.own"),
    "rewrite-manifests": ("maintain", "rewrite-manifests", "db.own"),
    "expire-snapshots": ("maintain", "expire-snapshots", "db.own", "--retain-last", "1", "--delete"),
    "remove-orphan-files": ("maintain", "remove-orphan-files", "db.own", "--delete"),
}


@pytest.mark.parametrize("lake", ["sql", "rest"], indirect=True)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command(
    lake: str, words: tuple[str, ...], tmp_path: Path, token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    queries = tmp_path / "queries.sql"
    queries.write_text("select id from db.own where id < 10;")
    given = [word.format(queries=queries) for word in words]
    assert exit_code("--results", tmp_path / "results", *given, "--catalog", lake) == 0
    shown = capfd.readouterr()
    assert token not in shown.out + shown.err
    if words[0] == "sql":
        assert shown.out == "n,least\n95,5\n"
    assert icebench.load_catalog(lake).load_table("db.own").scan().count() == 95


def test_options_of_storage_alone(lake: str, s3_server: S3Server, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TABLE_DEFAULT__COMMIT__RETRY__NUM_RETRIES", "1")
    opened = icebench.load_catalog(lake)
    assert opened.storage_options("db.kept") == {**s3_server.properties, "s3.session-token": token}
    with pytest.raises(NotFound):
        icebench.load_catalog(lake).storage_options("db.missing")


def measured(results: Path) -> Run:
    (path,) = (results / "runs").iterdir()
    return read_run(path)


def is_nowhere(secret: str, *folders: Path) -> bool:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 1
    return not any(secret.encode() in path.read_bytes() for path in files)


def test_a_run(lake: str, tmp_path: Path, token: str, capfd: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    only = [word for name in ("icebench", "pyiceberg") for word in ("--only", name)]
    given = ("run", "--catalog", lake, "--table", "db.kept", "--filter", "id < 10", "--repetitions", "1", *only)
    assert exit_code("--results", results, *given) == 0
    found = measured(results)
    assert found.failures == ()
    cases = {(each.case.engine, each.case.measurement) for each in found.measured}
    measurements = ("planning", "pruning", "filtered", "deletes")
    assert cases == {(name, each) for name in ("icebench", "pyiceberg") for each in measurements}
    shown = capfd.readouterr()
    assert token not in shown.out + shown.err
    assert is_nowhere(token, results)


@pytest.mark.parametrize("lake", ["rest"], indirect=True)
def test_every_engine_and_process_asks_the_catalog(
    lake: str, tmp_path: Path, token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    definition = tmp_path / "own.toml"
    definition.write_text(f"""
        name = "own"
        engines = ["icebench", "pyiceberg", "duckdb", "polars"]
        measurements = ["filtered"]
        filters = {{ few = "id < 10" }}
        repetitions = 1
        warmups = 0
        warm_seconds = 0
        processes = 2
        [[workload]]
        kind = "table"
        catalog = "{lake}"
        table = "db.kept"
    """)
    results = tmp_path / "results"
    assert exit_code("--results", results, "run", definition) == 0
    found = measured(results)
    assert found.failures == ()
    assert {each.case.engine for each in found.measured} == {"icebench", "pyiceberg", "duckdb", "polars"}
    assert {sample.process for each in found.measured for sample in each.samples} == {0, 1}
    assert {each.evidence.counters["rows_returned"] for each in found.measured} == {5}
    shown = capfd.readouterr()
    assert token not in shown.out + shown.err
    assert is_nowhere(token, results)
    # A baseline of its plans is made in the same way.
    assert exit_code("--results", results, "gate", "--tables", definition, "--accept") == 0


def test_a_table_whose_requests_the_server_signs(
    s3_server: S3Server, bucket: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = f"s3://{bucket}/wh"
    made = icebench.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=root, properties=s3_server.properties)
    made.create_table("db.own", ROWS.schema).append(ROWS)
    with lending(made, {"s3.remote-signing-enabled": "true"}) as address, configured({"uri": address}, "pond") as name:
        assert exit_code("--results", tmp_path, "run", "--catalog", name, "--table", "db.own", *ICEBENCH) == 2
    made.close()
    said = capfd.readouterr().err
    assert said == f"icebench: credentials for {root}/db/own: the REST server signs each request, and gives none\n"


def test_every_engine_takes_the_endpoint_of_the_environment(
    s3_server: S3Server, bucket: str, tmp_path: Path, token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    root = f"s3://{bucket}/wh"
    icebench.load_catalog(root, properties=s3_server.properties).create_table("db.own", ROWS.schema).append(ROWS)
    results = tmp_path / "results"
    engines = ("icebench", "pyiceberg", "duckdb", "polars")
    only = [word for name in engines for word in ("--only", name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", s3_server.address)
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_SESSION_TOKEN", token)
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        given = ("--table", f"{root}/db/own", "--filter", "id < 10", "--repetitions", "1", *only, "--only", "filtered")
        assert exit_code("--results", results, "run", *given) == 0
    found = measured(results)
    assert found.failures == ()
    assert {each.case.engine for each in found.measured} == set(engines)
    shown = capfd.readouterr()
    assert token not in shown.out + shown.err
    assert is_nowhere(token, results)


def test_a_table_that_cannot_be_reached_without_a_catalog(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retries, "attempts", lambda _: iter([1]))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    # No keys are given: without this they are asked for at an address that answers within Amazon's machines only.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    place = "s3://no-such-bucket/wh/db/own"
    for given in (("run", "--table", place), ("run", "--table", f"{place}/metadata/v1.metadata.json")):
        assert exit_code("--results", tmp_path, *given, *ICEBENCH) == 2
        last = capfd.readouterr().err.splitlines()[-1]
        assert last.startswith("icebench: ")
        assert place in last


def test_an_address_with_a_password_is_not_put_into_a_run(
    tmp_path: Path, token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    definition = tmp_path / "own.toml"
    workload = f'kind = "table"\ncatalog = "postgresql://u:{token}@127.0.0.1/db"\ntable = "db.own"\n'
    definition.write_text(f'name = "own"\nengines = ["icebench"]\n[[workload]]\n{workload}')
    assert exit_code("--results", tmp_path, "run", definition) == 2
    said = capfd.readouterr().err
    assert "give the name" in said
    assert token not in said
