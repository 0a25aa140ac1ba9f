from __future__ import annotations

import pyarrow as pa
import pytest

from icebench.engine.operations.row_source import is_dataframe, rows_of
from icebench.errors import Invalid


class DataFrame:
    """Not Spark's."""


class Classic(type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})):  # type: ignore[misc]
    """As Spark derives its own."""


def test_dataframes_are_recognised_by_name() -> None:
    assert is_dataframe(Classic())
    assert not is_dataframe(DataFrame())
    assert not is_dataframe(pa.table({}))
    assert not is_dataframe(None)


def test_what_rows_are() -> None:
    rows_of(pa.table({"a": [1]}), "append")
    rows_of(pa.table({"a": [1]}).to_reader(), "append")
    rows_of(Classic(), "append")
    for data in ([{"a": 1}], DataFrame(), pa.array([1]), None):
        with pytest.raises(Invalid, match=r"append takes rows or a Spark DataFrame: a pyarrow Table or .*, not"):
            rows_of(data, "append")
