"""Cases in the engines' own words give the answers of the code that is measured."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import cast

import pytest

from icebench.bench.engines.checksum import decode_checksum
from icebench.bench.engines.engine import AnyEngine, Quotable
from icebench.bench.engines.registry import ENGINES, make_engine
from icebench.bench.engines.script import Quoted, Script, call, literal, program, select
from tests.unit.bench.execution.scripted import CONTEXT, small_table

COLUMNS = ["id", "price", "name"]
FILTERS = [None, "id >= 150 and id < 250", "day = '2000-01-25' or \"name\" = 'n1'"]


WRITTEN = """# one
# two
import time
import engine

TABLE = "/t"


def query(table):
    rows = table.x
    return rows


for _ in range(5):
    engine.forget()
    start = time.perf_counter()
    rows = query(engine.open(TABLE))
    print(f"{1000 * (time.perf_counter() - start):.2f} ms")
table = engine.open(TABLE)
print(f"{rows:,} rows")
"""


def quoted_of(engine: AnyEngine, location: str, filter: str | None, cache: str = "cold") -> Quoted:
    query = cast("Quotable", engine).query(engine.open(location), COLUMNS, filter)
    return Quoted(title="a case", query=query, location=location, filter=filter, cache=cache, is_plan=False)


def answers(name: str, programs: Sequence[tuple[str, str]], folder: Path) -> list[tuple[str, int]]:
    """Checksum and number of rows of each program, in one process."""
    given, found = folder / "given.json", folder / "found.json"
    given.write_text(json.dumps({"engine": name, "columns": COLUMNS, "programs": programs}))
    command = [sys.executable, "-m", "tests.unit.bench.engines.answers", str(given), str(found)]
    subprocess.run(command, check=True)
    return [(checksum, rows) for checksum, rows in json.loads(found.read_text())]


@pytest.mark.parametrize("name", [name for name, entry in ENGINES.items() if not entry.needs_spark])
def test_a_program_gives_the_rows_of_the_engine_that_is_measured(name: str, tmp_path: Path) -> None:
    location, engine = small_table(tmp_path, partitioned=True), make_engine(name, CONTEXT)
    script: Script = resolve_name(ENGINES[name].scripts)["scan"]
    asked = [quoted_of(engine, location, filter, cache) for filter in FILTERS for cache in ("cold", "warm")]
    programs = [program(script, each, {}) for each in asked]
    found = answers(name, [(text, each.query) for text, each in zip(programs, asked, strict=True)], tmp_path)
    handle = engine.open(location)
    right = {filter: engine.checksum(handle, COLUMNS, engine.compile(handle, filter)) for filter in FILTERS}
    for each, (checksum, rows) in zip(asked, found, strict=True):
        expected = right[each.filter]
        assert decode_checksum(checksum).difference(expected) is None
        assert rows == expected.rows
    assert not any("icebench." in text for text in programs if name != "icebench")


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_a_program_of_polars_opens_local_locations_with_a_scheme(tmp_path: Path, scheme: str) -> None:
    location, engine = scheme + small_table(tmp_path / "a b"), make_engine("polars", CONTEXT)
    script: Script = resolve_name(ENGINES["polars"].scripts)["scan"]
    path = tmp_path / "case.py"
    path.write_text(program(script, quoted_of(engine, location, None), {}))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "400 rows"


@pytest.mark.parametrize("name", ["icebench", "pyiceberg"])
def test_a_program_plans_the_files_of_the_engine_that_is_measured(name: str, tmp_path: Path) -> None:
    location, engine = small_table(tmp_path), make_engine(name, CONTEXT)
    script: Script = resolve_name(ENGINES[name].scripts)["plan"]
    for filter, files in ((None, 4), ("id >= 150 and id < 250", 2)):
        query = cast("Quotable", engine).query(engine.open(location), None, filter)
        for cache in ("cold", "warm"):
            asked = Quoted(title="", query=query, location=location, filter=filter, cache=cache, is_plan=True)
            path = tmp_path / "case.py"
            path.write_text(program(script, asked, {}))
            done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
            assert done.stdout.splitlines()[-1] == f"{files} files"


def test_a_cold_program_opens_the_table_in_the_timed_part_and_a_warm_one_before() -> None:
    script = Script(setup="import engine", open="engine.open(TABLE)", forget="engine.forget()", run="rows = {query}")
    cold = Quoted(title="one\ntwo", query="table.x", location="/t", filter=None, cache="cold", is_plan=False)
    assert program(script, cold, {}) == WRITTEN
    warm = program(script, replace(cold, cache="warm"), {})
    assert warm.index("table = engine.open(TABLE)\nquery(table)\nfor _") < warm.index("rows = query(table)")
    assert "forget" not in warm
    plan = program(script, replace(cold, is_plan=True), {})
    assert "    engine.forget()\n    table = engine.open(TABLE)\n    start" in plan


def test_values_are_written_as_python_and_sql_have_them() -> None:
    for value in ("plain", 'a "b"', "it's", "back\\slash", "two\nlines", None, ["a", 'b"'], ("a",), ("a", "b")):
        assert eval(literal(value)) == value
    assert call("scan", filter=None, columns=["a"]) == 'scan(columns=["a"])'
    assert select(['a"b'], "t", None) == 'select "a""b" from t'
