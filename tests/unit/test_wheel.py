"""The package that a wheel installs: `icebench`, with this tree's files in it, byte for byte."""

import json
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

TYPED = """
from typing import assert_type

import pyarrow as pa

import icebench
from icebench import col

rows = pa.table({"a": [1, 2, 3]})
catalog = icebench.load_catalog("lake", type="rest", **{"s3.endpoint": "http://localhost"})
table = catalog.create_table("db.t", rows.schema, partition_spec=[("a", "bucket[4]")])
assert_type(table, icebench.Table)
table.append(rows)
table.delete(col("a") == 1, "merge-on-read")
table.update("a = 2", {"a": 4})
table.upsert(rows, ["a"])
table.overwrite(rows, "a > 1")
with table.transaction() as transaction:
    transaction.append(rows)
table.update_schema(lambda schema: schema.add_column("b", icebench.STRING))
scan = table.scan((col("a") > 1) & col("a").isin([1, 2]), columns=["a"], limit=3)
assert_type(scan, icebench.Scan)
assert_type(scan.count(), int)
print(scan.to_arrow().num_rows, scan.explain(), scan.plan(), [batch.num_rows for batch in scan.to_batches()])
print(table.schema().fields, table.spec, [snapshot.snapshot_id for snapshot in table.snapshots])
assert_type(table.maintenance.profile(), icebench.TableProfile)
print(table.maintenance.rewrite_data_files("sort", sort_order=["a"]), table.inspect.files().num_rows)
try:
    icebench.load_table("x")
except icebench.errors.NotFound as error:
    print(error)
"""

MISTYPED = """
import icebench

table = icebench.load_table(7)
table.scan(filtre="a = 1")
table.delete("a = 1", "merge")
table.maintenance.rewrite_data_file()
print(table.scan().count() + "rows")
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


def test_pyright_knows_the_types_of_what_users_call(wheel: Path, tmp_path: Path) -> None:
    """Each line of the second program is wrong."""
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    folder = tmp_path / "program"
    folder.mkdir()
    for name, text in (("typed", TYPED), ("mistyped", MISTYPED)):
        (folder / f"{name}.py").write_text(text)
    settings = {"extraPaths": [str(tmp_path / "site")], "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    said = [(Path(each["file"]).name, each["range"]["start"]["line"], each["message"]) for each in found]
    assert [each for each in said if each[0] == "typed.py"] == []
    assert sorted({line for _, line, _ in said}) == [3, 4, 5, 6, 7], said


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
