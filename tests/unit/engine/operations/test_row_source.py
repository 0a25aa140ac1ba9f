from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from icebench.engine.operations.row_source import arrow_rows, is_dataframe, rows_of
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


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (pd.DataFrame({"a": [1, "x"]}), "column a with type object: Could not convert 'x'"),
        (pd.DataFrame({"a": [{1: 2}, [3]]}), "column a with type object: Expected dict key"),
        (pd.DataFrame({"a": [1 + 2j]}), "column a with type complex128: Unsupported"),
        (pd.DataFrame({"a": [2**70]}), "too large"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([1, 0])}), "Sparse pandas data .column a. not supported"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "Duplicate column names"),
    ],
    ids=["texts and numbers", "keys that are no texts", "complex", "beyond 64 bits", "sparse", "a name twice"],
)
def test_frames_that_have_no_arrow_form(frame: pd.DataFrame, why: str) -> None:
    with pytest.raises(Invalid, match=rf"^upsert of a frame that has no Arrow form: .*{why}"):
        arrow_rows(frame, "upsert")


def test_a_stream_of_values_is_none_of_rows() -> None:
    with pytest.raises(Invalid, match=r"^append of ChunkedArray, which is no stream of rows"):
        rows_of(pa.chunked_array([[1]]), "append")
