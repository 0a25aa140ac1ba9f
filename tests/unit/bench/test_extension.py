"""A package that adds an engine, a measurement, a layout and a workload, without a change to the project."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pytest

import icebench
from icebench.bench import plugins
from icebench.bench.errors import ConfigError
from icebench.bench.execution.measurement import MeasurementKind
from icebench.bench.execution.metrics import records_of
from icebench.bench.plugins import Registry
from icebench.bench.records.case import Case, Cost, Evidence, Measured, Sample
from icebench.bench.report.compare import Records
from icebench.bench.report.sections import sections_of

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "tests" / "example_package"
PAGE = ROOT / "docs" / "guide" / "extending.md"
DEFINITION = """
name = "example"
engines = ["icebench", "whole-table"]
measurements = ["filtered", "narrow"]
repetitions = 2
warm_seconds = 0
filters = { few = "id < 10" }
workload = { kind = "table", path = "wh/db/t" }
"""
WITH_ROWS = """
name = "rows"
engines = ["whole-table"]
layouts = ["by-value", "unpartitioned"]
table = { files = 2 }
workload = { kind = "sensors", rows = 1000 }
"""


class Use:
    """Runs `icebench` in a directory, where the package is installed."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *arguments: str) -> str:
        path = os.pathsep.join([str(self.home / "site"), str(ROOT)])
        done = subprocess.run(
            [sys.executable, "-m", "icebench", *arguments],
            cwd=self.home,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def use(tmp_path_factory: pytest.TempPathFactory) -> Use:
    """The package built and installed, and a table beside it."""
    home = tmp_path_factory.mktemp("extension")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home / "dist")]
    subprocess.run(build, cwd=PACKAGE, check=True, capture_output=True)
    (wheel,) = (home / "dist").glob("*.whl")
    ZipFile(wheel).extractall(home / "site")
    rows = pa.table({"id": range(1_000), "price": [float(n) for n in range(1_000)]})
    icebench.load_catalog(str(home / "wh")).create_table("db.t", rows.schema).append(rows)
    (home / "example.toml").write_text(DEFINITION)
    (home / "rows.toml").write_text(WITH_ROWS)

    return Use(home)


def test_what_a_package_adds_is_listed_beside_the_project_s(use: Use) -> None:
    listed = use("list")
    for name in ("whole-table", "narrow", "by-value", "sensors"):
        assert re.search(rf"^  {name} ", listed, re.MULTILINE), listed


def test_an_engine_and_a_measurement_of_a_package_take_part_in_a_run(use: Use) -> None:
    shown = use("run", "example.toml", "--yes", "-o", "report.html")
    assert re.search(r"Scanning one column: .*whole-table|Scanning one column .*whole-table", shown)
    report = use.home / "report.html"
    assert "Narrow scans" in report.read_text()


def test_a_workload_and_a_layout_of_a_package_are_read_from_a_definition(use: Use) -> None:
    assert re.search(r"^\d+ cases, ", use("run", "rows.toml", "--dry-run"), re.MULTILINE)


def test_the_page_shows_the_package() -> None:
    blocks = re.findall(r"```(?:py|toml)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = (PACKAGE / "icebench_example.py").read_text() + (PACKAGE / "pyproject.toml").read_text()
    missing = [block for block in blocks if block not in code]
    assert len(blocks) >= 5
    assert not missing


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(*more: tuple[str, str], **values: str) -> None:
        pairs = (*values.items(), *more)
        made = EntryPoints(EntryPoint(name, value, "icebench.things") for name, value in pairs)
        monkeypatch.setattr(plugins, "entry_points", lambda group: made.select(group=group))

    return put


def registry() -> Registry[int]:
    return Registry("icebench.things", "thing", {"one": 1, "two": "sys:maxsize"}, int)


def test_names_are_known_without_importing_what_they_name(points: Callable[..., None]) -> None:
    points(three="no_such_module:THING")
    found = registry()
    assert list(found) == ["one", "two", "three"]
    assert found.own == ("one", "two")
    assert "three" in found
    assert (found["one"], found["two"]) == (1, sys.maxsize)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module:THING", "thing 'three' of package no_such_module:THING cannot be imported: No module named"),
        ("sys:no_such_name", "thing 'three' .* cannot be imported"),
        ("sys:version", "thing 'three' of package sys:version is a str, not a int"),
    ],
)
def test_a_broken_package_is_named_when_its_thing_is_asked_for(
    points: Callable[..., None], value: str, message: str
) -> None:
    points(three=value)
    with pytest.raises(ConfigError, match=message):
        registry()["three"]


def test_of_two_things_with_one_name_neither_can_be_used(points: Callable[..., None]) -> None:
    points(("three", "sys:maxsize"), ("three", "sys:maxunicode"), one="sys:maxsize")
    found = registry()
    assert list(found) == ["one", "two", "three"]
    assert found["two"] == sys.maxsize
    with pytest.raises(ConfigError, match="two packages have a thing 'one': icebench and sys:maxsize"):
        found["one"]
    with pytest.raises(ConfigError, match="two packages have a thing 'three': sys:maxsize and sys:maxunicode"):
        found["three"]


def test_a_thing_may_be_added_for_the_life_of_the_process(points: Callable[..., None]) -> None:
    points()
    found = registry()
    found.add("three", 3)
    assert (found["three"], list(found), found.own) == (3, ["one", "two", "three"], ("one", "two"))
    with pytest.raises(ConfigError, match="there is a thing 'three' already"):
        found.add("three", 4)


def test_a_thing_has_the_name_of_its_entry_point(points: Callable[..., None]) -> None:
    points(three="icebench.bench.execution.measurement:BUILD")
    with pytest.raises(ConfigError, match=r"thing 'three' .* calls itself 'build'"):
        Registry("icebench.things", "thing", {}, MeasurementKind)["three"]


def test_measurements_that_are_not_known_here_have_a_section() -> None:
    seconds = {place: 1.0 + place for place in range(6)}
    samples = tuple(Sample(process=0, round=n, cost=Cost(wall=s, cpu=s)) for n, s in seconds.items())
    case = Case(workload="w", layout="l", measurement="narrow", engine="icebench")
    records = records_of([Measured(case=case, engine_version="1", evidence=Evidence(), samples=samples)])
    (section,) = sections_of(Records(records))
    assert section.title == "Unknown measurement"
    assert next(table.title for table in section.tables) == "Time"
