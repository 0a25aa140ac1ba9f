import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.workloads.arrays import BatchBuilder, chosen, fixed_texts, null_masks, numbered

DECIMAL = pa.schema([pa.field("d", pa.decimal128(15, 2))])


@given(st.lists(st.integers(-(10**15) + 1, 10**15 - 1), max_size=30))
def test_decimals_equal_arrows_own(unscaled: list[int]) -> None:
    builder = BatchBuilder(DECIMAL, len(unscaled))
    builder.decimals("d", np.array(unscaled, np.int64))
    batch = builder.finish()
    batch.validate(full=True)
    assert [int(value.scaleb(2)) for value in batch.column(0).to_pylist()] == unscaled


@pytest.mark.parametrize("width", [np.int16, np.int32, np.int64])
def test_decimals_of_narrow_integers_keep_their_sign(width: type[np.signedinteger]) -> None:
    builder = BatchBuilder(DECIMAL, 3)
    builder.decimals("d", np.array([-1, 0, 32_767], width))
    assert [str(value) for value in builder.finish().column(0).to_pylist()] == ["-0.01", "0.00", "327.67"]


@given(st.lists(st.integers(-(2**127), 2**127 - 1), max_size=20))
def test_wide_decimals_are_pairs_of_words(values: list[int]) -> None:
    fitting = [value % 10**38 if value >= 0 else -(-value % 10**38) for value in values]
    pairs = np.array([[(v & (2**64 - 1)) - (v >> 63 & 1) * 2**64, v >> 64] for v in fitting], object).reshape(-1, 2)
    builder = BatchBuilder(pa.schema([pa.field("d", pa.decimal128(38, 0))]), len(values))
    builder.wide_decimals("d", pairs.astype(np.int64))
    batch = builder.finish()
    batch.validate(full=True)
    assert [int(value) for value in batch.column(0).to_pylist()] == fitting


@given(data=st.data(), rows=st.integers(0, 40))
def test_nulls_lie_where_the_mask_or_the_unknown_says(data: st.DataObject, rows: int) -> None:
    masks = data.draw(st.lists(st.integers(0, 7), min_size=rows, max_size=rows))
    known = data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    schema = pa.schema(
        [pa.field("a", pa.int32()), pa.field("b", pa.string()), pa.field("c", pa.int64(), nullable=False)]
    )
    builder = BatchBuilder(schema, rows, np.array(masks, np.uint32))
    builder.integers("a", np.arange(rows), np.array(known, bool))
    builder.strings("b", pa.array([f"<{n}>" for n in range(rows)], pa.string()))
    builder.integers("c", np.arange(rows))
    batch = builder.finish()
    batch.validate(full=True)
    assert batch.to_pydict() == {
        "a": [n if known[n] and not masks[n] & 1 else None for n in range(rows)],
        "b": [f"<{n}>" if not masks[n] & 2 else None for n in range(rows)],
        "c": list(range(rows)),
    }


def test_a_missing_column_is_an_error() -> None:
    with pytest.raises(KeyError, match="d"):
        BatchBuilder(DECIMAL, 1).finish()


def test_nulls_come_together() -> None:
    masks = null_masks(1, "t", np.arange(200_000), 900)
    assert abs((masks > 0).mean() - 0.09) < 0.003
    for column in range(32):
        assert abs(((masks >> np.uint32(column)) & 1).mean() - 0.045) < 0.002


def test_texts() -> None:
    assert fixed_texts(np.frombuffer(b"abcxyz", np.uint8).reshape(2, 3)).to_pylist() == ["abc", "xyz"]
    assert numbered(np.array([7, 12]), "<", ">").to_pylist() == ["<7>", "<12>"]
    assert chosen(("N", "Y"), np.array([1, 0])).to_pylist() == ["Y", "N"]
