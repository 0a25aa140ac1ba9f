from __future__ import annotations

import subprocess
import sys

import pytest

import icebench
from icebench.engine import errors


def test_every_public_name_is_there() -> None:
    assert sorted(dir(icebench)) == sorted(icebench.__all__)
    for name in icebench.__all__:
        assert getattr(icebench, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = icebench.no_such_name  # type: ignore[attr-defined]


def test_errors_load_without_the_heavy_libraries() -> None:
    heavy = {"pyarrow", "numba", "sqlalchemy", "pyspark"}
    code = f"import icebench.errors, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_a_table_does_not_load_pyspark() -> None:
    code = "import icebench, sys; icebench.load_table; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_all_errors_are_public() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    own = {each.__name__ for each in classes if each.__module__ == errors.__name__}
    assert set(icebench.errors.__all__) == {name for name in own if not name.startswith("_")}
