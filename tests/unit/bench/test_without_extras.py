"""The command line without packages that only some need: it does what it can, and says in a line what is missing."""

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import pyarrow as pa
import pytest
from packaging.requirements import Requirement

import icebench
from icebench.bench.cli.failures import explain

PEERS = ("chdb", "duckdb", "polars", "pyiceberg")
EXTRAS = (
    *PEERS, "asv", "boto3", "botocore", "cpuinfo", "jinja2", "matplotlib", "opentelemetry", "packaging",
    "prometheus_client", "psutil", "pydoe",
    "pyinstrument", "pyspark", "ruptures", "scipy", "thriftpy2", "xxhash",
)  # fmt: skip


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    rows = pa.table({"id": [1, 2, 3]})
    icebench.load_catalog(str(folder)).create_table("db.events", rows.schema).append(rows)
    return folder


def run(blocked: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); sys.argv[0] = 'icebench';"
    command = [sys.executable, "-c", program + "from icebench.__main__ import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("blocked", "arguments"),
    [
        (PEERS, "list"),
        (EXTRAS, "--help"),
        (EXTRAS, "profile {} db.events"),
        (EXTRAS, "table snapshots {}/db/events"),
        (EXTRAS, "{} db.events"),
        (EXTRAS, "maintain rewrite-data-files {} db.events"),
    ],
)
def test_commands_that_need_none_work(blocked: Sequence[str], arguments: str, warehouse: Path) -> None:
    done = run(blocked, *arguments.format(warehouse).split())
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("bench", "run quick"),
        ("bench", "doctor"),
        ("bench", "profile {} db.events --html x.html"),
        ("peers", "sql select"),
        ("hive", "profile thrift://127.0.0.1:1 db.events"),
        ("aws", "profile --catalog cloud db.events"),
    ],
)
def test_others_name_the_extra_in_one_line(
    extra: str, arguments: str, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__CLOUD__TYPE", "glue")
    done = run(EXTRAS, *arguments.format(warehouse).split())
    assert done.returncode == 2
    assert done.stderr.startswith("icebench: ")
    assert done.stderr.endswith(f" is not installed: pip install 'icebench[{extra}]'\n")
    assert done.stderr.count("\n") == 1


def test_the_history_names_the_extra_of_asv() -> None:
    done = run(("asv",), "history")
    assert (done.returncode, done.stderr) == (2, "icebench: asv is not installed: pip install 'icebench[dev]'\n")


def test_every_package_of_the_extra_is_known_by_the_name_that_is_imported() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    wanted = {Requirement(line).name for line in project["optional-dependencies"]["bench"]} - {"icebench"}
    imported = {name: wanted.intersection(found) for name, found in packages_distributions().items()}
    packages = {name for name, found in imported.items() if found and not name.startswith("_")}
    assert len(packages) >= len(wanted)
    for package in packages - {"mpl_toolkits", "pylab"}:
        assert explain(ModuleNotFoundError(name=package)), package
