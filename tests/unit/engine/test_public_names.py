from __future__ import annotations

import subprocess
import sys

import pytest

import engine


def test_every_public_name_is_there() -> None:
    assert sorted(__import__("engine").__dir__()) == sorted(engine.__all__)
    for name in engine.__all__:
        assert getattr(engine, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = engine.no_such_name  # type: ignore[attr-defined]


def test_errors_load_without_the_heavy_libraries() -> None:
    code = "import engine.errors, sys; print(sorted({'pyarrow', 'numba', 'sqlalchemy', 'pyspark'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_a_table_does_not_load_pyspark() -> None:
    code = "import engine, sys; engine.load_table; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
