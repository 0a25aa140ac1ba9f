import sys

import pytest

from icebench.bench.engines.engine import Ability, EngineMissing
from icebench.bench.engines.registry import ENGINES, make_engine
from tests.unit.bench.execution.scripted import CONTEXT


@pytest.mark.parametrize("name", [name for name, entry in ENGINES.items() if not entry.needs_spark])
def test_engines_without_spark_are_made_without_spark(name: str) -> None:
    engine = make_engine(name, CONTEXT)
    assert engine.name == name
    assert engine.version
    assert engine.abilities <= set(Ability)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "icebench.bench.engines.duckdb_engine", raising=False)
    with pytest.raises(EngineMissing, match=r"duckdb is not installed: pip install"):
        make_engine("duckdb", CONTEXT)


def test_an_unknown_engine_is_an_error() -> None:
    with pytest.raises(KeyError):
        make_engine("trino", CONTEXT)
