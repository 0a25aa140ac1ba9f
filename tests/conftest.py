"""What tests share: Hypothesis profiles, servers, figures of campaigns, and marks that come from where a test lies."""

import gc
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from icebench.engine.catalog.hive_client import Metastore
from tests.services.hive_metastore import hive_metastore
from tests.services.postgres import find_initdb, postgres
from tests.services.rest_server import rest_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.services.nessie import Nessie
    from tests.services.s3_server import S3Server

TESTS = Path(__file__).parent
SPARK_TIMEOUT_SECONDS = 300
_FIGURES = "figures"

# Time says nothing on a shared machine: no deadlines, and no complaint that data took long to make.
settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
# The same examples each time; `make soak` tries thousands of others.
settings.register_profile("ci", settings.get_profile("dev"), max_examples=30, derandomize=True, print_blob=True)
settings.register_profile(
    "soak", settings.get_profile("dev"), max_examples=int(os.environ.get("ICEBENCH_SOAK", "5000")), print_blob=True
)
# A planted bug is noticed by any example, however large.
settings.register_profile("mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate], database=None)
settings.load_profile("soak" if "ICEBENCH_SOAK" in os.environ else "ci" if "CI" in os.environ else "dev")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests by their folder and by what they ask for, so that those with Spark can be run apart; leaves out the
    campaigns of `make soak` unless ``-m`` speaks of them."""
    if "soak" not in config.getoption("markexpr"):
        campaigns = [item for item in items if item.get_closest_marker("soak")]
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=campaigns)
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if folder in {"spark", "interop"}:
            item.add_marker(folder)
        if folder == "spark" or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_SECONDS))


def pytest_sessionstart() -> None:
    """Has no modules and collected tests searched for garbage again and again: they stay to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Call it with named numbers: they are shown when all tests are over."""

    def record(**numbers: object) -> None:
        record_property(_FIGURES, ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in numbers.items()))

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows the figures of campaigns that passed."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == _FIGURES and "soak" in report.keywords:
                terminalreporter.write_line(f"{report.nodeid.rpartition('/')[2]} ({report.duration:.0f} s): {text}")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    initdb = find_initdb()
    if initdb is None:
        pytest.skip("PostgreSQL is not installed: initdb is neither on the PATH nor where packages put it")
    with postgres(initdb) as url:
        yield url


@pytest.fixture(scope="session")
def s3_server() -> Iterator["S3Server"]:
    """A server of S3 and Glue."""
    from tests.services import s3_server  # local import: moto takes two seconds

    with s3_server.s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3_server: "S3Server") -> str:
    """The name of a new bucket there."""
    name = f"bucket-{len(s3_server.buckets)}"
    s3_server.buckets.append(name)
    s3_server.client().create_bucket(Bucket=name)
    return name


@pytest.fixture
def glue_properties(s3_server: "S3Server") -> dict[str, str]:
    """Properties of a Glue catalog without databases."""
    client = s3_server.client("glue")
    for database in client.get_databases()["DatabaseList"]:
        client.delete_database(Name=database["Name"])
    return s3_server.glue_properties


@pytest.fixture(scope="session")
def _rest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    home = tmp_path_factory.mktemp("rest")
    with rest_server(home) as address:
        yield address, home


@pytest.fixture
def rest_address(_rest_server: tuple[str, Path]) -> str:
    """The address of a REST catalog without tables, views and namespaces, that of Iceberg Java."""
    address, home = _rest_server
    # The server makes the same directory for the same name.
    shutil.rmtree(home / "warehouse", ignore_errors=True)
    with closing(sqlite3.connect(home / "catalog.db", timeout=30)) as connection, connection:
        for table in ("iceberg_tables", "iceberg_namespace_properties"):
            connection.execute(f"delete from {table}")
    return address


@pytest.fixture
def rest_database(rest_address: str, _rest_server: tuple[str, Path]) -> str:
    """The URL of the database that the server's JdbcCatalog, named `rest_backend`, keeps its tables in."""
    return f"sqlite:///{_rest_server[1] / 'catalog.db'}"


@pytest.fixture(scope="session")
def _nessie(tmp_path_factory: pytest.TempPathFactory, s3_server: "S3Server") -> Iterator["Nessie"]:
    from tests.services import nessie  # local import: needs moto

    java_home = nessie.find_java()
    if java_home is None:
        reason = f"Nessie needs Java {nessie.OLDEST_JAVA} or later, and none was found"
        if "CI" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
    s3_server.client().create_bucket(Bucket="nessie")
    with nessie.nessie(java_home, tmp_path_factory.mktemp("nessie"), s3_server, "nessie") as server:
        yield server


@pytest.fixture
def nessie_address(_nessie: "Nessie") -> str:
    """The address of an empty REST catalog of Nessie, whose tables are on `s3_server`."""
    return _nessie.new_catalog()


@pytest.fixture(scope="session")
def _hive_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as uri:
        yield uri


@pytest.fixture
def hive_uri(_hive_metastore: str) -> str:
    """The address of a Hive metastore that has only its database `default`, which is empty."""
    with Metastore(_hive_metastore).connected() as server:
        for name in server.read("get_all_databases"):
            for table in server.read("get_all_tables", name):
                server.change("drop_table", name, table, False)
            if name != "default":
                server.change("drop_database", name, False, False)
    return _hive_metastore


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """The session that all tests share.

    It has Iceberg's Java runtime, with a catalog `iceberg_java` of type hadoop over a directory of its own, and the
    driver of SQLite, for Iceberg's JDBC catalog.
    """
    # local import: pyspark takes half a second, and most runs of a few tests need none
    from icebench.bench.spark_session import spark_session
    from tests.services.quick_spark import quick_settings
    from tests.services.rest_jars import sqlite_driver

    home = tmp_path_factory.mktemp("spark")
    session = spark_session(
        quick_settings(
            home / "iceberg",
            ("spark.sql.warehouse.dir", f"file:{home / 'warehouse'}"),
            # Drivers of databases are looked for when the virtual machine starts.
            ("spark.driver.extraClassPath", os.pathsep.join(map(str, sqlite_driver()))),
        )
    )
    yield session
    session.stop()
    spark_session.cache_clear()
