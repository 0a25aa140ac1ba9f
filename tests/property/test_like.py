"""LIKE as text, as objects and as functions of pyarrow: what the SQL standard defines, and what DuckDB finds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import icebench
from icebench.engine.expressions.parse import parse

TEXTS = ["".join(each) for length in range(4) for each in itertools.product("a%_\\!\u00e9\n", repeat=length)]
ESCAPES: list[str | None] = [None, "\\", "!", "%", "_", "a"]


def matches(text: str, pattern: str, escape: str | None) -> bool:
    """The like predicate of ISO 9075-2, general rule 3."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == escape:
        return text[:1] == rest[0] and matches(text[1:], rest[1:], escape)
    if first == "%":
        return any(matches(text[skipped:], rest, escape) for skipped in range(len(text) + 1))
    return text != "" and first in ("_", text[0]) and matches(text[1:], rest, escape)


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[icebench.Table, duckdb.DuckDBPyConnection]]:
    """Files of neighbours in order, so that prefixes prune."""
    rows = pa.table({"s": [*sorted(TEXTS), None], "u": pa.nulls(len(TEXTS) + 1, pa.string())})
    table = icebench.load_catalog(str(tmp_path_factory.mktemp("like"))).create_table("db.t", rows.schema)
    for start in range(0, len(rows), 60):
        table.append(rows.slice(start, 60))
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        connection.execute("create table t as select * from rows")
        yield table, connection


@st.composite
def patterns(draw: st.DrawFn) -> tuple[str, str | None]:
    escape = draw(st.sampled_from(ESCAPES))
    ordinary = [each for each in "a!\\\u00e9\n" if each != escape and (escape or each != "\\")]
    wild = [each for each in "%_" if each != escape]
    escaped = [] if escape is None else [escape + each for each in ("%", "_", escape)]
    return "".join(draw(st.lists(st.sampled_from(ordinary + wild * 2 + escaped * 2), max_size=5))), escape


def texts_of(table: icebench.Table, filter: object) -> list[str]:
    return sorted(table.scan(filter, columns=["s"]).to_arrow()["s"].to_pylist())  # type: ignore[arg-type]


@given(given=patterns())
@example(given=("%\\%%", "\\"))
@example(given=("%\\%", "\\"))
@example(given=("_!%", "!"))
@example(given=("a%%", "%"))
def test_texts_that_a_pattern_matches(
    given: tuple[str, str | None], peers: tuple[icebench.Table, duckdb.DuckDBPyConnection]
) -> None:
    pattern, escape = given
    table, connection = peers
    literal = "'" + pattern + "'" + (f" escape '{escape}'" if escape else "")
    expected = sorted(each for each in TEXTS if matches(each, pattern, escape))
    others = sorted(set(TEXTS) - set(expected))
    if escape not in ("%", "_"):  # DuckDB takes such an escape for a wildcard
        found = connection.execute(f"select s from t where s like {literal}").fetchall()
        assert sorted(text for (text,) in found) == expected
    assert texts_of(table, f"s like {literal}") == expected
    assert texts_of(table, str(parse(f"s like {literal}"))) == expected
    assert texts_of(table, f"s not like {literal}") == others
    assert texts_of(table, f"coalesce(u, s) like {literal}") == expected
    assert texts_of(table, f"case when s like {literal} then 1 else 2 end = 2 and s is not null") == others
    assert texts_of(table, icebench.col("s").like(pattern, escape)) == expected
    if escape in (None, "\\"):
        assert texts_of(table, pc.match_like(pc.field("s"), pattern)) == expected


@pytest.mark.parametrize(
    ("function", "holds"), [(pc.match_substring, str.__contains__), (pc.starts_with, str.startswith)]
)
@given(wanted=st.text("a%_\\!\u00e9\n", max_size=3))
@example(wanted="%")
def test_texts_of_pyarrow_are_no_patterns(
    function: Callable[..., pc.Expression],
    holds: Callable[[str, str], bool],
    wanted: str,
    peers: tuple[icebench.Table, duckdb.DuckDBPyConnection],
) -> None:
    assert texts_of(peers[0], function(pc.field("s"), wanted)) == sorted(each for each in TEXTS if holds(each, wanted))


def test_rows_deleted_by_an_escaped_wildcard_are_those_that_have_it(tmp_path: Path) -> None:
    rows = pa.table({"s": ["a", "5%", "%", "", None]})
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows.schema)
    table.append(rows)
    table.delete("s like '%!%%' escape '!'", mode="copy-on-write")
    assert table.scan().to_arrow()["s"].to_pylist() == ["a", "", None]
