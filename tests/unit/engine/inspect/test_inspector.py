"""What the methods of `table.inspect` say of the metadata tables."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.inspect.inspector import TABLES, Inspector


def documentation(method: str) -> str:
    """The docstring of a method, with those that it refers to."""
    text = str(getattr(Inspector, method).__doc__)
    for name in re.findall(r"`([\w.]+)`", text):
        if name in TABLES:
            text += documentation(name)
        else:
            module, _, function = name.rpartition(".")
            text += str(getattr(importlib.import_module(module), function).__doc__)
    return text


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_documented(name: str, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", schema, partition_spec=[("id", "identity")], properties={"format-version": "3"}
    )
    columns = getattr(table.inspect, name)().column_names
    assert set(columns) <= set(re.findall(r"\w+", documentation(name)))
