"""The package that a wheel installs: `icebench`, with this tree's files in it, byte for byte."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.tidy.source import tracked_files

ROOT = Path(__file__).parents[2]

IMPORT_ALL = """
import importlib, pickle, pkgutil, sys
import pyarrow as pa
import icebench
assert icebench.__file__.startswith(sys.argv[1]), icebench.__file__
names = [m.name for m in pkgutil.walk_packages(icebench.__path__, "icebench.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
assert len(names) > 500, len(names)
lazy = importlib.import_module("icebench.engine.lazy_module").LazyModule
for module in [m for n, m in sys.modules.items() if n.startswith("icebench.")]:
    for value in list(vars(module).values()):
        if isinstance(value, lazy):
            value.__name__
assert not {"engine", "bench"} & set(sys.modules)
table = icebench.load_catalog(sys.argv[1] + "/warehouse").create_table("db.t", pa.schema([("a", pa.int64())]))
again = pickle.loads(pickle.dumps(table.schema()))
assert type(again) is icebench.Schema
"""

USE = """
import pyarrow as pa
import icebench
rows = pa.table({"a": range(10)})
table = icebench.load_catalog("wh").create_table("db.t", rows.schema)
table.append(rows)
table.delete("a = 1", mode="merge-on-read")
assert table.scan(filter="a < 3").to_arrow().column("a").to_pylist() == [0, 2]
"""

USE_SPARK = """
import icebench
from icebench.bench.spark_session import SparkSettings, spark_session
spark = spark_session(SparkSettings(master="local[2]"))
table = icebench.load_catalog("wh").load_table("db.t")
table.append(spark.range(20, 30).withColumnRenamed("id", "a").repartition(2))
assert table.scan(filter="a > 8").to_spark(spark).count() == 11
icebench.spark.register(spark)
frame = spark.read.format("icebench").option("catalog", "wh").load("db.t")
assert frame.where("a < 3").count() == 2
frame.where("a < 3").write.format("icebench").option("catalog", "wh").mode("append").save("db.t")
assert icebench.load_catalog("wh").load_table("db.t").scan().count() == 21
"""

FIND = "import importlib.util; print(importlib.util.find_spec('{}') or '')"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    call([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)], ROOT)
    [made] = folder.glob("*.whl")
    return made


def test_files_are_those_of_the_tree(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    tree = {
        path if path.startswith("icebench/") else f"icebench/{path}": (ROOT / path).read_bytes()
        for path in tracked_files()
        if path.startswith(("icebench/", "engine/", "bench/", "datasets/"))
    }
    assert packed.keys() == tree.keys()
    assert [name for name, data in packed.items() if data != tree[name]] == []


def test_every_module_imports_by_one_name(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    # No bytecode, which nobody would use again.
    call([sys.executable, "-B", "-c", IMPORT_ALL, str(tmp_path)], tmp_path)


@pytest.mark.parametrize("package", ["engine", "bench"])
def test_folders_of_the_checkout_are_no_packages(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {package}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "import icebench" in done.stderr


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_wheel_in_an_environment_of_its_own_works(wheel: Path, tmp_path: Path) -> None:
    python = str(tmp_path / "venv" / "bin" / "python")
    uv(["venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")])
    install = ["pip", "install", "--quiet", "--python", python, "--constraint", str(constraints(tmp_path))]
    uv([*install, str(wheel)])
    assert not [p for p in ("engine", "bench", "datasets") if call([python, "-c", FIND.format(p)], tmp_path).strip()]
    call([python, "-c", USE], tmp_path)
    icebench = str(Path(python).with_name("icebench"))
    assert "profile" in call([icebench, "--help"], tmp_path)
    assert "db.t" in call([icebench, "profile", "wh", "db.t"], tmp_path)
    uv([*install, f"{wheel}[bench]"])
    call([python, "-c", USE_SPARK], tmp_path)
    call([python, "-m", "icebench", "list"], tmp_path)


def constraints(folder: Path) -> Path:
    """The pinned versions without their hashes, which an unpinned wheel does not have."""
    pins = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1].isalnum()]
    path = folder / "constraints.txt"
    path.write_text("\n".join(line.removesuffix(" \\") for line in pins))
    return path


def uv(arguments: Sequence[str]) -> None:
    script = 'source .ci/uv-settings; configure_uv "$1"; shift; exec "$0" -m uv "$@"'
    call(["bash", "-c", script, sys.executable, sys.executable, *arguments], ROOT)


def call(command: Sequence[str], folder: Path) -> str:
    """What a command prints, run without this tree on the path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
