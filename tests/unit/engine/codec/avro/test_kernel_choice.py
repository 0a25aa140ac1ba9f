"""Which way the kernels run: interpreted, from kept machine code, or compiled by Numba; the same comes of all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import engine
from engine.codec.avro import compiled as avro_compiled
from engine.codec.avro.kernel_choice import DECODE_CHUNK, GATHER, FlatKernel
from engine.codec.taking import gathered
from engine.formats.parquet.kernel_choice import KERNELS
from engine.kernels import compiling

FILES = 10_000
COLUMNS = 8

PLAN = """
import sys
import engine
table = engine.load_table(sys.argv[1])
assert table.scan().plan().files.num_rows == int(sys.argv[2])
assert table.scan(filter="c3 = 17").plan().files.num_rows == 1
assert "llvmlite" in sys.modules, "the kernels were interpreted"
assert "numba" not in sys.modules, "Numba was loaded"
"""


@pytest.fixture
def fresh(monkeypatch) -> None:
    """As in a process that has done nothing yet."""
    monkeypatch.setattr(compiling._Process, "compiles", False)
    monkeypatch.setattr(compiling._Process, "spent_ns", 0)


def of_strings(*values: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = np.array([len(value) for value in values])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return np.frombuffer(b"".join(values), np.uint8), offsets[:-1], offsets


def test_a_first_plan_needs_no_numba(tmp_path: Path):
    DECODE_CHUNK._loaded()
    GATHER._loaded()
    schema = pa.schema([pa.field(f"c{number}", pa.int32()) for number in range(COLUMNS)])
    catalog = engine.load_catalog(str(tmp_path))
    table = catalog.create_table("a.b", schema)
    table.add_files([described(f"/nowhere/{ordinal}.parquet", ordinal) for ordinal in range(FILES)])
    root = Path(engine.__file__).parents[1]
    command = [sys.executable, "-c", PLAN, table.location, str(FILES)]
    subprocess.run(command, check=True, cwd=root)


def described(path: str, ordinal: int) -> engine.DataFile:
    bounds = {number + 1: ordinal.to_bytes(4, "little") for number in range(COLUMNS)}
    counts = dict.fromkeys(bounds, 5)
    return engine.DataFile(
        file_path=path, file_format="parquet", record_count=5, file_size_in_bytes=900, value_counts=counts,
        null_value_counts=dict.fromkeys(bounds, 0), lower_bounds=bounds, upper_bounds=bounds,
    )  # fmt: skip


def test_kept_code_soon_takes_over(fresh, monkeypatch):
    kernel = FlatKernel("gather_at", "BqqB")
    monkeypatch.setattr(kernel._code, "load", lambda: lambda _: 0)
    assert kernel.interprets(200_000)
    assert kernel.interprets(200_000)
    assert not kernel.interprets(200_000)
    assert not kernel.interprets(1)


def test_without_kept_code_plain_python_goes_on_longer(fresh, monkeypatch):
    kernel = FlatKernel("gather_at", "BqqB")
    monkeypatch.setattr(kernel._code, "load", lambda: None)
    assert all(kernel.interprets(200_000) for _ in range(17))
    assert not kernel.interprets(200_000)


@pytest.mark.parametrize("way", ["interpreted", "kept", "Numba"])
@pytest.mark.parametrize("values", [(), (b"",), (b"abc", b"", b"defgh", b"\xff")])
def test_gathered(way: str, values: tuple[bytes, ...], monkeypatch):
    monkeypatch.setattr(GATHER, "interprets", lambda _: way == "interpreted")
    if way == "Numba":
        monkeypatch.setattr(GATHER, "_function", compiling.jit(avro_compiled.gather_at, _nrt=False))
    data, starts, offsets = of_strings(*values)
    assert gathered(data, starts, offsets).tobytes() == b"".join(values)


def test_gathered_of_every_other_start():
    data, starts, offsets = of_strings(b"abc", b"de", b"fgh")
    GATHER._loaded()
    every = gathered(data, np.repeat(starts, 2)[::2], offsets)
    assert every.tobytes() == b"abcdefgh"


def test_where_nothing_can_be_kept_numba_does_it(monkeypatch):
    kernel = FlatKernel("gather_at", "BqqB")
    monkeypatch.setattr(kernel._code, "load", lambda: None)
    monkeypatch.setattr(kernel._code, "compile", lambda _: None)
    data, starts, offsets = of_strings(b"abc", b"de")
    out = np.empty(5, np.uint8)
    kernel(data, starts, offsets, out)
    assert out.tobytes() == b"abcde"


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("spoil", [lambda a: a[::2], lambda a: a.astype(np.int16)])
def test_other_arrays_are_refused(at: int, spoil):
    arrays = [*of_strings(b"abc", b"de", b"f", b"g"), np.empty(7, np.uint8)]
    arrays[at] = spoil(arrays[at])
    with pytest.raises(TypeError, match="contiguous arrays of uint8, int64, int64, uint8"):
        GATHER(*arrays)


def test_one_array_too_few_is_refused():
    with pytest.raises(ValueError, match="zip"):
        GATHER(*of_strings(b"abc"))


def test_kernels_can_be_had_before_they_are_needed(fresh: None) -> None:
    engine.prepare_kernels()
    assert not DECODE_CHUNK.interprets(1)
    assert not GATHER.interprets(1)
    assert KERNELS.pays(1)
