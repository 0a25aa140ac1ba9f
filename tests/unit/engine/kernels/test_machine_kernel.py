"""When a machine kernel is used, and that it gives the same interpreted, from kept machine code, and run by Numba."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench import engine
from icebench.engine.codec.avro.compiled import read_compiled
from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK, GATHER, WRITE_ROWS
from icebench.engine.codec.taking import gather
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER
from icebench.engine.kernels import policy
from icebench.engine.kernels.compiling import jit
from icebench.engine.kernels.machine_kernel import MachineKernel

FILES = 10_000
COLUMNS = 8

PLAN = """
import sys
import icebench
table = icebench.load_table(sys.argv[1])
assert table.scan().plan().files.num_rows == int(sys.argv[2])
assert table.scan(filter="c3 = 17").plan().files.num_rows == 1
assert "llvmlite" in sys.modules, "the kernels were interpreted"
assert "numba" not in sys.modules, "Numba was loaded"
"""


@pytest.fixture
def fresh(monkeypatch) -> None:
    """As in a process that has done nothing yet."""
    monkeypatch.setattr(policy._Process, "has_numba", False)
    monkeypatch.setattr(policy._Process, "spent_ns", 0)


def gather_kernel(**options) -> MachineKernel:
    module, sources = "icebench.engine.codec.avro.compiled.read_compiled", ("codec/avro/compiled/read_compiled.py",)
    return MachineKernel("gather_at", "BqqB", module=module, sources=sources, ns_per_byte=100, **options)


def of_strings(*values: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = np.array([len(value) for value in values])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return np.frombuffer(b"".join(values), np.uint8), offsets[:-1], offsets


def test_a_first_plan_needs_no_numba(tmp_path: Path):
    DECODE_CHUNK.load()
    GATHER.load()
    schema = pa.schema([pa.field(f"c{number}", pa.int32()) for number in range(COLUMNS)])
    catalog = icebench.load_catalog(str(tmp_path))
    table = catalog.create_table("a.b", schema)
    table.add_files([described(f"/nowhere/{ordinal}.parquet", ordinal) for ordinal in range(FILES)])
    root = Path(engine.__file__).parents[1]
    command = [sys.executable, "-c", PLAN, table.location, str(FILES)]
    subprocess.run(command, check=True, cwd=root)


def described(path: str, ordinal: int) -> icebench.DataFile:
    bounds = {number + 1: ordinal.to_bytes(4, "little") for number in range(COLUMNS)}
    counts = dict.fromkeys(bounds, 5)
    return icebench.DataFile(
        file_path=path,
        file_format="parquet",
        record_count=5,
        file_size_in_bytes=900,
        value_counts=counts,
        null_value_counts=dict.fromkeys(bounds, 0),
        lower_bounds=bounds,
        upper_bounds=bounds,
    )


def test_kept_code_soon_takes_over(fresh, monkeypatch):
    kernel = gather_kernel()
    monkeypatch.setattr(kernel._code, "load", lambda: lambda _: 0)
    assert [kernel.should_use(size) for size in (300_000, 300_000, 1, 1)] == [False, False, True, True]


def test_without_kept_code_it_is_compiled_later(fresh, monkeypatch):
    kernel = gather_kernel()
    monkeypatch.setattr(kernel._code, "load", lambda: None)
    monkeypatch.setattr(kernel._code, "compile", lambda _: lambda _: 0)
    assert not any(kernel.should_use(200_000) for _ in range(25))
    assert kernel.should_use(200_000)


def test_what_one_kernel_costs_counts_for_all(fresh, monkeypatch):
    slow, soon = gather_kernel(compile_after_ns=2_000_000_000), gather_kernel()
    for kernel in (slow, soon):
        monkeypatch.setattr(kernel._code, "load", lambda: None)
        monkeypatch.setattr(kernel._code, "compile", lambda _: lambda _: 0)
    assert not slow.should_use(10_000_000)
    assert soon.should_use(1)
    assert not slow.should_use(10_000_000)
    assert slow.should_use(1)


def test_nobody_waits_for_the_thread_that_compiles(fresh, monkeypatch):
    kernel = gather_kernel(compile_after_ns=0)
    meanwhile = []

    def compile_slowly(_: object) -> object:
        meanwhile.append(kernel.should_use(1_000_000))
        return lambda _: 0

    monkeypatch.setattr(kernel._code, "load", lambda: None)
    monkeypatch.setattr(kernel._code, "compile", compile_slowly)
    assert kernel.should_use(1_000_000)
    assert meanwhile == [False]


def test_where_numba_does_not_compile_the_slower_way_goes_on(fresh, monkeypatch):
    kernel = gather_kernel()
    monkeypatch.setattr(kernel._code, "load", lambda: None)
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert not kernel.should_use(1_000_000_000)
    assert not kernel.load()


@pytest.mark.parametrize("way", ["interpreted", "kept", "Numba"])
@pytest.mark.parametrize("values", [(), (b"",), (b"abc", b"", b"defgh", b"\xff")])
def test_gathered(way: str, values: tuple[bytes, ...], monkeypatch):
    monkeypatch.setattr(GATHER, "should_use", lambda _: way != "interpreted")
    if way == "Numba":
        monkeypatch.setattr(GATHER, "_function", jit(read_compiled.gather_at, _nrt=False))
    data, starts, offsets = of_strings(*values)
    assert gather(data, starts, offsets).tobytes() == b"".join(values)


def test_gathered_of_every_other_start():
    data, starts, offsets = of_strings(b"abc", b"de", b"fgh")
    GATHER.load()
    every = gather(data, np.repeat(starts, 2)[::2], offsets)
    assert every.tobytes() == b"abcdefgh"


def test_where_nothing_can_be_kept_numba_does_it(monkeypatch):
    kernel = gather_kernel()
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


def test_kernels_can_be_loaded_before_they_are_needed(fresh: None) -> None:
    icebench.prepare_kernels()
    assert all(kernel.should_use(1) for kernel in (DECODE_CHUNK, GATHER, WRITE_ROWS, LIST_CHUNKS, SLIM_FOOTER))
