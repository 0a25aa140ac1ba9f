"""The package that a wheel installs: `engine` and `bench` within `icebench`, under no other name."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hatch_build import rewrite_names, write_package

ROOT = Path(__file__).parents[2]
MODULES = {"bench", "bench.cli", "bench.cli.main", "engine", "engine.errors", "engine.opening"}

IMPORT_ALL = """
import importlib, pickle, pkgutil, sys
import pyarrow as pa
sys.modules["engine"] = sys.modules["bench"] = None
import icebench
names = [m.name for m in pkgutil.walk_packages(icebench.__path__, "icebench.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
assert len(names) > 500, len(names)
lazy = importlib.import_module("icebench.engine.lazy_module").LazyModule
for module in [m for n, m in sys.modules.items() if n.startswith("icebench.")]:
    for value in list(vars(module).values()):
        if isinstance(value, lazy):
            value.__name__
from icebench import engine
table = engine.load_catalog(sys.argv[1]).create_table("db.t", pa.schema([("a", pa.int64())]))
again = pickle.loads(pickle.dumps(table.schema()))
assert type(again) is engine.Schema is icebench.engine.Schema
assert type(again).__module__ == "icebench.engine.spec.schema"
"""

USE = """
import pyarrow as pa
from icebench import engine
rows = pa.table({"a": range(10)})
table = engine.load_catalog("wh").create_table("db.t", rows.schema)
table.append(rows)
table.delete("a = 1", mode="merge-on-read")
assert table.scan(filter="a < 3").to_arrow().column("a").to_pylist() == [0, 2]
"""

USE_SPARK = """
from icebench import engine
from icebench.bench.spark_session import SparkSettings, spark_session
spark = spark_session(SparkSettings(master="local[2]"))
table = engine.load_catalog("wh").load_table("db.t")
table.append(spark.range(20, 30).withColumnRenamed("id", "a").repartition(2))
assert table.scan(filter="a > 8").to_spark(spark).count() == 11
engine.spark_source.register(spark)
frame = spark.read.format("icebench").option("catalog", "wh").load("db.t")
assert frame.where("a < 3").count() == 2
frame.where("a < 3").write.format("icebench").option("catalog", "wh").mode("append").save("db.t")
assert engine.load_catalog("wh").load_table("db.t").scan().count() == 21
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import engine\n", "from icebench import engine\n"),
        ("def f():\n    import engine as e  # local\n", "def f():\n    from icebench import engine as e  # local\n"),
        ("from engine import errors", "from icebench.engine import errors"),
        ("from bench.cli.main import (\n    main,\n)\n", "from icebench.bench.cli.main import (\n    main,\n)\n"),
        ("import engineering\nfrom . import engine\n", None),
        ("def f(engine):\n    yield from engine\n", None),
        ("table = engine.errors", None),
        ("LazyModule('engine.opening')", "LazyModule('icebench.engine.opening')"),
        ("x = 'bench.cli.main:main'", "x = 'icebench.bench.cli.main:main'"),
        ("x = 'python -m bench.cli --all'", "x = 'python -m icebench.bench.cli --all'"),
        ('"""See\n`engine.errors.Invalid`."""\n', '"""See\n`icebench.engine.errors.Invalid`."""\n'),
        ("a = 'engine.errors', 'bench.cli'", "a = 'icebench.engine.errors', 'icebench.bench.cli'"),
        ("f'{engine.errors} of engine.errors'", "f'{engine.errors} of icebench.engine.errors'"),
        ("catalog['bench.sales'], 'tests/engine.errors', 'search_engine.errors', 'engine'", None),
    ],
)
def test_names_of_moved_packages_change(before: str, after: str | None) -> None:
    assert rewrite_names(before, MODULES) == (after or before)


@pytest.mark.parametrize("statement", ["import engine.errors", "import engine, os"])
def test_imports_that_cannot_be_rewritten_are_refused(statement: str) -> None:
    with pytest.raises(ValueError, match="line 2: "):
        rewrite_names(f"x = 1\n{statement}\n", MODULES)


def test_every_module_of_the_package_imports_under_its_new_name_alone(tmp_path: Path) -> None:
    write_package(ROOT, tmp_path / "icebench")
    assert not list(tmp_path.rglob("__pycache__"))
    assert (tmp_path / "icebench" / "datasets" / "quick.toml").is_file()
    # No bytecode, which nobody would use again.
    call([sys.executable, "-B", "-c", IMPORT_ALL, str(tmp_path / "warehouse")], tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_wheel_in_an_environment_of_its_own_works(tmp_path: Path) -> None:
    call([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)], ROOT)
    [wheel] = tmp_path.glob("*.whl")
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


FIND = "import importlib.util; print(importlib.util.find_spec('{}') or '')"


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
